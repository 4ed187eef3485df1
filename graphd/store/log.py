"""The log of all graphs: one transaction a batch, bases, loading, history, retention.

A base is the whole value of a graph at one rev. It only bounds the work of a load: writing one drops no event. One is
written when a graph ends, and whenever max(1,000, number of nodes) revs passed since the last one. A base costs as
much as the graph has nodes; a run has a few revs a node. So bases every 1,000 revs alone would make the bytes
written over a run grow with the square of the nodes; with this rule they grow linearly, and a load replays at most
about as many events as the graph has nodes. An older base goes when a newer one is written, unless the log begins
with it. Source: model.md, Log, snapshot, interchange.
"""

import gc
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from graphd.base.clock import Clock
from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.core import derive
from graphd.core.codec import load_graph
from graphd.core.commands import Done
from graphd.core.events import Change, Event
from graphd.core.model import Graph, State
from graphd.core.restore import restore
from graphd.store import rows
from graphd.store.database import Database
from graphd.store.refusals import StoreCorrupt
from graphd.store.remembered import KEPT_MS, RequestRow
from graphd.store.talks import Place, load_lines, load_talks, load_used, statements
from graphd.store.writer import Decided

Evolve = Callable[[State, Event], None]

BASE_REVS: Final = 1000


@dataclass(slots=True, frozen=True)
class Page:
    """A piece of a graph's history: whole revs. `next` is the rev to ask after, None at the end.

    `base_rev` is set where what was asked for begins before the log does: the log starts with the base at that rev.
    """

    events: list[Event]
    next: int | None = None
    base_rev: int | None = None


@dataclass(slots=True)
class _Mark:
    """What is stored of a graph, as far as the next commit has to know."""

    base_rev: int = 0
    is_ended: bool = False


@dataclass(slots=True)
class _Write:
    """A batch as rows: all that the store's thread needs."""

    at: int
    cleared: list[tuple[str, int, int]] = field(default_factory=list)
    statements: list[tuple[str, list[rows.SqlRow]]] = field(default_factory=list)
    marks: dict[str, _Mark] = field(default_factory=dict)

    def add(self, statement: str, values: list[rows.SqlRow]) -> None:
        """Queue one statement for many rows."""
        if values:
            self.statements.append((statement, values))

    def run(self, connection: sqlite3.Connection) -> None:
        """Execute all within the caller's transaction."""
        for statement, values in self.statements:
            connection.executemany(statement, values)


