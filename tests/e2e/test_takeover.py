"""Two versions on one machine: the newer takes over by a clean stop, the older is served, and no work is lost."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from graphd import __version__
from tests.kit.releases import Release, previous_release, same_release
from tests.kit.workspaces import Workspace

Wire = dict[str, Any]
OURS = Release(__version__)
OLD = "0.0.9"
NEW = "99.0"


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    release = previous_release(tmp_path_factory.mktemp("releases") / "previous", OLD)
    if release is None:
        pytest.skip("no repository to take the previous commit's package from")
    return release


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return same_release(tmp_path_factory.mktemp("releases") / "older", OLD)


def started(workspace: Workspace, release: Release, *names: str) -> str:
    """A graph of nodes that note their start and wait until `go` is there."""
    wait = f"while [ ! -e {workspace.base}/go ]; do sleep 0.05; done; echo done"
    words = [part for name in names for part in ("--sh", f": {name}; echo {name} >> {workspace.oracle}; {wait}")]
    return str(release.json(workspace, "run", "--detach", *words)["graph"])


def until(workspace: Workspace, release: Release, graph: str, state: str, count: int) -> Wire:
    deadline = time.monotonic() + 30
    while True:
        snapshot: Wire = release.json(workspace, "status", graph)["graphs"][0]
        if snapshot["counts"].get(state, 0) >= count:
            return snapshot
        assert time.monotonic() < deadline, snapshot["counts"]
        time.sleep(0.1)


def health(workspace: Workspace, release: Release = OURS) -> Wire:
    return dict(release.json(workspace, "status")["daemon"])


def trees(workspace: Workspace) -> set[tuple[str, int, int]]:
    return {(row["node"], row["attempt"], row["pid"]) for row in OURS.json(workspace, "processes")}


def checked_end(workspace: Workspace, graph: str, names: tuple[str, ...]) -> None:
    """Everything ends well, and every node ran exactly once."""
    (workspace.base / "go").touch()
    until(workspace, OURS, graph, "achieved", len(names))
    assert sorted(workspace.lines()) == sorted(names)


@pytest.mark.parametrize("which", ["previous", "older"])
def test_a_newer_client_takes_over_and_what_runs_goes_on(
    workspace: Workspace, which: str, request: pytest.FixtureRequest
) -> None:
    old: Release = request.getfixturevalue(which)
    names = ("a", "b", "c")
    graph = started(workspace, old, *names)
    until(workspace, old, graph, "running", 3)
    before = health(workspace, old)
    assert before["version"] == OLD
    running = {(row["node"], row["attempt"], row["pid"]) for row in old.json(workspace, "processes")}
    assert len(running) == 3

    OURS.graphd(workspace, "daemon", "--start")

    after = health(workspace)
    assert (after["version"], after["epoch"]) == (__version__, before["epoch"] + 1)
    assert trees(workspace) == running, "the same processes of the same attempts"
    assert len(workspace.daemons()) == 1

    # the other direction: the older client is served by the newer daemon, and replaces nothing
    for words in (["status"], ["pause"], ["resume"], ["daemon", "--start"], ["why", "sh"]):
        done = workspace.graphd(*words, timeout_s=60, **old.environment)
        assert done.returncode == 0 or words[0] == "why", f"{words}\n{done.stdout}\n{done.stderr}"
    assert health(workspace)["pid"] == after["pid"]
    checked_end(workspace, graph, names)


def test_under_load_one_take_over_serves_everybody(workspace: Workspace, previous: Release) -> None:
    names = tuple(f"n{i}" for i in range(4))
    graph = started(workspace, previous, *names)
    until(workspace, previous, graph, "running", 4)
    answers: list[tuple[str, str]] = []

    def client(release: Release, name: str) -> None:
        done = workspace.graphd(
            "run",
            "--sh",
            f"echo {name} >> {workspace.oracle}",
            "--detach",
            "--json",
            timeout_s=60,
            **release.environment,
        )
        answers.append((name, done.stdout if done.returncode == 0 else done.stdout + done.stderr))

    clients = [
        threading.Thread(target=client, args=(OURS if i % 2 else previous, f"extra{i}")) for i in range(8)
    ]  # fmt: skip
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()

    refused = [(name, said) for name, said in answers if "graph" not in json.loads(said.splitlines()[0])]
    assert refused == [], "a request that meets the take-over goes again, once"
    assert health(workspace)["version"] == __version__
    deadline = time.monotonic() + 30
    extra = [f"extra{i}" for i in range(8)]
    while sorted(line for line in workspace.lines() if line.startswith("extra")) != extra:
        assert time.monotonic() < deadline, workspace.lines()
        time.sleep(0.1)
    (workspace.base / "go").touch()
    until(workspace, OURS, graph, "achieved", 4)
    assert sorted(workspace.lines()) == sorted([*names, *extra]), "nothing was started twice"


def test_an_older_follower_comes_back_to_the_newer_daemon(workspace: Workspace, older: Release) -> None:
    graph = started(workspace, older, "a")
    until(workspace, older, graph, "running", 1)
    watching = older.start(workspace, "watch", graph)
    time.sleep(1)

    OURS.graphd(workspace, "daemon", "--start")
    (workspace.base / "go").touch()

    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 0, err
    assert "daemon restarted, 1 child adopted" in err
    assert health(workspace)["version"] == __version__
    assert workspace.lines() == ["a"]


def test_an_older_client_starts_the_newest_daemon_recorded(
    workspace: Workspace, older: Release, tmp_path: Path
) -> None:
    newest = same_release(tmp_path / "newest", NEW)
    newest.graphd(workspace, "daemon", "--start")
    newest.graphd(workspace, "stop")

    for release in (older, OURS, older):
        release.graphd(workspace, "daemon", "--start")
        assert health(workspace)["version"] == NEW, "whoever starts it"
        release.graphd(workspace, "stop")

    assert newest.folder is not None
    shutil.rmtree(newest.folder)
    older.graphd(workspace, "daemon", "--start")
    assert health(workspace)["version"] == OLD, "a program that is gone is passed over"
    OURS.graphd(workspace, "daemon", "--start")
    assert health(workspace)["version"] == __version__


def test_a_newest_daemon_that_does_not_start_is_passed_over(workspace: Workspace, tmp_path: Path) -> None:
    newest = same_release(tmp_path / "newest", NEW)
    newest.graphd(workspace, "daemon", "--start")
    newest.graphd(workspace, "stop")
    assert newest.folder is not None
    (newest.folder / "graphd/server/__main__.py").write_text("raise SystemExit('broken')\n")

    OURS.graphd(workspace, "daemon", "--start")

    assert health(workspace)["version"] == __version__


def test_a_keeper_of_an_older_daemon_brings_back_the_newest(workspace: Workspace, older: Release) -> None:
    """Its command line is the older daemon's: that one becomes the newest recorded."""
    OURS.graphd(workspace, "daemon", "--start")
    os.kill(int(health(workspace)["pid"]), signal.SIGKILL)
    restarted = older.server(workspace, "--restarted")
    try:
        deadline = time.monotonic() + 20
        while (workspace.graphd("status", "--json").stdout or "null") == '{"daemon":null,"graphs":[]}\n':
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found = health(workspace)
        assert (found["version"], found["pid"]) == (__version__, restarted.pid)
    finally:
        restarted.kill()
        restarted.wait()


