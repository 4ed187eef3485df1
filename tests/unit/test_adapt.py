"""A workflow adapted at its start, and the shapes of clauses and terms outside of the core."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.adapt import adapt
from graphd.core.change.clauses import budget_of, budget_row, clauses_of, clauses_row, terms_of, terms_row
from graphd.core.commands import Set
from graphd.core.definition import (
    Approval,
    Budget,
    Definition,
    ForEach,
    Gate,
    Item,
    Pruned,
    Review,
    Terms,
    Verify,
    Wait,
)
from graphd.core.model import Source
from tests.unit.core_drive import Drive


def node(slug: str, *needs: str, spec: str = "do it", worker: str = "build", **more: Any) -> Definition:
    return Definition(slug, spec, worker, needs=needs, **more)


PLAN = [
    node("a"), node("b", "a"), node("c", "a", "b"), node("d", "c", "b", gate=Gate()), node("e", "d"),
]  # fmt: skip


def adapted(*pruned: str, plan: list[Definition] = PLAN, **more: Any) -> tuple[list[tuple[str, Any]], list[str]]:
    prune = [Pruned(slug, "not now") for slug in pruned]
    made, troubles = adapt(plan, prune=prune, extend=[], **more)
    return [(d.slug, d.needs) for d in made], [trouble.code for trouble in troubles]


def test_needs_of_a_pruned_node_pass_to_what_needed_it() -> None:
    assert adapted("b")[0] == [("a", ()), ("c", ("a",)), ("d", ("c", "a")), ("e", ("d",))]
    assert adapted("b", "c")[0] == [("a", ()), ("d", ("a",)), ("e", ("d",))]
    assert adapted("a", "b", "c")[0] == [("d", ()), ("e", ("d",))]
    assert adapted() == ([(d.slug, d.needs) for d in PLAN], [])


def test_a_gate_and_the_delivery_node_stay_and_names_are_known() -> None:
    assert adapted("d")[1] == ["prune.gate"]
    assert adapted("e", delivery_node="e")[1] == ["prune.delivery"]
    assert adapted("zz")[1] == ["prune.unknown"]
    _, (trouble,) = adapt(PLAN, prune=[Pruned("b", " ")], extend=[])
    assert trouble.code == "prune.reason"


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (node("r", "x", spec="look at {{x}}"), ["prune.read"]),
        (node("r", "x", spec="look at {{y}}"), []),
        (node("r", "x", spec='cat "$GRAPHD_INPUT_DIR"/x', worker="shell"), ["prune.read"]),
        (node("r", "x", spec="cat ${GRAPHD_INPUT_DIR}/y", worker="shell"), []),
        (node("r", "x", spec="{{y}}", input_mapping=(("y", "x"),)), []),
    ],
)
def test_a_text_that_reads_a_pruned_node_is_told(reader: Definition, expected: list[str]) -> None:
    assert adapted("x", plan=[node("x"), reader])[1] == expected


def test_added_nodes_come_last() -> None:
    made, troubles = adapt(PLAN, prune=[Pruned("e", "other end")], extend=[node("f", "d")])
    assert ([d.slug for d in made], troubles) == (["a", "b", "c", "d", "f"], [])


# ---- shapes ---------------------------------------------------------------------------------------------------------

FULL = Definition(
    "a", "x", "build", gate=Gate("b", 3), verify=Verify("make", None, "ok"), output_schema='{"type":"日本"}',
    approval=Approval("go?", "deny"), wait=Wait("5m", None, 1.5), for_each=ForEach("b.output", "x", 9),
    item=Item("e", 1, "[1]"), review=Review("diff", "b", "c"), artifacts=("o/*",), writes=("s/**",), isolation="node",
    permissions="read", model="m", thinking="low", mode="p", max_tool_calls=7, unattended_extensions=0,
)  # fmt: skip


def test_clauses_go_out_and_come_back() -> None:
    row = clauses_row(FULL)
    assert row["forEach"] == {"in": "b.output", "as": "x", "max": 9}
    assert row["review"] == {"phase": "diff", "implementationNodeId": "b", "verificationNodeId": "c"}
    assert (row["outputSchema"], row["unattendedExtensions"]) == ({"type": "日本"}, 0)
    assert Definition("a", "x", "build", **clauses_of(row)) == FULL
    assert clauses_row(node("a")) == clauses_of({}) == {}
    assert clauses_row(node("a", gate=Gate())) == {"gate": {"maxRevisions": 2}}
    assert clauses_row(node("a", output_schema="{}")) == {"outputSchema": {}}


def test_budgets_and_terms_go_out_and_come_back() -> None:
    for budget in (Budget(5, 1.5, 2500), Budget(wall_ms=1), Budget(tokens=1)):
        assert budget_of(budget_row(budget)) == budget
    assert budget_of(None) is budget_of({}) is None
    terms = Terms("deep", "f", "stop", "graph", "serialise", True, (Pruned("x", "y"),))
    assert terms_row(terms)["pruned"] == [{"node": "x", "reason": "y"}]
    assert terms_of(terms_row(terms)) == terms
    assert terms_row(Terms()) == {}
    assert terms_of(None) == terms_of({}) == Terms()


# ---- set ------------------------------------------------------------------------------------------------------------


def test_a_graph_keeps_what_it_was_set_under_and_gets_its_last_check() -> None:
    drive = Drive(profiles=(("shell", "shell"), ("verify", "shell")))
    terms = Terms(final_check=True, on_required_failure="stop")
    plan = (node("a", worker="shell"), node("b", worker="shell"))
    drive.run(Set("g", "t", "o", Source("nodes"), "/w", plan, terms=terms, budget=Budget(tokens=5)))
    graph = drive.state.graphs["g"]

    assert (graph.terms, graph.budget) == (terms, Budget(tokens=5))
    last = graph.nodes["gn-final"]
    assert (last.slug, last.required, last.state) == ("gn-final", True, "waiting")
    assert [graph.nodes[need].slug for need in last.needs] == ["a", "b"]


def test_a_last_check_that_nobody_can_do_is_refused_at_once() -> None:
    drive = Drive()
    command = Set(
        "g", "t", "o", Source("nodes"), "/w", (node("a", worker="shell"),), terms=Terms(final_check=True),
        missing=(("verify", "no agent"),),
    )  # fmt: skip
    with pytest.raises(Refused) as caught:
        drive.run(command)
    assert caught.value.code == "agentMissing"
