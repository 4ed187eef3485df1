"""A result is held to its contract: declared files newer than the attempt, JSON that fits a schema."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphd.children.contracts import broken_by, checked
from graphd.children.driver import Fact, Order
from graphd.core.commands import AttemptEnded
from graphd.core.model import Output

NUMBERS = {
    "type": "object", "required": ["n"], "properties": {"n": {"type": "array", "items": {"type": "integer"}}},
}  # fmt: skip


def order_in(folder: Path, **more: Any) -> Order:
    (folder / "attempt").mkdir(exist_ok=True)
    return Order(
        graph="g", node="gn-1", slug="a", number=1, role="worker", cookie="c", folder=folder / "attempt",
        profile="shell", spec="x", inputs=(), environment={}, cwd=folder, workspace=folder, variables={},
        timeout_s=None, started_at_ms=int(time.time() * 1000) - 10, **more,
    )  # fmt: skip


def achieved(text: str | None = None, media: str = "text/plain", **more: Any) -> AttemptEnded:
    output = Output(text, len(text), media, **more) if text is not None else None
    return AttemptEnded("g", ("gn-1", "worker", 1), "achieved", output=output)


def held(order: Order, ended: AttemptEnded) -> str | None:
    """Why the contract is broken, or None."""
    found = checked(order, ended)
    if found.outcome == "achieved":
        return None
    assert (found.outcome, found.failure_class, found.output) == ("failed", "verdict_fail", ended.output)
    return found.reason


# ---- files ----------------------------------------------------------------------------------------------------------


def test_declared_files_have_to_be_there_and_new(tmp_path: Path) -> None:
    order = order_in(tmp_path, artifacts=("out/*.txt", "deep/**", ".hidden"))
    assert held(order, achieved()) == "declared and not made by this attempt: out/*.txt, deep/**, .hidden"
    for name in ("out/a.txt", "deep/er/x", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert held(order, achieved()) is None


def test_a_file_of_an_earlier_attempt_does_not_count(tmp_path: Path) -> None:
    order = order_in(tmp_path, artifacts=("out.txt",))
    (tmp_path / "out.txt").write_text("x")
    old = time.time() - 100
    os.utime(tmp_path / "out.txt", (old, old))
    assert held(order, achieved()) is not None


def test_nothing_outside_of_the_work_tree_counts(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("x")
    inside = tmp_path / "w"
    inside.mkdir()
    assert held(order_in(inside, artifacts=("../out.txt",)), achieved()) is not None
    assert held(order_in(inside, artifacts=(str(tmp_path / "out.txt"),)), achieved()) is not None


def test_a_broken_link_is_no_file_and_many_missing_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a0").symlink_to("nowhere")
    reason = held(order_in(tmp_path, artifacts=tuple(f"a{i}" for i in range(7))), achieved())
    assert reason is not None
    assert reason.endswith("a0, a1, a2, a3, a4 (+2)")


def test_only_a_worker_that_achieved_something_is_checked(tmp_path: Path) -> None:
    order = order_in(tmp_path, artifacts=("never",))
    failed = achieved()._replace(outcome="failed", failure_class="exec_failed")
    assert checked(order, failed) == failed
    verifier = replace(order, role="verifier")
    assert checked(verifier, achieved()) == achieved()


# ---- JSON -----------------------------------------------------------------------------------------------------------


def test_a_result_that_fits_is_left_alone(tmp_path: Path) -> None:
    order = order_in(tmp_path, output_schema=json.dumps(NUMBERS))
    ended = achieved('{"n": [1]}', "application/json")
    assert checked(order, ended) is ended


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"n": [1, "x"]}', 'at $.n[1]: "x" is not of type "integer"'), ("{}", 'at $: "n" is a required property'),
        ("fine", "no JSON value"), ("", "no JSON value"), ("NaN", "no JSON value"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_by_its_path(tmp_path: Path, text: str, said: str) -> None:
    reason = held(order_in(tmp_path, output_schema=json.dumps(NUMBERS)), achieved(text))
    assert reason is not None
    assert said in reason


def test_no_output_at_all_is_no_json(tmp_path: Path) -> None:
    assert "no JSON" in str(held(order_in(tmp_path, output_schema="{}"), achieved()))


def test_the_last_json_value_of_a_script_becomes_its_result(tmp_path: Path) -> None:
    order = order_in(tmp_path, output_schema='{"type": "integer", "minimum": 3}')
    (order.folder / "output").write_text("working\n42\n")
    found = checked(order, achieved("working\n42\n"))
    assert found.output == Output("42", 2, "application/json")
    assert (order.folder / "output").read_text() == "42"
    assert "minimum" in str(held(order, achieved("working\n2\n")))


def test_a_result_longer_than_the_database_keeps_is_read_whole(tmp_path: Path) -> None:
    order = order_in(tmp_path, output_schema=json.dumps(NUMBERS))
    whole = json.dumps({"n": list(range(20_000))})
    (order.folder / "output").write_text(whole)
    cut = achieved(whole[:65_536], "application/json", is_cut=True)
    assert checked(order, cut).outcome == "achieved"
    (order.folder / "output").unlink()
    assert "no JSON" in str(held(order, cut))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ('{"type": "foo"}', "can't be used"),
        ('{"$ref": "https://example.org/x"}', "can't be used"),
        ("[", "can't be used"),
    ],
)
def test_a_schema_that_is_none_or_leads_outside_fails_the_node_and_fetches_nothing(
    tmp_path: Path, schema: str, said: str
) -> None:
    assert said in str(held(order_in(tmp_path, output_schema=schema), achieved("1")))


def test_all_of_2020_12_is_there(tmp_path: Path) -> None:
    schema = {
        "$defs": {"n": {"type": "integer"}}, "prefixItems": [{"$ref": "#/$defs/n"}], "items": False,
        "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False, "contains": {"const": 1}, "minContains": 1,
    }  # fmt: skip
    order = order_in(tmp_path, output_schema=json.dumps(schema))
    assert held(order, achieved("[1]")) is None
    assert held(order, achieved("[1, 2]")) is not None
    assert held(order, achieved('{"a": 1}')) is not None


def test_a_pattern_that_explodes_ends_and_counts_as_no_match(tmp_path: Path) -> None:
    """Some of these take 2**40 steps and more in an engine without bounds: this ends at all."""
    for pattern in ("^(a+)+$", r"^(?=a)(?:a|aa|a+)+(?<!a)b\1?$", r"^(([a-z])+.)+[A-Z]([a-z])+$"):
        order = order_in(tmp_path, output_schema=json.dumps({"pattern": pattern}))
        reason = str(held(order, achieved(json.dumps("a" * 60 + "!"))))
        assert "output_schema" in reason


# ---- candidates -----------------------------------------------------------------------------------------------------


def candidate(text: str, *, is_cut: bool = False) -> tuple[Fact, ...]:
    output = {"text": text, "total_bytes": len(text), "media_type": "application/json", "is_cut": is_cut}
    return (Fact(1, 0, "item", {}), Fact(1, 1, "candidate", {"output": output, "round": 2}))


def test_a_candidate_is_held_to_its_contract_while_its_agent_lives(tmp_path: Path) -> None:
    order = order_in(tmp_path, output_schema=json.dumps(NUMBERS), artifacts=("a.txt",))
    assert broken_by(order, candidate('{"n": []}')) == "declared and not made by this attempt: a.txt"
    (tmp_path / "a.txt").write_text("x")
    assert broken_by(order, candidate('{"n": []}')) is None
    assert "at $.n[0]" in (broken_by(order, candidate('{"n": ["x"]}')) or "")
    assert broken_by(order, candidate("no JSON")) is not None
    assert broken_by(order, (Fact(1, 0, "item", {}),)) is None
    assert broken_by(replace(order, role="verifier"), candidate("no JSON")) is None
    (order.folder / "result.2").write_text('{"n": [1]}')
    assert broken_by(order, candidate('{"n": [', is_cut=True)) is None
    assert not (order.folder / "output").exists(), "nothing is settled yet"
