"""One scenario over bare ACP, held against what the last recorded run saw."""

import os
from pathlib import Path

import pytest

from tests.kit.agent_cells import cell
from tests.kit.agent_page import results
from tests.kit.agent_scenarios import play
from tests.kit.real_agents import AGENTS

# The rest waits for minutes until an agent gives up, or tells nothing that a test must hold.
SCENARIOS = (
    "allow", "reject", "cancel_wait", "cancel_tool", "cancel_ask", "killed_resume", "killed_load", "unknown_session",
    "error_500", "error_429", "dropped", "mcp_result",
)  # fmt: skip


def require(name: str) -> None:
    """Skip where the agent is not installed; where CI wants everything, fail."""
    if AGENTS[name].is_there:
        return
    told = f"{AGENTS[name].package} is not installed: python -m tests.kit.agent_setup {AGENTS[name].part}"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


def check(name: str, scenario: str, folder: Path) -> None:
    """Play it and compare its cell of docs/agents.md; one more try, for a busy machine."""
    require(name)
    expected = cell(scenario, results()[name]["scenarios"][scenario])
    told = []
    for attempt in ("first", "second"):
        (folder / attempt).mkdir()
        seen, lines = play(AGENTS[name], scenario, folder / attempt)
        if cell(scenario, seen) == expected:
            return
        told = [
            f"expected: {expected}",
            f"seen: {cell(scenario, seen)}",
            str(seen),
            *(line[:400] for line in lines[-30:]),
        ]
    pytest.fail("\n".join(told))
