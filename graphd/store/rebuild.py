"""Rebuild every table from the log and say where they differ: `graphd doctor`, and the oracle of the crash tests.

Replays each graph from where its log begins, not from the newest base, so that bases are checked too. Each event's
move of its node is held against NODE_MOVES here (see `schema`, The guards).
"""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from graphd.base.text import t
from graphd.core import derive
from graphd.core.codec import (
    PARTS_OF_GRAPH,
    Row,
    dump_ask,
    dump_attempt,
    dump_delivery,
    dump_graph,
    dump_header,
    dump_node,
    load_ask,
    load_attempt,
    load_delivery,
    load_graph,
    load_node,
)
from graphd.core.events import Event
from graphd.core.model import Graph, State
from graphd.store import rows
from graphd.store.log import Evolve
from graphd.store.sqlite import reading
from graphd_protocol.states import NODE_MOVES

_TABLES = {
    "graphs": "SELECT id, status, rev, owner, title, created_at, updated_at, header FROM graphs WHERE id = ?",
    "nodes": "SELECT graph, id, slug, state, changed_at, doc FROM nodes WHERE graph = ?",
    "attempts": "SELECT graph, node, role, number, state, doc FROM attempts WHERE graph = ?",
    "asks": "SELECT graph, id, state, doc FROM asks WHERE graph = ?",
    "deliveries": "SELECT graph, id, owner, is_acknowledged, doc FROM deliveries WHERE graph = ?",
}
_KEY_WIDTH = {"graphs": 1, "nodes": 2, "attempts": 4, "asks": 2, "deliveries": 2}
_PARTS: Row = dict.fromkeys(PARTS_OF_GRAPH, ())

# Stored rows are read and written once more before they are compared: a row of an earlier release lacks fields that
# have come since, and means their defaults.
_AGAIN: dict[str, Callable[[Row], Row]] = {
    "graphs": lambda row: dump_header(load_graph({**row, **_PARTS})),
    "nodes": lambda row: dump_node(load_node(row)),
    "attempts": lambda row: dump_attempt(load_attempt(row)),
    "asks": lambda row: dump_ask(load_ask(row)),
    "deliveries": lambda row: dump_delivery(load_delivery(row)),
}
_FIRST_BASE = """SELECT rev, doc FROM bases AS b WHERE graph = ? AND NOT EXISTS (
    SELECT 1 FROM events WHERE events.graph = b.graph AND events.rev <= b.rev) ORDER BY rev LIMIT 1"""


def differences_in(path: Path, evolve: Evolve) -> list[str]:
    """`differences` of a database file that no daemon of this process has open, read-only."""
    with reading(path) as connection:
        return differences(connection, evolve)


def differences(connection: sqlite3.Connection, evolve: Evolve) -> list[str]:
    """What tables, bases and log say differently, a line each; none is the sound case. One consistent read."""
    connection.execute("BEGIN")
    try:
        found: list[str] = []
        for (graph_id,) in connection.execute("SELECT id FROM graphs ORDER BY id").fetchall():
            found += _graph_differences(connection, graph_id, evolve)
        return found + _strays(connection)
    finally:
        connection.execute("COMMIT")


def _graph_differences(connection: sqlite3.Connection, graph_id: str, evolve: Evolve) -> list[str]:
    state = State()
    found: list[str] = []
    rev = 0
    first = connection.execute(_FIRST_BASE, (graph_id,)).fetchone()
    if first is not None:
        rev = first[0]
        state.graphs[graph_id] = load_graph(rows.decoded(first[1]))
        derive.rebuild(state.graphs[graph_id])
        derive.rebuild_state(state)
    bases = connection.execute("SELECT rev, doc FROM bases WHERE graph = ? AND rev > ?", (graph_id, rev)).fetchall()
    unseen = {base[0]: base[1] for base in bases}
    query = f"SELECT {rows.EVENT_COLUMNS} FROM events WHERE graph = ? AND rev > ? ORDER BY rev, idx"  # noqa: S608 -- constant
    for row in connection.execute(query, (graph_id, rev)):
        if row[1] != rev and rev in unseen:
            found += _base_differences(state.graphs[graph_id], unseen.pop(rev))
        if row[1] not in (rev, rev + 1):
            found.append(t("{graph}: rev {after} follows rev {rev}", graph=graph_id, after=row[1], rev=rev))
        rev = row[1]
        found += _apply(state, rows.event_of(row), evolve)
    graph = state.graphs.get(graph_id)
    if graph is None:
        return [*found, t("{graph}: its log has no beginning", graph=graph_id)]
    if rev in unseen:
        found += _base_differences(graph, unseen.pop(rev))
    found += [t("{graph}: base at rev {base}, which is not in the log", graph=graph_id, base=base) for base in unseen]
    return found + _table_differences(connection, graph)


