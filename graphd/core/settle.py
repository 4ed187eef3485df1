"""What one settled node causes: readiness, skipping, blocking, and the end or standstill of the graph
(model.md, Node, Graph).

All of it happens in the change that caused it.
"""

from collections import deque
from typing import TYPE_CHECKING

from graphd.base.text import t
from graphd.core.draft import Draft
from graphd.core.events import RemoveGraphFiles
from graphd.core.model import Graph, Node
from graphd_protocol.ids import node_id
from graphd_protocol.states import Outcome, SkipReason

if TYPE_CHECKING:
    from graphd.core.conditions import Facts

END_TEXT_LIMIT_BYTES = 65_536


def ripple(draft: Draft, first: list[Node]) -> None:
    """Carry on, to any depth, from nodes that were just settled, failed or blocked, or put back to waiting."""
    todo = deque(first)
    while todo:
        node = todo.popleft()
        if node.state == "waiting":
            if block_if_due(draft, node) or admit_if_due(draft, node):
                todo.append(node)
            continue
        is_dead_end = node.state == "blocked" or (node.state == "failed" and node.required)
        for dependant_id in node.dependants:
            dependant = draft.graph.nodes[dependant_id]
            if dependant.state != "waiting":
                continue
            if is_dead_end:
                draft.emit("node_blocked", dependant, by=_root_of_block(node))
                todo.append(dependant)
            elif admit_if_due(draft, dependant):
                todo.append(dependant)


def _root_of_block(node: Node) -> str:
    return node.blocked_by or node.slug


def block_if_due(draft: Draft, node: Node) -> bool:
    """Block a waiting node that needs a blocked or required and failed one."""
    for need_id in node.needs:
        need = draft.graph.nodes[need_id]
        if need.state == "blocked" or (need.state == "failed" and need.required):
            draft.emit("node_blocked", node, by=_root_of_block(need))
            return True
    return False


def admit_if_due(draft: Draft, node: Node) -> bool:
    """Move a waiting node whose needs are all settled: ready, skipped, or failed where its condition has no answer.

    True where it came to rest, so that its dependants are to be looked at.
    """
    if node.unsettled:
        return False
    graph = draft.graph
    if node.definition.condition is not None:
        from graphd.core.conditions import ConditionUnanswerable, evaluate, parse  # as in `decide`: with the first one

        try:
            holds = evaluate(parse(node.definition.condition), lambda slug: _facts(graph, slug))
        except ConditionUnanswerable as trouble:
            draft.emit(
                "node_failed", node, **{"class": "verdict_fail"}, reason=t("condition: {reason}", reason=trouble.reason)
            )
            return True
        if not holds:
            skip(draft, node, "condition_false")
            return True
    elif node.needs and not any(graph.nodes[need].state == "achieved" for need in node.needs):
        skip(draft, node, "no_input")
        return True
    draft.emit("node_ready", node)
    return False


def skip(draft: Draft, node: Node, reason: SkipReason) -> None:
    """Settle a node as skipped."""
    draft.emit("node_skipped", node, reason=reason)


def _facts(graph: Graph, slug: str) -> "Facts":
    from graphd.core.conditions import Facts

    node = graph.nodes[node_id(slug)]
    output = node.output
    if output is None:
        return Facts(node.state)
    return Facts(node.state, output_text=output.text, media_type=output.media_type, is_cut=output.is_cut)


def conclude(draft: Draft) -> None:
    """Give the graph the status that its nodes now mean: complete, blocked, cancelled, cleared, or paused when
    nothing can run.
    """
    graph = draft.graph
    if graph.stopping is not None:
        conclude_stop(draft)
        return
    counts = graph.counts
    if counts["running"] or counts["ready"] or counts["waiting"]:
        _keep_bounds(draft, graph)
        _conclude_standstill(draft, graph)
        return
    trouble = None if graph.is_finishing else _standing_trouble(graph)
    if trouble is None:
        _complete(draft, graph)
    elif graph.status != "budget_limited":  # which is said before that
        draft.emit("blocked", reason=trouble)


