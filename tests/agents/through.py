"""Real agents through graphd itself: a daemon, a workspace, the command line; the model is scripted."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agents.bare import require
from tests.kit.agents import AgentWorkspace
from tests.kit.model_script import script
from tests.kit.model_server import ModelServer
from tests.kit.real_agents import AGENTS
from tests.kit.workspaces import Workspace

LIMIT_S = 120.0
COMMAND = {"shell": "echo hi > a.txt", "escalate": True}


class Through(AgentWorkspace):
    """The default agent of the workspace is the real one, under a name of its own."""

    def __init__(self, name: str, workspace: Workspace, server: ModelServer) -> None:
        require(name)
        self.agent, self.server, self.workspace = AGENTS[name], server, workspace
        self.home = workspace.base / "home"
        self.home.mkdir()
        variables = self.agent.environment(self.home, server.url)
        kept = {key: value for key, value in variables.items() if key not in ("HOME", "TMPDIR")}
        profile: dict[str, Any] = {
            "driver": "acp", "command": list(self.agent.argv()), "env": kept, "home": str(self.home),
            "restore": ["resume", "load"], "reports": "tokens", "asksPermission": True,
        }  # fmt: skip
        if self.agent.mode:
            profile["setMode"] = self.agent.mode
        workspace.settings(json.dumps({"agents": {f"real-{name}": profile}, "defaultAgent": f"real-{name}"}))

    def begin(self, *steps: dict[str, Any]) -> None:
        """A graph with one node that plays these steps, in the background."""
        told = [{**step, "escalate": self.agent.escalates} for step in steps]
        node = {"id": "a", "worker": "build", "prompt": f"Do it. {script(*told)}", "retry": {"max": 2}}
        code, said = self.run(json.dumps({"nodes": [node]}), "--detach")
        assert code == 0, said

    def node(self) -> dict[str, Any]:
        return self.nodes()["a"]

    def wait(self, what: Callable[[], Any]) -> Any:
        return self.until(what, within_s=LIMIT_S)

    def asked(self, step: int, times: int = 1) -> None:
        self.server.wait_for(lambda rows: sum(row.step == step for row in rows) >= times, LIMIT_S)

    def tries(self, step: int) -> int:
        return sum(row.step == step for row in self.server.scripted)

    def result(self) -> str:
        """What the node achieved."""
        self.wait(lambda: self.node()["state"] not in ("pending", "ready", "running", "retrying"))
        assert self.node()["state"] == "achieved", self.node()
        text: str = self.node()["output"]["text"]
        return text

    def has(self, name: str) -> bool:
        return (self.workspace.root / name).exists()

    def pids(self) -> list[int]:
        """Live processes with the agent's home: itself, and what it started."""
        return [
            pid
            for pid, line in self.workspace.processes().items()
            if "keeper.py" not in line and "graphd" not in line.partition(" ")[2][:40] and self._is_at_home(pid)
        ]

    def _is_at_home(self, pid: int) -> bool:
        try:
            return f"HOME={self.home}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False


def allowed(at: Through) -> None:
    """A person allows what it asks for."""
    at.begin(COMMAND, {"say": "all done"})
    (ask,) = at.wait(at.asks)
    assert not at.has("a.txt")
    assert at.workspace.graphd("answer", ask["id"], "allow").returncode == 0
    assert at.result() == "all done"
    assert at.has("a.txt")


def rejected(at: Through) -> None:
    """A person rejects it: it is not done."""
    at.begin(COMMAND, {"say": "it was rejected"})
    (ask,) = at.wait(at.asks)
    assert at.workspace.graphd("answer", ask["id"], "reject").returncode == 0
    at.wait(lambda: at.node()["state"] != "running" or at.asks())
    assert not at.has("a.txt")


def cancelled_in_wait(at: Through) -> None:
    at.begin({"hold": "never", "say": "late"})
    at.asked(0)
    assert at.workspace.graphd("cancel", "--wait").returncode == 0
    assert at.graph()["status"] == "cancelled"
    assert at.pids() == []


def cancelled_in_tool(at: Through) -> None:
    at.begin({"shell": "echo begun > begun.txt; sleep 47; echo over > over.txt"}, {"say": "late"})
    (ask,) = at.wait(at.asks)
    at.workspace.graphd("answer", ask["id"], "allow")
    at.wait(lambda: at.has("begun.txt"))
    assert at.workspace.graphd("cancel", "--wait").returncode == 0
    assert at.graph()["status"] == "cancelled"
    assert at.pids() == []
    assert not at.has("over.txt")


def agent_killed(at: Through) -> None:
    """The next attempt goes on in the same session, and nothing is done twice."""
    at.begin(COMMAND, {"hold": "later", "times": 1, "say": "went on"})
    (ask,) = at.wait(at.asks)
    at.workspace.graphd("answer", ask["id"], "allow")
    at.asked(1)
    session = at.node()["childSession"]
    for pid in at.pids():
        os.kill(pid, signal.SIGKILL)
    at.server.release("later")
    at.wait(lambda: at.node()["state"] == "achieved" or at.asks())
    assert at.result().endswith("went on"), at.node()["output"]
    assert (at.node()["childSession"], at.node()["attempts"]) == (session, 2)
    assert at.tries(0) == 1


def daemon_killed(at: Through) -> None:
    """The next daemon adopts the running turn; nothing is repeated, and a permission is answered over its death."""
    at.begin(COMMAND, {"hold": "later", "say": "on"})
    (before,) = at.wait(at.asks)
    at.kill_daemon()
    (after,) = at.wait(at.asks)
    assert after["id"] == before["id"]
    at.workspace.graphd("answer", after["id"], "allow")
    at.asked(1)
    at.kill_daemon()
    at.server.release("later")
    assert at.result() == "on"
    assert at.tries(0) == 1
    assert at.node()["attempts"] == 1
    assert at.has("a.txt")


def failed_twice(at: Through) -> None:
    at.begin({"error": 500, "times": 2, "say": "through"})
    assert at.result().endswith("through")


def dropped(at: Through) -> None:
    at.begin({"drop": True, "times": 1, "say": "a text of several words"})
    assert at.result().endswith("a text of several words")


SCENARIOS = (
    allowed, rejected, cancelled_in_wait, cancelled_in_tool, agent_killed, daemon_killed, failed_twice, dropped,
)  # fmt: skip


def pass_through(name: str, scenario: Callable[[Through], None], workspace: Workspace) -> None:
    """One scenario with one agent."""
    with ModelServer() as server:
        scenario(Through(name, workspace, server))
