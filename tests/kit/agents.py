"""A workspace whose agent is the fake one: scripts for it, its trace, and the asks that it raises."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit.workspaces import Workspace

FAKE = Path(__file__).with_name("programs") / "fake_acp_agent.py"
OFFERS = {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}, "close": {}}}
Turn = list[dict[str, Any]]


class AgentWorkspace:
    """`fake` is the default agent of this workspace; `judge` serves the worker `verify`."""

    def __init__(self, workspace: Workspace, *turns: Turn, judge: tuple[Turn, ...] = (), **settings: Any) -> None:
        self.workspace = workspace
        agents = {"fake": self._agent("fake", turns), "judge": self._agent("judge", judge or turns)}
        workers = {"verify": {"agent": "judge"}}
        workspace.settings(json.dumps({"agents": agents, "workers": workers, "defaultAgent": "fake", **settings}))

    def _agent(self, name: str, turns: tuple[Turn, ...]) -> dict[str, Any]:
        base = self.workspace.base
        (base / f"{name}-sessions").mkdir()
        script = {
            "store": str(base / f"{name}-sessions"), "trace": str(base / f"{name}-trace"), "capabilities": OFFERS,
            "turns": turns,
        }  # fmt: skip
        path = base / f"{name}.json"
        path.write_text(json.dumps(script))
        return {
            "driver": "acp", "command": [sys.executable, "-I", "-S", str(FAKE), str(path)],
            "restore": ["resume", "load"], "reports": "tokens",
        }  # fmt: skip

    def trace(self, name: str = "fake", **wanted: Any) -> list[dict[str, Any]]:
        """What an agent got and did, where these values are there."""
        path = self.workspace.base / f"{name}-trace"
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in found if all(line.get(key) == value for key, value in wanted.items())]

    def run(self, text: str, *words: str) -> "tuple[int, str]":
        """`graphd run` of a file with this text: exit code, and what it said."""
        path = self.workspace.root / "w.yaml"
        path.write_text(text)
        ran = self.workspace.graphd("run", "w.yaml", "--yes", *words)
        return ran.returncode, ran.stdout + ran.stderr

    def read(self, *words: str) -> Any:
        """A reading command's JSON."""
        ran = self.workspace.graphd(*words, "--json")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def asks(self) -> list[dict[str, Any]]:
        """What waits for a person."""
        found: list[dict[str, Any]] = self.read("ask")
        return found

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The latest graph's nodes by slug."""
        return {node["slug"]: node for node in self.graph()["nodes"]}

    def history(self) -> list[dict[str, Any]]:
        """The latest graph's events."""
        lines = self.workspace.graphd("history", "@last", "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def graph(self) -> dict[str, Any]:
        """The latest graph."""
        self.read("ask")  # which starts a daemon where there is none
        (found,) = self.read("status", "@last")["graphs"]
        return dict(found)

    def until(self, what: Callable[[], Any], *, within_s: float = 30) -> Any:
        """The first true answer of `what`."""
        deadline = time.monotonic() + within_s
        while not (answer := what()):
            assert time.monotonic() < deadline, f"not within {within_s} s: {self.workspace.graphd('status').stdout}"
            time.sleep(0.05)
        return answer

    def kill_daemon(self) -> None:
        """As a crash does."""
        for pid in self.workspace.daemons():
            os.kill(pid, signal.SIGKILL)

    def agent_pids(self, name: str = "fake") -> list[int]:
        """Live processes of an agent."""
        mark = f"{name}.json"
        return [pid for pid, line in self.workspace.processes().items() if FAKE.name in line and mark in line]


def asks(path: str = "/elsewhere/x", kind: str = "edit") -> dict[str, Any]:
    """A step: a permission for a change outside the node's root."""
    call = {"toolCallId": "t1", "title": f"Change {path}", "kind": kind, "locations": [{"path": path}]}
    return {"ask": {"toolCall": call}}
