"""One feed per graph: its nodes in the order of their last change, so what a cursor lacks is a slice from the end.

Equal cursors of one language share the same encoded bytes. Everything here runs at a committed moment only (inside a
commit's listener or a `view`). Source: spec protocol.md, Notifications; architecture.md, Speed is structure.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson

from graphd.base.catalogue import Language
from graphd.core.events import Change
from graphd.core.model import Graph, HistoryEntry, State
from graphd.server import frames, project, stored

NEVER: Final = -1
"""The cursor of a graph that was never sent: what comes is the whole value."""
VALUE_LIMIT_BYTES: Final = 12 * 1024 * 1024
_TEXT_LIMITS: Final = (project.TEXT_LIMIT_BYTES, 256, 0)
_SHARED: Final = 4
_ASK_MOVES: Final = frozenset({"ask_opened", "ask_answered", "ask_withdrawn"})


class GraphFeed:
    """What subscribers of one graph are sent."""

    def __init__(self, graph: Graph) -> None:
        ordered = sorted(graph.nodes.values(), key=lambda item: item.changed_at)
        self.order: dict[str, int] = {item.id: item.changed_at for item in ordered}
        self.operation = "checkpoint"
        self.operation_rev = graph.rev
        self.asks_rev = graph.rev if graph.asks else 0
        self.proposals_rev = graph.rev if any(ask.kind == "proposal" for ask in graph.asks.values()) else 0
        self._shared: dict[tuple[int, Language], bytes] = {}
        self._snapshots: dict[Language, tuple[int, orjson.Fragment]] = {}

    def note(self, change: Change) -> None:
        """A commit changed the graph: move its nodes to the end."""
        for node in change.nodes:
            self.order.pop(node, None)
            self.order[node] = change.rev
        self.operation, self.operation_rev = change.operation, change.rev
        for event in change.events:
            if event.kind.startswith("ask_"):
                self.asks_rev = change.rev
            elif event.kind.startswith("proposal_"):
                self.proposals_rev = change.rev
        self._shared.clear()
        self._snapshots.clear()

    def forget_encoded(self) -> None:
        """Something volatile that stands in snapshots moved."""
        self._snapshots.clear()

    def value(self, graph: Graph, since: int, phase_of: project.PhaseOf, language: Language = "en") -> bytes:
        """The JSON of `workgraph/changed`'s params from `since` to now; shared by all that ask for the same."""
        kept = self._shared.get((since, language))
        if kept is None:
            if len(self._shared) >= _SHARED:
                self._shared.pop(next(iter(self._shared)))
            kept = self._shared[(since, language)] = _fitting(
                lambda limit: stored.changed(self._changed(graph, since, phase_of, limit), language)
            )
        return kept

    def snapshot(self, graph: Graph, phase_of: project.PhaseOf, language: Language = "en") -> orjson.Fragment:
        """The JSON of the whole graph, kept until it changes."""
        kept = self._snapshots.get(language)
        if kept is None or kept[0] != graph.rev:
            body = _fitting(
                lambda limit: stored.snapshot(project.snapshot(graph, phase_of, limit_bytes=limit), language)
            )
            kept = self._snapshots[language] = (graph.rev, orjson.Fragment(body))
        return kept[1]

    def _changed(self, graph: Graph, since: int, phase_of: project.PhaseOf, limit_bytes: int) -> dict[str, Any]:
        is_full = since == NEVER
        value: dict[str, Any] = {
            "operation": self._operation(graph, since),
            "graph": graph.id,
            "from": max(since, 0),
            "rev": graph.rev,
            "header": project.header(graph),
        }
        ids = graph.nodes if is_full else self._behind(since)
        value["nodes"] = [project.node(graph, graph.nodes[i], phase_of, limit_bytes=limit_bytes) for i in ids]
        if is_full or self.asks_rev > since:
            value["asks"] = project.open_asks(graph)
        if self.proposals_rev > max(since, 0):
            value["proposals"] = project.open_proposals(graph)
        value["history"] = [project.history_entry(graph, entry) for entry in _after(graph.history, since)]
        if is_full:
            value["full"] = True
        return value

    def _operation(self, graph: Graph, since: int) -> str:
        is_one_change = since == graph.rev - 1 and self.operation_rev == graph.rev
        return self.operation if is_one_change or since == NEVER and graph.rev == 1 else "checkpoint"

    def _behind(self, since: int) -> list[str]:
        lacking = []
        for node, rev in reversed(self.order.items()):
            if rev <= since:
                break
            lacking.append(node)
        lacking.reverse()
        return lacking


