"""What docs/guarantees.md promises, with a real daemon, real keepers, real children, and observers outside."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphd.client.session import Session
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.timeout(180)


def wait_for(what: Callable[[], Any], timeout_s: float = 20) -> Any:
    """The first true value of `what`, or a failure that names it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"never true: {what}")


def status(workspace: Workspace) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(workspace.graphd("status", "--json").stdout)
    return answer


def graph(workspace: Workspace) -> dict[str, Any]:
    return status(workspace)["graphs"][0]  # type: ignore[no-any-return]


def node(snapshot: dict[str, Any], slug: str) -> dict[str, Any]:
    return next(n for n in snapshot["nodes"] if n["slug"] == slug)


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def pidfds(pids: list[int]) -> Iterator[dict[int, int]]:
    """An observer's own handles on processes: dead is what their poll says, not what anybody reports."""
    opened = {pid: os.pidfd_open(pid) for pid in pids}
    try:
        yield opened
    finally:
        for fd in opened.values():
            os.close(fd)


def alive(handles: dict[int, int]) -> list[int]:
    import select

    poller = select.poll()
    for fd in handles.values():
        poller.register(fd, select.POLLIN)
    dead = {fd for fd, _ in poller.poll(0)}
    return [pid for pid, fd in handles.items() if fd not in dead]


# A tree of every shape that outlives careless stopping; each process writes its pid to the oracle.
TREE = """
stay() {{ trap '' TERM INT HUP; echo $$ >> {oracle}; while :; do sleep 0.5; done; }}
sh -c "$(command -v true); trap '' INT; echo \\$\\$ >> {oracle}; while :; do sleep 0.5; done" &
setsid sh -c "trap '' TERM INT HUP; echo \\$\\$ >> {oracle}; while :; do sleep 0.5; done" &
( setsid sh -c "( trap '' TERM; exec sh -c 'echo \\$\\$ >> {oracle}; while :; do sleep 0.5; done' ) & exit 0" & )
stay
"""


def test_a_killed_daemon_comes_back_by_itself_and_the_run_ends_as_if_nothing_was(workspace: Workspace) -> None:
    plan = "nodes:\n" + "".join(
        f"  - {{ id: n{i}, run: 'echo n{i} >> {workspace.oracle}; sleep 5; echo done' }}\n" for i in range(3)
    )
    plan += f"  - {{ id: end, needs: [n0, n1, n2], run: 'echo end >> {workspace.oracle}; echo all' }}\n"
    (workspace.root / "plan.yaml").write_text(plan)
    run = workspace.start("run", "plan.yaml")
    wait_for(lambda: len(workspace.lines()) == 3)
    before = set(workspace.keepers())
    kill(workspace.daemons())
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert out == "all\n"
    assert "daemon restarted, 3 children adopted" in err
    assert sorted(workspace.lines()) == ["end", "n0", "n1", "n2"]
    assert len(before) == 3
    assert status(workspace)["daemon"]["epoch"] == 2


def test_daemon_and_keeper_killed_the_tree_is_ended_before_any_retry(workspace: Workspace) -> None:
    script = TREE.format(oracle=workspace.oracle)
    (workspace.root / "plan.yaml").write_text(json.dumps({"nodes": [{"id": "tree", "run": script}]}))
    assert workspace.graphd("run", "plan.yaml", "--detach").returncode == 0
    wait_for(lambda: len(workspace.lines()) == 4)
    first = [int(line) for line in workspace.lines()]
    with pidfds(first) as handles:
        kill(workspace.daemons() + workspace.keepers())
        assert len(alive(handles)) == 4, "the test kills only daemon and keeper"
        workspace.graphd("daemon", "--start")
        wait_for(lambda: len(workspace.lines()) >= 8 or node(graph(workspace), "tree")["phase"] == "stuck", 40)
        assert alive(handles) == [], "the second attempt started beside the first tree"
    assert node(graph(workspace), "tree")["attempts"] == 2


def test_without_a_daemon_for_the_linger_time_the_tree_ends_and_the_record_remains(workspace: Workspace) -> None:
    workspace.settings('{"lingerSeconds": 2, "keepersRestartDaemon": false}')
    script = TREE.format(oracle=workspace.oracle)
    (workspace.root / "plan.yaml").write_text(json.dumps({"nodes": [{"id": "tree", "run": script}]}))
    assert workspace.graphd("run", "plan.yaml", "--detach").returncode == 0
    wait_for(lambda: len(workspace.lines()) == 4)
    wait_for(lambda: node(graph(workspace), "tree").get("phase") == "working")
    with pidfds([int(line) for line in workspace.lines()]) as handles:
        kill(workspace.daemons())
        time.sleep(1)
        assert workspace.daemons() == [], "starting is disabled"
        wait_for(lambda: not alive(handles), 30)
    wait_for(lambda: list((workspace.folder / "attempts").glob("*/*/exit.json")), 20)
    assert workspace.daemons() == []