class Log:
    """Reads and writes the log of one database. `load` comes first; `commit` is what the writer calls."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self.database = database
        self._clock = clock
        self._marks: dict[str, _Mark] = {}

    # ---- writing ----------------------------------------------------------------------------------------------

    async def commit(self, decided: Decided, state: State) -> None:
        """Store one batch whole: events, tables, bases, tombstones, request ids. `state` is what it leaves behind.

        Rows are made here, on the loop's thread; the transaction is one hop. Raises CommitRefused (nothing was stored,
        take the state back) or StaleDaemon; after any other exception it is unknown what was stored.
        """
        write = self._rows(decided, state)
        database = self.database

        def store(connection: sqlite3.Connection) -> None:
            with database.fenced(connection):
                write.run(connection)
                failpoint("store.commit.before")
                connection.execute("COMMIT")
            failpoint("store.commit.after")

        await database.write(store)
        self._marks.update(write.marks)
        for graph, _, _ in write.cleared:
            self._marks.pop(graph, None)

    def _rows(self, decided: Decided, state: State) -> _Write:
        write = _Write(at=self._clock.now_ms())
        events: dict[str, list[Event]] = {}
        for change in decided.changes:
            events.setdefault(change.graph, []).extend(change.events)
        kept = [state.graphs[graph] for graph in events if graph in state.graphs]
        write.add(rows.UPSERT_GRAPH, [rows.graph_row(graph) for graph in kept])
        for graph in kept:
            self._add_graph(write, graph, events[graph.id])
        self._add_cleared(write, decided.changes, state)
        write.add(_INSERT_REQUEST, [_request_row(row) for row in decided.requests])
        for statement, values in statements(decided.posted, decided.changes, state):
            write.add(statement, values)
        return write

    def _add_graph(self, write: _Write, graph: Graph, events: Sequence[Event]) -> None:
        mark = self._marks.get(graph.id, _Mark())
        write.add(rows.INSERT_EVENT, [rows.event_row(event) for event in events])
        for statement, values in rows.touched_rows(graph, events):
            write.add(statement, values)
        base_rev = mark.base_rev
        if _is_base_due(graph, mark):
            base_rev = graph.rev
            with _collector_paused():
                write.add(_INSERT_BASE, [(graph.id, graph.rev, rows.base_text(graph))])
            write.add(_DROP_OLD_BASES, [(graph.id, graph.rev)])
        write.marks[graph.id] = _Mark(base_rev, graph.is_ended)

    def _add_cleared(self, write: _Write, changes: Iterable[Change], state: State) -> None:
        gone = dict.fromkeys(change.graph for change in changes if change.graph not in state.graphs)
        write.cleared = [(graph, state.tombstones[graph], write.at) for graph in gone]
        write.add("DELETE FROM graphs WHERE id = ?", [(graph,) for graph in gone])
        write.add("DELETE FROM requests WHERE scope = ?", [(graph,) for graph in gone])
        write.add("INSERT INTO tombstones (graph, rev, at) VALUES (?, ?, ?)", list(write.cleared))

    async def retain(self, *, ended_before_ms: int) -> int:
        """Drop events up to the last base of graphs that ended before a time, and request ids that outlive a graph
        after seven days. Returns how many graphs were cut. The log of each still begins with its base."""
        database = self.database
        oldest_request = self._clock.now_ms() - KEPT_MS

        def drop(connection: sqlite3.Connection) -> int:
            with database.fenced(connection):
                due = connection.execute(_RETENTION_DUE, (ended_before_ms,)).fetchall()
                connection.executemany("DELETE FROM events WHERE graph = ? AND rev <= ?", due)
                connection.executemany("DELETE FROM bases WHERE graph = ? AND rev < ?", due)
                connection.execute(_DROP_OLD_REQUESTS, (oldest_request,))
                failpoint("store.retain.before")
                connection.execute("COMMIT")
            failpoint("store.retain.after")
            return len(due)

        return await database.write(drop)

    # ---- reading ----------------------------------------------------------------------------------------------

    async def load(self, evolve: Evolve) -> State:
        """The state that the log says: each graph's newest base and every event after it. Raises StoreCorrupt."""
        found = await self.database.read(_read_log)
        with _collector_paused():
            state = self._replay(evolve, *found)
        talks = await self.database.read(load_talks)
        state.talks = {place: talking for place, talking in talks.items() if _is_live(state, place)}
        used = await self.database.read(load_used)
        state.used = {place: spent for place, spent in used.items() if _is_live(state, place)}
        return state

    def _replay(self, evolve: Evolve, bases: list[Any], events: list[Any], tombstones: list[Any]) -> State:
        state = State(tombstones=dict(tombstones))
        for graph_id, text in bases:
            with self._legible(graph_id):
                state.graphs[graph_id] = load_graph(rows.decoded(text))
        restore(state)
        base_revs = {graph.id: graph.rev for graph in state.graphs.values()}
        for row in events:
            with self._legible(f"{row[0]}/{row[1]}.{row[2]}"):
                evolve(state, rows.event_of(row))
        derive.rebuild_state(state)
        state.graphs = dict(sorted(state.graphs.items(), key=lambda item: (item[1].created_at, item[0])))
        self._marks = {graph.id: _Mark(base_revs.get(graph.id, 0), graph.is_ended) for graph in state.graphs.values()}
        return state

    @contextmanager
    def _legible(self, place: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise StoreCorrupt(
                t("the log can't be read at {place}: {trouble}", place=place, trouble=repr(error)),
                path=self.database.path,
            ) from error

    async def unsent(self) -> dict[Place, list[tuple[int, str]]]:
        """Lines that keepers may lack, by attempt: for those who go on with them."""
        return await self.database.read(load_lines)

    async def requests(self) -> list[RequestRow]:
        """Every request id that is stored, the oldest first."""
        query = "SELECT scope, request_id, fingerprint, result, at FROM requests ORDER BY at"
        found = await self.database.read(lambda connection: connection.execute(query).fetchall())
        return [RequestRow(scope, key, print_, _done(text), at) for scope, key, print_, text, at in found]

    async def history(
        self, graph: str, *, after: int = 0, limit: int = 200, kinds: Sequence[str] | None = None
    ) -> Page:
        """Events after a rev, oldest first: whole revs, `limit` events or the one rev that is longer."""
        return await self.database.read(
            lambda connection: _history(connection, graph, after=after, limit=limit, kinds=kinds)
        )


_INSERT_BASE = "INSERT OR REPLACE INTO bases (graph, rev, doc) VALUES (?, ?, ?)"
_DROP_OLD_BASES = """DELETE FROM bases WHERE graph = ? AND rev < ?
    AND EXISTS (SELECT 1 FROM events WHERE events.graph = bases.graph AND events.rev <= bases.rev)"""
_DROP_OLD_REQUESTS = "DELETE FROM requests WHERE at < ? AND scope NOT IN (SELECT id FROM graphs)"
_INSERT_REQUEST = "INSERT OR REPLACE INTO requests (scope, request_id, fingerprint, result, at) VALUES (?, ?, ?, ?, ?)"
_RETENTION_DUE = """SELECT id, (SELECT max(rev) FROM bases WHERE graph = graphs.id) AS base FROM graphs
    WHERE status IN ('complete', 'cancelled') AND updated_at < ? AND base IS NOT NULL
    AND EXISTS (SELECT 1 FROM events WHERE events.graph = graphs.id AND events.rev <= base)"""
_NEWEST_BASES = """SELECT graph, doc FROM bases AS b
    WHERE rev = (SELECT max(rev) FROM bases WHERE graph = b.graph) ORDER BY graph"""
_EVENTS_AFTER_BASES = f"""SELECT {rows.EVENT_COLUMNS} FROM graphs CROSS JOIN events ON events.graph = graphs.id
    AND events.rev > coalesce((SELECT max(rev) FROM bases WHERE bases.graph = graphs.id), 0)
    ORDER BY events.graph, events.rev, events.idx"""  # noqa: S608 -- our own column names


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage collection inside: a base of 10,000 nodes makes 100,000 values, none of them garbage, and each full
    collection on the way looks at all of them (measured: 2 to 5 times as slow)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_live(state: State, place: Place) -> bool:
    graph = state.graphs.get(place[0])
    return graph is not None and place[1] in graph.live


def _is_base_due(graph: Graph, mark: _Mark) -> bool:
    if graph.is_ended and not mark.is_ended:
        return True
    return graph.rev - mark.base_rev >= max(BASE_REVS, len(graph.nodes))


def _request_row(row: RequestRow) -> rows.SqlRow:
    done = row.done
    result: dict[str, Any] = {"graph": done.graph, "rev": done.rev, "stopping": list(done.stopping)}
    if done.woke or done.kept:
        result |= {"woke": done.woke, "kept": done.kept}
    return (row.scope, row.request_id, row.fingerprint, rows.encoded(result), row.at)


def _done(text: str) -> Done:
    result = rows.decoded(text)
    woke, kept = (tuple((graph, node) for graph, node in result.get(name, ())) for name in ("woke", "kept"))
    return Done(result["graph"], result["rev"], tuple(result["stopping"]), woke=woke, kept=kept)


def _read_log(connection: sqlite3.Connection) -> tuple[list[Any], list[Any], list[Any]]:
    connection.execute("BEGIN")
    try:
        return (
            connection.execute(_NEWEST_BASES).fetchall(),
            connection.execute(_EVENTS_AFTER_BASES).fetchall(),
            connection.execute("SELECT graph, rev FROM tombstones").fetchall(),
        )
    finally:
        connection.execute("COMMIT")


def _history(
    connection: sqlite3.Connection, graph: str, *, after: int, limit: int, kinds: Sequence[str] | None
) -> Page:
    wanted = "" if kinds is None else f" AND kind IN ({', '.join('?' * len(kinds))})"
    query = f"SELECT {rows.EVENT_COLUMNS} FROM events WHERE graph = ?{wanted}"  # noqa: S608 -- question marks alone
    order = " ORDER BY rev, idx"
    found = connection.execute(
        f"{query} AND rev > ?{order} LIMIT ?", (graph, *(kinds or ()), after, limit + 1)
    ).fetchall()
    next_rev = None
    if len(found) > limit:
        cut = found[limit][1]
        whole = [row for row in found if row[1] < cut]
        if not whole:
            whole = connection.execute(f"{query} AND rev = ?{order}", (graph, *(kinds or ()), cut)).fetchall()
        found, next_rev = whole, whole[-1][1]
    return Page([rows.event_of(row) for row in found], next_rev, _cut_at(connection, graph, after))


def _cut_at(connection: sqlite3.Connection, graph: str, after: int) -> int | None:
    """The rev of the base that stands where the events after `after` were dropped."""
    first = connection.execute("SELECT min(rev) FROM bases WHERE graph = ?", (graph,)).fetchone()[0]
    if first is None or after >= first:
        return None
    query = "SELECT EXISTS (SELECT 1 FROM events WHERE graph = ? AND rev <= ?)"
    is_whole = connection.execute(query, (graph, first)).fetchone()[0]
    return None if is_whole else int(first)
