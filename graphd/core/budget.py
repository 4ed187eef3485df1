"""What a graph may use: reservations, admission, the trip, topping up (spec model.md, Budget).

Reservations are computed from live attempts and never stored. What a live attempt says that it used so far is in
`State.used`, beside the log: no event, and in the log only with the sum that the settlement brings. The store keeps it
with the attempt's talk (one row, written with the lines and the cursor of what it said), so a daemon that starts anew
knows it as far as the journal was read.
"""

from collections.abc import Iterable
from statistics import median
from typing import Final, NamedTuple

from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.core.admission import ADMITTED, Admission
from graphd.core.commands import Capacity, Estimate
from graphd.core.definition import Budget, Definition
from graphd.core.draft import Draft
from graphd.core.model import Attempt, Graph, Spent, State
from graphd.core.settle import conclude_stop
from graphd.core.verbs import refuse_transition, wish
from graphd_protocol.states import Reports

SAMPLE_LIMIT: Final = 101
"""So many of the last settled attempts tell what the next one will use."""

FREE: Final = "shell"
"""The profile that uses nothing of what budgets count."""

OWN_ENDS: Final = ("achieved", "not_achieved", "failed")
"""Outcomes of attempts that were not interrupted: what these used tells what the next one will."""

_REPORTED: Final[dict[str, frozenset[str]]] = {
    "tokens": frozenset({"tokens", "both", "not_applicable"}),
    "cost_usd": frozenset({"cost", "both", "not_applicable"}),
}
_USAGE_HINT: Final = t("bound it by wall time, or choose an agent that says what it uses; graphd agents lists them")


class Amounts(NamedTuple):
    """What was used, is set aside or is left, in the units of a budget."""

    tokens: float = 0
    cost_usd: float = 0.0
    wall_ms: float = 0


# ---- what is used ---------------------------------------------------------------------------------------------------


def used(state: State, graph: Graph, now: int) -> Amounts:
    """Of all roles, settled and live, as far as it is known at `now`."""
    tokens: float = graph.spent.tokens
    cost = graph.spent.cost_usd or 0.0
    for key in graph.live:
        so_far = state.used.get((graph.id, key))
        if so_far is not None:
            tokens += so_far.tokens
            cost += so_far.cost_usd or 0.0
    busy_ms = max(0, now - graph.busy_since) if graph.busy_since is not None else 0
    return Amounts(tokens, cost, graph.spent.wall_ms + busy_ms)


def reached(state: State, graph: Graph, now: int) -> str | None:
    """The first unit of the budget that is used up, or None."""
    if graph.budget is None:
        return None
    spent = used(state, graph, now)
    for unit in Amounts._fields:
        limit = getattr(graph.budget, unit)
        if limit is not None and getattr(spent, unit) >= limit:
            return unit
    return None


def reserved(state: State, graph: Graph, capacity: Capacity) -> Amounts:
    """What live attempts are thought to use yet."""
    tokens = cost = 0.0
    for key in graph.live:
        estimate = _estimate(graph, graph.attempts[key].profile, capacity)
        so_far = state.used.get((graph.id, key), Spent())
        tokens += max(0.0, estimate.tokens - so_far.tokens)
        cost += max(0.0, estimate.cost_usd - (so_far.cost_usd or 0.0))
    return Amounts(tokens, cost)


def _estimate(graph: Graph, profile: str, capacity: Capacity) -> Amounts:
    """Of one attempt: the median of the last settled ones of its profile, else what the profile says."""
    if _is_free(profile, capacity):
        return Amounts()
    sample = _sample(graph, profile)
    said = dict(capacity.estimates).get(profile, Estimate())
    if not sample:
        return Amounts(said.tokens, said.cost_usd)
    costs = [spent.cost_usd for spent in sample if spent.cost_usd is not None]
    return Amounts(median(spent.tokens for spent in sample), median(costs) if costs else said.cost_usd)


def _sample(graph: Graph, profile: str) -> list[Spent]:
    """What the last attempts of a profile used that came to an end of their own."""
    found: list[Spent] = []
    for attempt in reversed(graph.attempts.values()):
        if len(found) == SAMPLE_LIMIT:
            break
        if attempt.profile == profile and attempt.outcome in OWN_ENDS:
            found.append(attempt.spent)
    return found


def _is_free(profile: str, capacity: Capacity) -> bool:
    return dict(capacity.reports).get(profile) == "not_applicable"


# ---- admission ------------------------------------------------------------------------------------------------------


def admission(state: State, graph: Graph, profile: str, capacity: Capacity, *, now: int) -> Admission:
    """Near the end nodes are admitted one at a time, the last one with the rest as its limit."""
    budget = graph.budget
    if budget is None or (budget.tokens is None and budget.cost_usd is None) or _is_free(profile, capacity):
        return ADMITTED
    spent, aside = used(state, graph, now), reserved(state, graph, capacity)
    mine = _estimate(graph, profile, capacity)
    left = {
        unit: getattr(budget, unit) - getattr(spent, unit)
        for unit in ("tokens", "cost_usd")
        if getattr(budget, unit) is not None
    }
    if all(getattr(aside, unit) + getattr(mine, unit) <= rest for unit, rest in left.items()):
        return ADMITTED
    if any(_may_use(graph.attempts[key], capacity) for key in graph.live):
        return Admission(is_admitted=False)
    return Admission(is_admitted=True, limit=Budget(**left))


def _may_use(attempt: Attempt, capacity: Capacity) -> bool:
    """What is stuck is not waited for: nobody knows for how long."""
    return attempt.state != "stuck" and not _is_free(attempt.profile, capacity)


