"""How what bounds a graph moves: budgets and what is spent, the step, the clocks of attempts, providers' rests.

Some of this began after the first logs were written: an attempt without a clock is from before, and is summed as then.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from graphd.core import derive
from graphd.core.codec import load_budget
from graphd.core.events import Event
from graphd.core.model import Attempt, Clock, Cooling, Graph, Spent, State
from graphd.core.tape import Tape

Evolver = Callable[[State, Tape, Event], None]


def _attempt(state: State, event: Event) -> Attempt:
    p = event.payload
    return state.graphs[event.graph].attempts[(event.node or "", p["role"], p["number"])]


# ---- budget, what is spent ------------------------------------------------------------------------------------------


def set_going(state: State, tape: Tape, graph: Graph, event: Event) -> None:
    """An attempt started: the graph is busy from now on, where it was not."""
    if event.payload.get("allowed_ms") is not None and graph.busy_since is None:
        tape.set(graph, "busy_since", event.at)
        derive.enqueue_budget(state, graph)


def settle_spent(state: State, tape: Tape, graph: Graph, attempt: Attempt, *, at: int) -> None:
    """Add what a settled attempt used. Called when it is no longer among the graph's live ones."""
    spent = attempt.spent
    tape.drop(state.used, (graph.id, attempt.key))
    if attempt.clock is None:
        tape.set(graph, "spent", summed(graph.spent, spent))
        return
    total = graph.spent
    wall_ms = total.wall_ms
    if graph.busy_since is not None and not graph.live:
        wall_ms += max(0, at - graph.busy_since)
        tape.set(graph, "busy_since", None)
    tape.set(graph, "spent", Spent(total.tokens + spent.tokens, _known(total, spent), wall_ms))
    if spent.cost_usd is None:
        tape.set(graph, "cost_is_partial", True)
    role = summed(graph.spent_by_role.get(attempt.role, Spent()), spent)
    tape.put(graph.spent_by_role, attempt.role, role)


def _known(total: Spent, more: Spent) -> float | None:
    """The sum of the costs that are known; None where none is."""
    if more.cost_usd is None:
        return total.cost_usd or None
    return (total.cost_usd or 0.0) + more.cost_usd


def summed(total: Spent, more: Spent) -> Spent:
    """Both together; a cost that is unknown in one is unknown in the sum."""
    cost = None if total.cost_usd is None or more.cost_usd is None else total.cost_usd + more.cost_usd
    return Spent(total.tokens + more.tokens, cost, total.wall_ms + more.wall_ms)


def _budget_reached(state: State, tape: Tape, event: Event) -> None:
    """A fact for the history: the wish or the status that it brings is an event of its own."""


# ---- resuming, the step ---------------------------------------------------------------------------------------------


def go_on(state: State, tape: Tape, event: Event) -> None:
    """What `resumed` says beside that it goes on: another budget, and that a step is no longer one."""
    graph = state.graphs[event.graph]
    if event.payload.get("ends_step"):
        tape.set(graph, "stepping", None)
    if event.payload.get("budget") is not None:
        tape.set(graph, "budget", load_budget(event.payload["budget"]))
        derive.enqueue_budget(state, graph)


def _stepped(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "stepping", event.node)
    for name in ("pause_reason", "pause_cause", "paused_by"):
        tape.set(graph, name, None)
    tape.set(graph, "status", "active")


# ---- clocks ---------------------------------------------------------------------------------------------------------


def _timeout_escalated(state: State, tape: Tape, event: Event) -> None:
    """A fact for the history: the ask and the extension are events of their own."""


def _deadline_extended(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    attempt = _attempt(state, event)
    clock = attempt.clock or Clock(0)
    moved = replace(
        clock, allowed_ms=clock.allowed_ms + p["by_ms"], extensions=p["extensions"], unattended=p["unattended"]
    )
    tape.set(attempt, "clock", moved)
    _move(tape, attempt, p["by_ms"])


def _attempt_waited(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    attempt = _attempt(state, event)
    clock = attempt.clock or Clock(0)
    if p["why"] == "person":
        clock = replace(clock, person_ms=clock.person_ms + p["ms"], counted_until=event.at)
    else:
        clock = replace(clock, provider_ms=clock.provider_ms + p["ms"])
    tape.set(attempt, "clock", clock)
    _move(tape, attempt, p["ms"])


def _move(tape: Tape, attempt: Attempt, by_ms: int) -> None:
    if attempt.deadline_at is not None:
        tape.set(attempt, "deadline_at", attempt.deadline_at + by_ms)


def _machine_slept(state: State, tape: Tape, event: Event) -> None:
    graph, slept_ms = state.graphs[event.graph], event.payload["ms"]
    if graph.busy_since is not None:
        tape.set(graph, "busy_since", graph.busy_since + slept_ms)
        derive.enqueue_budget(state, graph)
    for key in graph.live:
        attempt = graph.attempts[key]
        _move(tape, attempt, slept_ms)
        since = derive.waits_since(graph, attempt)
        if since is not None and attempt.clock is not None:
            tape.set(attempt, "clock", replace(attempt.clock, counted_until=since + slept_ms))


# ---- providers ------------------------------------------------------------------------------------------------------


def _provider_cooling(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    rest = Cooling(p["since"], p["until"], p["reason"])
    tape.put(state.graphs[event.graph].cooling, p["profile"], rest)
    tape.put(state.cooling, p["profile"], rest)


EVOLVERS: Final[dict[str, Evolver]] = {
    "budget_reached": _budget_reached,
    "stepped": _stepped,
    "timeout_escalated": _timeout_escalated,
    "deadline_extended": _deadline_extended,
    "attempt_waited": _attempt_waited,
    "machine_slept": _machine_slept,
    "provider_cooling": _provider_cooling,
}
