"""What a change says: a snapshot, a tombstone, what a fold of them comes to. Times are ms since the epoch."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class NodeValue:
    """What both versions say of a node. `needs` are ids; `slug` is None in version 1, which has none."""

    id: str
    slug: str | None
    title: str
    spec: str
    needs: tuple[str, ...]
    state: str
    rounds: int


@dataclass(slots=True, frozen=True)
class HistoryValue:
    """One line of history. An unknown kind reads as `unknown`, with what was written in `raw_kind`."""

    at: int
    kind: str
    node: str | None = None
    detail: str | None = None
    raw_kind: str | None = None


@dataclass(slots=True, frozen=True)
class GraphValue:
    """A decoded snapshot. `graph` is all of it under its version's keys, node states repaired.

    `cost_usd` None: unknown. `replans` None: version 2 doesn't count them.
    """

    version: int
    id: str
    status: str
    pause_reason: str | None
    plan_version: int
    created_at: int
    updated_at: int
    tokens: int
    cost_usd: float | None
    wall_ms: int
    replans: int | None
    nodes: tuple[NodeValue, ...]
    history: tuple[HistoryValue, ...]
    graph: dict[str, Any]


@dataclass(slots=True, frozen=True)
class Tombstone:
    """The graph `cleared` was cleared at `cleared_at` (ms)."""

    version: int
    cleared: str
    cleared_at: int


@dataclass(slots=True, frozen=True)
class Folded:
    """What a sequence of changes comes to: the current graph, and the last clearing."""

    graph: GraphValue | None = None
    cleared: str | None = None
    cleared_at: int | None = None
