"""The fold reads what real agents said: recorded conversations, each with the end that it must be read as."""

from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.driver import AcpDriver
from graphd.children.profiles import PROFILES
from graphd.daemon.orders import quirks_of
from tests.kit.conversations import journal, recorded
from tests.kit.kept import make_order

PLAYED = {"allow", "reject", "cancel_wait", "cancel_tool", "cancel_ask", "error_500", "dropped", "mcp_result"}


def facts_of(agent: str, scenario: str, tmp_path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Kind and content of every fact of the first process."""
    quirks = quirks_of(PROFILES[agent])
    order = make_order(tmp_path, profile=agent, quirks=quirks, permissions="edit", told="do it")
    order.folder.mkdir(parents=True, exist_ok=True)
    fold = AcpDriver().fold(order, out_bytes=0)
    return [(fact.kind, fact.content) for record in journal(agent, scenario) for fact in fold.feed(record)]


def of(facts: list[tuple[str, dict[str, Any]]], kind: str) -> list[dict[str, Any]]:
    return [content for found, content in facts if found == kind]


@pytest.mark.parametrize(("agent", "scenario"), [pair for pair in recorded() if pair[1] in PLAYED])
def test_the_same_facts_come_every_time_and_nothing_is_noise(agent: str, scenario: str, tmp_path: Path) -> None:
    facts = facts_of(agent, scenario, tmp_path)
    assert facts == facts_of(agent, scenario, tmp_path)
    assert [content for content in of(facts, "item") if content.get("kind") == "noise"] == []
    assert len(of(facts, "session")) == 1


@pytest.mark.parametrize("agent", ["codex-zed", "opencode", "claude", "codex", "gemini", "qwen", "pi"])
def test_a_turn_with_a_write_and_a_command_is_a_candidate(agent: str, tmp_path: Path) -> None:
    facts = facts_of(agent, "allow", tmp_path)
    assert [found["output"]["text"] for found in of(facts, "candidate")] == ["all done"]
    asks = of(facts, "ask")
    assert len(asks) == (0 if agent == "pi" else 2)
    for ask in asks:
        assert ask["action"]["toolKind"] in ("edit", "execute")
        assert {"allow_once", "reject_once"} <= {option["kind"] for option in ask["options"]}
        assert ask["action"].get("command") or ask["action"]["paths"] or "echo" in ask["title"]


@pytest.mark.parametrize(
    ("agent", "scenario", "is_weather"),
    [
        ("codex-zed", "limit_429", True), ("codex-zed", "limit_500", True), ("codex-zed", "refused_401", False),
        ("codex-zed", "refused_400", False), ("opencode", "refused_400", False), ("claude", "limit_429", True),
        ("claude", "limit_500", False), ("claude", "refused_401", False), ("codex", "limit_429", True),
        ("codex", "limit_500", True), ("codex", "refused_400", False), ("codex", "refused_401", False),
        ("gemini", "refused_401", False), ("gemini", "refused_400", False), ("qwen", "refused_401", False),
    ],
)  # fmt: skip
def test_a_turn_that_failed_for_good_is_no_result(agent: str, scenario: str, is_weather: bool, tmp_path: Path) -> None:
    facts = facts_of(agent, scenario, tmp_path)
    assert of(facts, "candidate") == []
    (failed,) = of(facts, "turn_failed")
    assert (failed["class"], "weather" in failed) == ("exec_failed", is_weather), failed
    assert failed["acted"] is False


def test_a_bad_key_is_told_as_such(tmp_path: Path) -> None:
    for agent in ("claude", "codex"):
        (failed,) = of(facts_of(agent, "refused_401", tmp_path), "turn_failed")
        assert "logged in" in failed["reason"]


@pytest.mark.parametrize("agent", ["codex-zed", "opencode", "claude", "codex", "gemini"])
def test_our_tool_counts_as_handed_in(agent: str, tmp_path: Path) -> None:
    facts = facts_of(agent, "mcp_result", tmp_path)
    assert [found["submitted"] for found in of(facts, "candidate")] == [True]


@pytest.mark.parametrize("agent", ["codex-zed", "codex"])
def test_a_reject_that_ends_a_turn_as_cancelled_is_nudged(agent: str, tmp_path: Path) -> None:
    facts = facts_of(agent, "reject", tmp_path)
    assert of(facts, "turn_cancelled") == []
    assert kinds_of(facts)[-1] == "say"


def test_what_a_program_says_for_itself_is_no_part_of_the_answer(tmp_path: Path) -> None:
    (found,) = of(facts_of("pi", "error_500", tmp_path), "candidate")
    assert found["output"]["text"] == "a text of several words"
    (found,) = of(facts_of("pi", "dropped", tmp_path), "candidate")
    assert found["output"]["text"] == "a text of several words"


def test_pi_that_only_retried_has_no_result(tmp_path: Path) -> None:
    for scenario in ("limit_429", "limit_500", "refused_401"):
        assert of(facts_of("pi", scenario, tmp_path), "candidate") == []


def kinds_of(facts: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [kind for kind, _ in facts if kind not in ("item", "usage")]
