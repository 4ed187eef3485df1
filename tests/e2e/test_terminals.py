"""An agent's commands under a real daemon: the policy's word on each, a person's answer, deaths, and nothing left."""

import os
import signal
from typing import Any

import pytest

from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

ONE = "nodes: [{ id: a, worker: build, prompt: Do it, worker_config: { permissions: %s } }]\n"
DONE = ("wait_for_exit", "output", "release")


def terminal(command: str, *then: str, **more: Any) -> dict[str, Any]:
    return {"terminal": {"command": command, "then": list(then), **more}}


def made(agent: AgentWorkspace) -> list[bool]:
    """Which of the commands were run."""
    return ["terminalId" in line["reply"] for line in agent.trace(did="terminal")]


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [("read", [True, False, False, False]), ("full", [True, True, True, False])],
)  # fmt: skip
def test_the_policy_has_the_word_on_each(workspace: Workspace, permissions: str, expected: list[bool]) -> None:
    turn = [
        terminal("ls", *DONE), terminal("touch ran", *DONE), terminal("ls | tee ran", *DONE),
        terminal("ls", cwd="/etc"), {"say": "done"},
    ]  # fmt: skip
    agent = AgentWorkspace(workspace, turn, [{"say": "done"}])
    code, said = agent.run(ONE % permissions)
    assert code == 0, said
    assert made(agent) == expected
    assert (workspace.root / "ran").exists() == (permissions == "full")
    ruled = [event["payload"]["by"] for event in agent.history() if event["kind"] == "ask_answered"]
    assert ruled == [f"rule {permissions}/execute"] * 3, "what is to run elsewhere is no question"


def test_rules_of_a_person_are_about_commands_too_and_the_rest_is_asked(workspace: Workspace) -> None:
    turn = [
        terminal("make x || true", *DONE), terminal("printf made", *DONE), terminal("rm -rf x", *DONE),
        terminal("pwd", *DONE), {"say": "done"},
    ]  # fmt: skip
    rules = {"allow": ["execute:printf *"], "deny": ["execute:rm *", "execute:make *"]}
    agent = AgentWorkspace(workspace, turn, [{"say": "done"}], permissions=rules)
    code, said = agent.run(ONE % "edit")
    assert code == 6, said
    (ask,) = agent.asks()
    assert (ask["title"], ask["action"]["paths"]) == ("pwd", [str(workspace.root)])
    assert made(agent) == [False, True, False]
    assert workspace.graphd("answer", ask["id"], "allow").returncode == 0
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    assert [line["reply"]["output"] for line in agent.trace(did="output")] == ["made", f"{workspace.root}\n"]
    shown = workspace.graphd("logs", "a", "--graph", "@last").stdout
    assert "$ printf made" in shown
    assert "exit code 0" in shown


def test_a_command_outlives_the_daemon_which_answers_for_it_when_it_is_back(workspace: Workspace) -> None:
    go, ran = workspace.base / "go", workspace.base / "ran"
    command = f"echo x >> {ran}; while ! test -e {go}; do sleep 0.05; done; echo ended; exit 4"
    agent = AgentWorkspace(workspace, [terminal(command, *DONE), {"say": "done"}])
    agent.run(ONE % "full", "--detach")
    agent.until(ran.exists)
    agent.until(lambda: agent.trace(did="terminal"))
    agent.kill_daemon()
    go.touch()
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    assert ran.read_text() == "x\n"
    assert [line["reply"] for line in agent.trace(did="wait_for_exit")] == [{"exitCode": 4, "signal": None}]
    assert agent.trace(did="output")[0]["reply"]["output"] == "ended\n"
    assert not workspace.keepers()


@pytest.mark.parametrize("how", ["cancel", "keeper"])
def test_nothing_of_it_outlives_its_attempt(workspace: Workspace, how: str) -> None:
    """Neither what left its session."""

    def sleeping() -> int:
        return sum("sleep 600" in line and "/bin/sh" not in line for line in workspace.processes().values())

    turn = [terminal("setsid sleep 600 & exec sleep 600"), {"until_cancel": True}]
    agent = AgentWorkspace(workspace, turn, [{"say": "went on"}])
    agent.run(ONE % "full", "--detach")
    agent.until(lambda: sleeping() == 2)
    agent.until(lambda: agent.trace(did="terminal"))
    if how == "cancel":
        assert workspace.graphd("cancel", "--wait").returncode == 0
        assert agent.graph()["status"] == "cancelled"
    else:
        for keeper in workspace.keepers():
            os.kill(keeper, signal.SIGKILL)
        agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    assert sleeping() == 0