def _after(history: list[HistoryEntry], since: int) -> list[HistoryEntry]:
    """The end of it that a cursor lacks: revs only grow."""
    at = len(history)
    while at and history[at - 1].rev > since:
        at -= 1
    return history[at:]


def _fitting(build: Callable[[int], dict[str, Any]]) -> bytes:
    """The value in a frame's bounds: where 10,000 results don't fit, each shows less of its text."""
    body = b""
    for limit in _TEXT_LIMITS:
        body = orjson.dumps(build(limit))
        if len(body) <= VALUE_LIMIT_BYTES:
            break
    return body


def tombstone(graph: str, since: int, rev: int) -> bytes:
    """What a subscriber is sent of a graph that was cleared (or that this store never had: rev 0)."""
    return orjson.dumps(
        {
            "operation": "clear",
            "graph": graph,
            "from": max(since, 0),
            "rev": max(rev, since, 0),
            "cleared": {"id": graph, "rev": rev},
        }
    )


def notification(method: str, params: bytes | dict[str, Any]) -> bytes:
    """One framed notification. The method is a name of ours, which needs no escapes."""
    body = params if isinstance(params, bytes) else orjson.dumps(params)
    return frames.encode(b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), body))


class Feeds:
    """The feeds of all graphs, made when first asked for and kept by the commits."""

    def __init__(self, phase_of: project.PhaseOf) -> None:
        self.phase_of = phase_of
        self._feeds: dict[str, GraphFeed] = {}
        self.frames: dict[tuple[str, int, Language], tuple[int, bytes]] = {}
        self.moved_asks: list[tuple[str, str, bool]] = []
        """(graph, ask, it is open) of the last commit: looked for once, for all who are told."""
        self.is_cooling = False
        """A provider began to rest with the last commit."""
        self.lone_graph: str | None = None
        """The graph that the last commit changed, where it was one alone, is there, and no ask moved."""

    def note(self, changes: list[Change], state: State) -> None:
        """A commit."""
        self.frames.clear()
        self.moved_asks = []
        self.is_cooling = False
        lone = changes[0].graph if changes else None
        for change in changes:
            graph = state.graphs.get(change.graph)
            if graph is None:
                self._feeds.pop(change.graph, None)
            elif change.graph in self._feeds:
                self._feeds[change.graph].note(change)
            elif change.rev == 1:
                self.of(graph).note(change)  # a new graph: whoever watches all is told with its verb
            for event in change.events:
                if event.kind in _ASK_MOVES:
                    ask = event.payload.get("ask") or event.payload["id"]
                    self.moved_asks.append((change.graph, ask, event.kind == "ask_opened"))
                elif event.kind == "provider_cooling":
                    self.is_cooling = True
            if graph is None or change.graph != lone:
                lone = None
        self.lone_graph = None if self.moved_asks else lone

    def phase_moved(self, graph: str) -> None:
        """A volatile phase changed: kept snapshots are old."""
        if graph in self._feeds:
            self._feeds[graph].forget_encoded()

    def of(self, graph: Graph) -> GraphFeed:
        """The graph's feed."""
        feed = self._feeds.get(graph.id)
        if feed is None:
            feed = self._feeds[graph.id] = GraphFeed(graph)
        return feed

    def value(self, state: State, graph: str, since: int, language: Language = "en") -> tuple[int, bytes]:
        """(rev, params of `changed`) that bring a cursor at `since` up to now.

        A cursor ahead of us gets the whole value.
        """
        live = state.graphs.get(graph)
        if live is None:
            rev = state.tombstones.get(graph, 0)
            return max(rev, since, 0), tombstone(graph, since, rev)
        if since > live.rev:
            since = NEVER
        return live.rev, self.of(live).value(live, since, self.phase_of, language)

    def frame(self, state: State, graph: str, since: int, language: Language = "en") -> tuple[int, bytes]:
        """The same as a framed notification; equal cursors of one language get the very same bytes."""
        key = (graph, since, language)
        kept = self.frames.get(key)
        if kept is None:
            rev, body = self.value(state, graph, since, language)
            kept = self.frames[key] = (rev, notification("workgraph/changed", body))
        return kept