def _apply(state: State, event: Event, evolve: Evolve) -> list[str]:
    """Apply an event; a line when it moves its node against the table of the model."""
    graph = state.graphs.get(event.graph)
    node = graph.nodes.get(event.node) if graph is not None and event.node is not None else None
    origin = node.state if node is not None else None
    evolve(state, event)
    if node is None or node.state == origin or (origin, node.state) in NODE_MOVES:
        return []
    return [
        t(
            "{graph}/{rev}.{index}: {kind} moves {node} from {origin} to {state}",
            graph=event.graph,
            rev=event.rev,
            index=event.index,
            kind=event.kind,
            node=node.slug,
            origin=origin,
            state=node.state,
        )
    ]


def _base_differences(graph: Graph, text: str) -> list[str]:
    stored, replayed = dump_graph(load_graph(rows.decoded(text))), dump_graph(graph)
    names = sorted(stored.keys() | replayed.keys())
    return [
        t("{graph}: base at rev {rev} differs in {name}", graph=graph.id, rev=graph.rev, name=name)
        for name in names
        if stored.get(name) != replayed.get(name)
    ]


def _table_differences(connection: sqlite3.Connection, graph: Graph) -> list[str]:
    replayed = {
        "graphs": [rows.graph_row(graph)],
        "nodes": [rows.node_row(graph, node) for node in graph.nodes.values()],
        "attempts": [rows.attempt_row(attempt) for attempt in graph.attempts.values()],
        "asks": [rows.ask_row(graph, ask) for ask in graph.asks.values()],
        "deliveries": [rows.delivery_row(graph, delivery) for delivery in graph.deliveries.values()],
    }
    found: list[str] = []
    for table, query in _TABLES.items():
        width = _KEY_WIDTH[table]
        stored = _by_key(connection.execute(query, (graph.id,)).fetchall(), width, _AGAIN[table])
        wanted = _by_key(replayed[table], width, _AGAIN[table])
        for key in sorted(stored.keys() | wanted.keys()):
            if stored.get(key) != wanted.get(key):
                name = " ".join(str(part) for part in key)
                found.append(
                    t(
                        "{table} {name}: {trouble}",
                        table=table,
                        name=name,
                        trouble=_trouble(stored.get(key), wanted.get(key)),
                    )
                )
    return found


def _by_key(found: Iterable[rows.SqlRow], width: int, again: Callable[[Row], Row]) -> dict[rows.SqlRow, rows.SqlRow]:
    return {row[:width]: (*row[width:-1], again(rows.decoded(row[-1]))) for row in found}


def _trouble(stored: rows.SqlRow | None, wanted: rows.SqlRow | None) -> str:
    if stored is None:
        return t("missing in the table")
    if wanted is None:
        return t("not in the log")
    names = sorted(stored[-1].keys() | wanted[-1].keys())
    fields = [name for name in names if stored[-1].get(name) != wanted[-1].get(name)]
    return t("the log says otherwise in {names}", names=", ".join(fields) or t("a column"))


def _strays(connection: sqlite3.Connection) -> list[str]:
    """Cleared graphs that still have rows."""
    query = "SELECT id FROM graphs WHERE id IN (SELECT graph FROM tombstones)"
    return [t("{graph}: cleared, yet in the tables", graph=graph) for (graph,) in connection.execute(query)]
