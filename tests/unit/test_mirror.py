"""The mirror folds changes as protocol.md says, and refuses what does not chain."""

from typing import Any

import pytest

from graphd.client.mirror import HISTORY_LIMIT, ChainBroken, Mirror


def node(slug: str, state: str) -> dict[str, Any]:
    return {"slug": slug, "state": state}


def change(start: int, rev: int, **fields: Any) -> dict[str, Any]:
    return {"operation": "x", "graph": "g", "from": start, "rev": rev, "header": {"id": "g", "rev": rev}} | fields


def full(rev: int, *nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return change(0, rev, full=True, nodes=list(nodes), **fields)


def test_a_full_value_is_the_snapshot() -> None:
    mirror = Mirror()

    assert mirror.apply(full(3, node("a", "running"), node("b", "waiting"))) == "g"
    assert mirror.graphs["g"] == {
        "id": "g",
        "rev": 3,
        "nodes": [node("a", "running"), node("b", "waiting")],
        "proposals": [],
        "asks": [],
        "history": [],
    }
    assert mirror.revs() == {"g": 3}


def test_nodes_merge_by_slug_in_plan_order_and_the_last_wins() -> None:
    mirror = Mirror()
    mirror.apply(full(1, node("a", "running"), node("b", "waiting")))

    mirror.apply(change(1, 4, nodes=[node("b", "running"), node("c", "waiting"), node("b", "failed")]))

    assert mirror.graphs["g"]["nodes"] == [node("a", "running"), node("b", "failed"), node("c", "waiting")]


def test_the_header_is_replaced_whole() -> None:
    mirror = Mirror()
    mirror.apply(full(1, header={"id": "g", "rev": 1, "pauseReason": "why"}))

    mirror.apply(change(1, 2))

    assert "pauseReason" not in mirror.graphs["g"]


def test_asks_come_whole_and_stay_when_left_out() -> None:
    mirror = Mirror()
    mirror.apply(full(1, asks=[{"id": "k1"}, {"id": "k2"}]))
    mirror.apply(change(1, 2))

    assert [ask["id"] for ask in mirror.graphs["g"]["asks"]] == ["k1", "k2"]

    mirror.apply(change(2, 3, asks=[]))

    assert mirror.graphs["g"]["asks"] == []


def test_history_is_appended_and_keeps_the_last_64() -> None:
    mirror = Mirror()
    mirror.apply(full(60, history=[{"rev": rev} for rev in range(1, 61)]))

    mirror.apply(change(60, 70, history=[{"rev": rev} for rev in range(61, 71)]))

    kept = [entry["rev"] for entry in mirror.graphs["g"]["history"]]
    assert len(kept) == HISTORY_LIMIT
    assert kept == list(range(7, 71))


def test_a_full_value_forgets_what_was_held() -> None:
    mirror = Mirror()
    mirror.apply(full(9, node("a", "running"), history=[{"rev": 9}], asks=[{"id": "k"}]))

    mirror.apply(full(2, node("z", "ready")))

    assert mirror.graphs["g"]["nodes"] == [node("z", "ready")]
    assert mirror.graphs["g"]["history"] == []
    assert mirror.graphs["g"]["asks"] == []
    mirror.apply(change(2, 3, nodes=[node("a", "ready")]))
    assert mirror.graphs["g"]["nodes"] == [node("z", "ready"), node("a", "ready")]


@pytest.mark.parametrize("broken", [change(1, 4), change(4, 5), change(3, 2)])
def test_a_change_that_does_not_chain_is_refused_and_changes_nothing(broken: dict[str, Any]) -> None:
    mirror = Mirror()
    mirror.apply(full(3, node("a", "running")))
    before = mirror.graphs["g"]

    with pytest.raises(ChainBroken):
        mirror.apply(broken | {"nodes": [node("a", "failed")]})

    assert mirror.graphs["g"] is before


def test_a_new_graph_chains_from_nothing() -> None:
    mirror = Mirror()
    mirror.apply(change(0, 1, nodes=[node("a", "ready")]))

    assert mirror.revs() == {"g": 1}
    with pytest.raises(ChainBroken):
        Mirror().apply(change(5, 6))


def test_nothing_changed_is_a_change_too() -> None:
    mirror = Mirror()
    mirror.apply(full(3, node("a", "running")))
    before = mirror.graphs["g"]

    mirror.apply({"operation": "checkpoint", "graph": "g", "from": 3, "rev": 3, "header": None, "nodes": None})

    assert mirror.graphs["g"] == before


def test_a_tombstone_removes_the_graph_and_a_new_one_may_follow() -> None:
    mirror = Mirror()
    mirror.apply(full(3, node("a", "running")))
    mirror.apply({"operation": "clear", "graph": "g", "from": 3, "rev": 4, "cleared": {"at": 5}})

    assert mirror.graphs == {}
    assert mirror.cleared == {"g": {"at": 5}}

    mirror.apply(full(1))

    assert mirror.cleared == {}


def test_a_snapshot_given_out_stays_as_it_was() -> None:
    mirror = Mirror()
    mirror.apply(full(1, node("a", "running")))
    given = mirror.graphs["g"]

    mirror.apply(change(1, 2, nodes=[node("a", "achieved"), node("b", "ready")], history=[{"rev": 2}]))

    assert given["nodes"] == [node("a", "running")]
    assert given["history"] == []
