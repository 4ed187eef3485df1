"""The verbs of people and agents (model.md, Verbs). Intent first, status when true."""

from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.codec import dump_budget
from graphd.core.commands import Acknowledge, Cancel, Finish, Pause, Resume, RetryNodes
from graphd.core.derive import maker_id
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, Actor, RecheckAttempt, StopAttempt
from graphd.core.gates import release_holds
from graphd.core.model import Graph, Node
from graphd.core.settle import conclude, conclude_stop, ripple, skip
from graphd_protocol.ids import node_id
from graphd_protocol.states import STOP_STRENGTH, VERB_TABLE, StopReason, StopVerb


def refuse_transition(graph: Graph, verb: str, why: str, hint: str) -> Refused:
    """The refusal of a verb that the graph's status, or a standing wish, does not take."""
    return Refused(
        "invalidTransition", t("can't {verb} {graph}: {why}", verb=verb, graph=graph.title, why=why), hint,
        graph=graph.id, **{"from": graph.status, "to": verb}, rev=graph.rev,
    )  # fmt: skip


def admit(graph: Graph, verb: str, *, is_stop: StopVerb | None = None) -> str:
    """The word of the verb table for this status; raises where it says no, or where a wish to stop stands."""
    stands = graph.stopping
    if stands is not None and not (is_stop and STOP_STRENGTH[is_stop] >= STOP_STRENGTH[stands.verb]):
        hint = t(
            "a {verb} by {by} stands; it ends when its processes have; graphd status shows which",
            verb=stands.verb,
            by=stands.by,
        )
        raise refuse_transition(graph, verb, t("it is stopping ({verb})", verb=stands.verb), hint)
    word = VERB_TABLE[verb][graph.status]
    if word == "no":
        raise refuse_transition(
            graph,
            verb,
            t("it is {status}", status=graph.status),
            _HINTS.get((verb, graph.status), t("graphd status shows what it takes")),
        )
    return word


_HINTS = {
    ("resume", "active"): t("it is running already; graphd watch shows it"),
    ("resume", "complete"): t("run it again with graphd run, or graphd retry a failed node"),
    ("resume", "cancelled"): t("a cancelled graph stays cancelled; run it again with graphd run"),
    ("retry", "cancelled"): t("a cancelled graph stays cancelled; run it again with graphd run"),
    ("pause", "infra_paused"): t("it is paused already, for a reason of the machine; graphd why names it"),
    ("pause", "complete"): t("nothing of it runs any more"),
    ("cancel", "complete"): t("it has ended; graphd clear removes it"),
    ("cancel", "cancelled"): t("it is cancelled already; graphd clear removes it"),
    ("finish", "complete"): t("it has ended"),
    ("replan", "complete"): t("graphd extend adds to it; graphd rerun runs its plan again"),
    ("replan", "cancelled"): t("a cancelled graph stays cancelled; run it again with graphd run"),
    ("extend", "cancelled"): t("a cancelled graph stays cancelled; run it again with graphd run"),
}


# ---- pause, resume ------------------------------------------------------------------------------------------------


def pause(draft: Draft, command: Pause) -> None:
    """Drain: `user_paused` at once, running nodes finish. Stop: the wish first, `user_paused` when the last tree
    is empty.
    """
    graph = draft.graph
    if graph.stopping is not None and graph.stopping.verb == "pause":
        return  # a repeat changes nothing
    word = admit(graph, "pause", is_stop="pause")
    reason = command.reason or t("paused")
    if (command.mode == "stop" or graph.stopping is not None) and graph.live:
        wish(draft, "pause", reason)
        conclude(draft)  # where only stuck trees are left, that is said
        return
    if word == "stop_over_drain":
        if command.mode == "stop":
            return
        raise refuse_transition(graph, "pause", t("it is paused already"), t("graphd resume goes on"))
    draft.emit("paused", status="user_paused", reason=reason, cause=None, by=who(draft.actor))


def resume(draft: Draft, command: Resume) -> None:
    """Active again. Stuck trees are looked at once more."""
    graph = draft.graph
    admit(graph, "resume")
    stuck = [key for key in graph.live if graph.attempts[key].state == "stuck"]
    can_go_on = graph.counts["ready"] or graph.counts["running"] or graph.counts["waiting"] or graph.holding
    if not can_go_on or (graph.status == "blocked" and _is_stopped_by_failure(graph)):
        hint = t("graphd retry --all tries the failed ones again; graphd finish ends it as it is")
        raise refuse_transition(graph, "resume", t("nothing in it can start"), hint)
    budget = _topped_up(draft, command)
    take_environment(draft, command.environment)
    draft.emit("resumed", budget=budget, ends_step=graph.stepping is not None)
    for key in stuck:
        draft.then(RecheckAttempt(graph.id, key))
    ripple(draft, release_holds(draft))
    conclude(draft)


