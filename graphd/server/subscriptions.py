"""The subscriptions of one connection: a cursor per graph, never a queue of changes.

A client that does not read costs an integer a graph, and later gets one larger delta. Cursors belong to the
connection: two subscriptions of one connection that cover the same graph share its chain of notifications. Source:
spec protocol.md, Notifications; research pitfalls.md 1.16.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from graphd.base.catalogue import Language
from graphd.core.events import Change
from graphd.core.model import Ask, State
from graphd.server import project, stored
from graphd.server.feeds import NEVER, Feeds, notification, tombstone
from graphd.server.project import Wire

ACTIVITY_INTERVAL_S: Final = 0.1
OUTPUT_LIMIT_BYTES: Final = 64 * 1024
ANSWER_LIMIT_BYTES: Final = 8 * 1024 * 1024
MOVED_ASKS_LIMIT: Final = 1024
NodeKey = tuple[str, str]


@dataclass(slots=True, frozen=True)
class Wish:
    """What a client subscribes to, its references resolved. `graphs` None: all, later ones too."""

    graphs: frozenset[str] | None = None
    since: Mapping[str, int] = field(default_factory=dict)
    is_same_store: bool = True
    wants_activity: bool = False
    outputs: Mapping[NodeKey, str] = field(default_factory=dict)  # (graph, node id) → slug


class OutputStream:
    """What one node printed and its subscriber has not been sent: bounded, the oldest dropped and counted."""

    def __init__(self, graph: str, slug: str) -> None:
        self._graph = graph
        self._slug = slug
        self._pieces: deque[tuple[int, int, bytearray]] = deque()
        self._size = 0
        self._skipped = 0

    def add(self, number: int, offset: int, chunk: bytes) -> None:
        """Attempt `number` printed `chunk` at this byte of its stream."""
        if self._pieces and self._pieces[-1][0] == number:
            self._pieces[-1][2].extend(chunk)
        else:
            self._pieces.append((number, offset, bytearray(chunk)))
        self._size += len(chunk)
        while self._size > OUTPUT_LIMIT_BYTES:
            self._drop(self._size - OUTPUT_LIMIT_BYTES)

    def _drop(self, excess: int) -> None:
        number, offset, piece = self._pieces.popleft()
        gone = min(excess, len(piece))
        if gone < len(piece):
            self._pieces.appendleft((number, offset + gone, piece[gone:]))
        self._size -= gone
        self._skipped += gone

    def take(self) -> Wire | None:
        """The next chunk, whole characters only, or None."""
        while self._pieces:
            number, offset, piece = self._pieces.popleft()
            whole = len(piece) - _dangling(piece)
            if whole < len(piece) and not self._pieces:
                self._pieces.append((number, offset + whole, piece[whole:]))
                if whole == 0:
                    return None
            else:
                whole = len(piece)
            self._size -= whole
            text = piece[:whole].decode(errors="replace")
            chunk: Wire = {
                "graph": self._graph,
                "node": self._slug,
                "attempt": number,
                "offset": offset,
                "text": text,
            }
            if self._skipped:
                chunk["skipped"], self._skipped = self._skipped, 0
            return chunk
        return None


def _dangling(piece: bytearray) -> int:
    """How many bytes at the end begin a character that is not whole yet."""
    for back in range(1, min(4, len(piece) + 1)):
        byte = piece[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < needed else 0
        if byte < 0x80:
            return 0
    return 0


def _closed(ask_id: str, ask: Ask | None) -> Wire:
    wire: Wire = {"id": ask_id}
    if ask is not None and ask.answered_by is not None:
        wire["by"] = ask.answered_by
        if (answer := ask.option or ask.text) is not None:
            wire["answer"] = answer
    return wire


@dataclass(slots=True)
class _Subscription:
    wish: Wish


class Subscriptions:
    """All subscriptions of one connection. `wake` tells its writer that there is something to pull."""

    def __init__(self, feeds: Feeds, activity_of: Callable[[State, str, str], Wire | None], store: str) -> None:
        self._feeds = feeds
        self._activity_of = activity_of
        self._store = store
        self.language: Language = "en"  # the connection's; another hello may change it
        self._numbers = itertools.count(1)
        self._open: dict[str, _Subscription] = {}
        self._held = 0
        self.cursors: dict[str, int] = {}
        self._behind: dict[str, None] = {}
        self._active: dict[NodeKey, None] = {}
        self._streams: dict[NodeKey, OutputStream] = {}
        self._printed: dict[NodeKey, None] = {}
        self.moved_asks: dict[tuple[str, str], bool] = {}  # (graph, ask) → it was open when last told
        self._next_activity_s = 0.0

    @property
    def is_empty(self) -> bool:
        """No subscription is open."""
        return not self._open

    def open(self, state: State, wish: Wish) -> tuple[str, bytes]:
        """At a committed moment: register, and give the id and the JSON of the result, which starts every cursor.

        Nothing is pulled until `release` says that the answer is on its way: the first notification comes after it.
        """
        name = f"s{next(self._numbers)}"
        self._open[name] = _Subscription(wish)
        self._held += 1
        for key, slug in wish.outputs.items():
            self._streams.setdefault(key, OutputStream(key[0], slug))
        values, size = [], 0
        for graph in self._to_start(state, wish):
            if size >= ANSWER_LIMIT_BYTES:
                self.cursors[graph] = NEVER
                self._behind[graph] = None  # the rest follows as notifications, each in a frame of its own
                continue
            since = wish.since.get(graph, NEVER) if wish.is_same_store else NEVER
            rev, value = self._starting_value(state, graph, since)
            values.append(orjson.Fragment(value))
            size += len(value)
            if graph in state.graphs:
                self.cursors[graph] = rev  # the client folds this answer in: its chain goes on from here
                self._behind.pop(graph, None)
        return name, orjson.dumps({"subscription": name, "store": self._store, "graphs": values})

    def _to_start(self, state: State, wish: Wish) -> list[str]:
        if wish.graphs is None:
            return [*state.graphs, *(graph for graph in wish.since if graph not in state.graphs)]
        return sorted(wish.graphs)

    def _starting_value(self, state: State, graph: str, since: int) -> tuple[int, bytes]:
        if graph not in state.graphs:
            rev = state.tombstones.get(graph, 0)
            return rev, tombstone(graph, since, rev)
        return self._feeds.value(state, graph, since, self.language)

    def release(self) -> None:
        """The answer to `open` is queued: notifications may follow."""
        self._held -= 1

    def close(self, name: str) -> bool:
        """End a subscription; False where there is none of that name."""
        if self._open.pop(name, None) is None:
            return False
        for graph in [g for g in self.cursors if not self._covers(g)]:
            del self.cursors[graph]
            self._behind.pop(graph, None)
        wanted = {key for subscription in self._open.values() for key in subscription.wish.outputs}
        self._streams = {key: stream for key, stream in self._streams.items() if key in wanted}
        return True

    def _covers(self, graph: str) -> bool:
        return any(s.wish.graphs is None or graph in s.wish.graphs for s in self._open.values())

    def _wants_activity(self, graph: str) -> bool:
        return any(
            s.wish.wants_activity and (s.wish.graphs is None or graph in s.wish.graphs) for s in self._open.values()
        )

    def lone_change(self, state: State) -> bytes | None:
        """Right after a commit: its one change, framed, to a client that has this graph; else None: `committed` is due.

        Most commits are such, and each asks this of every connection. Moves the cursor: the frame must be sent.
        """
        feeds, cursors = self._feeds, self.cursors
        graph = feeds.lone_graph
        if graph not in cursors or self._held:
            return None
        kept = feeds.frames.get((graph, cursors[graph], self.language))
        if kept is None:
            return self._changed(state, graph)
        cursors[graph], frame = kept
        return frame

    def committed(self, changes: Iterable[Change]) -> bool:
        """A commit; True where a cursor is behind."""
        if not self._open:
            return False
        if self._feeds.moved_asks:
            self._note_asks()
        for change in changes:
            graph = change.graph
            if graph not in self.cursors:
                if not self._covers(graph):
                    continue
                self.cursors[graph] = NEVER
            self._behind[graph] = None
        return bool(self._behind)

    def _note_asks(self) -> None:
        """Remember which asks moved. One that came and went before it was told is told as closed alone.

        Of those that closed only so many are kept for a client that does not read: `changed` lists the open ones.
        """
        for graph, ask, is_open in self._feeds.moved_asks:
            if self._covers(graph):
                self.moved_asks[(graph, ask)] = is_open
        while len(self.moved_asks) > MOVED_ASKS_LIMIT:
            oldest = next((key for key, is_open in self.moved_asks.items() if not is_open), None)
            if oldest is None:
                return  # all are open: no more than the state itself holds
            del self.moved_asks[oldest]

    def phase_moved(self, graph: str, node: str) -> bool:
        """A phase or last line changed; True where somebody wants to know."""
        if not self._open or not self._wants_activity(graph):
            return False
        self._active[(graph, node)] = None
        return True

    def printed(self, graph: str, node: str, number: int, offset: int, chunk: bytes) -> bool:
        """An attempt printed; True where somebody wants to know."""
        stream = self._streams.get((graph, node))
        if stream is None:
            return False
        stream.add(number, offset, chunk)
        self._printed[(graph, node)] = None
        return True

    def pull(self, state: State, now_s: float) -> bytes | None:
        """The next notification, framed, or None. At a committed moment; moves the cursor: the frame must be sent."""
        if self._held:
            return None
        frame = self.pull_change(state)
        if frame is not None:
            return frame
        if self.moved_asks:
            return self._asks_notice(state)
        if self._printed:
            return self._output()
        if self._active and now_s >= self._next_activity_s:
            return self._activity(state, now_s)
        return None

    def pull_change(self, state: State) -> bytes | None:
        """The next `workgraph/changed` alone, under the rules of `pull`."""
        behind = self._behind
        while behind and not self._held:
            graph = next(iter(behind))
            del behind[graph]
            frame = self._changed(state, graph)
            if frame is not None:
                return frame
        return None

    def activity_due_s(self) -> float | None:
        """When activity that waits for its turn may go, on the clock of `pull`; None where none waits."""
        return self._next_activity_s if self._active and not self._held else None

    def _changed(self, state: State, graph: str) -> bytes | None:
        cursors = self.cursors
        since = cursors.get(graph, NEVER)
        live = state.graphs.get(graph)
        if live is not None:
            if since == live.rev:
                return None
            cursors[graph], frame = self._feeds.frame(state, graph, since, self.language)
            return frame
        cursors.pop(graph, None)
        if since == NEVER:
            return None  # came and went while this client did not look
        return self._feeds.frame(state, graph, since, self.language)[1]

    def _asks_notice(self, state: State) -> bytes:
        """After the change that it belongs to: a client that folds changes knows the ask already."""
        opened, closed = [], []
        for graph_id, ask_id in self.moved_asks:
            graph = state.graphs.get(graph_id)
            ask = graph.asks.get(ask_id) if graph is not None else None
            if graph is not None and ask is not None and ask.state == "open":
                opened.append(stored.ask(project.ask(graph, ask), self.language))
            else:
                closed.append(_closed(ask_id, ask))
        self.moved_asks.clear()
        return notification("workgraph/asks", {"opened": opened, "closed": closed})

    def _output(self) -> bytes | None:
        while self._printed:
            key = next(iter(self._printed))
            chunk = self._streams[key].take() if key in self._streams else None
            if chunk is not None:
                return notification("workgraph/output", chunk)
            del self._printed[key]
        return None

    def _activity(self, state: State, now_s: float) -> bytes | None:
        first = next(iter(self._active))[0]
        keys = [key for key in self._active if key[0] == first]
        for key in keys:
            del self._active[key]
        nodes: list[Any] = [row for key in keys if (row := self._activity_of(state, *key)) is not None]
        if not nodes:
            return None
        self._next_activity_s = now_s + ACTIVITY_INTERVAL_S
        return notification("workgraph/activity", {"graph": first, "nodes": nodes})
