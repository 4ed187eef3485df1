"""The codec: every durable field of every value comes back through JSON text, derived ones stay out, fast enough."""

import gc
import json
import time
from dataclasses import fields, replace

import pytest

from graphd.core import codec
from graphd.core.definition import (
    Approval,
    Budget,
    Definition,
    ForEach,
    Gate,
    Item,
    Pruned,
    Retry,
    Review,
    Terms,
    Verify,
    Wait,
)
from graphd.core.derive import rebuild
from graphd.core.events import Actor
from graphd.core.model import (
    Ask,
    Attempt,
    Clock,
    Cooling,
    Delivery,
    Failure,
    Graph,
    HistoryEntry,
    Identity,
    Limits,
    Node,
    Output,
    Source,
    Spent,
    Stopping,
)

DEFINITION = Definition(
    slug="a", spec="make", worker="shell", title="A", needs=("b", "c"), condition='b.state == "failed"', required=True,
    timeout_ms=5, hard_timeout_ms=6, retry=Retry(2, 1.5, ("lost",)), on_lost="pause", priority=-3,
    input_mapping=(("x", "b.output"), ("y", "c.output")), report_to_parent=True, discovered_from=("b",),
    gate=Gate("b", 3), verify=Verify("make test", None, "all green"), output_schema='{"type":"object"}',
    approval=Approval("go?", "yes"), wait=Wait("5m", "go", 1.5), for_each=ForEach("b.output.list", "x", 9),
    item=Item("e", 1, "[1]"), review=Review("diff", "b", "c"), artifacts=("out/*",), writes=("src/**",),
    isolation="node", permissions="read", model="advanced", thinking="low", mode="plan", max_tool_calls=7,
    unattended_extensions=1,
)  # fmt: skip
SPENT = Spent(3, None, 9)
NODE = Node(
    id="gn-1", definition=DEFINITION, index=4, needs=("gn-2", "gn-3"), required=True, state="failed", attempts=2,
    last_number=3, rounds=1, retries=1, lost_in_row=1, put_back_in_row=2,
    output=Output("日本\n", 7, "text/plain", True), failure=Failure("timeout", "too long", "a@3"),
    skip="no_input", cancel_reason="c", blocked_by="gn-2",
    child_session="s", not_before=8, candidate=Output("c", 1, "text/plain", True), gaps="none", changed_at=9,
    evidence=({"round": 1},), role_numbers={"verifier": 2}, started_at=10, ended_at=11, spent=SPENT,
    verdict="REVISE", revisions=1, findings="do it again", wake_at=12, signal="[1]", is_approved=True, width=3,
    defined_in=2, removed_in=3, after_stop="waiting",
)  # fmt: skip
ATTEMPT = Attempt(
    graph="g", node="gn-1", role="worker", number=3, worker="shell", profile="shell", environment="e", started_at=1,
    state="settled", stop_reason="timeout", outcome="failed", failure_class="timeout", reason="r", exit_code=1,
    signal=9, failing=Failure("limit", "too much"), identity=Identity("b", "p", 1, 2, 3), child_session="s",
    resumes=2, cursor=4, deadline_at=5,
    clock=Clock(60_000, 2, 1, 300, 400, 5), limit=Budget(7, 0.5),
    stuck_pids=(6, 7), ended_at=8, spent=SPENT, is_counted=False,
)  # fmt: skip
ASK = Ask(
    id="k", kind="permission", title="t", action={"a": [1, {"b": None}]}, action_hash="h", options=({"id": "yes"},),
    opened_at=1, node="gn-1", attempt=3, scopes=("once", "graph"), deadline_at=2, default="no", state="answered",
    answered_by="me", option="yes", text="x", role="worker", key="7", scope="graph", comment="c", spent_by=3,
    is_revoked=True,
)  # fmt: skip
DELIVERY = Delivery("d", "agent:x:y:z", "g", "result", "text", 1, "gn-1", True)
GRAPH = Graph(
    id="g", title="t", objective="o", source=Source("file", "n", "/p", "s"), workspace="/w", created_at=1, updated_at=2,
    owner="agent:x:y:z", status="blocked", pause_reason="p", pause_cause="stuck", outcome="ok",
    stopping=Stopping("cancel", "me", 3, "why"), is_finishing=True, plan_version=2, rev=5, environment="e",
    delivery_node="gn-1", replaces="old",
    variables={"TARGET": "all"}, limits=Limits(1, 2, 3, 4, 5, 6), spent=SPENT, nodes={NODE.id: NODE},
    failed_by="gn-1", holding=("gn-1",),
    budget=Budget(1, 2.5, 3), paused_by="me", stepping="gn-1", spent_by_role={"worker": SPENT}, cost_is_partial=True,
    busy_since=7, cooling={"claude": Cooling(1, 2, "busy")},
    terms=Terms("deep", "f", "stop", "graph", "serialise", True, (Pruned("c", "not now"),)),
    attempts={ATTEMPT.key: ATTEMPT}, asks={ASK.id: ASK}, deliveries={DELIVERY.id: DELIVERY},
    history=[HistoryEntry(1, 2, "paused", "a", "d"), HistoryEntry(3, 4, "resumed")], last_start_at=6, replans=1,
)  # fmt: skip


