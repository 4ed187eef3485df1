"""What one settled node causes: readiness, skipping, blocking, and the end or standstill of the graph
(model.md, Node, Graph).

All of it happens in the change that caused it.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

from graphd.base.text import t
from graphd.core.derive import maker_id
from graphd.core.draft import Draft
from graphd.core.events import RemoveGraphFiles
from graphd.core.gates import decide_gate, is_held, refuses, rejecting
from graphd.core.model import Graph, Node, Output
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
        if node.definition.item is not None:
            todo.extend(_joined(draft, node))
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


def _joined(draft: Draft, item: Node) -> list[Node]:
    from graphd.core.items import join  # few graphs have lists

    return join(draft, draft.graph.nodes[maker_id(item)])


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
    graph = draft.graph
    if node.unsettled or is_held(graph, node) or _waits_for_list(graph, node):
        return False
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
    elif refuses(graph, node):
        skip(draft, node, "gate_not_accepted")
        return True
    elif node.needs and not any(graph.nodes[need].state == "achieved" for need in node.needs):
        skip(draft, node, "no_input")
        return True
    draft.emit("node_ready", node)
    return False


def _waits_for_list(graph: Graph, node: Node) -> bool:
    """An item whose list is to be read anew first: its place in it, and its value, may change."""
    return node.definition.item is not None and graph.nodes[maker_id(node)].state != "running"


def skip(draft: Draft, node: Node, reason: SkipReason) -> None:
    """Settle a node as skipped."""
    draft.emit("node_skipped", node, reason=reason)


def _facts(graph: Graph, slug: str) -> "Facts":
    from graphd.core.conditions import Facts

    node = graph.nodes[node_id(slug)]
    output = node.output
    if output is None:
        return Facts(node.state, node.verdict)
    return Facts(node.state, node.verdict, output_text=output.text, media_type=output.media_type, is_cut=output.is_cut)


def conclude(draft: Draft) -> None:
    """Give the graph the status that its nodes now mean: complete, blocked, cancelled, cleared, or paused when
    nothing can run.
    """
    graph = draft.graph
    if graph.stopping is not None:
        conclude_stop(draft)
        return
    _withdraw_stale(draft)
    if graph.terms.on_required_failure == "stop" and graph.counts["failed"]:
        from graphd.core.failing import stop_for_failure  # few graphs ask for it

        if stop_for_failure(draft):
            return
    counts = graph.counts
    if counts["running"] or counts["ready"] or counts["waiting"]:
        _keep_bounds(draft, graph)
        _conclude_standstill(draft, graph)
        return
    if graph.holding:
        return  # a gate asked for a new plan; it is paused until somebody answers
    trouble = None if graph.is_finishing else _standing_trouble(graph)
    if trouble is None:
        _complete(draft, graph)
    else:
        block(draft, trouble)


def block(draft: Draft, reason: str) -> None:
    """Nothing runs, and the graph is not complete: `blocked`, unless its budget is spent, which is said before that."""
    graph = draft.graph
    if graph.budget is not None:
        from graphd.core.budget import trip_if_reached  # as in `_keep_bounds`

        trip_if_reached(draft)
    is_said = graph.status == "blocked" and graph.pause_reason == reason
    if graph.status != "budget_limited" and not is_said:
        draft.emit("blocked", reason=reason)


def _withdraw_stale(draft: Draft) -> None:
    """An approval is asked of a ready node: one that is not ready any more needs none."""
    graph = draft.graph
    if not graph.open_asks:
        return
    from graphd.core.asks import withdraw  # graphs that ask have it already

    for ask in [graph.asks[ask_id] for ask_id in graph.open_asks]:
        if ask.kind == "approval" and graph.nodes[ask.node or ""].state != "ready":
            withdraw(draft, ask, t("{node} is not about to start any more", node=graph.nodes[ask.node or ""].slug))


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
    _withdraw_stale(draft)
    graph = draft.graph
    wish = graph.stopping
    if wish is None or graph.live:
        pause_for_stuck(draft, graph)
    elif wish.verb == "pause":
        draft.emit("paused", status="user_paused", reason=wish.reason or t("paused"), cause=None, by=wish.by)
        conclude(draft)
    elif wish.verb == "budget":
        draft.emit("paused", status="budget_limited", reason=wish.reason, cause=None)
        conclude(draft)
    elif wish.verb == "cancel":
        draft.emit("cancelled", reason=wish.reason)
        _withdraw_proposals(draft, graph)
        deliver_end(draft)
    else:
        draft.emit("cleared", reason=wish.reason)
        draft.then(RemoveGraphFiles(graph.id))


def _conclude_standstill(draft: Draft, graph: Graph) -> None:
    is_full = graph.slots_taken >= graph.limits.concurrency
    is_idle = is_full or not graph.counts["ready"] or graph.stepping is not None
    if graph.status == "active" and is_idle and not has_timer(graph):
        pause_for_stuck(draft, graph)


def has_timer(graph: Graph) -> bool:
    """A node of it waits for a time or a signal, and others may run after that."""
    return any(graph.nodes[node].definition.wait is not None for node in graph.slotless)


def pause_for_stuck(draft: Draft, graph: Graph) -> None:
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
    planned = (node for node in graph.nodes.values() if node.removed_in is None and node.definition.item is None)
    sinks = [node for node in planned if not node.dependants]
    if all(_is_tainted(graph, sink) for sink in sinks):
        return t("every end of the graph failed, or was skipped because what came before it failed")
    return None


def _is_tainted(graph: Graph, sink: Node) -> bool:
    """Failed, or skipped for want of something that failures alone explain. Iterative: plans are deep."""
    todo, seen = [sink], {sink.id}
    while todo:
        node = todo.pop()
        if node.state == "failed":
            continue
        if node.state != "skipped" or node.skip not in ("no_input", "gate_not_accepted"):
            return False
        needs = [graph.nodes[need] for need in node.needs]
        if node.skip == "gate_not_accepted":  # a gate that said so is no failure; one that never spoke may be
            needs = [need for need in needs if need.definition.gate is not None and need.verdict != "ACCEPT"]
        fresh = [need for need in needs if need.id not in seen]
        seen.update(need.id for need in fresh)
        todo += fresh
    return True


def _complete(draft: Draft, graph: Graph) -> None:
    gates = [gate.slug for gate in rejecting(graph)]
    outcome: Outcome = "rejected" if gates else "withFailures" if graph.counts["failed"] else "ok"
    draft.emit("completed", outcome=outcome, gates=gates)
    _withdraw_proposals(draft, graph)
    deliver_end(draft)


def report(draft: Draft, node: Node) -> None:
    """Deliver a node's result to the owner where the plan asks for it."""
    graph = draft.graph
    if graph.owner is None or not node.definition.report_to_parent or node.state not in ("achieved", "failed"):
        return
    is_failure = node.state == "failed"
    text = node.failure.reason if node.failure else (node.output.text if node.output else "")
    draft.emit(
        "delivery_created", node, id=f"{graph.id}/{draft.change.rev}/{node.id}", owner=graph.owner,
        kind="failure" if is_failure else "result", text=text,
    )  # fmt: skip


def output_row(output: Output | None) -> dict[str, Any] | None:
    """As `asdict`, which copies deeply and was a fifth of a settlement's cost."""
    if output is None:
        return None
    return {
        "text": output.text,
        "total_bytes": output.total_bytes,
        "media_type": output.media_type,
        "is_cut": output.is_cut,
    }


def achieve(draft: Draft, node: Node, output: Output | None) -> list[Node]:
    """Settle a node as achieved; a gate decides in the same change. The nodes to look at next."""
    draft.emit("node_achieved", node, output=output_row(output))
    report(draft, node)
    return decide_gate(draft, node)


def _withdraw_proposals(draft: Draft, graph: Graph) -> None:
    if graph.open_asks:
        from graphd.core.proposals import withdraw_stranded  # with the first one, as in `decide`

        withdraw_stranded(draft)


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