def check_reports(budget: Budget | None, definitions: Iterable[Definition], reports: dict[str, Reports]) -> None:
    """Refuse a plan whose agents don't say what its budget is counted in. `reports` is by worker; unknown ones pass."""
    for unit, said in _REPORTED.items():
        if budget is None or getattr(budget, unit) is None:
            continue
        for definition, worker in ((d, worker) for d in definitions for worker in d.workers):
            if worker in reports and reports[worker] not in said:
                raise Refused(
                    "invalidBudget",
                    t(
                        "a budget in {unit} can't be kept: the agent of {node} ({worker}) does not say what it uses",
                        unit=_UNITS[unit], node=definition.slug, worker=worker,
                    ),
                    _USAGE_HINT, node=definition.slug,
                )  # fmt: skip


def check_amounts(budget: Budget) -> None:
    """Refuse a budget of nothing, and one that bounds nothing."""
    given = [amount for amount in (budget.tokens, budget.cost_usd, budget.wall_ms) if amount is not None]
    if not given or min(given) <= 0:
        raise Refused(
            "invalidBudget", t("a budget names at least one amount, and each is more than nothing"),
            t("tokens, costUsd or wallSeconds"),
        )  # fmt: skip


# ---- the trip -------------------------------------------------------------------------------------------------------


def note_use(draft: Draft, attempt: Attempt, so_far: Spent) -> None:
    """Keep what a live attempt used so far, and trip where that is all. No event unless it trips."""
    key = (attempt.graph, attempt.key)
    known = draft.state.used.get(key, Spent())
    draft.tape.put(draft.state.used, key, Spent(max(known.tokens, so_far.tokens), so_far.cost_usd))
    trip_if_reached(draft)


def settled_spent(state: State, attempt: Attempt, reported: Spent) -> Spent:
    """What an ended attempt used in all: its run knows the time, its usage facts the rest; interrupted ones count."""
    so_far = state.used[(attempt.graph, attempt.key)]
    return Spent(
        max(so_far.tokens, reported.tokens), reported.cost_usd or so_far.cost_usd, reported.wall_ms
    )  # fmt: skip


def trip_if_reached(draft: Draft) -> None:
    """At its budget a graph starts nothing more, and what runs goes back to ready: never a verdict."""
    graph = draft.graph
    may_trip = graph.stopping is None and (graph.status == "active" or graph.live)
    unit = reached(draft.state, graph, draft.now) if may_trip else None
    if unit is None:
        return
    spent, limit = getattr(used(draft.state, graph, draft.now), unit), getattr(graph.budget, unit)
    reason = t("the budget is spent: {spent} of {limit}", spent=shown(unit, spent), limit=shown(unit, limit))
    draft.emit("budget_reached", unit=unit, limit=limit, spent=spent, reason=reason)
    if graph.live:
        wish(draft, "budget", reason)
        conclude_stop(draft)  # where only stuck trees are left, that is said
    else:
        draft.emit("paused", status="budget_limited", reason=reason, cause=None)


def is_unreported(graph: Graph, attempt: Attempt) -> bool:
    """It came to an end of its own, and did not say what the budget is counted in."""
    budget, spent = graph.budget, attempt.spent
    if budget is None or attempt.profile == FREE or attempt.outcome not in OWN_ENDS:
        return False
    return (budget.tokens is not None and not spent.tokens) or (budget.cost_usd is not None and spent.cost_usd is None)


_UNITS: Final = {"tokens": t("tokens"), "cost_usd": t("US dollars"), "wall_ms": t("time")}


def shown(unit: str, amount: float) -> Text:
    """An amount for people."""
    if unit == "cost_usd":
        return t("{amount:.2f} USD", amount=amount)
    if unit == "wall_ms":
        return t("{amount:g} s", amount=round(amount / 1000, 1))
    return t("{amount:.0f} tokens", amount=amount)


# ---- topping up -----------------------------------------------------------------------------------------------------


def topped_up(draft: Draft, more: Budget | None) -> Budget | None:
    """The budget with what is spent and `more` as its limits. Raises Refused where it would still be spent."""
    graph = draft.graph
    budget = graph.budget
    if more is not None:
        check_amounts(more)
        budget = _raised(draft, more)
    spent = used(draft.state, graph, draft.now)
    for unit in Amounts._fields:
        limit = getattr(budget, unit)
        if limit is not None and getattr(spent, unit) >= limit:
            why = t(
                "its budget is spent: {spent} of {limit}",
                spent=shown(unit, getattr(spent, unit)),
                limit=shown(unit, limit),
            )
            hint = t("graphd resume --top-up {example}", example=EXAMPLES[unit])
            raise refuse_transition(graph, "resume", why, hint)
    return budget


EXAMPLES: Final = {"tokens": "200k", "cost_usd": "2.50usd", "wall_ms": "30m"}


def _raised(draft: Draft, more: Budget) -> Budget:
    graph = draft.graph
    spent = used(draft.state, graph, draft.now)
    limits = {unit: getattr(graph.budget, unit, None) for unit in Amounts._fields}
    for unit in Amounts._fields:
        amount = getattr(more, unit)
        if amount is None:
            continue
        if limits[unit] is None:
            raise Refused(
                "invalidBudget", t("{graph} has no budget in {unit}", graph=graph.title, unit=_UNITS[unit]),
                t("top up what bounds it; graphd status shows its budget"), graph=graph.id,
            )  # fmt: skip
        limits[unit] = getattr(spent, unit) + amount
    return Budget(**limits)
