"""docs/agents.md is written from the results, and the recorded conversations are of what the results name."""

import contextlib
import json
from pathlib import Path

import pytest

from graphd.children.profiles import PROFILES
from tests.agents.through import SCENARIOS as THROUGH
from tests.kit import through_results
from tests.kit.agent_cells import CELLS, cell
from tests.kit.agent_page import PAGE, page, results, through
from tests.kit.agent_scenarios import SCENARIOS
from tests.kit.real_agents import AGENTS, ROOT
from tests.kit.through_results import NOT_RUN, noted

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
    if agent.is_python:
        pinned = (ROOT / "tests" / "agents" / "pip" / agent.part / "requirements.txt").read_text().splitlines()
        assert f"{agent.package}=={agent.version}" in pinned
        return
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


def test_what_was_not_run_through_graphd_is_said_so_and_what_was_has_its_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "through.json"
    monkeypatch.setattr(through_results, "THROUGH", path)
    assert set(row_of("dropped")) == {NOT_RUN}
    with noted("opencode", "dropped", path=path):
        pass
    assert not path.exists(), "no run for the page"
    monkeypatch.setenv("AGENTS_RESULTS", "1")
    with noted("opencode", "dropped", path=path, today=lambda: "2026-11-30"):
        pass
    with contextlib.suppress(AssertionError), noted("claude", "dropped", path=path, today=lambda: "2026-12-01"):
        raise AssertionError
    cells = dict(zip(AGENTS, row_of("dropped"), strict=True))
    assert (cells["opencode"], cells["claude"], cells["codex-zed"]) == ("passed, 0 s", "FAILED, 0 s", NOT_RUN)
    assert "| run on | – | 2026-11-30 | 2026-12-01 |" in through()
    path.write_text(path.read_text().replace(AGENTS["opencode"].version, "0.0.1"))
    assert dict(zip(AGENTS, row_of("dropped"), strict=True))["opencode"] == NOT_RUN, "another version"


def test_a_profile_is_called_tested_where_all_of_the_last_full_run_passed() -> None:
    passed = {
        name
        for name, row in through_results.results().items()
        if all(row["scenarios"].get(made.__name__, {}).get("outcome") == "passed" for made in THROUGH)
    }
    assert {name for name in AGENTS if PROFILES[name].standing == "tested"} <= passed


def row_of(scenario: str) -> list[str]:
    title = through_results.TITLES[scenario]
    (line,) = [line for line in through().splitlines() if line.startswith(f"| {title} |")]
    return line.strip("|").replace(" | ", "|").strip().split("|")[1:]


def test_every_scenario_through_graphd_has_a_row() -> None:
    assert {scenario.__name__ for scenario in THROUGH} < set(through_results.TITLES)