def _is_stopped_by_failure(graph: Graph) -> bool:
    """`on_required_failure: stop`, and what failed was not tried again: going on would stop at once."""
    is_stopping = graph.terms.on_required_failure == "stop" and graph.counts["failed"] > 0
    return is_stopping and any(node.state == "failed" and node.required for node in graph.nodes.values())


def _topped_up(draft: Draft, command: Resume) -> dict[str, Any] | None:
    """The new budget as the log keeps it; None where it stays."""
    if command.top_up is None and draft.graph.budget is None:
        return None
    from graphd.core.budget import topped_up

    return dump_budget(topped_up(draft, command.top_up))


def take_environment(draft: Draft, environment: str | None) -> None:
    """Children that start from now on get this one, where one was sent."""
    if environment is not None and environment != draft.graph.environment:
        draft.emit("environment_set", environment=environment)


# ---- retry --------------------------------------------------------------------------------------------------------


def retry(draft: Draft, command: RetryNodes) -> None:
    """Reset one node with all that hung on it, or the union of all, to waiting; what can start becomes ready in
    the same change.
    """
    graph = draft.graph
    word = admit(graph, "retry")
    targets = _targets(graph, command.node)
    batch = _batch(graph, targets)
    inside = {node.id for node in batch}
    for node in batch:
        _check_retry(graph, node, inside)
    take_environment(draft, command.environment)
    if word == "reopens":
        draft.emit("reopened")
    elif word == "then_active":
        draft.emit("resumed")
    for node in batch:
        draft.emit("node_retried", node)
    ripple(draft, batch)
    conclude(draft)


def _targets(graph: Graph, name: str | None) -> list[Node]:
    if name is None:
        targets = [n for n in graph.nodes.values() if n.state in ("failed", "blocked") and not _is_joined(graph, n)]
        if not targets:
            raise refuse_transition(
                graph, "retry", t("no node failed or is blocked"), t("graphd status shows the states")
            )
        return targets
    node = find_node(graph, name)
    if node.removed_in is not None:
        raise Refused(
            "invalidTransition", t("can't retry {node}: it was removed from the plan", node=node.slug),
            t("a removed node stays removed; add one under another id"),
            graph=graph.id, node=node.slug, **{"from": node.state, "to": "waiting"}, rev=graph.rev,
        )  # fmt: skip
    if node.state not in ("failed", "blocked", "skipped", "cancelled"):
        raise Refused(
            "invalidTransition", t("can't retry {node}: it is {state}", node=node.slug, state=node.state),
            t("only a failed, blocked, skipped or cancelled node can be tried again"),
            graph=graph.id, node=node.slug, **{"from": node.state, "to": "waiting"}, rev=graph.rev,
        )  # fmt: skip
    if _is_joined(graph, node):
        maker = graph.nodes[maker_id(node)]
        raise Refused(
            "invalidTransition",
            t("can't retry {node}: {maker} is {state} without it", node=node.slug, maker=maker.slug, state=maker.state),
            t("run the workflow again as a new graph"),
            graph=graph.id, node=node.slug, **{"from": node.state, "to": "waiting"}, rev=graph.rev,
        )  # fmt: skip
    return [node]


def _is_joined(graph: Graph, node: Node) -> bool:
    """An item whose list was joined and read by others: it can't be worked on any more."""
    return node.definition.item is not None and graph.nodes[maker_id(node)].state in ("achieved", "skipped")


def _with_items(graph: Graph, node: Node) -> list[Node]:
    """What a retry of a `for_each` node tries again: its items that did not work; and of an item: the node."""
    items = [graph.nodes[i] for i in node.items]
    found = [item for item in items if item.state in ("failed", "blocked", "skipped", "cancelled")
             and not (item.cancel_reason or "").startswith("removed: ")]  # fmt: skip
    if node.definition.item is not None:
        maker = graph.nodes[maker_id(node)]
        found += [maker] if maker.state in ("failed", "blocked", "cancelled") else []
    return found


def find_node(graph: Graph, name: str) -> Node:
    """The node of this slug or id; refuses with the nearest name."""
    node = graph.nodes.get(name) or graph.nodes.get(node_id(name))
    if node is None or name not in (node.id, node.slug):
        raise Refused(
            "notFound",
            t("{graph} has no node {name}", graph=graph.title, name=name),
            t("graphd status names its nodes"),
            graph=graph.id,
            node=name,
        )
    return node


def _batch(graph: Graph, targets: list[Node]) -> list[Node]:
    """The targets and all that was blocked or skipped because of them, in plan order."""
    first = [*targets, *(other for node in targets for other in _with_items(graph, node))]
    batch = {node.id: node for node in first}
    todo = list(batch.values())
    while todo:
        node = todo.pop()
        for dependant_id in node.dependants:
            dependant = graph.nodes[dependant_id]
            # A ready one would start without its input: it waits again.
            hung = dependant.state in ("blocked", "ready") or (
                dependant.state == "skipped" and dependant.skip in ("no_input", "gate_not_accepted")
            )
            if hung and dependant_id not in batch:
                batch[dependant_id] = dependant
                todo.append(dependant)
    return sorted(batch.values(), key=lambda node: node.index)


