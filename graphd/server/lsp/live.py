"""What runs of a workflow file: the newest graph that came from it, as plain values that outlive the moment.

Source: spec protocol.md, Language features (inlay hints, lenses, live diagnostics).
"""

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graphd.core.model import Definition, Graph, Node, State
from graphd.server.lsp.asks import LiveAsk, open_asks
from graphd.server.offers import verbs_for
from graphd_protocol.ids import FINAL_ID

Phases = Mapping[tuple[str, str], tuple[str, int]]
MINUTE_MS: Final = 60_000


@dataclass(slots=True, frozen=True)
class LiveNode:
    """One node of a graph. `leaves_with_file`: it goes where the file that it came from names it no more."""

    slug: str
    definition: Definition
    state: str
    phase: str | None
    attempt: int
    started_at: int | None
    ended_at: int | None
    trouble: str | None
    blocked_by: str | None
    last_line: str | None
    leaves_with_file: bool


@dataclass(slots=True, frozen=True)
class LiveGraph:
    """One graph. `verbs`: those that are offered for it."""

    id: str
    status: str
    is_live: bool
    verbs: frozenset[str]
    nodes: dict[str, LiveNode]
    asks: tuple[LiveAsk, ...] = ()


def live_graph(state: State, path: str, phases: Phases, last_lines: Mapping[tuple[str, str], str]) -> LiveGraph | None:
    """At a committed moment: the newest graph whose plan came from the file at `path`, a real path."""
    found = newest_from(state, path)
    return _graph(found, phases, last_lines) if found is not None else None


def newest_from(state: State, path: str) -> Graph | None:
    """At a committed moment: the newest graph whose plan was read from the file at this real path."""
    found = [graph for graph in state.graphs.values() if comes_from(graph, path)]
    return max(found, key=lambda graph: (graph.created_at, graph.id), default=None)


def comes_from(graph: Graph, path: str) -> bool:
    """The graph's plan was read from this file."""
    return graph.source.path is not None and path in (graph.source.path, _real(graph.source.path))


@functools.lru_cache(maxsize=256)
def _real(path: str) -> str:
    return os.path.realpath(path)


def _graph(graph: Graph, phases: Phases, last_lines: Mapping[tuple[str, str], str]) -> LiveGraph:
    return LiveGraph(
        id=graph.id,
        status=graph.status,
        is_live=graph.is_live,
        verbs=verbs_for(graph),
        nodes={n.slug: _node(graph, n, phases, last_lines) for n in graph.nodes.values() if n.removed_in is None},
        asks=open_asks(graph),
    )


def _node(graph: Graph, node: Node, phases: Phases, last_lines: Mapping[tuple[str, str], str]) -> LiveNode:
    key = (graph.id, node.id)
    phase = phases.get(key) if node.state in ("running", "ready") else None
    blocker = graph.nodes.get(node.blocked_by) if node.blocked_by is not None else None
    return LiveNode(
        slug=node.slug,
        definition=node.definition,
        state=node.state,
        phase=phase[0] if phase is not None else None,
        attempt=node.last_number,
        started_at=node.started_at,
        ended_at=node.ended_at,
        trouble=node.failure.reason if node.failure is not None else None,
        blocked_by=blocker.slug if blocker is not None else None,
        last_line=last_lines.get(key) if node.state == "running" else None,
        leaves_with_file=node.id != FINAL_ID and node.definition.item is None and not node.is_settled,
    )


def hint_of(node: LiveNode, now_ms: int) -> str | None:
    """The live state in a few words, as an inlay hint shows it: `running 2m, try 2`; None where nothing is to say."""
    if node.state == "waiting" and not node.attempt:
        return None
    word = node.phase if node.phase not in (None, "working", "queued") else node.state
    since, until = node.started_at, node.ended_at if node.state != "running" else now_ms
    parts = [str(word).replace("_", " ")]
    if since is not None and until is not None and node.state in ("running", "achieved", "failed"):
        parts[0] += f" {length(until - since)}" if node.state != "running" or until - since >= MINUTE_MS else ""
    if node.attempt > 1:
        parts.append(f"try {node.attempt}")
    return ", ".join(parts)


def length(span_ms: int) -> str:
    """A time span for people, in its largest unit or two."""
    seconds = max(0, span_ms) // 1000
    if seconds < 60:
        return f"{max(0, span_ms) / 1000:.1f}s" if seconds < 10 else f"{seconds}s"
    minutes = seconds // 60
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m"
