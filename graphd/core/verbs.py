"""The verbs of people and agents (model.md, Verbs). Intent first, status when true."""

from dataclasses import asdict

from graphd.core.codec import dump_definition
from graphd.core.commands import Acknowledge, Cancel, Finish, Pause, Request, Resume, RetryNodes, Set
from graphd.core.draft import Draft
from graphd.core.events import Actor, RecheckAttempt, Refused, StopAttempt
from graphd.core.model import Graph, Node, State
from graphd.core.plan import check_plan, collapse, effective_required
from graphd.core.settle import conclude, conclude_stop, ripple, skip
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from graphd_protocol.states import STOP_STRENGTH, VERB_TABLE, StopReason, StopVerb


def refuse_transition(graph: Graph, verb: str, why: str, hint: str) -> Refused:
    """The refusal of a verb that the graph's status, or a standing wish, does not take."""
    return Refused(
        "invalidTransition", f"can't {verb} {graph.title}: {why}", hint,
        graph=graph.id, **{"from": graph.status, "to": verb}, rev=graph.rev,
    )  # fmt: skip


def _admit(graph: Graph, verb: str, *, is_stop: StopVerb | None = None) -> str:
    """The word of the verb table for this status; raises where it says no, or where a wish to stop stands."""
    wish = graph.stopping
    if wish is not None and not (is_stop and STOP_STRENGTH[is_stop] >= STOP_STRENGTH[wish.verb]):
        hint = f"a {wish.verb} by {wish.by} stands; it ends when its processes have; graphd status shows which"
        raise refuse_transition(graph, verb, f"it is stopping ({wish.verb})", hint)
    word = VERB_TABLE[verb][graph.status]
    if word == "no":
        raise refuse_transition(
            graph,
            verb,
            f"it is {graph.status}",
            _HINTS.get((verb, graph.status), "graphd status shows what it takes"),
        )
    return word


_HINTS = {
    ("resume", "active"): "it is running already; graphd watch shows it",
    ("resume", "complete"): "run it again with graphd run, or graphd retry a failed node",
    ("resume", "cancelled"): "a cancelled graph stays cancelled; run it again with graphd run",
    ("retry", "cancelled"): "a cancelled graph stays cancelled; run it again with graphd run",
    ("pause", "infra_paused"): "it is paused already, for a reason of the machine; graphd why names it",
    ("pause", "complete"): "nothing of it runs any more",
    ("cancel", "complete"): "it has ended; graphd clear removes it",
    ("cancel", "cancelled"): "it is cancelled already; graphd clear removes it",
    ("finish", "complete"): "it has ended",
}


# ---- set ----------------------------------------------------------------------------------------------------------


def set_graph(state: State, tape: Tape, request: Request, command: Set, *, now: int) -> list[Draft]:
    """A checked plan, frozen as plan version 1 and started; with `replace`, the wish to clear the old one in the
    same commit.
    """
    _check_set(state, command)
    drafts = []
    if command.replace is not None:
        old = Draft(state, tape, command.replace, now=now, actor=request.actor, operation="clear")
        clear(old)
        drafts.append(old)
    draft = Draft(state, tape, command.graph, now=now, actor=request.actor, operation="set")
    draft.emit(
        "graph_set", title=command.title, objective=command.objective, source=asdict(command.source),
        workspace=command.workspace, owner=command.owner, limits=asdict(command.limits),
        variables=dict(command.variables), environment=command.environment, replaces=command.replace,
        delivery_node=node_id(command.delivery_node) if command.delivery_node else None,
    )  # fmt: skip
    definitions = collapse(command.definitions)
    required = effective_required(definitions, command.delivery_node)
    draft.emit(
        "plan_installed", version=1, definitions=[dump_definition(d) for d in definitions],
        required=[d.slug in required for d in definitions],
    )  # fmt: skip
    if not command.start:
        draft.emit("paused", status="user_paused", reason="set without starting", cause=None)
    ripple(draft, [node for node in draft.graph.nodes.values() if not node.needs])
    return [*drafts, draft]


