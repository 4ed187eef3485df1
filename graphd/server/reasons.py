"""Why a node is where it is, and what to type next. Pure: committed state in, reasons out.

Source: spec protocol.md (`why`); product.md, What it must feel like.
"""

from dataclasses import dataclass

from graphd.base.text import Text, t
from graphd.core.model import Graph, Node
from graphd.server.project import Wire


@dataclass(slots=True, frozen=True)
class Surroundings:
    """What lies outside the graph: slots, the store, the phase of the node."""

    running: int
    concurrency: int
    store_health: str = "ok"
    phase: str | None = None
    phase_since: int | None = None


def reasons(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    """At least one reason, the nearest first; each with a command to type."""
    found = _BY_STATE[node.state](graph, node, around)
    if not node.is_settled or node.state == "running":
        found += _of_graph(graph)
    return found


def _why(code: str, detail: Text, command: str, *, since: int | None = None, on: str | None = None) -> Wire:
    row: Wire = {"code": code, "detail": detail, "next": command}
    if since is not None:
        row["since"] = since
    if on is not None:
        row["on"] = on
    return row


def _at(graph: Graph) -> str:
    return f"--graph {graph.id}"


def _slug(graph: Graph, node: str) -> str:
    return graph.nodes[node].slug if node in graph.nodes else node


def _waiting(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    found = []
    for need in node.needs:
        upstream = graph.nodes[need]
        if not upstream.is_settled:
            detail = t("it needs {upstream}, which is {state}", upstream=upstream.slug, state=upstream.state)
            command = f"graphd why {upstream.slug} {_at(graph)}"
            found.append(_why("waitsFor", detail, command, since=upstream.started_at, on=upstream.slug))
    return found or [_why("waits", t("it is about to become ready"), f"graphd watch {graph.id}")]


def _ready(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    if node.not_before is not None:
        return [
            _why("backoff", t("it is tried again after a pause"), f"graphd watch {graph.id}", since=node.not_before)
        ]
    if graph.status != "active" or graph.stopping is not None:
        return [_why("held", t("its graph starts nothing now"), f"graphd status {graph.id}")]
    if around.store_health != "ok":
        detail = t("the store is {health}: nothing is started", health=around.store_health)
        return [_why("storeUnavailable", detail, "graphd doctor")]
    if graph.counts.get("running", 0) >= graph.limits.concurrency:
        detail = t("all {limit} slots of its graph are taken", limit=graph.limits.concurrency)
        return [_why("graphSlots", detail, f"graphd watch {graph.id}")]
    if around.running >= around.concurrency:
        return [
            _why("slots", t("all {limit} slots of the daemon are taken", limit=around.concurrency), "graphd processes")
        ]
    return [_why("queued", t("it starts with the next free slot"), f"graphd watch {graph.id}")]


def _running(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    for key in graph.live:
        attempt = graph.attempts[key]
        if attempt.node == node.id and attempt.state == "stuck":
            pids = ",".join(map(str, attempt.stuck_pids))
            detail = t(
                "the death of its processes can't be proven ({reason}): pids {pids}",
                reason=attempt.reason or t("unknown"), pids=pids,
            )  # fmt: skip
            command = f"graphd release {node.slug} --pids {pids} {_at(graph)}"
            return [_why("stuck", detail, command, since=attempt.started_at)]
    doing = around.phase or t("working")
    command = f"graphd logs {node.slug} -f {_at(graph)}"
    return [_why("running", t("it runs: {doing}", doing=doing), command, since=around.phase_since or node.started_at)]


def _failed(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    failure = node.failure
    detail = t("it failed")
    if failure is not None:
        detail = t("{failure_class}: {reason}", failure_class=failure.failure_class, reason=failure.reason)
    logs = f"graphd logs {node.slug} {_at(graph)}"
    found = [_why("failed", detail, logs, since=node.ended_at)]
    if graph.status != "cancelled":
        detail = t("a failed node can be tried again")
        found.append(_why("canRetry", detail, f"graphd retry {node.slug} {_at(graph)}"))
    return found


def _blocked(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    culprit = _slug(graph, node.blocked_by) if node.blocked_by is not None else None
    if culprit is None:
        return [_why("blocked", t("something that it needs failed"), f"graphd why {_at(graph)}")]
    detail = t("{culprit} failed, and it is required", culprit=culprit)
    return [_why("blockedBy", detail, f"graphd why {culprit} {_at(graph)}", on=culprit)]


_SKIPPED = {
    "condition_false": t("its condition is false"),
    "gate_not_accepted": t("a gate that it needs did not accept"),
    "no_input": t("nothing that it needs was achieved"),
    "finished_early": t("the graph was finished before it started"),
}


def _skipped(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    detail = _SKIPPED.get(node.skip or "", t("it was skipped"))
    return [_why(node.skip or "skipped", detail, f"graphd retry {node.slug} {_at(graph)}", since=node.ended_at)]


def _cancelled(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    detail = t("{reason}", reason=node.cancel_reason) if node.cancel_reason else t("it was cancelled")
    return [_why("cancelled", detail, f"graphd history {graph.id}", since=node.ended_at)]


def _achieved(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    command = f"graphd output {node.slug} {_at(graph)}"
    return [_why("achieved", t("it is done"), command, since=node.ended_at)]


_BY_STATE = {
    "waiting": _waiting,
    "ready": _ready,
    "running": _running,
    "achieved": _achieved,
    "failed": _failed,
    "blocked": _blocked,
    "skipped": _skipped,
    "cancelled": _cancelled,
}


def _of_graph(graph: Graph) -> list[Wire]:
    found = []
    if graph.stopping is not None:
        wish = graph.stopping
        detail = t("a {verb} by {by} stands; it ends when every process has", verb=wish.verb, by=wish.by)
        found.append(_why("stopping", detail, f"graphd watch {graph.id}", since=wish.at))
    if graph.status in ("user_paused", "infra_paused", "budget_limited"):
        detail = t(
            "the graph is {status}: {reason}",
            status=graph.status,
            reason=graph.pause_reason or t("no reason was given"),
        )
        found.append(_why(graph.status, detail, f"graphd resume {graph.id}"))
    return found
