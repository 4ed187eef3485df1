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
from tests.kit.real_agents import AGENTS, RealAgent
from tests.kit.through_results import noted
from tests.kit.workspaces import Workspace

LIMIT_S = 120.0
COMMAND = {"shell": "echo hi > a.txt"}


def settings_of(agent: RealAgent, home: Path, server: ModelServer) -> dict[str, Any]:
    """What the settings say beside the shipped profile: where the program is, and where its model."""
    home.mkdir(exist_ok=True)
    variables = agent.environment(home, server.url)
    kept = {key: value for key, value in variables.items() if key not in ("HOME", "TMPDIR")}
    profile: dict[str, Any] = {"command": list(agent.argv()), "env": kept, "home": str(home)}
    if agent.name == "codex-zed":  # its own file has it ask
        profile |= {"asksPermission": True, "setMode": None}
    return profile


class Through(AgentWorkspace):
    """The default agent of the workspace is the real one, by its shipped profile."""

    def __init__(self, name: str, workspace: Workspace, server: ModelServer) -> None:
        require(name)
        self.agent, self.server, self.workspace = AGENTS[name], server, workspace
        self.home = workspace.base / "home"
        profile = settings_of(self.agent, self.home, server)
        workspace.settings(json.dumps({"agents": {name: profile}, "defaultAgent": name}))

    def begin(self, *steps: dict[str, Any]) -> None:
        """A graph with one node that plays these steps, in the background."""
        self.begin_nodes(self.made("a", *steps))

    def made(self, slug: str, *steps: dict[str, Any]) -> dict[str, Any]:
        """A node that plays these steps."""
        told = [{**step, "escalate": self.agent.escalates} for step in steps]  # only where it must, to be asked for
        made = {"id": slug, "worker": "build", "prompt": f"Do it. {script(*told)}", "retry": {"max": 2}}
        return made | (
            {"worker_config": {"permissions": "full"}} if "rejected" in self.agent.lacks else {}
        )  # it serves no other

    def begin_nodes(self, *nodes: dict[str, Any]) -> None:
        """A graph of these, in the background."""
        code, said = self.run(json.dumps({"nodes": nodes}), "--detach")
        assert code == 0, said

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The graph's events of a kind."""
        return [event for event in self.history() if event["kind"] == kind]

    def why(self, slug: str) -> list[dict[str, Any]]:
        """What keeps a node."""
        found: list[dict[str, Any]] = self.read("why", slug, "--graph", "@last")
        return found

    def node(self) -> dict[str, Any]:
        return self.nodes()["a"]

    def wait(self, what: Callable[[], Any]) -> Any:
        return self.until(what, within_s=LIMIT_S)

    def asked(self, step: int, times: int = 1) -> None:
        self.server.wait_for(lambda rows: sum(row.step == step for row in rows) >= times, LIMIT_S)

    def tries(self, step: int) -> int:
        return sum(row.step == step for row in self.server.scripted)

    def is_over(self) -> bool:
        return self.node()["state"] not in ("waiting", "ready", "running")

    def result(self) -> str:
        """What the node achieved."""
        self.wait(self.is_over)
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


def allow(at: Through) -> None:
    """Answer what it asks next, where it asks at all."""
    if "rejected" in at.agent.lacks:
        return
    (ask,) = at.wait(at.asks)
    assert at.workspace.graphd("answer", ask["id"], "allow").returncode == 0


def allowed(at: Through) -> None:
    """It writes a file and runs a command; what the rules do not allow, a person does."""
    write = {"write": {"path": "a.txt", "content": "hi"}}
    at.begin(write, {"shell": "cat a.txt > b.txt"}, {"say": "all done"})
    answered = 0
    while at.wait(lambda: at.asks() or at.is_over()) is not True:
        (ask,) = at.asks()
        assert not at.has("b.txt")
        assert at.workspace.graphd("answer", ask["id"], "allow").returncode == 0
        answered += 1
    assert at.result() == "all done"
    assert (at.workspace.root / "b.txt").read_text() == "hi"
    assert bool(answered) != ("rejected" in at.agent.lacks), "the command had to be asked for"


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
    allow(at)
    at.wait(lambda: at.has("begun.txt"))
    assert at.workspace.graphd("cancel", "--wait").returncode == 0
    assert at.graph()["status"] == "cancelled"
    assert at.pids() == []
    assert not at.has("over.txt")


