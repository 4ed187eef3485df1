"""One process per session, over workspaces of one user: who comes second waits or is refused, and is told why."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

ONE = "nodes:\n  - { id: a, worker: build, prompt: Do it }\n"


@pytest.fixture
def other(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A second workspace of the same user; what lives in it is killed with the first one's."""
    return Workspace(tmp_path / "other", {"GRAPHD_STATE_DIR": workspace.environment["GRAPHD_STATE_DIR"]})


def waiting(workspace: Workspace, go: Path, **settings: Any) -> AgentWorkspace:
    """An agent whose first turn ends when `go` is there, and whose sessions are called as everybody's are."""
    return AgentWorkspace(
        workspace, [{"effect": "begun"}, {"until": str(go)}, {"say": "first"}], [{"say": "went on"}], **settings
    )


def paused(agent: AgentWorkspace) -> None:
    agent.run(ONE, "--detach")
    agent.until(lambda: agent.trace(did="effect"))
    assert agent.workspace.graphd("pause", "--stop", "--wait").returncode == 0


def taken(agent: AgentWorkspace) -> bool:
    return any(why["code"] == "sessionTaken" for why in agent.read("why", "a", "--graph", "@last"))


def test_a_session_that_another_workspace_has_open_is_waited_for(workspace: Workspace, other: Workspace) -> None:
    go = workspace.base / "go"
    second = waiting(other, go)
    paused(second)
    first = waiting(workspace, go)
    first.run(ONE, "--detach")
    first.until(lambda: first.trace(did="effect"))
    second.workspace.graphd("resume")
    second.until(lambda: taken(second))
    for pid in daemons_of(second):  # what it waited for is known to the next daemon too
        os.kill(pid, signal.SIGKILL)
    second.until(lambda: taken(second))
    assert second.trace(did="session/resume") == []
    go.touch()
    second.until(lambda: second.nodes()["a"]["state"] == "achieved")
    assert second.nodes()["a"]["output"]["text"] == "went on"
    assert len(second.trace(did="session/resume")) == len(second.trace(did="new")) == 1
    assert first.nodes()["a"]["state"] == "achieved"


def daemons_of(agent: AgentWorkspace) -> list[int]:
    """Those of the second workspace: the first one's have another folder as their workspace."""
    found = agent.workspace.environment["GRAPHD_STATE_DIR"]
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode()
                is_ours = f"GRAPHD_STATE_DIR={found}".encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_ours and "graphd.server" in line and str(agent.workspace.root) in line:
                pids.append(int(entry.name))
    return pids


def test_a_new_session_that_is_open_elsewhere_ends_the_attempt(workspace: Workspace, other: Workspace) -> None:
    go = workspace.base / "go"
    first, second = waiting(workspace, go), waiting(other, go)
    first.run(ONE, "--detach")
    first.until(lambda: first.trace(did="effect"))
    code, said = second.run(ONE.replace("prompt: Do it", "prompt: Do it, retry: { max: 0 }"))
    assert code == 1, said
    failure = second.nodes()["a"]["failure"]
    assert failure["reason"] == "the agent opened the session session-1, which another process has open"
    go.touch()
    first.until(lambda: first.nodes()["a"]["state"] == "achieved")


def test_who_outlives_a_killed_keeper_keeps_the_session(workspace: Workspace, other: Workspace) -> None:
    """Its agent ignores the end of its stdin; its daemon is dead too, so nobody ends it."""
    go = workspace.base / "go"
    second = waiting(other, go)
    paused(second)
    first = waiting(workspace, go, keepersRestartDaemon=False)
    script = json.loads((workspace.base / "fake.json").read_text())
    (workspace.base / "fake.json").write_text(json.dumps(script | {"on_eof": "stay"}))
    first.run(ONE, "--detach")
    first.until(lambda: first.trace(did="effect"))
    agents = first.agent_pids()
    for pid in [*(pid for pid in workspace.daemons() if pid not in daemons_of(second)), *workspace.keepers()]:
        os.kill(pid, signal.SIGKILL)
    second.workspace.graphd("resume")
    second.until(lambda: taken(second))
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    second.until(lambda: second.nodes()["a"]["state"] == "achieved")
    assert second.nodes()["a"]["output"]["text"] == "went on"
