"""Decide one request: events and effects, or a typed refusal that leaves the state as it was."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core import facts, verbs
from graphd.core.commands import (
    Accept,
    Acknowledge,
    Cancel,
    Clear,
    DaemonStarted,
    Dismiss,
    Done,
    Extend,
    ExtendTimeout,
    Fact,
    Finish,
    Hold,
    Import,
    MachineSlept,
    Pause,
    Propose,
    Release,
    Replan,
    Request,
    Respond,
    Resume,
    RetryNodes,
    Revoke,
    Set,
    Signal,
    Step,
    Tick,
    Verb,
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
    done: Done | None = None
    try:
        if isinstance(request.command, Signal):
            from graphd.core.signals import signal  # as below: with the first one

            drafts, done = signal(state, tape, request.command, request.actor, now=now)
        else:
            drafts = _drafts(state, tape, request, request.command, now=now)
    except Refused:
        if tape.mark() > mark:
            tape.rollback(mark)
            state.are_queues_stale = True
        raise
    drafts = [draft for draft in drafts if draft.change.events]
    return Decision(
        done=done or _done(state, request, drafts),
        changes=[draft.change for draft in drafts],
        effects=[effect for draft in drafts for effect in draft.effects],
    )


def _drafts(state: State, tape: Tape, request: Request, command: Verb | Fact, *, now: int) -> list[Draft]:
    if isinstance(command, Tick):
        return []
    if isinstance(command, DaemonStarted):
        return facts.daemon_started(state, tape, command, now=now)
    if isinstance(command, MachineSlept):
        return facts.machine_slept(state, tape, command, now=now)
    # What checks plans is imported with the first one: a daemon answers its first client without.
    if isinstance(command, Set):
        from graphd.core.setting import set_graph

        return set_graph(state, tape, request, command, now=now)
    if isinstance(command, Import):
        from graphd.core.imports import import_graph

        return import_graph(state, tape, request, command, now=now)
    graph = state.graphs.get(command.graph)
    if isinstance(command, facts.AttemptFact):
        return facts.attempt_fact(state, tape, command, now=now)
    if graph is None:
        raise Refused(
            "notFound",
            t("no graph {graph}", graph=command.graph),
            t("graphd status lists the graphs"),
            graph=command.graph,
        )
    _check_expectations(graph, request)
    operation, carry_out = _VERBS[type(command)]
    draft = Draft(state, tape, graph.id, now=now, actor=request.actor, operation=operation)
    carry_out(draft, command)
    return [draft]


def _respond(draft: Draft, command: Respond) -> None:
    from graphd.core.asks import respond

    respond(draft, command)


def _revoke(draft: Draft, command: Revoke) -> None:
    from graphd.core.asks import revoke

    revoke(draft, command)


def _step(draft: Draft, command: Step) -> None:
    from graphd.core.stepping import step

    step(draft, command)


def _extend_timeout(draft: Draft, command: ExtendTimeout) -> None:
    from graphd.core.deadlines import extend_timeout

    extend_timeout(draft, command)


def _hold(draft: Draft, command: Hold) -> None:
    from graphd.core.holding import hold

    hold(draft, command)


def _revise(draft: Draft, command: Extend | Replan) -> None:
    from graphd.core.replan import extend, replan

    if isinstance(command, Extend):
        extend(draft, command)
    else:
        replan(draft, command)


def _proposal(draft: Draft, command: Propose | Accept | Dismiss) -> None:
    from graphd.core import proposals

    proposals.carry_out(draft, command)


# The verbs of one graph that is there: the operation that the change is called by, and its rules. Those that few graphs
# see are imported with the first one, as above.
_VERBS: dict[type, tuple[str, Callable[[Draft, Any], None]]] = {
    Pause: ("pause", verbs.pause),
    Resume: ("resume", verbs.resume),
    Step: ("step", _step),
    RetryNodes: ("retry", verbs.retry),
    Cancel: ("cancel", verbs.cancel),
    Clear: ("clear", lambda draft, _: verbs.clear(draft)),
    Finish: ("finish", verbs.finish),
    Release: ("release", facts.release),
    ExtendTimeout: ("extendTimeout", _extend_timeout),
    Hold: ("hold", _hold),
    Acknowledge: ("acknowledge", verbs.acknowledge),
    Respond: ("respond", _respond),
    Revoke: ("respond", _revoke),
    Extend: ("extend", _revise),
    Replan: ("replan", _revise),
    Propose: ("propose", _proposal),
    Accept: ("accept", _proposal),
    Dismiss: ("dismiss", _proposal),
}


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
    ending = [graph.nodes[key[0]] for key in graph.live]
    stopping = tuple(node.slug for node in ending if graph.stopping is not None or node.after_stop is not None)
    return Done(graph.id, graph.rev, stopping)