def agent_killed(at: Through) -> None:
    """The next attempt goes on in the same session, and nothing is done twice; or in a fresh one, where it has to."""
    at.begin(COMMAND, {"hold": "later", "times": 1, "say": "went on"})
    allow(at)
    at.asked(1)
    session = at.node()["childSession"]
    for pid in at.pids():
        os.kill(pid, signal.SIGKILL)
    at.server.release("later")
    if not at.agent.is_restored:  # a fresh session is told how the other ended; this model begins anew all the same
        allow(at)
    assert at.result().endswith("went on"), at.node()["output"]
    assert (at.node()["childSession"] == session, at.node()["attempts"]) == (at.agent.is_restored, 2)
    assert at.tries(0) == (1 if at.agent.is_restored else 2)


def daemon_killed(at: Through) -> None:
    """In mid-turn: the next daemon adopts the turn, and nothing is repeated."""
    at.begin(COMMAND, {"hold": "later", "say": "on"})
    allow(at)
    at.asked(1)
    agents = at.pids()
    at.kill_daemon()
    at.server.release("later")
    assert at.result() == "on"
    assert agents, "it ran when the daemon died"
    assert at.tries(0) == 1
    assert (at.node()["attempts"], len(at.events("attempt_started"))) == (1, 1)
    assert at.has("a.txt")


def asked_over_death(at: Through) -> None:
    """A permission is the same ask after the daemon's death, and its answer reaches the agent once."""
    at.begin(COMMAND, {"say": "all done"})
    (before,) = at.wait(at.asks)
    at.kill_daemon()
    (after,) = at.wait(at.asks)
    assert after["id"] == before["id"]
    assert not at.has("a.txt")
    assert at.workspace.graphd("answer", after["id"], "allow").returncode == 0
    assert at.result() == "all done"
    assert at.has("a.txt")
    assert (at.tries(0), at.node()["attempts"]) == (1, 1)
    assert [len(at.events(kind)) for kind in ("ask_opened", "ask_answered")] == [1, 1]


def failed_twice(at: Through) -> None:
    at.begin({"error": 500, "times": 2, "say": "through"})
    assert at.result().endswith("through")


def cooled_down(at: Through) -> None:
    """429 until it gives up: its profile rests, the other node of it waits and says so, and then both are done."""
    gate = {"id": "gate", "worker": "shell", "prompt": "while [ ! -e go ]; do sleep 0.1; done"}
    second = {**at.made("b", {"say": "second"}), "depends_on": ["gate"]}
    at.begin_nodes(at.made("a", {"error": 429, "retryAfterS": 1, "until": "calm", "say": "first"}), gate, second)
    (rest,) = at.wait(lambda: at.events("provider_cooling"))
    assert rest["payload"]["profile"] == at.agent.name
    at.server.release("calm")
    (at.workspace.root / "go").touch()
    at.wait(lambda: at.nodes()["gate"]["state"] == "achieved")
    for slug in ("a", "b"):
        (reason,) = [why for why in at.why(slug) if why["code"] == "coolingDown"]
        assert reason["on"] == at.agent.name, reason
    assert at.nodes()["b"]["state"] == "ready"
    assert at.result().endswith("first")
    at.wait(lambda: at.nodes()["b"]["state"] == "achieved")
    after = [event for event in at.events("attempt_started") if event["rev"] > rest["rev"] and event["node"] != "gate"]
    assert sorted(event["node"] for event in after) == ["a", "b"]
    assert all(event["at"] >= rest["payload"]["until"] for event in after)
    assert len(at.events("provider_cooling")) == 1


def dropped(at: Through) -> None:
    at.begin({"drop": True, "times": 1, "say": "a text of several words"})
    assert at.result().endswith("a text of several words")


SCENARIOS = (
    allowed, rejected, cancelled_in_wait, cancelled_in_tool, agent_killed, daemon_killed, asked_over_death,
    failed_twice, cooled_down, dropped,
)  # fmt: skip


def playable(*names: str) -> list[tuple[str, Callable[[Through], None]]]:
    """What each of these agents can play."""
    return [(name, scenario) for name in names for scenario in SCENARIOS if scenario.__name__ not in AGENTS[name].lacks]


BRIEF = tuple(scenario for scenario in SCENARIOS if scenario is not cooled_down)
"""Without the one that waits half a minute for a rest to be over."""


def pass_through(name: str, scenario: Callable[[Through], None], workspace: Workspace) -> None:
    """One scenario with one agent; what came of it is noted where the run is one for the page."""
    require(name)
    with ModelServer() as server, noted(name, scenario.__name__):
        scenario(Through(name, workspace, server))
