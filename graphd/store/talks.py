"""The talk with agents, durable: how far each journal was read, what its agent said that it used, and every line that
its keeper may not have yet.

No part of the log: a line is a consequence of what was decided, kept because the daemon that decided it may die before
it is sent. Rows go when the journal shows their lines, and with the settlement. Source: execution.md, Exactly once.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

from graphd.core.events import AttemptKey, Change
from graphd.core.model import Spent, State, Talking
from graphd.core.talk import Posted

Place = tuple[str, AttemptKey]

_UPSERT_TALK = """INSERT INTO talks (graph, node, role, number, offset, idx, next_seq, tokens, cost_usd)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (graph, node, role, number) DO UPDATE SET offset = excluded.offset, idx = excluded.idx,
    next_seq = excluded.next_seq, tokens = excluded.tokens, cost_usd = excluded.cost_usd"""
_INSERT_LINE = "INSERT INTO outbox (graph, node, role, number, seq, line) VALUES (?, ?, ?, ?, ?, ?)"
_OF_ATTEMPT = "graph = ? AND node = ? AND role = ? AND number = ?"
_DROP_HEARD = f"DELETE FROM outbox WHERE {_OF_ATTEMPT} AND seq < ?"  # noqa: S608 -- our own words
_DROP_TALK = f"DELETE FROM talks WHERE {_OF_ATTEMPT}"  # noqa: S608 -- our own words
_DROP_LINES = f"DELETE FROM outbox WHERE {_OF_ATTEMPT}"  # noqa: S608 -- our own words

Statements = list[tuple[str, list[tuple[Any, ...]]]]


def statements(posted: Iterable[Posted], changes: Iterable[Change], state: State) -> Statements:
    """What a batch writes: new lines, the talks' standing, and nothing more of attempts that it settled."""
    lines, heard, places = [], [], {}
    for post in posted:
        key = (post.graph, *post.attempt)
        lines += [(*key, seq, line) for seq, line in post.rows]
        heard.append((*key, post.heard))
        place = (post.graph, post.attempt)
        places[key] = (state.talks.get(place), state.used.get(place))
    talks = [
        (*key, *now.cursor, now.next_seq, *((used.tokens, used.cost_usd) if used is not None else (None, None)))
        for key, (now, used) in places.items()
        if now is not None
    ]
    settled = [
        (change.graph, event.node, event.payload["role"], event.payload["number"])
        for change in changes
        for event in change.events
        if event.kind == "attempt_settled"
    ]
    return [
        (_UPSERT_TALK, talks), (_INSERT_LINE, lines), (_DROP_HEARD, heard), (_DROP_TALK, settled),
        (_DROP_LINES, settled),
    ]  # fmt: skip


def load_talks(connection: sqlite3.Connection) -> dict[Place, Talking]:
    """How far every journal was read."""
    found = connection.execute("SELECT graph, node, role, number, offset, idx, next_seq FROM talks")
    return {(row[0], (row[1], row[2], row[3])): Talking((row[4], row[5]), row[6]) for row in found}


def load_used(connection: sqlite3.Connection) -> dict[Place, Spent]:
    """What live attempts said that they used; a cost that they don't say is unknown."""
    query = "SELECT graph, node, role, number, tokens, cost_usd FROM talks WHERE tokens IS NOT NULL"
    return {(row[0], (row[1], row[2], row[3])): Spent(row[4], row[5]) for row in connection.execute(query)}


def load_lines(connection: sqlite3.Connection) -> dict[Place, list[tuple[int, str]]]:
    """Every line that a keeper may lack, in order."""
    lines: dict[Place, list[tuple[int, str]]] = {}
    query = "SELECT graph, node, role, number, seq, line FROM outbox ORDER BY graph, node, role, number, seq"
    for graph, node, role, number, seq, line in connection.execute(query):
        lines.setdefault((graph, (node, role, number)), []).append((seq, line))
    return lines
