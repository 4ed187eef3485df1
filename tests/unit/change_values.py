"""`workgraph/change` values with every key, in both versions, and edits of them."""

import copy
from collections.abc import Callable
from typing import Any

from graphd.core.change import GraphValue, decode, encode_v2
from graphd_protocol import model as wire
from graphd_protocol.ids import node_id

A, B, C = node_id("a"), node_id("b"), node_id("c")
Edit = Callable[[Any], None]


def change_1() -> Any:
    """A version 1 change with every optional key."""
    return {
        "kind": "workgraph/change",
        "version": 1,
        "graph": {
            "id": "g1",
            "objective": "ship it",
            "status": "user_paused",
            "pauseReason": "tea",
            "planVersion": 2,
            "nodes": [
                {"id": A, "title": "A", "spec": "do a", "blocks": [], "state": "achieved", "rounds": 1,
                 "childSessionId": "s"},
                {"id": B, "title": "B", "spec": "do b", "blocks": [A], "state": "failed", "rounds": 2,
                 "failure": "no", "discoveredFrom": [A]},
                {"id": "gn-final", "title": "F", "spec": "check", "blocks": [A, B], "state": "blocked",
                 "rounds": 0},
            ],
            "pendingDiscoveries": [{"description": "more", "from": A}],
            "history": [
                {"at": 5, "kind": "node-failed", "node": B, "detail": "no"},
                {"at": 4, "kind": "created"},
            ],
            "tokenBudget": 9,
            "tokensSpent": 7,
            "replanRuns": 1,
            "createdAt": 1,
            "updatedAt": 5,
        },
    }  # fmt: skip


def change_2() -> Any:
    """A version 2 change: a wire snapshot made by the wire models themselves."""
    node = wire.Node(
        id=A, slug="a", title="A", spec="do a", worker="shell", needs=[], required=True, state="achieved",
        attempts=1, rounds=1, timeout_ms=1000, retry=wire.Retry(), report_to_parent=False, priority=-3,
        changed_at=4, output=wire.Output(text="x", total=1, media_type="text/plain"), spent=wire.Spent(tokens=3),
    )  # fmt: skip
    failed = node.model_copy(
        update={
            "id": B, "slug": "b", "needs": ["a"], "state": "failed", "output": None,
            "failure": wire.Failure(failure_class="timeout", reason="slow", attempt="b@1"),
            "discovered_from": ["a"],
        }
    )  # fmt: skip
    last = failed.model_copy(
        update={
            "id": C,
            "slug": "c",
            "needs": ["a", "b"],
            "state": "blocked",
            "failure": None,
            "blocked_by": "b",
        }
    )
    ask = wire.Ask(
        id="ask1", kind="approval", graph="g1", node="a", title="?", action={"x": [1, {"y": None}]},
        action_hash="h", options=[{"id": "yes"}], scopes=["once"], opened_at=3, state="open",
    )  # fmt: skip
    snapshot = wire.Snapshot(
        id="g1", title="T", objective="", status="blocked", pause_reason="b failed", plan_version=1, rev=9,
        stopping=wire.Stopping(verb="pause", by="me", at=3, left=["a"]), counts={"achieved": 1},
        spent=wire.Spending(tokens=3, cost_usd=0.5, wall_ms=10, roles={"worker": wire.Spent(tokens=3)}), stepping="a",
        budget=wire.Budget(tokens=9, wall_seconds=1.5), limits=wire.Limits(), workspace="/w",
        source=wire.Source(kind="nodes"), delivery_node="c", created_at=1, updated_at=5,
        nodes=[node, failed, last], asks=[ask], history=[wire.HistoryEntry(at=1, rev=1, kind="graph_set", node="a")],
    )  # fmt: skip
    return encode_v2(snapshot.model_dump(by_alias=True, mode="json"))


def edited(value: Any, edit: Edit) -> Any:
    value = copy.deepcopy(value)
    edit(value)
    return value


def put(*path: str | int, to: Any) -> Edit:
    """An edit that sets the value at a path."""

    def edit(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return edit


def drop(*path: str | int) -> Edit:
    """An edit that removes a key."""

    def edit(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        del value[path[-1]]

    return edit


def decoded(value: Any) -> GraphValue:
    graph = decode(value)
    assert isinstance(graph, GraphValue)
    return graph


STONE = {"kind": "workgraph/change", "version": 1, "operation": "clear", "cleared": "g1", "clearedAt": 9}
N = ("graph", "nodes")