def through_text(row: codec.Row) -> codec.Row:
    result: codec.Row = json.loads(json.dumps(row))
    return result


def test_a_graph_with_every_field_set_comes_back_equal() -> None:
    assert codec.load_graph(through_text(codec.dump_graph(GRAPH))) == GRAPH


def test_a_graph_with_nothing_optional_comes_back_equal() -> None:
    definition = Definition("a", "s", "shell")
    node = Node("gn-1", definition, 0, (), required=False)
    attempt = Attempt("g", "gn-1", "worker", 1, "shell", "shell", None, 1)
    graph = Graph("g", "t", "o", Source("nodes"), "/w", 1, 1, nodes={"gn-1": node}, attempts={attempt.key: attempt})
    assert codec.load_graph(through_text(codec.dump_graph(graph))) == graph


@pytest.mark.parametrize("value", [DEFINITION, NODE, ATTEMPT, ASK, DELIVERY, GRAPH])
def test_the_samples_leave_no_field_at_its_default(value: object) -> None:
    derived = {"dependants", "unsettled", "rank", "counts", "live", "ready", "queue"}
    # Round trips of a field at its default prove nothing: give a new field a value in the samples above.
    at_default = {f.name for f in fields(value) if getattr(value, f.name) == f.default}  # type: ignore[arg-type]
    assert at_default - derived <= set()


def test_headers_and_events_from_before_budgets_and_terms_load_as_without() -> None:
    row = codec.dump_graph(GRAPH)
    del row["budget"], row["terms"]
    assert codec.load_graph(row) == replace(GRAPH, budget=None, terms=Terms())
    assert codec.load_budget(codec.dump_budget(None)) is None
    assert codec.load_terms(None) == codec.load_terms(codec.dump_terms(Terms())) == Terms()


def test_rows_hold_every_durable_field_and_no_derived_one() -> None:
    graph = codec.load_graph(codec.dump_graph(GRAPH))
    graph.nodes = {name: replace(NODE, id=name, needs=(), definition=DEFINITION) for name in ("gn-1", "gn-2")}
    rebuild(graph)
    row = codec.dump_graph(graph)
    assert set(row) == {f.name for f in fields(Graph)} - codec.DERIVED_OF_GRAPH
    assert set(row["nodes"][0]) == {f.name for f in fields(Node)} - codec.DERIVED_OF_NODE
    assert set(row["attempts"][0]) == {f.name for f in fields(Attempt)}
    assert codec.dump_header(graph) == {k: v for k, v in row.items() if k not in codec.PARTS_OF_GRAPH}


def test_nodes_and_attempts_keep_their_order() -> None:
    nodes = {f"gn-{i}": replace(NODE, id=f"gn-{i}") for i in (3, 1, 2)}
    graph = codec.load_graph(through_text(codec.dump_graph(replace(GRAPH, nodes=nodes))))
    assert list(graph.nodes) == ["gn-3", "gn-1", "gn-2"]


def test_none_where_none_is_not_the_default_is_kept() -> None:
    assert codec.load_node(codec.dump_node(NODE)).spent.cost_usd is None


@pytest.mark.parametrize("spoiled", [{"surplus": 1}, {"limits": {"odd": 1}}, {"nodes": [{}]}])
def test_rows_that_do_not_fit_are_refused(spoiled: codec.Row) -> None:
    with pytest.raises((TypeError, KeyError)):
        codec.load_graph({**codec.dump_graph(GRAPH), **spoiled})


def test_loading_leaves_the_row_as_it_was() -> None:
    row = codec.dump_graph(GRAPH)
    before = json.dumps(row)
    codec.load_graph(row)
    assert json.dumps(row) == before


def test_ten_thousand_nodes_cost_a_bounded_multiple_of_their_json() -> None:
    nodes = {f"gn-{i}": replace(NODE, id=f"gn-{i}") for i in range(10_000)}
    graph = replace(GRAPH, nodes=nodes)
    gc.disable()  # as the store does
    try:
        start = time.process_time()
        row = codec.dump_graph(graph)
        dumped = time.process_time()
        text = json.dumps(row)
        row = json.loads(text)
        passed = time.process_time()
        codec.load_graph(row)
        loaded = time.process_time()
    finally:
        gc.enable()
    dump_s, json_s, load_s = dumped - start, passed - dumped, loaded - passed
    print(f"dump {dump_s:.3f} s, json {json_s:.3f} s, load {load_s:.3f} s")
    assert dump_s + load_s < 4 * json_s


def test_actors_survive() -> None:
    for actor in (Actor("daemon"), Actor("agent", client="editor"), Actor("attempt", attempt="a@1")):
        assert codec.load_actor(codec.dump_actor(actor)) == actor
