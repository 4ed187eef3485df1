"""What the ends of nodes mean for those behind them and for their graph, up to dags of hundreds of nodes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.core.commands import AttemptEnded, Finish, RetryNodes
from graphd.core.model import Definition, Graph, Limits, Output, Retry
from graphd_protocol.ids import node_id
from tests.unit.core_drive import Drive, G, define, ended, live_key, plan, refused, states


@st.composite
def dags(draw: st.DrawFn) -> list[Definition]:
    size, dice = draw(st.integers(1, 200)), draw(st.randoms(use_true_random=False))
    names = [f"n{i}" for i in range(size)]
    rows = []
    for index, name in enumerate(names):
        needs = sorted({dice.choice(names[:index]) for _ in range(dice.randint(0, 4))} if index else set())
        rows.append(define(name, *needs, required=dice.random() < 0.2, priority=dice.randint(-2, 2)))
    dice.shuffle(rows)
    return rows


@settings(max_examples=15)
@given(dags(), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.05, 0.3]))
def test_any_dag_runs_in_order_to_a_verdict(rows: list[Definition], dice: random.Random, failing: float) -> None:
    drive = Drive(concurrency=7, check=len(rows) <= 40)
    drive.run(plan(G, *rows, limits=Limits(max_nodes=200, concurrency=6)))
    graph = drive.state.graphs[G]
    ends: dict[str, str] = {}
    while graph.live:
        key = dice.choice(list(graph.live))
        node = graph.nodes[key[0]]
        assert all(graph.nodes[need].state in ("achieved", "failed", "skipped") for need in node.needs)
        ends[node.slug] = "failed" if dice.random() < failing else "achieved"
        drive.run(AttemptEnded(G, key, "achieved" if ends[node.slug] == "achieved" else "failed"))
    required = {n.slug for n in graph.nodes.values() if n.required}
    has_failed = any(end == "failed" and slug in required for slug, end in ends.items())
    assert graph.status in ("complete", "blocked")
    if has_failed:
        assert graph.status == "blocked"
    elif "failed" not in ends.values():
        assert (graph.status, graph.outcome) == ("complete", "ok")
        assert set(states(graph).values()) == {"achieved"}
    if graph.status == "blocked":
        for node in graph.nodes.values():
            needs = [graph.nodes[need] for need in node.needs]
            hit = any(need.state == "blocked" or (need.state == "failed" and need.required) for need in needs)
            assert (node.state == "blocked") == hit


def test_a_chain_of_5000_blocks_in_one_change_and_is_retried_without_recursion() -> None:
    drive = Drive(check=False)
    rows = [define("n0"), *(define(f"n{i}", f"n{i - 1}") for i in range(1, 5_000))]
    drive.run(plan(G, *rows, limits=Limits(max_nodes=5_000)))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "n0", "failed"))
    assert (graph.status, graph.counts["blocked"]) == ("blocked", 4_999)
    assert len(drive.changes) == 1
    drive.run(RetryNodes(G, "n0"))
    assert (graph.status, graph.counts["waiting"], graph.counts["running"]) == ("active", 4_999, 1)
    drive.run(ended(graph, "n0", "failed"))
    drive.run(Finish(G, "enough"))
    assert (graph.status, graph.outcome, graph.counts["skipped"]) == ("complete", "withFailures", 4_999)


def run_to_end(drive: Drive, failing: set[str]) -> Graph:
    graph = drive.state.graphs[G]
    while graph.live:
        slug = graph.nodes[next(iter(graph.live))[0]].slug
        drive.run(ended(graph, slug, "failed" if slug in failing else "achieved"))
    return graph


@pytest.mark.parametrize(
    ("failing", "status", "outcome"),
    [
        (set(), "complete", "ok"),
        ({"x"}, "complete", "withFailures"),
        ({"x", "y"}, "blocked", None),
        ({"a"}, "blocked", None),
    ],
)
def test_sinks_decide_between_complete_and_blocked(failing: set[str], status: str, outcome: str | None) -> None:
    """With `a` failed, `x` and `y` are skipped for lack of input that failures alone explain."""
    drive = Drive()
    rows = [define("a", required=False), define("x", "a", required=False), define("y", "a", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, failing)
    assert (graph.status, graph.outcome) == (status, outcome)


def test_an_end_skipped_by_a_condition_is_no_failure() -> None:
    drive = Drive()
    no = define("no", "a", condition='a.state == "failed"', required=False)
    rows = [define("a", required=False), no, define("end", "no", required=False), define("f", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, {"f"})
    assert states(graph) == {"a": "achieved", "no": "skipped", "end": "skipped", "f": "failed"}
    assert graph.nodes[node_id("end")].skip == "no_input"
    assert (graph.status, graph.outcome) == ("complete", "withFailures")


def test_a_handler_runs_where_an_optional_need_failed() -> None:
    drive = Drive()
    handler = define("handler", "a", condition='a.state == "failed"')
    drive.run(plan(G, define("a", required=False), handler))
    graph = run_to_end(drive, {"a"})
    assert (states(graph), graph.status) == ({"a": "failed", "handler": "achieved"}, "complete")


@pytest.mark.parametrize(
    ("text", "cut", "expected"),
    [("3", False, "achieved"), ("1", False, "skipped"), ("no", False, "failed"), ("3", True, "failed")],
)
def test_a_condition_reads_the_output_and_never_skips_silently(text: str, cut: bool, expected: str) -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a", condition="a.output.n > 2", required=False), define("c", "a")))
    graph = drive.state.graphs[G]
    body = '{"n": ' + text + "}" if text != "no" else "no json"
    output = Output(body[: -1 if cut else None], 99, "application/json", cut)
    drive.run(AttemptEnded(G, live_key(graph, "a"), "achieved", output=output))
    graph = run_to_end(drive, set())
    assert states(graph)["b"] == expected
    if expected == "failed":
        failure = graph.nodes[node_id("b")].failure
        assert failure is not None
        assert failure.failure_class == "verdict_fail"
        assert failure.attempt is None


def test_finish_needs_a_reason_and_what_runs_drains() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", retry=Retry(3, 0)), define("b"), define("c", "a")))
    graph = drive.state.graphs[G]
    refusal = refused(drive, Finish(G, " "))
    assert "reason" in refusal.message
    drive.run(Finish(G, "enough"))
    assert states(graph) == {"a": "running", "b": "skipped", "c": "skipped"}
    drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
    assert (graph.status, graph.outcome, states(graph)["a"]) == ("complete", "withFailures", "failed")


def test_a_node_that_fails_again_at_once_blocks_again_what_was_retried_with_it() -> None:
    drive = Drive()
    rows = [define("a"), define("b", "a", condition="a.output.n > 1"), define("c", "b"), define("d", "c")]
    drive.run(plan(G, *rows))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", text="no json"))
    failed = {"a": "achieved", "b": "failed", "c": "blocked", "d": "blocked"}
    assert (states(graph), graph.status) == (failed, "blocked")
    drive.run(RetryNodes(G, "b"))
    assert (states(graph), graph.status) == (failed, "blocked")
    assert graph.nodes[node_id("d")].blocked_by == "b"


@pytest.mark.parametrize("outcome", ["put_back", "lost"])
def test_a_node_put_back_under_a_finish_is_skipped(outcome: str) -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", required=False)))
    graph = drive.state.graphs[G]
    drive.run(Finish(G, "enough"))
    drive.run(ended(graph, "a", outcome))
    assert graph.nodes[node_id("a")].skip == "finished_early"
    drive.run(ended(graph, "b"))
    assert (graph.status, graph.outcome) == ("complete", "ok")


def test_a_condition_that_said_no_is_no_failure_even_after_one() -> None:
    drive = Drive()
    no = define("no", "a", condition='a.state == "achieved"', required=False)
    rows = [define("a", required=False), no, define("end", "no", required=False), define("f", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, {"a", "f"})
    assert states(graph) == {"a": "failed", "no": "skipped", "end": "skipped", "f": "failed"}
    assert (graph.status, graph.outcome) == ("complete", "withFailures")


def test_a_retry_by_hand_gives_the_automatic_ones_anew() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", retry=Retry(1, 0))))
    graph = drive.state.graphs[G]
    for numbers in (2, 4):
        while graph.live:
            drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
        assert graph.nodes[node_id("a")].attempts == numbers
        if numbers == 2:
            drive.run(RetryNodes(G))