def test_a_cancel_whose_daemon_dies_is_finished_by_the_next_one_and_only_then_said(workspace: Workspace) -> None:
    script = TREE.format(oracle=workspace.oracle)
    (workspace.root / "plan.yaml").write_text(json.dumps({"nodes": [{"id": "tree", "run": script}]}))
    assert workspace.graphd("run", "plan.yaml", "--detach").returncode == 0
    wait_for(lambda: len(workspace.lines()) == 4)
    with pidfds([int(line) for line in workspace.lines()]) as handles:
        asyncio.run(_call(workspace, "workgraph/cancel", {}))
        kill(workspace.daemons())
        assert alive(handles), "the tree ignores TERM: it can't be dead yet"
        deadline = time.monotonic() + 60
        workspace.graphd("daemon", "--start")
        while (found := graph(workspace))["status"] != "cancelled":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert alive(handles) == []
        assert node(found, "tree")["state"] == "cancelled"


async def _call(workspace: Workspace, method: str, params: dict[str, Any]) -> Any:
    with _environment(workspace):
        async with await Session.open(workspace=workspace.root) as session:
            return await session.call(method, params)


@contextmanager
def _environment(workspace: Workspace) -> Iterator[None]:
    kept = dict(os.environ)
    os.environ.update({k: v for k, v in workspace.environment.items() if k.startswith("GRAPHD_")})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


async def test_cancelled_is_never_said_before_the_tree_is_empty(workspace: Workspace) -> None:
    """100 graphs, each a tree that ignores what it can; an observer with pidfds looks when each `cancelled` comes."""
    count = 100
    workspace.settings('{"concurrency": 128}')
    oracle = workspace.base / "trees"
    oracle.mkdir()
    with _environment(workspace):
        session = await Session.open(workspace=workspace.root)
    async with session:
        graphs = {}
        for i in range(count):
            script = TREE.format(oracle=oracle / str(i))
            answer = await session.call(
                "workgraph/set", {"title": f"t{i}", "nodes": [{"slug": "tree", "spec": script}]}
            )
            graphs[answer["graph"]] = oracle / str(i)
        deadline = time.monotonic() + 60
        while any(not f.exists() or len(f.read_text().split()) < 4 for f in graphs.values()):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        await session.call("workgraph/subscribe", {})
        pids = {g: [int(pid) for pid in f.read_text().split()] for g, f in graphs.items()}
        with pidfds([pid for group in pids.values() for pid in group]) as handles:
            for g in graphs:
                await session.call("workgraph/cancel", {"graph": g})
            early: list[str] = []
            said: set[str] = set()
            async with asyncio.timeout(90):
                async for method, params in session.notifications():
                    if method == "workgraph/changed" and params["header"]["status"] == "cancelled":
                        said.add(params["graph"])
                        early += [params["graph"] for pid in alive(handles) if pid in pids[params["graph"]]]
                    if len(said) == count:
                        break
        assert early == []
        assert len(said) == count


def test_a_client_with_a_poor_path_starts_the_daemon_and_a_rich_one_the_graph(workspace: Workspace) -> None:
    tools = workspace.base / "tools"
    tools.mkdir()
    (tools / "rare-tool").write_text("#!/bin/sh\necho found\n")
    (tools / "rare-tool").chmod(0o755)
    assert workspace.graphd("daemon", "--start", PATH="/usr/bin:/bin").returncode == 0
    rich = f"{tools}:{workspace.environment['PATH']}"
    ran = workspace.graphd("run", "--sh", "rare-tool", PATH=rich)
    assert (ran.returncode, ran.stdout) == (0, "found\n")
    assert workspace.graphd("run", "--sh", "rare-tool", PATH="/usr/bin:/bin").returncode == 1


def test_twenty_simultaneous_first_starts_make_one_daemon(workspace: Workspace) -> None:
    _start_races(workspace, rounds=10)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_simultaneous_first_starts_a_hundred_times(workspace: Workspace) -> None:
    _start_races(workspace, rounds=100)


