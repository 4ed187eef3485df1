"""What the last full run through graphd came to: tests/agents/through.json, agent → version and scenarios.

Only a run with AGENTS_RESULTS in its environment writes it (`make record-agents`, which begins with an empty file):
what was not run in that run is not in it.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.kit.real_agents import AGENTS, ROOT

THROUGH: Final = ROOT / "tests" / "agents" / "through.json"
VARIABLE: Final = "AGENTS_RESULTS"
TITLES: Final[dict[str, str]] = {
    "allowed": "a write and a command, allowed",
    "rejected": "a command, rejected by a person",
    "cancelled_in_wait": "cancel while the model is silent",
    "cancelled_in_tool": "cancel while a command runs",
    "agent_killed": "agent SIGKILLed in mid-turn, the session goes on",
    "daemon_killed": "daemon SIGKILLed in mid-turn, adopted, nothing repeated",
    "asked_over_death": "a permission over the daemon's death",
    "failed_twice": "500 twice, then well",
    "cooled_down": "429 until it gives up, a cool-down shared by two nodes",
    "dropped": "the stream breaks once, then well",
    "migrated": "the seed's parallel-migrate on a git repository",
    "mixed": "a graph of shell, opencode, claude and claude headless",
}
NOT_RUN: Final = "not run"


def results(path: Path | None = None) -> dict[str, Any]:
    """Agent → {version, scenarios: {scenario: {outcome, day, took_s}}}, of the pinned versions only."""
    path = path or THROUGH
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and path.stat().st_size else {}
    return {name: row for name, row in found.items() if name in AGENTS and row["version"] == AGENTS[name].version}


def cell(agent: str, scenario: str, seen: dict[str, Any] | None) -> str:
    """The few words for one scenario's result, or why there can be none."""
    if seen is None:
        return AGENTS[agent].lacks.get(scenario, NOT_RUN)
    return f"{seen['outcome']}, {seen['took_s']:.0f} s"


def _note(name: str, scenario: str, seen: dict[str, Any], path: Path) -> None:
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = results(path)
        row = found.get(name, {"version": AGENTS[name].version, "scenarios": {}})
        row["scenarios"][scenario] = seen
        ordered = {key: (found | {name: row})[key] for key in AGENTS if key in found or key == name}
        file.truncate(0)
        file.write(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
        file.flush()


@contextlib.contextmanager
def noted(
    name: str, scenario: str, *, path: Path | None = None, today: Callable[[], str] = lambda: time.strftime("%Y-%m-%d")
) -> Iterator[None]:
    """Notes how the block ended. What is skipped must be skipped before it."""
    began, outcome = time.monotonic(), "FAILED"
    try:
        yield
        outcome = "passed"
    finally:
        if VARIABLE in os.environ:
            took_s = round(time.monotonic() - began, 1)
            _note(name, scenario, {"outcome": outcome, "day": today(), "took_s": took_s}, path or THROUGH)
