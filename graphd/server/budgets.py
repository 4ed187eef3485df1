"""Budgets between wire and core: what params ask for, and the rows of `graphd/capacity`. Source: spec protocol.md."""

from typing import TYPE_CHECKING

from graphd.core.change.clauses import budget_of, budget_row
from graphd.core.commands import Capacity
from graphd.core.definition import Budget
from graphd.core.model import State
from graphd.server.project import Wire

if TYPE_CHECKING:
    from graphd_protocol.model import Budget as WireBudget


def top_up_of(given: "WireBudget | None") -> Budget | None:
    """What params ask for; None where they ask for nothing."""
    return None if given is None else budget_of(given.model_dump(by_alias=True, exclude_unset=True)) or Budget()


def rows(state: State, capacity: Capacity, now: int) -> list[Wire]:
    """One row per live graph that has a budget: limit, spent and reserved, in the units that it has."""
    bounded = [graph for graph in state.graphs.values() if graph.budget is not None and graph.is_live]
    if not bounded:
        return []
    from graphd.core.budget import reserved, used

    found = []
    for graph in bounded:
        assert graph.budget is not None  # noqa: S101  as above
        limit = budget_row(graph.budget)
        spent, aside = used(state, graph, now), reserved(state, graph, capacity)
        found.append(
            {
                "graph": graph.id,
                "limit": limit,
                "spent": _only(limit, spent.tokens, spent.cost_usd, spent.wall_ms),
                "reserved": _only(limit, aside.tokens, aside.cost_usd, aside.wall_ms),
            }
        )
    return found


def _only(limit: Wire, tokens: float, cost_usd: float, wall_ms: float) -> Wire:
    amounts = {"tokens": tokens, "costUsd": cost_usd, "wallSeconds": wall_ms / 1000}
    return {unit: amounts[unit] for unit in limit}
