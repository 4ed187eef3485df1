"""`workgraph/change` is written in version 1: as the seed reads it, or refused where that can't say it."""

from collections.abc import Callable
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.change import encode_v1
from graphd.core.model import Definition, Failure, Graph, HistoryEntry, Node, Source, Spent, Stopping
from graphd_protocol.ids import node_id
from tests.unit.change_values import A, B, decoded


def core_graph() -> Graph:
    """A graph that version 1 can say."""
    graph = Graph("g1", "T", "ship it", Source("nodes"), "/w", 1, 5, plan_version=1, spent=Spent(tokens=7))
    rows = [
        Definition("a", "do a", "shell", title="A"),
        Definition("b", "do b", "shell", needs=("a",), discovered_from=("a",)),
    ]
    for index, definition in enumerate(rows):
        needs = tuple(node_id(slug) for slug in definition.needs)
        graph.nodes[node_id(definition.slug)] = Node(node_id(definition.slug), definition, index, needs, True)
    graph.nodes[A].state = "achieved"
    graph.nodes[A].child_session = "s"
    graph.nodes[B].state = "failed"
    graph.nodes[B].failure = Failure("timeout", "slow", "b@1")
    graph.status, graph.pause_reason = "blocked", "b failed"
    graph.history = [
        HistoryEntry(1, 1, "graph_set"),
        HistoryEntry(2, 2, "attempt_stuck", "a", "pid 7"),
        HistoryEntry(2, 2, "node_ready", "a"),
        HistoryEntry(3, 3, "node_failed", "b", "timeout"),
    ]
    return graph


def test_version_1_is_written_as_the_seed_reads_it() -> None:
    value = encode_v1(core_graph())
    assert value == {
        "kind": "workgraph/change",
        "version": 1,
        "graph": {
            "id": "g1", "objective": "ship it", "status": "blocked", "pauseReason": "b failed",
            "planVersion": 1,
            "nodes": [
                {"id": A, "title": "A", "spec": "do a", "blocks": [], "state": "achieved", "rounds": 0,
                 "childSessionId": "s"},
                {"id": B, "title": "b", "spec": "do b", "blocks": [A], "state": "failed", "rounds": 0,
                 "failure": "timeout: slow", "discoveredFrom": [A]},
            ],
            "pendingDiscoveries": [],
            "history": [
                {"at": 1, "kind": "created"},
                {"at": 2, "kind": "unknown", "node": A, "detail": "attempt_stuck: pid 7"},
                {"at": 2, "kind": "unknown", "node": A, "detail": "node_ready"},
                {"at": 3, "kind": "node-failed", "node": B, "detail": "timeout"},
            ],
            "tokensSpent": 7, "replanRuns": 0, "createdAt": 1, "updatedAt": 5,
        },
    }  # fmt: skip
    assert decoded(value).graph == value["graph"]


def unsayable(edit: Callable[[Graph], None]) -> Graph:
    graph = core_graph()
    edit(graph)
    return graph


def _settle(graph: Graph, state: Any) -> None:
    graph.nodes[A].state = state


def _define(graph: Graph, **fields: Any) -> None:
    graph.nodes[A].definition = Definition(**({"slug": "a", "spec": "do a", "worker": "shell"} | fields))


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda g: setattr(g, "status", "cancelled"), "status"),
        (lambda g: setattr(g, "stopping", Stopping("cancel", "me", 1)), "stopping"),
        (lambda g: setattr(g, "objective", " "), "objective"),
        (lambda g: _settle(g, "skipped"), "nodes[0].state"),
        (lambda g: _settle(g, "cancelled"), "nodes[0].state"),
        (lambda g: _define(g, condition='b.state == "failed"'), "nodes[0].condition"),
        (lambda g: _define(g, spec=""), "nodes[0].spec"),
        (lambda g: setattr(g.nodes[B], "required", False), "nodes[1].required"),
    ],
)
def test_version_1_refuses_what_it_cant_say(edit: Callable[[Graph], None], field: str) -> None:
    with pytest.raises(Refused) as caught:
        encode_v1(unsayable(edit))
    assert caught.value.code == "notSupported"
    assert caught.value.facts["field"] == field


def test_version_1_has_no_pause_reason_while_active() -> None:
    graph = core_graph()
    graph.status, graph.pause_reason = "active", None
    assert "pauseReason" not in encode_v1(graph)["graph"]