def _check_set(state: State, command: Set) -> None:
    if command.graph in state.graphs or command.graph in state.tombstones:
        raise Refused(
            "alreadyExists",
            f"graph {command.graph} exists",
            "leave the id to the daemon",
            graph=command.graph,
        )
    if not command.objective.strip():
        raise Refused("invalidObjective", "the objective is blank", "say in a line what the graph is for")
    if command.replace is not None and command.replace not in state.graphs:
        raise Refused(
            "notFound",
            f"no graph {command.replace} to replace",
            "graphd status lists the graphs",
            graph=command.replace,
        )
    for graph in state.graphs.values():
        if command.owner and graph.owner == command.owner and graph.is_live and graph.id != command.replace:
            raise Refused(
                "alreadyExists", f"{command.owner} has a live graph: {graph.title}",
                "name it in replace, or cancel it first", graph=graph.id,
            )  # fmt: skip
    troubles = check_plan(command.definitions, limits=command.limits, delivery_node=command.delivery_node)
    if troubles:
        rows = [{"code": t.code, "slug": t.slug, "message": t.message, "hint": t.hint} for t in troubles]
        raise Refused("invalidPlan", troubles[0].message, troubles[0].hint, diagnostics=rows)
    missing = dict(command.missing)
    required = effective_required(command.definitions, command.delivery_node)
    for definition in command.definitions:
        if definition.slug in required and definition.worker in missing:
            why = missing[definition.worker]
            raise Refused(
                "agentMissing",
                f"node {definition.slug}: {why}",
                "graphd agents shows what is installed",
                node=definition.slug,
            )


# ---- pause, resume ------------------------------------------------------------------------------------------------


def pause(draft: Draft, command: Pause) -> None:
    """Drain: `user_paused` at once, running nodes finish. Stop: the wish first, `user_paused` when the last tree
    is empty.
    """
    graph = draft.graph
    if graph.stopping is not None and graph.stopping.verb == "pause":
        return  # a repeat changes nothing
    word = _admit(graph, "pause", is_stop="pause")
    reason = command.reason or "paused"
    if command.mode == "stop" and graph.counts["running"]:
        _wish(draft, "pause", reason)
        conclude(draft)  # where only stuck trees are left, that is said
        return
    if word == "stop_over_drain":
        if command.mode == "stop":
            return
        raise refuse_transition(graph, "pause", "it is paused already", "graphd resume goes on")
    draft.emit("paused", status="user_paused", reason=reason, cause=None)


def resume(draft: Draft, command: Resume) -> None:
    """Active again. Stuck trees are looked at once more."""
    graph = draft.graph
    if _admit(graph, "resume") == "top_up":
        raise refuse_transition(graph, "resume", "its budget is spent", "topping up a budget is not in this version")
    stuck = [key for key in graph.live if graph.attempts[key].state == "stuck"]
    can_go_on = graph.counts["ready"] or graph.counts["running"] or graph.counts["waiting"]
    if not can_go_on:
        hint = "graphd retry --all tries the failed ones again; graphd finish ends it as it is"
        raise refuse_transition(graph, "resume", "nothing in it can start", hint)
    _take_environment(draft, command.environment)
    draft.emit("resumed")
    for key in stuck:
        draft.then(RecheckAttempt(graph.id, key))
    conclude(draft)


def _take_environment(draft: Draft, environment: str | None) -> None:
    if environment is not None and environment != draft.graph.environment:
        draft.emit("environment_set", environment=environment)


# ---- retry --------------------------------------------------------------------------------------------------------


def retry(draft: Draft, command: RetryNodes) -> None:
    """Reset one node with all that hung on it, or the union of all, to waiting; what can start becomes ready in
    the same change.
    """
    graph = draft.graph
    word = _admit(graph, "retry")
    targets = _targets(graph, command.node)
    batch = _batch(graph, targets)
    inside = {node.id for node in batch}
    for node in batch:
        _check_retry(graph, node, inside)
    _take_environment(draft, command.environment)
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
        targets = [n for n in graph.nodes.values() if n.state in ("failed", "blocked")]
        if not targets:
            raise refuse_transition(graph, "retry", "no node failed or is blocked", "graphd status shows the states")
        return targets
    node = find_node(graph, name)
    if node.state not in ("failed", "blocked", "skipped", "cancelled"):
        raise Refused(
            "invalidTransition", f"can't retry {node.slug}: it is {node.state}",
            "only a failed, blocked, skipped or cancelled node can be tried again",
            graph=graph.id, node=node.slug, **{"from": node.state, "to": "waiting"}, rev=graph.rev,
        )  # fmt: skip
    return [node]


