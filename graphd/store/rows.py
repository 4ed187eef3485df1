"""Core values as table rows and back. Rows are made on the loop's thread: no other thread may read core state."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from graphd.core.codec import (
    dump_actor,
    dump_ask,
    dump_attempt,
    dump_delivery,
    dump_header,
    dump_node,
    dump_parts,
    load_actor,
)
from graphd.core.events import Actor, AttemptKey, Event
from graphd.core.model import Ask, Attempt, Delivery, Graph, Node

SqlRow: TypeAlias = tuple[Any, ...]

INSERT_EVENT = "INSERT INTO events (graph, rev, idx, at, kind, node, payload, actor) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
UPSERT_GRAPH = """INSERT INTO graphs (id, status, rev, owner, title, created_at, updated_at, header)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET status = excluded.status, rev = excluded.rev,
    owner = excluded.owner, title = excluded.title, updated_at = excluded.updated_at, header = excluded.header"""
UPSERT_NODE = """INSERT INTO nodes (graph, id, slug, state, changed_at, doc) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (graph, id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at,
    doc = excluded.doc"""
UPSERT_ATTEMPT = """INSERT INTO attempts (graph, node, role, number, state, doc) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (graph, node, role, number) DO UPDATE SET state = excluded.state, doc = excluded.doc"""
UPSERT_ASK = """INSERT INTO asks (graph, id, state, doc) VALUES (?, ?, ?, ?)
    ON CONFLICT (graph, id) DO UPDATE SET state = excluded.state, doc = excluded.doc"""
UPSERT_DELIVERY = """INSERT INTO deliveries (graph, id, owner, is_acknowledged, doc) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (graph, id) DO UPDATE SET is_acknowledged = excluded.is_acknowledged, doc = excluded.doc"""
EVENT_COLUMNS = "events.graph, events.rev, idx, at, kind, node, payload, actor"


def encoded(value: Any) -> str:
    """JSON text. Integers beyond 64 bits and lone surrogates (a file name that is not UTF-8) take the slow way."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"))


def decoded(text: str) -> Any:
    """The inverse of `encoded`. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


@lru_cache(maxsize=256)
def _actor_text(actor: Actor) -> str:
    return encoded(dump_actor(actor))


@lru_cache(maxsize=256)
def _actor(text: str) -> Actor:
    return load_actor(decoded(text))


def event_row(event: Event) -> SqlRow:
    """For `INSERT_EVENT`."""
    payload = encoded(event.payload) if event.payload else "{}"
    actor = _actor_text(event.actor)
    return (event.graph, event.rev, event.index, event.at, event.kind, event.node, payload, actor)


def event_of(row: SqlRow) -> Event:
    """The event of a row of `EVENT_COLUMNS`. Raises ValueError, TypeError."""
    graph, rev, index, at, kind, node, payload, actor = row
    return Event(graph, rev, index, at, kind, node, decoded(payload), _actor(actor))


def graph_row(graph: Graph) -> SqlRow:
    """For `UPSERT_GRAPH`."""
    return (
        graph.id, graph.status, graph.rev, graph.owner, graph.title, graph.created_at, graph.updated_at,
        encoded(dump_header(graph)),
    )  # fmt: skip


def base_text(graph: Graph) -> str:
    """The JSON of `dump_graph`, put together row by row."""
    parts = [f',"{name}":[{",".join(map(encoded, rows))}]' for name, rows in dump_parts(graph)]
    return f"{encoded(dump_header(graph))[:-1]}{''.join(parts)}}}"


def node_row(graph: Graph, node: Node) -> SqlRow:
    """For `UPSERT_NODE`."""
    return (graph.id, node.id, node.slug, node.state, node.changed_at, encoded(dump_node(node)))


def attempt_row(attempt: Attempt) -> SqlRow:
    """For `UPSERT_ATTEMPT`."""
    doc = encoded(dump_attempt(attempt))
    return (attempt.graph, attempt.node, attempt.role, attempt.number, attempt.state, doc)


def ask_row(graph: Graph, ask: Ask) -> SqlRow:
    """For `UPSERT_ASK`."""
    return (graph.id, ask.id, ask.state, encoded(dump_ask(ask)))


def delivery_row(graph: Graph, delivery: Delivery) -> SqlRow:
    """For `UPSERT_DELIVERY`."""
    doc = encoded(dump_delivery(delivery))
    return (graph.id, delivery.id, delivery.owner, int(delivery.is_acknowledged), doc)


def touched_rows(graph: Graph, events: Iterable[Event]) -> list[tuple[str, list[SqlRow]]]:
    """All rows of a graph, beside its own, that these events changed, by the statement that stores them."""
    touched = _Touched(events)
    nodes: Iterable[str] = graph.nodes if touched.is_whole_plan else touched.nodes
    moved = touched.attempts | graph.live if touched.has_slept else touched.attempts
    # By number: an attempt settles before the next one of its node starts, as the schema's guard wants it.
    attempts = sorted(moved, key=lambda key: key[2])
    return [
        (UPSERT_NODE, [node_row(graph, graph.nodes[node]) for node in nodes]),
        (UPSERT_ATTEMPT, [attempt_row(graph.attempts[key]) for key in attempts]),
        (UPSERT_ASK, [ask_row(graph, graph.asks[ask]) for ask in touched.asks]),
        (UPSERT_DELIVERY, [delivery_row(graph, graph.deliveries[key]) for key in touched.deliveries]),
    ]


class _Touched:
    """What the events of one graph changed beside its header: nodes, attempts, asks and deliveries.

    By the payloads that `evolve` reads: events of an attempt carry `role` and `number`, those of an ask `ask` (the
    opening one `id`), delivery events `id` or `deliveries`.
    """

    __slots__ = ("asks", "attempts", "deliveries", "has_slept", "is_whole_plan", "nodes")

    def __init__(self, events: Iterable[Event]) -> None:
        self.is_whole_plan = False  # all nodes are new: the event that installs them names none
        self.has_slept = False  # the clocks of all attempts that live were moved
        self.nodes: dict[str, None] = {}
        self.attempts: dict[AttemptKey, None] = {}
        self.asks: dict[str, None] = {}
        self.deliveries: dict[str, None] = {}
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        payload = event.payload
        if event.node is not None:
            self.nodes[event.node] = None
            if "number" in payload and "role" in payload:
                self.attempts[(event.node, payload["role"], payload["number"])] = None
        if event.kind == "plan_installed":
            self.is_whole_plan = True
        elif event.kind == "machine_slept":
            self.has_slept = True
        elif event.kind == "ask_opened":
            self.asks[payload["id"]] = None
        elif "ask" in payload:
            self.asks[payload["ask"]] = None
        elif event.kind == "delivery_created":
            self.deliveries[payload["id"]] = None
        elif event.kind == "delivery_acknowledged":
            self.deliveries.update(dict.fromkeys(payload["deliveries"]))
