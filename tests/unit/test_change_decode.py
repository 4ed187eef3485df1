"""`workgraph/change` is read: what is taken whole, what is refused and where, in both versions."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from graphd.core.change import MalformedChange, Tombstone, clauses, decode, encode_v2, keys_v2
from graphd.core.change.keys import HISTORY_KINDS
from graphd.core.change.keys_v1 import HISTORY_KINDS_1
from graphd.core.change.reading import Key
from graphd.core.evolve import EVOLVERS
from graphd_protocol import model as wire
from graphd_protocol.ids import node_id
from tests.unit.change_values import STONE, A, B, C, Edit, N, change_1, change_2, decoded, drop, edited, put


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"kind": "other", "version": 9}, {"kind": ["x"]}])
def test_what_is_no_change_is_none(value: object) -> None:
    assert decode(value) is None


def test_version_1_is_read_whole() -> None:
    value = change_1()
    graph = decoded(value)
    assert graph.graph == value["graph"]
    assert (graph.version, graph.id, graph.status, graph.pause_reason) == (1, "g1", "user_paused", "tea")
    assert (graph.tokens, graph.cost_usd, graph.wall_ms, graph.replans, graph.plan_version) == (
        7,
        None,
        0,
        1,
        2,
    )
    assert [(n.id, n.slug, n.needs, n.state) for n in graph.nodes] == [
        (A, None, (), "achieved"),
        (B, None, (A,), "failed"),
        ("gn-final", None, (A, B), "blocked"),
    ]
    assert [(h.at, h.kind, h.node, h.detail, h.raw_kind) for h in graph.history] == [
        (5, "node-failed", B, "no", None),
        (4, "created", None, None, None),
    ]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_version_2_is_the_wire_snapshot(is_sparse: bool) -> None:
    value = change_2()
    if is_sparse:
        snapshot = wire.Snapshot.model_validate(value["graph"])
        value = encode_v2(snapshot.model_dump(by_alias=True, mode="json", exclude_none=True, exclude_defaults=True))
    graph = decoded(value)
    assert graph.graph == value["graph"]
    assert wire.Snapshot.model_validate(graph.graph) == wire.Snapshot.model_validate(change_2()["graph"])
    assert (graph.tokens, graph.cost_usd, graph.wall_ms, graph.replans) == (3, 0.5, 10, None)
    assert [(n.slug, n.needs) for n in graph.nodes] == [("a", ()), ("b", (A,)), ("c", (A, B))]
    assert decoded(edited(value, put("graph", "spent", "costUsd", to=None))).cost_usd is None


def test_the_keys_of_version_2_are_the_wire_models_fields() -> None:
    models: dict[str, type[BaseModel]] = {
        "GRAPH_2": wire.Snapshot, "NODE_2": wire.Node, "OUTPUT_2": wire.Output, "FAILURE_2": wire.Failure,
        "SPENT_2": wire.Spent, "SPENDING_2": wire.Spending, "BUDGET_2": wire.Budget,
        "RETRY_2": wire.Retry, "STOPPING_2": wire.Stopping,
        "HISTORY_2": wire.HistoryEntry,
        "LIMITS_2": wire.Limits, "SOURCE_2": wire.Source, "ASK_2": wire.Ask,
    }  # fmt: skip
    models |= {
        "GATE_2": wire.Gate, "VERIFY_2": wire.Verify, "APPROVAL_2": wire.Approval, "WAIT_2": wire.Wait,
        "FOR_EACH_2": wire.ForEach, "ITEM_2": wire.Item, "REVIEW_2": wire.Review, "BUDGET_2": wire.Budget,
        "TERMS_2": wire.Terms, "PRUNED_2": wire.Pruned,
    }  # fmt: skip
    tables = {n: getattr(module, n) for module in (clauses, keys_v2) for n in dir(module) if n.endswith("_2")}
    assert tables.keys() == models.keys()
    for name, model in models.items():
        table = cast("dict[str, Key]", tables[name])
        fields: dict[str, FieldInfo] = {f.alias or n: f for n, f in model.model_fields.items()}
        assert {n: key.is_required for n, key in table.items()} == {n: f.is_required() for n, f in fields.items()}, name
        nullable = {n for n, f in fields.items() if type(None) in getattr(f.annotation, "__args__", ())}
        assert {n for n, key in table.items() if key.is_nullable} == nullable, name


def test_history_kinds_cover_every_event_and_map_into_version_1() -> None:
    assert HISTORY_KINDS.keys() == EVOLVERS.keys()
    assert len(HISTORY_KINDS_1) == 16
    assert set(HISTORY_KINDS.values()) <= HISTORY_KINDS_1


def test_a_tombstone_is_read_in_both_versions() -> None:
    assert decode(STONE) == Tombstone(1, "g1", 9)
    assert decode(STONE | {"version": 2}) == Tombstone(2, "g1", 9)


D = ("graph", "pendingDiscoveries", 0)
BAD_1: list[tuple[Edit, str, int | None, str]] = [
    (put("version", to=3), "version", None, "unknown version"),
    (put("version", to=True), "version", None, "unknown version"),
    (put("version", to="1"), "version", None, "unknown version"),
    (drop("version"), "version", None, "unknown version"),
    (put("version", to=1.0), "version", None, "expected an integer"),
    (put("extra", to=1), "", None, "unknown key 'extra'"),
    (drop("graph"), "", None, "missing key 'graph'"),
    (put("graph", to=[]), "graph", None, "expected an object"),
    (put("operation", to="clear"), "", None, "unknown key 'graph'"),
    (put("graph", "extra", to=1), "graph", None, "unknown key"),
    (drop("graph", "replanRuns"), "graph", None, "missing key 'replanRuns'"),
    (put("graph", "id", to=" "), "graph.id", None, "blank"),
    (put("graph", "objective", to=""), "graph.objective", None, "blank"),
    (put("graph", "status", to="cancelled"), "graph.status", None, "unknown value 'cancelled'"),
    (put("graph", "status", to={}), "graph.status", None, "unknown value an object"),
    (drop("graph", "pauseReason"), "graph.pauseReason", None, "missing while the status is user_paused"),
    (put("graph", "pauseReason", to=None), "graph.pauseReason", None, "expected a string"),
    (put("graph", "status", to="active"), "graph.pauseReason", None, "must not be there"),
    (put("graph", "planVersion", to=0), "graph.planVersion", None, "at least 1"),
    (put("graph", "tokenBudget", to=0), "graph.tokenBudget", None, "at least 1"),
    (put("graph", "tokensSpent", to=-1), "graph.tokensSpent", None, "negative"),
    (put("graph", "tokensSpent", to=2**53), "graph.tokensSpent", None, "too large"),
    (put("graph", "tokensSpent", to=True), "graph.tokensSpent", None, "expected an integer"),
    (put("graph", "replanRuns", to=1.5), "graph.replanRuns", None, "expected an integer"),
    (put("graph", "updatedAt", to=0), "graph.updatedAt", None, "before createdAt"),
    (put("graph", "nodes", to={}), "graph.nodes", None, "expected an array"),
    (put(*N, 1, to="x"), "graph.nodes[1]", 1, "expected an object, got 'x'"),
    (put(*N, 1, "id", to="gn-1"), "graph.nodes[1].id", 1, "no node id"),
    (put(*N, 1, "id", to="gn-" + "A" * 8), "graph.nodes[1].id", 1, "no node id"),
    (put(*N, 1, "id", to=A), "graph.nodes[1].id", 1, "taken by nodes[0]"),
    (put(*N, 1, "slug", to="b"), "graph.nodes[1]", 1, "unknown key 'slug'"),
    (drop(*N, 2, "rounds"), "graph.nodes[2]", 2, "missing key 'rounds'"),
    (drop(*N, 2, "state"), "graph.nodes[2]", 2, "missing key 'state'"),
    (put(*N, 2, "title", to="\t"), "graph.nodes[2].title", 2, "blank"),
    (put(*N, 2, "failure", to=""), "graph.nodes[2].failure", 2, "blank"),
    (put(*N, 2, "blocks", 1, to=C), "graph.nodes[2].blocks", 2, "names no node"),
    (put(*N, 2, "blocks", 1, to=7), "graph.nodes[2].blocks[1]", 2, "no node id"),
    (put(*N, 2, "blocks", 1, to=A), "graph.nodes[2].blocks", 2, "twice"),
    (put(*N, 2, "blocks", 1, to="gn-final"), "graph.nodes[2].blocks", 2, "needs itself"),
    (put(*N, 0, "blocks", to=["gn-final"]), "graph.nodes[0].blocks", 0, "cycle"),
    (put(*N, 1, "discoveredFrom", 0, to=C), "graph.nodes[1].discoveredFrom", 1, "names no node"),
    (put(*D, "from", to=C), "graph.pendingDiscoveries[0].from", 0, "names no node"),
    (put(*D, "by", to=A), "graph.pendingDiscoveries[0]", 0, "unknown key"),
    (put(*D, "description", to=1), "graph.pendingDiscoveries[0].description", 0, "string"),
    (put("graph", "history", 1, "node", to=C), "graph.history[1].node", 1, "names no node"),
    (put("graph", "history", 1, "at", to=-1), "graph.history[1].at", 1, "negative"),
    (put("graph", "history", 1, "detail", to=None), "graph.history[1].detail", 1, "expected a string"),
    (put("graph", "history", to=[{"at": 1, "kind": "created"}] * 65), "graph.history", None, "over its cap"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "field", "index", "text"), BAD_1)
def test_version_1_trouble_names_its_place(edit: Edit, field: str, index: int | None, text: str) -> None:
    with pytest.raises(MalformedChange) as caught:
        decode(edited(change_1(), edit))
    assert (caught.value.field, caught.value.index) == (field, index)
    assert text in caught.value.message
    assert str(caught.value) == (f"{field}: {caught.value.message}" if field else caught.value.message)


DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]
BAD_2: list[tuple[Edit, str, int | None, str]] = [
    (put("graph", "status", to="weird"), "graph.status", None, "unknown value"),
    (put("graph", "pauseReason", to=None), "graph.pauseReason", None, "missing"),
    (put("graph", "title", to=None), "graph.title", None, "expected a string"),
    (put("graph", "proposals", to=[DEEP]), "graph.proposals[0]", 0, "expected an object"),
    (put("graph", "proposals", to=[{"x": DEEP}]), "graph.proposals[0]", 0, "nested deeper"),
    (put("graph", "counts", to=[]), "graph.counts", None, "expected an object"),
    (put("graph", "counts", "ready", to=-1), "graph.counts.ready", None, "negative"),
    (put("graph", "spent", "costUsd", to=float("nan")), "graph.spent.costUsd", None, "finite"),
    (put("graph", "spent", "costUsd", to=-0.5), "graph.spent.costUsd", None, "finite number of 0 or more"),
    (put("graph", "spent", "costUsd", to=-1), "graph.spent.costUsd", None, "negative"),
    (put("graph", "spent", "costUsd", to="1"), "graph.spent.costUsd", None, "expected a number"),
    (put("graph", "spent", "tokens", to=None), "graph.spent.tokens", None, "expected an integer"),
    (put("graph", "deliveryNode", to="z"), "graph.deliveryNode", None, "names no node"),
    (put("graph", "stopping", "left", to=["a", "z"]), "graph.stopping.left", None, "names no node"),
    (put("graph", "stopping", "verb", to="stop"), "graph.stopping.verb", None, "unknown value"),
    (put("graph", "outcome", to="good"), "graph.outcome", None, "known are ok, rejected, withFailures"),
    (put(*N, 1, "slug", to="gn-x"), "graph.nodes[1].slug", 1, "never starts with gn-"),
    (put(*N, 1, "slug", to="a"), "graph.nodes[1].slug", 1, "taken by nodes[0]"),
    (put(*N, 1, "id", to=A), "graph.nodes[1].id", 1, "not the id of b"),
    (put(*N, 1, "needs", to=["z"]), "graph.nodes[1].needs", 1, "names no node"),
    (put(*N, 1, "needs", to=["b"]), "graph.nodes[1].needs", 1, "b needs itself"),
    (put(*N, 0, "needs", to=["c"]), "graph.nodes[0].needs", 0, "a cycle of 2: a → c → a"),
    (put(*N, 1, "discoveredFrom", to=["z"]), "graph.nodes[1].discoveredFrom", 1, "names no node"),
    (put(*N, 2, "blockedBy", to="z"), "graph.nodes[2].blockedBy", 2, "names no node"),
    (put(*N, 1, "failure", "class", to="bad"), "graph.nodes[1].failure.class", 1, "unknown value"),
    (put(*N, 1, "required", to=1), "graph.nodes[1].required", 1, "true or false"),
    (put(*N, 0, "output", "total", to="1"), "graph.nodes[0].output.total", 0, "integer"),
    (put("graph", "asks", 0, "node", to="z"), "graph.asks[0].node", 0, "names no node"),
    (put("graph", "asks", 0, "options", 0, "id", to=1), "graph.asks[0].options[0].id", 0, "string"),
    (put("graph", "history", 0, "node", to="z"), "graph.history[0].node", 0, "names no node"),
    (drop("graph", "history", 0, "rev"), "graph.history[0]", 0, "missing key 'rev'"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "field", "index", "text"), BAD_2)
def test_version_2_trouble_names_its_place(edit: Edit, field: str, index: int | None, text: str) -> None:
    with pytest.raises(MalformedChange) as caught:
        decode(edited(change_2(), edit))
    assert (caught.value.field, caught.value.index) == (field, index)
    assert text in caught.value.message


@pytest.mark.parametrize("make", [change_1, change_2])
@pytest.mark.parametrize("state", ["verifying", "paused", 7, None, [], {"a": 1}])
def test_an_unknown_node_state_is_ready_never_done_or_stuck(make: Callable[[], Any], state: object) -> None:
    graph = decoded(edited(make(), put(*N, 0, "state", to=state)))
    assert graph.nodes[0].state == "ready"
    assert graph.graph["nodes"][0]["state"] == "ready"


def test_the_final_check_has_its_own_name_in_both_versions() -> None:
    value = change_2()
    last = value["graph"]["nodes"][2]
    last |= {"id": "gn-final", "slug": "gn-final"}
    value["graph"]["deliveryNode"] = "gn-final"
    assert decoded(value).nodes[2].slug == "gn-final"


def test_version_1_knows_neither_skipped_nor_cancelled_nodes() -> None:
    for state in ("skipped", "cancelled"):
        assert decoded(edited(change_1(), put(*N, 0, "state", to=state))).nodes[0].state == "ready"
        assert decoded(edited(change_2(), put(*N, 0, "state", to=state))).nodes[0].state == state


@pytest.mark.parametrize("make", [change_1, change_2])
def test_an_unknown_history_kind_keeps_what_was_written(make: Callable[[], Any]) -> None:
    def edit(value: Any) -> None:
        value["graph"]["history"][0] |= {"kind": "teleported", "detail": "far"}

    entry = decoded(edited(make(), edit)).history[0]
    assert (entry.kind, entry.raw_kind, entry.detail) == ("unknown", "teleported", "far")
    entry = decoded(edited(make(), put("graph", "history", 0, "kind", to=["?"]))).history[0]
    assert (entry.kind, entry.raw_kind) == ("unknown", None)


def test_a_cycle_is_found_without_recursion_and_shown_short() -> None:
    value = change_2()
    row = value["graph"]["nodes"][0]
    slugs = [f"n{i}" for i in range(10_000)]
    value["graph"] |= {"nodes": [], "history": [], "asks": [], "stopping": None, "deliveryNode": None}
    value["graph"]["nodes"] = [
        row | {"id": node_id(slug), "slug": slug, "needs": [slugs[i - 1]] if i else []} for i, slug in enumerate(slugs)
    ]
    assert len(decoded(value).nodes) == 10_000
    value["graph"]["nodes"][0]["needs"] = [slugs[-1]]
    with pytest.raises(MalformedChange, match=r"a cycle of 10000: n0 → n9999 → .* → …$"):
        decode(value)


def test_a_tombstone_is_strict() -> None:
    for edit in (
        put("cleared", to=" "), put("clearedAt", to=-1), put("operation", to="set"), drop("cleared"),
        put("graph", to={}), put("version", to=1.0),
    ):  # fmt: skip
        with pytest.raises(MalformedChange):
            decode(edited(STONE, edit))