def find_node(graph: Graph, name: str) -> Node:
    """The node of this slug or id; refuses with the nearest name."""
    node = graph.nodes.get(name) or graph.nodes.get(node_id(name))
    if node is None or name not in (node.id, node.slug):
        raise Refused(
            "notFound",
            f"{graph.title} has no node {name}",
            "graphd status names its nodes",
            graph=graph.id,
            node=name,
        )
    return node


def _batch(graph: Graph, targets: list[Node]) -> list[Node]:
    """The targets and all that was blocked or skipped because of them, in plan order."""
    batch = {node.id: node for node in targets}
    todo = list(targets)
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
                "upstreamNotAchieved", f"can't retry {node.slug}: it needs {need.slug}, which is {need.state}",
                f"graphd retry {need.slug}, or graphd retry --all", graph=graph.id, node=node.slug, upstream=need.slug,
            )  # fmt: skip
    limit = graph.limits.attempts_per_node
    if node.attempts >= limit:
        raise Refused(
            "capacity", f"can't retry {node.slug}: it had {node.attempts} of {limit} attempts",
            "run the workflow again as a new graph", graph=graph.id, node=node.slug,
        )  # fmt: skip


# ---- stops --------------------------------------------------------------------------------------------------------


def _who(actor: Actor) -> str:
    return actor.client or actor.kind


def _wish(draft: Draft, verb: StopVerb, reason: str | None) -> None:
    """Commit the wish, and ask for the end of every live tree."""
    draft.emit("stop_requested", verb=verb, by=_who(draft.actor), reason=reason)
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
        if node.state in ("waiting", "ready", "blocked"):
            draft.emit("node_cancelled", node, reason=reason)


def cancel(draft: Draft, command: Cancel) -> None:
    """Stop all, settle the rest at once; `cancelled` when the last tree is proven empty."""
    wish = draft.graph.stopping
    if wish is not None and wish.verb == "cancel":
        return
    _admit(draft.graph, "cancel", is_stop="cancel")
    _wish(draft, "cancel", command.reason)
    _settle_the_rest(draft, command.reason or "cancelled")
    conclude(draft)


def clear(draft: Draft) -> None:
    """As cancel, then a tombstone; an ended graph goes at once."""
    graph = draft.graph
    if graph.stopping is not None and graph.stopping.verb == "clear":
        return
    _admit(graph, "clear", is_stop="clear")
    _wish(draft, "clear", None)
    if not graph.is_ended:
        _settle_the_rest(draft, "cleared")
    conclude_stop(draft)


def finish(draft: Draft, command: Finish) -> None:
    """Settle what has not started as skipped, drain what runs; what failed stays failed, and the graph completes
    all the same.
    """
    graph = draft.graph
    _admit(graph, "finish")
    if not command.reason.strip():
        raise Refused("invalidObjective", "finish needs a reason", 'graphd finish --reason "…"', graph=graph.id)
    draft.emit("finish_requested", reason=command.reason)
    for node in graph.nodes.values():
        if node.state in ("waiting", "ready", "blocked"):
            skip(draft, node, "finished_early")
    conclude(draft)


def acknowledge(draft: Draft, command: Acknowledge) -> None:
    """Mark deliveries as received; unknown ids are refused, known ones may be repeated."""
    known = draft.graph.deliveries
    for delivery in command.deliveries:
        if delivery not in known:
            raise Refused("notFound", f"no delivery {delivery}", "graphd status lists the graphs", graph=draft.graph.id)
    fresh = [d for d in command.deliveries if not known[d].is_acknowledged]
    if fresh:
        draft.emit("delivery_acknowledged", deliveries=fresh)