def _keep_bounds(draft: Draft, graph: Graph) -> None:
    """Few graphs have a budget or are stepped: what knows these is imported with the first one."""
    if graph.budget is not None:
        from graphd.core.budget import trip_if_reached

        trip_if_reached(draft)
    if graph.stepping is not None:
        from graphd.core.stepping import end_step

        end_step(draft)


def conclude_stop(draft: Draft) -> None:
    """Fulfil the wish to stop once no tree is left; a clear also goes through here for a graph that has ended."""
    graph = draft.graph
    wish = graph.stopping
    if wish is None or graph.live:
        _pause_for_stuck(draft, graph)
    elif wish.verb == "pause":
        draft.emit("paused", status="user_paused", reason=wish.reason or t("paused"), cause=None, by=wish.by)
        conclude(draft)
    elif wish.verb == "budget":
        draft.emit("paused", status="budget_limited", reason=wish.reason, cause=None)
        conclude(draft)
    elif wish.verb == "cancel":
        draft.emit("cancelled", reason=wish.reason)
        deliver_end(draft)
    else:
        draft.emit("cleared", reason=wish.reason)
        draft.then(RemoveGraphFiles(graph.id))


def _conclude_standstill(draft: Draft, graph: Graph) -> None:
    is_full = graph.counts["running"] >= graph.limits.concurrency
    if graph.status == "active" and (is_full or not graph.counts["ready"] or graph.stepping is not None):
        _pause_for_stuck(draft, graph)


def _pause_for_stuck(draft: Draft, graph: Graph) -> None:
    """Nothing can run while every running node's tree is stuck; a wish that such a tree holds up is kept."""
    live = [graph.attempts[key] for key in graph.live]
    if not live or any(attempt.state != "stuck" for attempt in live):
        return
    if graph.status == "infra_paused" and graph.pause_cause == "stuck":
        return
    names = ", ".join(graph.nodes[attempt.node].slug for attempt in live)
    draft.emit(
        "paused",
        status="infra_paused",
        reason=t("can't prove that the processes of {names} are dead", names=names),
        cause="stuck",
    )


def _standing_trouble(graph: Graph) -> str | None:
    """Why a graph whose nodes are all at rest is not complete, or None."""
    for node in graph.nodes.values():
        if node.state == "failed" and node.required and node.failure is not None:
            return t("required node {node} failed: {reason}", node=node.slug, reason=node.failure.reason)
    sinks = [node for node in graph.nodes.values() if not node.dependants]
    if all(_is_tainted(graph, sink) for sink in sinks):
        return t("every end of the graph failed, or was skipped because what came before it failed")
    return None


def _is_tainted(graph: Graph, sink: Node) -> bool:
    """Failed, or skipped for lack of input that failures alone explain. Iterative: plans are deep."""
    todo, seen = [sink], {sink.id}
    while todo:
        node = todo.pop()
        if node.state == "failed":
            continue
        if node.state != "skipped" or node.skip != "no_input":
            return False
        fresh = [graph.nodes[need] for need in node.needs if need not in seen]
        seen.update(need.id for need in fresh)
        todo += fresh
    return True


def _complete(draft: Draft, graph: Graph) -> None:
    outcome: Outcome = "withFailures" if graph.counts["failed"] else "ok"
    draft.emit("completed", outcome=outcome)
    deliver_end(draft)


def deliver_end(draft: Draft) -> None:
    """Tell the owner, where there is one, that its graph ended (model.md, Child runs)."""
    graph = draft.graph
    if graph.owner is None:
        return
    result = graph.nodes[graph.delivery_node].output if graph.delivery_node else None
    text = result.text if result else f"{graph.title}: {graph.status} {graph.outcome or ''}".strip()
    draft.emit(
        "delivery_created", id=f"{graph.id}/{draft.change.rev}/end", owner=graph.owner, kind="end",
        text=text.encode()[:END_TEXT_LIMIT_BYTES].decode(errors="ignore"),
    )  # fmt: skip
