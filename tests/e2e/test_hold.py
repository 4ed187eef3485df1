"""A person takes a node's session over, and it goes on there afterwards: the fake agent, and a stand-in program."""

import json
import os
import signal
import sys
from typing import Any

from tests.e2e.test_answers_at_a_terminal import at_terminal
from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

ONE = "nodes:\n  - { id: a, worker: build, prompt: Do it }\n"


def begun(workspace: Workspace, *, opens: bool = True) -> AgentWorkspace:
    """A node at work on its first prompt; it says `done` to the second. The program notes that it ran, and waits."""
    agent = AgentWorkspace(workspace, [{"effect": "begun"}, {"until_cancel": True}], [{"say": "done"}])
    if opens:
        note, go = workspace.base / "opened", workspace.base / "go"
        code = (
            "import os, sys, time, pathlib\n"
            f"pathlib.Path({str(note)!r}).write_text(sys.argv[1] + ' ' + os.getcwd())\n"
            f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)\n"
        )
        path = workspace.base / "config" / "settings.json"
        settings = json.loads(path.read_text())
        settings["agents"]["fake"]["opens"] = [sys.executable, "-I", "-S", "-c", code, "{session}"]
        path.write_text(json.dumps(settings))
    agent.run(ONE, "--detach")
    agent.until(lambda: agent.trace(did="effect"))
    return agent


def test_a_terminal_takes_over_and_the_node_goes_on_in_the_session(workspace: Workspace) -> None:
    agent = begun(workspace)
    with at_terminal(workspace, "attach", "a", "--graph", "@last", "--take-over") as terminal:
        terminal.until("a is paused; it goes on when")
        note = workspace.base / "opened"
        agent.until(lambda: note.exists() and note.read_text())
        assert note.read_text() == f"session-1 {workspace.root}"
        assert agent.agent_pids() == []
        assert agent.nodes()["a"]["state"] == "ready"
        (why,) = [why for why in agent.read("why", "a", "--graph", "@last") if why["code"] == "takenOver"]
        assert why["detail"] == "a person has its session"
        second = workspace.graphd("attach", "a", "--graph", "@last", "--take-over")
        assert "somebody has the session of a already" in second.stderr
        (workspace.base / "go").touch()
        assert terminal.end() == 0, terminal.text
    assert "done" in terminal.text
    assert agent.nodes()["a"]["state"] == "achieved"
    assert [line["did"] for line in agent.trace(did="session/resume")] == ["session/resume"]
    outcomes = [event["payload"]["outcome"] for event in agent.history() if event["kind"] == "attempt_settled"]
    assert outcomes == ["paused", "achieved"]


def test_the_death_of_who_holds_it_lets_it_go(workspace: Workspace) -> None:
    agent = begun(workspace)
    holder = workspace.start("attach", "a", "--graph", "@last", "--take-over")
    agent.until((workspace.base / "opened").exists)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    agent.until(lambda: waits_for_session(agent))  # its program lives, and has the session
    assert agent.trace(did="session/resume") == []
    (workspace.base / "go").touch()
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    holder.communicate(timeout=30)  # the program had its pipes


def test_after_the_daemons_death_the_node_waits_for_the_program_alone(workspace: Workspace) -> None:
    agent = begun(workspace)
    holder = workspace.start("attach", "a", "--graph", "@last", "--take-over")
    agent.until((workspace.base / "opened").exists)
    agent.kill_daemon()
    why = agent.until(lambda: waits_for_session(agent))
    assert why["detail"] == "another process has its session open"
    assert agent.trace(did="session/resume") == []
    (workspace.base / "go").touch()
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    holder.communicate(timeout=30)
    assert [len(agent.trace(did=f"session/{how}")) for how in ("new", "resume", "load")] == [0, 1, 0]
    outcomes = [event["payload"]["outcome"] for event in agent.history() if event["kind"] == "attempt_settled"]
    assert outcomes == ["paused", "put_back", "achieved"]


def waits_for_session(agent: AgentWorkspace) -> Any:
    found = agent.read("why", "a", "--graph", "@last")
    return next((why for why in found if why["code"] == "sessionTaken"), None)


def test_an_agent_without_such_a_program_is_refused_and_works_on(workspace: Workspace) -> None:
    agent = begun(workspace, opens=False)
    ran = workspace.graphd("attach", "a", "--graph", "@last", "--take-over")
    assert "no program is known that opens a session of fake" in ran.stderr
    assert agent.nodes()["a"]["state"] == "running"
