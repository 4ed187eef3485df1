"""Write changes: version 1 from a graph, as far as it can say it; version 2 around a wire snapshot."""

from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.change.decode import KIND
from graphd.core.change.keys import HISTORY_KINDS
from graphd.core.change.keys_v1 import STATES_1, STATUSES_1
from graphd.core.model import Graph, HistoryEntry, Node
from graphd_protocol.ids import node_id


def encode_v1(graph: Graph) -> dict[str, Any]:
    """A version 1 change of this graph. Refused as `notSupported` where version 1 has no words for it."""
    if graph.status not in STATUSES_1:
        raise _unsayable(graph, "status", t("version 1 has no status {status}", status=graph.status))
    if graph.stopping is not None:
        raise _unsayable(
            graph, "stopping", t("version 1 can't say that a {verb} is wished for", verb=graph.stopping.verb)
        )
    if not graph.objective.strip():
        raise _unsayable(graph, "objective", t("version 1 needs an objective"))
    value: dict[str, Any] = {
        "id": graph.id,
        "objective": graph.objective,
        "status": graph.status,
        "planVersion": max(graph.plan_version, 1),
        "nodes": [_node(graph, index, node) for index, node in enumerate(graph.nodes.values())],
        "pendingDiscoveries": [],
        "history": [_history(entry) for entry in graph.history],
        "tokensSpent": graph.spent.tokens,
        "replanRuns": 0,
        "createdAt": graph.created_at,
        "updatedAt": graph.updated_at,
    }
    if graph.pause_reason is not None:
        value["pauseReason"] = graph.pause_reason
    return {"kind": KIND, "version": 1, "graph": value}


def encode_v2(snapshot: dict[str, Any]) -> dict[str, Any]:
    """A version 2 change: the snapshot exactly as on the wire."""
    return {"kind": KIND, "version": 2, "graph": snapshot}


def _unsayable(graph: Graph, field: str, message: str) -> Refused:
    return Refused(
        "notSupported",
        t("{field}: {message}", field=field, message=message),
        t("export version 2"),
        graph=graph.id,
        field=field,
    )


def _node(graph: Graph, index: int, node: Node) -> dict[str, Any]:
    where = f"nodes[{index}]"
    if node.state not in STATES_1:
        raise _unsayable(
            graph, f"{where}.state", t("version 1 has no state {state} ({node})", state=node.state, node=node.slug)
        )
    if node.definition.condition is not None:
        raise _unsayable(graph, f"{where}.condition", t("version 1 has no conditions ({node})", node=node.slug))
    if node.state == "failed" and not node.required:
        raise _unsayable(graph, f"{where}.required", t("in version 1 no failure is optional ({node})", node=node.slug))
    if not node.definition.spec.strip():
        raise _unsayable(graph, f"{where}.spec", t("version 1 needs a spec ({node})", node=node.slug))
    title = node.definition.title
    row: dict[str, Any] = {
        "id": node.id,
        "title": title if title.strip() else node.slug,
        "spec": node.definition.spec,
        "blocks": list(node.needs),
        "state": node.state,
        "rounds": node.rounds,
    }
    if node.failure is not None:
        row["failure"] = f"{node.failure.failure_class}: {node.failure.reason}"
    if node.child_session:
        row["childSessionId"] = node.child_session
    if node.definition.discovered_from:
        row["discoveredFrom"] = [node_id(slug) for slug in node.definition.discovered_from]
    return row


def _history(entry: HistoryEntry) -> dict[str, Any]:
    kind = HISTORY_KINDS.get(entry.kind, "unknown")
    detail = entry.detail
    if kind == "unknown":
        detail = entry.kind if detail is None else f"{entry.kind}: {detail}"
    row: dict[str, Any] = {"at": entry.at, "kind": kind}
    if entry.node is not None:
        row["node"] = node_id(entry.node)
    if detail is not None and detail.strip():
        row["detail"] = detail
    return row
