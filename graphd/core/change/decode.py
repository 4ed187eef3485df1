"""Strict decode of one `workgraph/change`, both versions.

Trouble is loud and names its place; only a node state or a history kind that nobody knows is repaired:
a newer writer may have them, and guessing low is safe.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from graphd.base.text import t
from graphd.core.change.keys import HISTORY_KINDS, TOMBSTONE
from graphd.core.change.keys_v1 import GRAPH_1, HISTORY_KINDS_1
from graphd.core.change.keys_v2 import GRAPH_2
from graphd.core.change.reading import Key, MalformedChange, object_of, show
from graphd.core.change.rules import check_known, check_unique, check_whole
from graphd.core.change.values import GraphValue, HistoryValue, NodeValue, Tombstone
from graphd_protocol.ids import node_id

KIND: Final = "workgraph/change"


def decode(value: object) -> GraphValue | Tombstone | None:
    """Read one change; None where it is no change of ours at all. Raises MalformedChange."""
    if not isinstance(value, dict) or value.get("kind") != KIND:
        return None
    version = value.get("version")
    if isinstance(version, bool) or version not in (1, 2):
        raise MalformedChange(t("unknown version {version}; known are 1 and 2", version=show(version)), "version")
    if "operation" in value:
        stone = object_of(TOMBSTONE)(value)
        return Tombstone(stone["version"], stone["cleared"], stone["clearedAt"])
    graph = object_of(_envelope(_TABLES[version]))(value)["graph"]
    try:
        return _drawn_1(graph) if version == 1 else _drawn_2(graph)
    except MalformedChange as trouble:
        raise trouble.below("graph") from None


def _envelope(graph: Mapping[str, Key]) -> dict[str, Key]:
    return {"kind": TOMBSTONE["kind"], "version": TOMBSTONE["version"], "graph": Key(object_of(graph))}


_TABLES: Final = {1: GRAPH_1, 2: GRAPH_2}


def _drawn_1(graph: dict[str, Any]) -> GraphValue:
    ids = check_unique(graph["nodes"], "id")
    for index, node in enumerate(graph["nodes"]):
        check_known(node["blocks"], ids, f"nodes[{index}].blocks")
        check_known(node.get("discoveredFrom", ()), ids, f"nodes[{index}].discoveredFrom")
    for index, discovery in enumerate(graph["pendingDiscoveries"]):
        check_known([discovery["from"]], ids, f"pendingDiscoveries[{index}].from")
    nodes = tuple(
        NodeValue(n["id"], None, n["title"], n["spec"], tuple(n["blocks"]), n["state"], n["rounds"])
        for n in graph["nodes"]
    )
    check_whole(graph, nodes, "blocks")
    return GraphValue(
        version=1, tokens=graph["tokensSpent"], cost_usd=None, wall_ms=0, replans=graph["replanRuns"],
        nodes=nodes, history=tuple(_history(graph, ids, HISTORY_KINDS_1)), graph=graph, **_common(graph),
    )  # fmt: skip


def _drawn_2(graph: dict[str, Any]) -> GraphValue:
    slugs = check_unique(graph["nodes"], "slug")
    for index, node in enumerate(graph["nodes"]):
        if node["id"] != node_id(node["slug"]):
            raise MalformedChange(t("is not the id of {node}", node=node["slug"]), f"nodes[{index}].id", index)
        check_known(node["needs"], slugs, f"nodes[{index}].needs")
        check_known(node.get("discoveredFrom", ()), slugs, f"nodes[{index}].discoveredFrom")
        check_known(filter(None, [node.get("blockedBy")]), slugs, f"nodes[{index}].blockedBy")
    check_unique(graph["nodes"], "id")
    for index, ask in enumerate(graph.get("asks", ())):
        check_known(filter(None, [ask.get("node")]), slugs, f"asks[{index}].node")
    check_known(filter(None, [graph.get("deliveryNode")]), slugs, "deliveryNode")
    check_known((graph.get("stopping") or {}).get("left", ()), slugs, "stopping.left")
    nodes = tuple(
        NodeValue(n["id"], n["slug"], n["title"], n["spec"], _ids(n["needs"]), n["state"], n["rounds"])
        for n in graph["nodes"]
    )
    check_whole(graph, nodes, "needs")
    spent = graph["spent"]
    return GraphValue(
        version=2, tokens=spent.get("tokens", 0), cost_usd=spent.get("costUsd", 0.0),
        wall_ms=spent.get("wallMs", 0), replans=None, nodes=nodes,
        history=tuple(_history(graph, slugs, HISTORY_KINDS)), graph=graph, **_common(graph),
    )  # fmt: skip


def _ids(slugs: list[str]) -> tuple[str, ...]:
    return tuple(map(node_id, slugs))


def _common(graph: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": graph["id"], "status": graph["status"], "pause_reason": graph.get("pauseReason"),
        "plan_version": graph["planVersion"], "created_at": graph["createdAt"],
        "updated_at": graph["updatedAt"],
    }  # fmt: skip


def _history(graph: dict[str, Any], known: Mapping[str, int], kinds: Iterable[str]) -> Iterator[HistoryValue]:
    words = frozenset(kinds) | {"unknown"}
    for index, entry in enumerate(graph["history"]):
        node, kind = entry.get("node"), entry["kind"]
        if node is not None and node not in known:
            raise MalformedChange(t("names no node of the graph: {node}", node=node), f"history[{index}].node", index)
        raw = None if kind in words else kind
        yield HistoryValue(entry["at"], "unknown" if raw else kind, node, entry.get("detail"), raw)