def _check_retry(graph: Graph, node: Node, inside: set[str]) -> None:
    for need_id in node.needs:
        need = graph.nodes[need_id]
        if need_id not in inside and (need.state == "blocked" or (need.state == "failed" and need.required)):
            raise Refused(
                "upstreamNotAchieved",
                t(
                    "can't retry {node}: it needs {need}, which is {state}",
                    node=node.slug,
                    need=need.slug,
                    state=need.state,
                ),
                t("graphd retry {need}, or graphd retry --all", need=need.slug),
                graph=graph.id,
                node=node.slug,
                upstream=need.slug,
            )
    limit = graph.limits.attempts_per_node
    if node.attempts >= limit:
        raise Refused(
            "capacity",
            t(
                "can't retry {node}: it had {count} of {limit} attempts",
                node=node.slug,
                count=node.attempts,
                limit=limit,
            ),
            t("run the workflow again as a new graph"),
            graph=graph.id,
            node=node.slug,
        )


# ---- stops --------------------------------------------------------------------------------------------------------


def who(actor: Actor) -> str:
    """Whose name stands beside what was done."""
    return actor.client or actor.kind


def wish(draft: Draft, verb: StopVerb, reason: str | None) -> None:
    """Commit the wish, and ask for the end of every live tree. A tripped budget is the daemon's own, whoever acts."""
    draft.emit("stop_requested", verb=verb, by=who(DAEMON if verb == "budget" else draft.actor), reason=reason)
    why: StopReason = verb
    for key in list(draft.graph.live):
        stop_attempt(draft, key, why)


def stop_attempt(draft: Draft, key: tuple[str, str, int], why: StopReason) -> None:
    """Ask for the end of one attempt's tree."""
    attempt = draft.graph.attempts[key]
    draft.emit("attempt_stopping", draft.graph.nodes[attempt.node], role=attempt.role, number=attempt.number, why=why)
    draft.then(StopAttempt(draft.graph.id, key))


def _settle_the_rest(draft: Draft, reason: str) -> None:
    for node in draft.graph.nodes.values():
        if node.state in ("waiting", "ready", "blocked") or node.id in draft.graph.slotless:
            draft.emit("node_cancelled", node, reason=reason)


def cancel(draft: Draft, command: Cancel) -> None:
    """Stop all, settle the rest at once; `cancelled` when the last tree is proven empty."""
    if draft.graph.stopping is not None and draft.graph.stopping.verb == "cancel":
        return
    admit(draft.graph, "cancel", is_stop="cancel")
    wish(draft, "cancel", command.reason)
    _settle_the_rest(draft, command.reason or t("cancelled"))
    conclude(draft)


def clear(draft: Draft) -> None:
    """As cancel, then a tombstone; an ended graph goes at once."""
    graph = draft.graph
    if graph.stopping is not None and graph.stopping.verb == "clear":
        return
    admit(graph, "clear", is_stop="clear")
    wish(draft, "clear", None)
    if not graph.is_ended:
        _settle_the_rest(draft, t("cleared"))
    conclude_stop(draft)


def finish(draft: Draft, command: Finish) -> None:
    """Settle what has not started as skipped, drain what runs; what failed stays failed, and the graph completes
    all the same.
    """
    graph = draft.graph
    admit(graph, "finish")
    if not command.reason.strip():
        raise Refused("invalidObjective", t("finish needs a reason"), t('graphd finish --reason "…"'), graph=graph.id)
    for node in graph.nodes.values():
        if node.definition.gate is not None and not node.is_settled:
            raise refuse_transition(
                graph, "finish", t("gate {gate} has not decided", gate=node.slug),
                t("graphd why {gate} shows what it waits for; graphd cancel ends the graph without it", gate=node.slug),
            )  # fmt: skip
    draft.emit("finish_requested", reason=command.reason)
    held = release_holds(draft)
    for node in graph.nodes.values():
        if node.id in graph.slotless and node.definition.wait is not None:
            draft.emit("node_put_back", node, why="paused", not_before=None)  # it would be waited for, maybe for ever
        if node.state in ("waiting", "ready", "blocked"):
            skip(draft, node, "finished_early")
    makers = [graph.nodes[i] for i in graph.slotless]
    ripple(draft, [*held, *(graph.nodes[item] for maker in makers for item in maker.items)])
    conclude(draft)


def acknowledge(draft: Draft, command: Acknowledge) -> None:
    """Mark deliveries as received; unknown ids are refused, known ones may be repeated."""
    known = draft.graph.deliveries
    for delivery in command.deliveries:
        if delivery not in known:
            raise Refused(
                "notFound",
                t("no delivery {delivery}", delivery=delivery),
                t("graphd status lists the graphs"),
                graph=draft.graph.id,
            )
    fresh = [d for d in command.deliveries if not known[d].is_acknowledged]
    if fresh:
        draft.emit("delivery_acknowledged", deliveries=fresh)