def _start_races(workspace: Workspace, *, rounds: int) -> None:
    """The jitter makes it able to fail (sidecar.md §5)."""
    for number in range(rounds):
        clients = []
        for i in range(20):
            word = f"import time; time.sleep({(i * 7 + number) % 10 / 60}); from graphd.__main__ import main; main()"
            clients.append(
                subprocess.Popen(
                    [sys.executable, "-c", word, "daemon", "--start"],
                    cwd=workspace.root,
                    env=workspace.environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )  # fmt: skip
            )
        said = [client.communicate(timeout=60) for client in clients]
        assert [client.returncode for client in clients] == [0] * 20, said
        assert len({out for out, _ in said}) == 1
        assert len(workspace.daemons()) == 1
        kill(workspace.daemons())


def test_a_removed_socket_is_bound_again(workspace: Workspace) -> None:
    assert workspace.graphd("run", "--sh", "true").returncode == 0
    daemon = workspace.daemons()
    (workspace.folder / "socket").unlink()
    wait_for(lambda: (workspace.folder / "socket").exists())
    assert status(workspace)["daemon"]["pid"] in daemon


def test_a_removed_state_folder_ends_the_daemon_and_the_next_one_serves(workspace: Workspace) -> None:
    assert workspace.graphd("run", "--sh", "true").returncode == 0
    daemon = workspace.daemons()
    subprocess.run(["rm", "-rf", str(workspace.folder)], check=True)
    wait_for(lambda: not set(daemon) & set(workspace.daemons()))
    assert workspace.graphd("run", "--sh", "echo again").stdout == "again\n"


def test_a_foreign_pid_in_the_lock_file_decides_nothing(workspace: Workspace) -> None:
    assert workspace.graphd("run", "--sh", "true").returncode == 0
    assert workspace.graphd("stop").returncode == 0
    wait_for(lambda: not workspace.daemons())
    (workspace.folder / "lock").write_text(json.dumps({"pid": os.getpid(), "version": "9", "startedAt": 1}))
    assert workspace.graphd("run", "--sh", "echo fine").stdout == "fine\n"


@pytest.mark.parametrize("name", ["普通 文件夹", "x" * 60 + "/" + "y" * 60 + "/" + "z" * 60, "a'b\"c $d"])
def test_workspaces_of_any_name_are_served(tmp_path: Path, name: str) -> None:
    made = Workspace(tmp_path)
    try:
        made.root = tmp_path / name
        made.root.mkdir(parents=True)
        assert made.graphd("run", "--sh", "pwd").stdout.strip().endswith(name)
        link = tmp_path / "link"
        link.symlink_to(made.root)
        made.root = link
        assert len(status(made)["graphs"]) == 1, "the same folder by another name is the same workspace"
        assert len(made.daemons()) == 1
    finally:
        made.end()


async def test_two_racing_retries_one_wins(workspace: Workspace) -> None:
    workspace.graphd("run", "--sh", "exit 4")
    with _environment(workspace):
        sessions = [await Session.open(workspace=workspace.root) for _ in range(2)]
    calls = [s.call("workgraph/retry", {"graph": "@last", "node": "exit"}) for s in sessions]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    codes = sorted(getattr(answer, "code", "won") for answer in answers)
    assert codes == ["invalidTransition", "won"]
    for session in sessions:
        await session.close()


async def test_three_graphs_at_once_share_the_slots(workspace: Workspace) -> None:
    workspace.settings('{"concurrency": 3}')
    script = f"echo $GRAPHD_ATTEMPT >> {workspace.oracle}; sleep 0.3"
    nodes = [{"slug": f"n{i}", "spec": script} for i in range(5)]
    with _environment(workspace):
        session = await Session.open(workspace=workspace.root)
    async with session:
        sets = [session.call("workgraph/set", {"title": f"g{i}", "nodes": nodes}) for i in range(3)]
        await asyncio.gather(*sets)
    await asyncio.to_thread(wait_for, lambda: len(workspace.lines()) == 15, 60)
    order = [line.rpartition("/")[0] for line in workspace.lines()]
    # The first graph may take all slots before the others are set; from then on none falls behind by more than a slot.
    counts = dict.fromkeys(set(order), 0)
    for name in order[3:9]:
        counts[name] += 1
    assert len(counts) == 3
    assert min(counts.values()) >= 1
    assert min(order[:9].count(name) for name in counts) >= 2


def test_a_bad_file_starts_nothing(workspace: Workspace) -> None:
    (workspace.root / "bad.yaml").write_text("nodes:\n  - { id: a, run: 'true', wants: [b] }\n")
    ran = workspace.graphd("run", "bad.yaml")
    assert ran.returncode == 2
    assert "bad.yaml:2:" in ran.stderr
    assert status(workspace)["graphs"] == []
