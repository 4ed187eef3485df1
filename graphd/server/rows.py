"""Rows of a tree view: graphs, nodes, attempts, with what can be done with each. Pure: committed state in, rows out.

Commands are those of `workspace/executeCommand`; each is enabled where the core would admit it. Source: spec
protocol.md (`tree`); model.md, Verbs.
"""

from collections.abc import Mapping
from typing import Any, Final

from graphd.base.text import t
from graphd.core.model import Attempt, Graph, Node
from graphd.server.offers import admits, verbs_for
from graphd.server.project import PhaseOf, Wire, attempt_name, planned_counts
from graphd.server.words import named

ROWS_LIMIT: Final = 1000
_RETRIABLE: Final = ("failed", "blocked", "skipped", "cancelled")
_TELLING: Final = ("running", "failed", "blocked", "ready")
_ICONS: Final = {
    "active": "sync",
    "user_paused": "debug-pause",
    "infra_paused": "warning",
    "budget_limited": "warning",
    "complete": "pass",
    "waiting": "circle-outline",
    "ready": "clock",
    "running": "sync~spin",
    "achieved": "pass",
    "failed": "error",
    "blocked": "lock",
    "skipped": "debug-step-over",
    "cancelled": "circle-slash",
    "starting": "sync~spin",
    "live": "sync~spin",
    "stopping": "debug-stop",
    "stuck": "warning",
    "settled": "circle-filled",
}


def _row(
    name: str, label: str, description: str, *, kind: str, state: str, opens: str = "none", commands: list[Wire]
) -> Wire:
    return {
        "id": name,
        "label": label,
        "description": description,
        "icon": _ICONS.get(state, "circle-outline"),
        "state": state,
        "collapsible": opens,
        "contextValue": f"{kind}.{state}",
        "commands": commands,
    }


def _command(title: str, command: str, arguments: Wire, *, enabled: bool) -> Wire:
    return {"title": title, "command": f"graphd.{command}", "arguments": [arguments], "enabled": enabled}


# ---- graphs -------------------------------------------------------------------------------------------------------


def graph_row(graph: Graph) -> Wire:
    """One graph: its title, and how far it is."""
    counts = planned_counts(graph)
    settled = sum(counts.get(state, 0) for state in ("achieved", "failed", "blocked", "skipped", "cancelled"))
    values: dict[str, Any] = {"status": graph.status, "settled": settled, "all": len(graph.nodes) - len(graph.removed)}
    description = t("{status}, {settled} of {all}", **values)
    if failed := graph.counts.get("failed", 0):
        description = t("{status}, {settled} of {all}, {failed} failed", **values, failed=failed)
    if graph.stopping is not None:
        description = t("{verb} is under way: {text}", verb=graph.stopping.verb, text=description)
    return _row(
        graph.id,
        graph.title,
        description,
        kind="graph",
        state=graph.status,
        opens="expanded" if graph.is_live else "collapsed",
        commands=_of_graph(graph),
    )


def _of_graph(graph: Graph) -> list[Wire]:
    target: Wire = {"graph": graph.id}
    verbs = verbs_for(graph)
    return [
        _command(t("Pause"), "pause", target, enabled="pause" in verbs),
        _command(t("Resume"), "resume", target, enabled="resume" in verbs),
        _command(t("Retry what failed"), "retry", {**target, "all": True}, enabled="retry" in verbs),
        _command(t("Cancel"), "cancel", target, enabled="cancel" in verbs),
    ]


# ---- nodes --------------------------------------------------------------------------------------------------------


def node_rows(graph: Graph, layer_of: Mapping[str, int], phase_of: PhaseOf) -> list[Wire]:
    """The nodes, layer by layer; of more than ROWS_LIMIT those that tell most, and one row for the rest."""
    known = (node for node in graph.nodes.values() if node.removed_in is None)
    nodes = sorted(known, key=lambda node: (layer_of.get(node.id, len(layer_of)), node.index))
    shown = nodes
    if len(nodes) > ROWS_LIMIT:
        telling = [node for node in nodes if node.state in _TELLING][:ROWS_LIMIT]
        rest = [node for node in nodes if node.state not in _TELLING]
        kept = {node.id for node in [*telling, *rest[: ROWS_LIMIT - len(telling)]]}
        shown = [node for node in nodes if node.id in kept]
    rows = [_node_row(graph, node, phase_of(graph.id, node.id)) for node in shown]
    if len(shown) < len(nodes):
        label = t("and {count} more", count=len(nodes) - len(shown))
        more = _row(f"{graph.id}/", label, "", kind="more", state="waiting", commands=[])
        rows.append({**more, "contextValue": "more", "icon": "ellipsis"})
    return rows


def _node_row(graph: Graph, node: Node, phase: str | None) -> Wire:
    state = "stuck" if node.state == "running" and phase == "stuck" else node.state
    target: Wire = {"graph": graph.id, "node": node.slug}
    can_retry = admits(graph, "retry") and node.state in _RETRIABLE
    row = _row(
        f"{graph.id}/{node.slug}",
        node.definition.title or node.slug,
        _said(graph, node, phase),
        kind="node",
        state=node.state,
        opens="collapsed" if node.last_number else "none",
        commands=[
            _command(t("Retry"), "retry", target, enabled=can_retry and node.attempts < graph.limits.attempts_per_node),
            _command(t("Open output"), "openOutput", target, enabled=bool(node.last_number)),
        ],
    )
    return row if state == node.state else {**row, "icon": _ICONS[state]}


def _said(graph: Graph, node: Node, phase: str | None) -> str:
    """What a line beside the name says: why it is where it is, as far as that is not plain."""
    if node.state == "failed" and node.failure is not None:
        reason = node.failure.reason.strip().split("\n")[0][:200]
        return t("{failure}: {reason}", failure=node.failure.failure_class, reason=reason)
    if node.state == "blocked" and node.blocked_by is not None:
        culprit = graph.nodes.get(node.blocked_by)
        return t("behind {node}", node=node.blocked_by if culprit is None else culprit.slug)
    if node.state == "skipped":
        return (node.skip or "").replace("_", " ")
    if node.state == "cancelled":
        return node.cancel_reason or ""
    if node.state in ("running", "ready") and phase is not None:
        return phase.replace("_", " ")
    if node.needs:
        return t("needs {names}", names=named([graph.nodes[need].slug for need in node.needs], limit=4))
    return ""


# ---- attempts -----------------------------------------------------------------------------------------------------


def attempt_rows(graph: Graph, node: Node) -> list[Wire]:
    """The attempts of a node, the latest first."""
    found = [attempt for attempt in graph.attempts.values() if attempt.node == node.id]
    return [_attempt_row(graph, node, attempt) for attempt in reversed(found)]


def _attempt_row(graph: Graph, node: Node, attempt: Attempt) -> Wire:
    ended = attempt.outcome or attempt.state
    said = f"{ended}: {attempt.reason}" if attempt.reason else ended
    target: Wire = {"graph": graph.id, "node": node.slug, "attempt": attempt.number}
    name = attempt_name(node.slug, attempt)
    return _row(
        f"{graph.id}/{name}",
        name,
        said.split("\n")[0][:200],
        kind="attempt",
        state=attempt.state,
        commands=[_command(t("Open output"), "openOutput", target, enabled=attempt.role == "worker")],
    )