def test_protocols_that_do_not_meet_are_refused_with_both_versions_and_a_command(
    workspace: Workspace, tmp_path: Path
) -> None:
    newest = same_release(tmp_path / "newest", NEW, protocol=(2, 3))
    graph = started(workspace, OURS, "a")
    until(workspace, OURS, graph, "running", 1)

    # whoever may not start a daemon does not replace one either
    refused = newest.graphd(workspace, "status", code=5)
    assert f"graphd {__version__}" in refused
    assert f"graphd {NEW}" in refused
    assert "graphd daemon --start" in refused

    # the newer one takes over although it does not speak the older protocol any more
    newest.graphd(workspace, "daemon", "--start")
    assert health(workspace, newest)["version"] == NEW
    assert newest.json(workspace, "processes")[0]["attempt"] == 1

    for words in (["status"], ["daemon", "--start"], ["run", "--sh", "true"]):
        refused = OURS.graphd(workspace, *words, code=5)
        assert f"graphd {__version__}" in refused
        assert f"graphd {NEW}" in refused
        assert "pipx upgrade workgraphd" in refused
        assert "-m graphd" in refused
    (workspace.base / "go").touch()
    until(workspace, newest, graph, "achieved", 1)
    assert workspace.lines() == ["a"]


def test_only_a_newer_version_is_handed_the_workspace(workspace: Workspace) -> None:
    import asyncio

    from tests.kit.wire import Client, WireError

    OURS.graphd(workspace, "daemon", "--start")
    pid = health(workspace)["pid"]

    async def ask() -> list[str]:
        said = []
        for version in (OLD, __version__, "nonsense"):
            client = await Client.connect(workspace.folder / "socket")
            try:
                with pytest.raises(WireError) as caught:
                    await client.call("graphd/handover", {"version": version, "protocol": [1, 1]})
                said.append(str(caught.value.data["code"]))
            finally:
                await client.close()
        return said

    assert asyncio.run(ask()) == ["conflict"] * 3
    assert health(workspace)["pid"] == pid


def test_clients_are_told_to_come_back(workspace: Workspace) -> None:
    import asyncio

    from tests.kit.wire import Client

    OURS.graphd(workspace, "daemon", "--start")

    async def watch() -> Wire:
        bystander = await Client.connect(workspace.folder / "socket")
        newer = await Client.connect(workspace.folder / "socket")
        assert await newer.call("graphd/handover", {"version": NEW, "protocol": [1, 1]}) == {}
        messages = await bystander.rest()
        for client in (bystander, newer):
            await client.close()
        return dict(messages[-1])

    last = asyncio.run(watch())
    assert last["method"] == "graphd/stopping"
    assert last["params"] == {"reason": f"graphd {NEW} takes over", "reconnect": True}
