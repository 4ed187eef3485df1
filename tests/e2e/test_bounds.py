"""Budgets, step, moved deadlines and why, as people use them: the command line, a real daemon, real processes."""

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.workspaces import Workspace

Wire = dict[str, Any]
WAIT = "while [ ! -e {} ]; do sleep 0.05; done"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    found = Workspace(tmp_path)
    yield found
    found.end()


def snapshot(workspace: Workspace, graph: str = "@last") -> Wire:
    value: Wire = json.loads(workspace.graphd("status", graph, "--json").stdout)
    found: Wire = value["graphs"][0]
    return found


def until(workspace: Workspace, reached: Callable[[Wire], bool]) -> Wire:
    found: Wire = {}
    for _ in range(200):
        found = snapshot(workspace)
        if reached(found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"never reached: {found}")


def states(found: Wire) -> dict[str, str]:
    return {node["slug"]: node["state"] for node in found["nodes"]}


def run(workspace: Workspace, text: str, *words: str) -> str:
    """Set a workflow from stdin and return its id."""
    (workspace.root / "w.yaml").write_text(text)
    done = workspace.graphd("run", "w.yaml", "--detach", "--json", "--yes", *words)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["graph"])


def test_a_step_runs_one_node_and_pauses_also_over_a_daemon_that_is_killed(workspace: Workspace) -> None:
    run(workspace, f"""
nodes:
  - {{ id: a, run: '{WAIT.format("go-a")}' }}
  - {{ id: b, needs: [a], run: '{WAIT.format("go-b")}' }}
  - {{ id: c, needs: [b], run: echo c }}
""")  # fmt: skip
    assert workspace.graphd("pause").returncode == 0
    assert "runs" in workspace.graphd("step").stderr
    (workspace.root / "go-a").touch()
    until(workspace, lambda found: states(found)["b"] == "ready")
    assert "c is waiting" in workspace.graphd("step", "c").stderr
    stepped = workspace.graphd("step")
    assert stepped.returncode == 0, stepped.stderr
    assert until(workspace, lambda found: states(found)["b"] == "running")["stepping"] == "b"
    os.kill(workspace.daemons()[0], signal.SIGKILL)
    assert workspace.graphd("daemon", "--start").returncode == 0
    (workspace.root / "go-b").touch()
    found = until(workspace, lambda found: found["status"] == "user_paused")
    assert (states(found), found["pauseReason"]) == ({"a": "achieved", "b": "achieved", "c": "ready"}, "stepped b")
    assert workspace.graphd("resume").returncode == 0
    until(workspace, lambda found: found["status"] == "complete")


def test_a_budget_of_time_stops_a_child_and_is_topped_up(workspace: Workspace) -> None:
    graph = run(workspace, "nodes: [{ id: a, run: sleep 600 }, { id: b, needs: [a], run: echo b }]", "--budget", "1s")
    found = until(workspace, lambda found: found["status"] == "budget_limited")
    assert (states(found), found["budget"]) == ({"a": "ready", "b": "waiting"}, {"wallSeconds": 1.0})
    assert found["spent"]["wallMs"] >= 1000
    assert found["nodes"][0]["attempts"] == 0, "never a verdict"
    refused = workspace.graphd("resume", graph)
    assert "--top-up 30m" in refused.stderr
    why = json.loads(workspace.graphd("why", "a", "--json").stdout)
    line = next(reason["next"] for reason in why if reason["code"] == "budget_limited")
    assert line == f"graphd resume {graph} --top-up 30m"
    assert workspace.graphd(*shlex.split(line)[1:]).returncode == 0, "what it prints is what it takes"
    until(workspace, lambda found: states(found)["a"] == "running")
    assert workspace.graphd("cancel", "--wait").returncode == 0


def test_a_running_deadline_is_moved(workspace: Workspace) -> None:
    run(workspace, f"nodes: [{{ id: a, run: '{WAIT.format('go')}', worker_config: {{ timeout_ms: 8000 }} }}]")
    until(workspace, lambda found: states(found)["a"] == "running")
    moved = workspace.graphd("extend-timeout", "a", "20m")
    assert moved.returncode == 0, moved.stderr
    assert "20m" in moved.stdout
    attempt = node(workspace, "a")
    assert attempt["deadlineAt"] - attempt["startedAt"] == 8000 + 20 * 60_000
    time.sleep(max(0.0, attempt["startedAt"] / 1000 + 9 - time.time()))
    assert states(snapshot(workspace)) == {"a": "running"}, "its first deadline is past"
    (workspace.root / "go").touch()
    until(workspace, lambda found: found["status"] == "complete")
    assert workspace.graphd("extend-timeout", "a", "1m").returncode != 0


def node(workspace: Workspace, slug: str) -> Wire:
    """The one attempt of a node, asked over the wire."""
    import asyncio

    from graphd.cli.talk import call, open_session

    async def ask() -> Wire:
        session = await open_session(workspace.root)
        try:
            answer = await call(session, "workgraph/node", {"node": slug})
        finally:
            await session.close()
        found: Wire = answer["attempts"][-1]
        return found

    with pytest.MonkeyPatch.context() as patch:
        for name in ("GRAPHD_STATE_DIR", "GRAPHD_CONFIG_DIR"):
            patch.setenv(name, workspace.environment[name])
        return asyncio.run(ask())


@pytest.mark.parametrize("words", [("--budget", "0"), ("--budget", "lots"), ("--budget", "1k,2k")])
def test_a_budget_that_is_none_is_a_usage_error(workspace: Workspace, words: tuple[str, ...]) -> None:
    done = workspace.graphd("run", "--sh", "true", "--detach", *words)
    assert done.returncode == 2, (done.stdout, done.stderr)


def test_what_why_prints_is_what_the_command_line_takes(workspace: Workspace) -> None:
    run(workspace, f"""
nodes:
  - {{ id: bad, run: exit 3, required: true }}
  - {{ id: after, needs: [bad], run: echo no }}
  - {{ id: good, run: echo yes }}
  - {{ id: slow, run: '{WAIT.format("go")}' }}
  - {{ id: late, needs: [slow], run: echo late }}
""")  # fmt: skip
    until(workspace, lambda found: states(found)["after"] == "blocked")
    taken = set()
    for slug in ("bad", "after", "good", "late"):
        for reason in json.loads(workspace.graphd("why", slug, "--json").stdout):
            words = shlex.split(reason["next"])[1:]
            if words[0] in ("watch", "retry"):  # the one follows, the other changes what is asked about
                continue
            done = workspace.graphd(*words)
            assert done.returncode == 0, (reason, done.stderr)
            taken.add(reason["code"])
    assert {"failed", "blockedBy", "achieved", "waitsFor"} <= taken
    assert workspace.graphd("cancel", "--wait").returncode == 0
