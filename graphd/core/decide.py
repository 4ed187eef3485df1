"""Decide one request: events and effects, or a typed refusal that leaves the state as it was."""

from dataclasses import dataclass, field

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core import facts, verbs
from graphd.core.commands import (
    Acknowledge,
    AttemptEnded,
    AttemptIdentified,
    AttemptStuck,
    Cancel,
    Clear,
    DaemonStarted,
    DeadlineReached,
    Done,
    Finish,
    Import,
    Pause,
    Release,
    Request,
    Resume,
    RetryNodes,
    Set,
    Tick,
)
from graphd.core.draft import Draft
from graphd.core.events import Change, Effect
from graphd.core.model import Graph, State
from graphd.core.tape import Tape


@dataclass(slots=True)
class Decision:
    """What a request makes happen. A dry run's changes were taken back already."""

    done: Done
    changes: list[Change] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)


def decide(state: State, tape: Tape, request: Request, now: int) -> Decision:
    """Apply `request` to the state in place. Raises Refused, with every write since the call taken back."""
    mark = tape.mark()
    try:
        drafts = _drafts(state, tape, request, now)
    except Refused:
        if tape.mark() > mark:
            tape.rollback(mark)
            state.are_queues_stale = True
        raise
    drafts = [draft for draft in drafts if draft.change.events]
    return Decision(
        done=_done(state, request, drafts),
        changes=[draft.change for draft in drafts],
        effects=[effect for draft in drafts for effect in draft.effects],
    )


def _drafts(state: State, tape: Tape, request: Request, now: int) -> list[Draft]:
    command = request.command
    if isinstance(command, Tick):
        return []
    if isinstance(command, DaemonStarted):
        return facts.daemon_started(state, tape, command, now=now)
    # What checks plans is imported with the first one: a daemon answers its first client without.
    if isinstance(command, Set):
        from graphd.core.setting import set_graph

        return set_graph(state, tape, request, command, now=now)
    if isinstance(command, Import):
        from graphd.core.imports import import_graph

        return import_graph(state, tape, request, command, now=now)
    graph = state.graphs.get(command.graph)
    if isinstance(command, AttemptIdentified | AttemptEnded | AttemptStuck | DeadlineReached):
        return facts.attempt_fact(state, tape, command, now=now)
    if graph is None:
        raise Refused(
            "notFound",
            t("no graph {graph}", graph=command.graph),
            t("graphd status lists the graphs"),
            graph=command.graph,
        )
    _check_expectations(graph, request)
    draft = Draft(state, tape, graph.id, now=now, actor=request.actor, operation=_OPERATIONS[type(command)])
    match command:
        case Pause():
            verbs.pause(draft, command)
        case Resume():
            verbs.resume(draft, command)
        case RetryNodes():
            verbs.retry(draft, command)
        case Cancel():
            verbs.cancel(draft, command)
        case Clear():
            verbs.clear(draft)
        case Finish():
            verbs.finish(draft, command)
        case Release():
            facts.release(draft, command)
        case _:
            verbs.acknowledge(draft, command)
    return [draft]


_OPERATIONS: dict[type, str] = {
    Pause: "pause", Resume: "resume", RetryNodes: "retry", Cancel: "cancel", Clear: "clear", Finish: "finish",
    Release: "release", Acknowledge: "acknowledge",
}  # fmt: skip


def _check_expectations(graph: Graph, request: Request) -> None:
    for name, expected, actual in (
        (t("rev"), request.expected_rev, graph.rev),
        (t("plan version"), request.expected_plan, graph.plan_version),
    ):
        if expected is not None and expected != actual:
            raise Refused(
                "conflict",
                t(
                    "{graph}: expected {name} {expected}, it is {actual}",
                    graph=graph.title,
                    name=name,
                    expected=expected,
                    actual=actual,
                ),
                t("read the graph again, then decide anew"),
                graph=graph.id,
                rev=graph.rev,
                planVersion=graph.plan_version,
            )


def _done(state: State, request: Request, drafts: list[Draft]) -> Done:
    graph_id = getattr(request.command, "graph", None)
    graph = state.graphs.get(graph_id) if graph_id else None
    if graph is None:
        return Done(graph_id, state.tombstones.get(graph_id or "", 0))
    stopping: tuple[str, ...] = ()
    if graph.stopping is not None:
        stopping = tuple(graph.nodes[graph.attempts[key].node].slug for key in graph.live)
    return Done(graph.id, graph.rev, stopping)
