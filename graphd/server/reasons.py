"""Why a node is where it is, and what to type next. Pure: committed state in, reasons out.

Source: spec protocol.md (`why`); product.md, What it must feel like.
"""

import shlex
from collections.abc import Callable
from typing import Final

from graphd.base.text import t
from graphd.core.model import Attempt, Graph, Node
from graphd.server.holds import holds
from graphd.server.project import Wire
from graphd.server.reason import Surroundings, at, why


def reasons(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    """At least one reason, the nearest first; each with a command to type."""
    found = _BY_STATE[node.state](graph, node, around)
    if not node.is_settled or node.state == "running":
        found += _of_graph(graph, around)
    return found


def _slug(graph: Graph, node: str) -> str:
    return graph.nodes[node].slug if node in graph.nodes else node


# ---- before it runs -------------------------------------------------------------------------------------------------


def _waiting(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    found = []
    for need in node.needs:
        upstream = graph.nodes[need]
        if not upstream.is_settled:
            detail = t("it needs {upstream}, which is {state}", upstream=upstream.slug, state=upstream.state)
            command = f"graphd why {upstream.slug} {at(graph)}"
            found.append(why("waitsFor", detail, command, since=upstream.started_at, on=upstream.slug))
    for gate in [graph.nodes[held] for held in graph.holding if held in node.needs]:
        detail = t("gate {gate} asks for a new plan: replan, or resume to go on with this one", gate=gate.slug)
        found.append(why("asksForPlan", detail, f"graphd resume {graph.id}", since=gate.ended_at, on=gate.slug))
    if node.definition.condition is not None:
        detail = t("then its condition decides: {condition}", condition=node.definition.condition)
        found.append(why("condition", detail, f"graphd show {graph.id}"))
    return found or [why("waits", t("it is about to become ready"), f"graphd watch {graph.id}")]


# ---- while it runs --------------------------------------------------------------------------------------------------


def _running(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    live = [graph.attempts[key] for key in graph.live if key[0] == node.id]
    if not live:
        return _without_attempt(graph, node)
    found = [*_stuck(graph, node, live), *_asked(graph, node), *_resting(graph, live, around)]
    if found and found[0]["code"] == "stuck":
        return found
    doing = around.phase or t("working")
    if live[-1].role == "verifier":
        doing = t("its result is checked")
    command = f"graphd logs {node.slug} {at(graph)}"
    since = around.phase_since or node.started_at
    return [*found, why("running", t("it runs: {doing}", doing=doing), command, since=since)]


def _stuck(graph: Graph, node: Node, live: list[Attempt]) -> list[Wire]:
    for attempt in live:
        if attempt.state == "stuck":
            pids = ",".join(map(str, attempt.stuck_pids))
            detail = t(
                "the death of its processes can't be proven ({reason}): pids {pids}",
                reason=attempt.reason or t("unknown"), pids=pids,
            )  # fmt: skip
            command = f"graphd release {node.slug} --pids {pids} {at(graph)}"
            return [why("stuck", detail, command, since=attempt.started_at)]
    return []


def _asked(graph: Graph, node: Node) -> list[Wire]:
    """Questions that it, or somebody about it, asked; the code is the kind of the ask."""
    asks = [graph.asks[ask_id] for ask_id in graph.open_asks if graph.asks[ask_id].node == node.id]
    return [
        why(
            ask.kind, t("it waits for an answer: {title}", title=ask.title), f"graphd ask {ask.id}",
            since=ask.opened_at, on=ask.id,
        )
        for ask in asks
    ]  # fmt: skip


def _resting(graph: Graph, live: list[Attempt], around: Surroundings) -> list[Wire]:
    found = []
    for profile in dict.fromkeys(attempt.profile for attempt in live):
        rest = around.state.cooling.get(profile)
        if rest is not None and rest.until > around.now:
            left_s = -(-(rest.until - around.now) // 1000)
            detail = t("{agent} rests for {count} s: {reason}", agent=profile, count=left_s, reason=rest.reason)
            found.append(why("coolingDown", detail, f"graphd watch {graph.id}", since=rest.since, on=profile))
    return found


def _without_attempt(graph: Graph, node: Node) -> list[Wire]:
    """A node that runs and has no process: it waits, or its items run."""
    wait = node.definition.wait
    if wait is not None and wait.signal is not None:
        detail = t("it waits for the signal {name}", name=wait.signal)
        command = f"graphd signal {shlex.quote(wait.signal)}"  # any text may be its name
        return [why("waitsForSignal", detail, command, since=node.started_at, on=wait.signal)]
    if wait is not None:
        detail = t("it waits until {until}", until=wait.until or "")
        return [why("waitsUntil", detail, f"graphd watch {graph.id}", since=node.started_at)]
    found = []
    for other in graph.nodes.values():
        item = other.definition.item
        if item is not None and item.of == node.slug and not other.is_settled:
            detail = t("its item {node} is {state}", node=other.slug, state=other.state)
            found.append(why("joins", detail, f"graphd why {other.slug} {at(graph)}", on=other.slug))
    return found or [why("running", t("it runs: {doing}", doing=t("working")), f"graphd watch {graph.id}")]


# ---- at rest --------------------------------------------------------------------------------------------------------


def _failed(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    failure = node.failure
    detail = t("it failed")
    if failure is not None:
        detail = t("{failure_class}: {reason}", failure_class=failure.failure_class, reason=failure.reason)
    found = [why("failed", detail, _traces(graph, node), since=node.ended_at)]
    if graph.status != "cancelled":
        detail = t("a failed node can be tried again")
        found.append(why("canRetry", detail, f"graphd retry {node.slug} {at(graph)}"))
    return found


def _traces(graph: Graph, node: Node) -> str:
    """What it printed; of a node that never started, what happened to it."""
    return f"graphd logs {node.slug} {at(graph)}" if node.last_number else f"graphd history {graph.id}"


def _blocked(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    culprit = _slug(graph, node.blocked_by) if node.blocked_by is not None else None
    if culprit is None:
        return [why("blocked", t("something that it needs failed"), f"graphd why {at(graph)}")]
    detail = t("{culprit} failed, and it is required", culprit=culprit)
    return [why("blockedBy", detail, f"graphd why {culprit} {at(graph)}", on=culprit)]


_SKIPPED = {
    "condition_false": t("its condition is false"),
    "gate_not_accepted": t("a gate that it needs did not accept"),
    "no_input": t("nothing that it needs was achieved"),
    "finished_early": t("the graph was finished before it started"),
}


def _skipped(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    detail = _SKIPPED.get(node.skip or "", t("it was skipped"))
    command = f"graphd retry {node.slug} {at(graph)}"
    if graph.status == "cancelled":
        command = f"graphd history {graph.id}"
    return [why(node.skip or "skipped", detail, command, since=node.ended_at)]


def _cancelled(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    detail = t("{reason}", reason=node.cancel_reason) if node.cancel_reason else t("it was cancelled")
    return [why("cancelled", detail, f"graphd history {graph.id}", since=node.ended_at)]


def _achieved(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    command = f"graphd output {node.slug} {at(graph)}"
    return [why("achieved", t("it is done"), command, since=node.ended_at)]


_BY_STATE: Final[dict[str, Callable[[Graph, Node, Surroundings], list[Wire]]]] = {
    "waiting": _waiting,
    "ready": holds,
    "running": _running,
    "achieved": _achieved,
    "failed": _failed,
    "blocked": _blocked,
    "skipped": _skipped,
    "cancelled": _cancelled,
}


# ---- its graph ------------------------------------------------------------------------------------------------------


def _of_graph(graph: Graph, around: Surroundings) -> list[Wire]:
    found = []
    if graph.stopping is not None:
        wish = graph.stopping
        detail = t("a {verb} by {by} stands; it ends when every process has", verb=wish.verb, by=wish.by)
        found.append(why("stopping", detail, f"graphd watch {graph.id}", since=wish.at))
    if graph.status in ("user_paused", "infra_paused", "budget_limited"):
        reason = graph.pause_reason or t("no reason was given")
        detail = t("the graph is {status}: {reason}", status=graph.status, reason=reason)
        if graph.paused_by is not None:
            detail = t("{by} paused the graph: {reason}", by=graph.paused_by, reason=reason)
        found.append(why(graph.status, detail, _way_on(graph, around), on=graph.paused_by))
    return found


def _way_on(graph: Graph, around: Surroundings) -> str:
    """What makes a graph go on that does not by itself."""
    if graph.status == "budget_limited":
        from graphd.core.budget import EXAMPLES, Amounts, used

        spent = used(around.state, graph, around.now)
        limits = {unit: getattr(graph.budget, unit, None) for unit in Amounts._fields}
        over = [u for u, limit in limits.items() if limit is not None and getattr(spent, u) >= limit]
        return f"graphd resume {graph.id} --top-up {','.join(EXAMPLES[unit] for unit in over)}"
    if graph.stopping is None and graph.pause_cause in ("agent", "provider"):
        return "graphd agents" if graph.pause_cause == "agent" else f"graphd watch {graph.id}"
    stuck = [graph.attempts[key] for key in graph.live if graph.attempts[key].state == "stuck"]
    if graph.status == "infra_paused" and stuck:
        return f"graphd why {graph.nodes[stuck[0].node].slug} {at(graph)}"
    return f"graphd resume {graph.id}" if graph.stopping is None else f"graphd watch {graph.id}"
