"""docs/agents.md is written from the results, and the recorded conversations are of what the results name."""

import json

import pytest

from tests.kit.agent_cells import CELLS, cell
from tests.kit.agent_page import PAGE, page, results
from tests.kit.agent_scenarios import SCENARIOS
from tests.kit.real_agents import AGENTS, ROOT

CONVERSATIONS = sorted((ROOT / "tests" / "data" / "acp").glob("*/*.jsonl"))


def test_the_page_is_fresh() -> None:
    text = PAGE.read_text()
    assert text == page(text), "write it again: make generate"


def test_every_scenario_has_a_row() -> None:
    assert list(SCENARIOS) == list(CELLS) or sorted(SCENARIOS) == sorted(CELLS)


def test_the_results_are_of_the_pinned_versions() -> None:
    assert {name: row["version"] for name, row in results().items()} == {n: AGENTS[n].version for n in results()}


@pytest.mark.parametrize("name", list(AGENTS))
def test_the_versions_are_those_that_are_installed(name: str) -> None:
    agent = AGENTS[name]
    wanted = json.loads((ROOT / "tests" / "agents" / "npm" / agent.part / "package.json").read_text())["dependencies"]
    locked = json.loads((ROOT / "tests" / "agents" / "npm" / agent.part / "package-lock.json").read_text())["packages"]
    assert wanted[agent.package] == agent.version
    assert locked[f"node_modules/{agent.package}"]["version"] == agent.version


@pytest.mark.parametrize("name", list(results()))
def test_no_agent_wrote_what_was_rejected_or_repeated_what_was_done(name: str) -> None:
    for scenario, seen in results()[name]["scenarios"].items():
        told = cell(scenario, seen)
        assert "YET" not in told
        assert "asked 2×" not in told or name == "qwen", "docs/agents.md: it writes its history late"


def test_the_conversations_are_json_lines_of_one_shape() -> None:
    assert CONVERSATIONS
    for path in CONVERSATIONS:
        for line in path.read_text().splitlines():
            assert sorted(json.loads(line)) == ["message", "process", "whose"], path
