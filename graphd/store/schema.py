"""The tables, their guards, and the numbered steps that lead from any earlier schema to this one.

The log (`events` from the newest of `bases` on, and `tombstones`) is the truth. The other tables are written
in the same transaction and can be rebuilt from it (`rebuild`). `events` has no rowid: it is appended per graph and
read in key order. `nodes` and `attempts` have one: their rows are large and are changed in place.

The guards. A batch may move a node several steps, and its row is written once at the end; over several steps
NODE_MOVES reaches every state from every other, so no guard on `nodes` could refuse a jump. Each single move is
checked where it is visible: by the core when it is made, by `rebuild` when the log is replayed. ATTEMPT_MOVES
is closed under composition, so the guard on `attempts`, generated from it, is exact for any batch: settled is
final. Beside these: one unsettled attempt for a node and role (reliability.md R3), revs without gaps (R2), no
change of an event once written, no node row older than the one before, and only states that the model knows.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from graphd.base.failpoints import failpoint
from graphd.store.sqlite import APPLICATION_ID, transaction
from graphd_protocol.states import ATTEMPT_MOVES, ATTEMPT_STATES, GRAPH_STATUSES, NODE_STATES


class Step(NamedTuple):
    """One migration: it leads from schema `version` - 1 to `version`, in one transaction."""

    version: int
    title: str
    statements: tuple[str, ...]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


_TABLES = (
    """CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1), store TEXT NOT NULL, created_at INTEGER NOT NULL,
        epoch INTEGER NOT NULL, commits INTEGER NOT NULL, is_clean INTEGER NOT NULL,
        workspace TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, boot_id TEXT NOT NULL)""",
    """CREATE TABLE starts (
        epoch INTEGER PRIMARY KEY, at INTEGER NOT NULL, version TEXT NOT NULL, pid INTEGER NOT NULL)""",
    f"""CREATE TABLE graphs (
        id TEXT PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ({_listed(GRAPH_STATUSES)})),
        rev INTEGER NOT NULL, owner TEXT, title TEXT NOT NULL, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, header TEXT NOT NULL)""",
    f"""CREATE TABLE nodes (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, id TEXT NOT NULL, slug TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ({_listed(NODE_STATES)})), changed_at INTEGER NOT NULL,
        doc TEXT NOT NULL, PRIMARY KEY (graph, id))""",
    f"""CREATE TABLE attempts (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, node TEXT NOT NULL, role TEXT NOT NULL,
        number INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ({_listed(ATTEMPT_STATES)})),
        doc TEXT NOT NULL, PRIMARY KEY (graph, node, role, number))""",
    """CREATE UNIQUE INDEX attempts_unsettled ON attempts (graph, node, role) WHERE state <> 'settled'""",
    """CREATE TABLE asks (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, id TEXT NOT NULL, state TEXT NOT NULL,
        doc TEXT NOT NULL, PRIMARY KEY (graph, id))""",
    """CREATE TABLE deliveries (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, id TEXT NOT NULL, owner TEXT NOT NULL,
        is_acknowledged INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (graph, id))""",
    """CREATE TABLE events (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, rev INTEGER NOT NULL, idx INTEGER NOT NULL,
        at INTEGER NOT NULL, kind TEXT NOT NULL, node TEXT, payload TEXT NOT NULL, actor TEXT NOT NULL,
        PRIMARY KEY (graph, rev, idx)) WITHOUT ROWID""",
    """CREATE TABLE bases (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, rev INTEGER NOT NULL, doc TEXT NOT NULL,
        PRIMARY KEY (graph, rev))""",
    """CREATE TABLE tombstones (graph TEXT PRIMARY KEY, rev INTEGER NOT NULL, at INTEGER NOT NULL)""",
    """CREATE TABLE requests (
        scope TEXT NOT NULL, request_id TEXT NOT NULL, fingerprint TEXT NOT NULL, result TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (scope, request_id))""",
)

_ALLOWED_MOVE = " OR ".join(
    f"(OLD.state = '{source}' AND NEW.state IN ({_listed(targets)}))"
    for source, targets in ATTEMPT_MOVES.items()
    if targets
)

_GUARDS = (
    f"""CREATE TRIGGER attempts_move BEFORE UPDATE OF state ON attempts
        WHEN OLD.state <> NEW.state AND NOT ({_ALLOWED_MOVE})
        BEGIN SELECT RAISE(ABORT, 'an attempt may not move like this'); END""",
    """CREATE TRIGGER nodes_forward BEFORE UPDATE OF changed_at ON nodes WHEN NEW.changed_at < OLD.changed_at
        BEGIN SELECT RAISE(ABORT, 'a node may not go back to an earlier rev'); END""",
    """CREATE TRIGGER events_final BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'an event may not change'); END""",
    """CREATE TRIGGER events_next_rev BEFORE INSERT ON events
        WHEN NEW.idx = 0 AND NEW.rev <> 1 + coalesce(
            (SELECT max(rev) FROM events WHERE graph = NEW.graph),
            (SELECT max(rev) FROM bases WHERE graph = NEW.graph), 0)
        BEGIN SELECT RAISE(ABORT, 'a rev must follow the one before'); END""",
    """CREATE TRIGGER events_next_index BEFORE INSERT ON events
        WHEN NEW.idx > 0 AND NOT EXISTS (
            SELECT 1 FROM events WHERE graph = NEW.graph AND rev = NEW.rev AND idx = NEW.idx - 1)
        BEGIN SELECT RAISE(ABORT, 'an event must follow the one before'); END""",
)

_TALKS = (
    """CREATE TABLE talks (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, node TEXT NOT NULL, role TEXT NOT NULL,
        number INTEGER NOT NULL, offset INTEGER NOT NULL, idx INTEGER NOT NULL, next_seq INTEGER NOT NULL,
        PRIMARY KEY (graph, node, role, number)) WITHOUT ROWID""",
    """CREATE TABLE outbox (
        graph TEXT NOT NULL REFERENCES graphs (id) ON DELETE CASCADE, node TEXT NOT NULL, role TEXT NOT NULL,
        number INTEGER NOT NULL, seq INTEGER NOT NULL, line TEXT NOT NULL,
        PRIMARY KEY (graph, node, role, number, seq))""",
    """CREATE TRIGGER talks_forward BEFORE UPDATE ON talks
        WHEN NEW.next_seq < OLD.next_seq OR (NEW.offset, NEW.idx) < (OLD.offset, OLD.idx)
        BEGIN SELECT RAISE(ABORT, 'a talk may not go back'); END""",
    """CREATE TRIGGER outbox_final BEFORE UPDATE ON outbox
        BEGIN SELECT RAISE(ABORT, 'a line may not change'); END""",
)

_USAGE = (
    # What the attempt said that it used so far: totals, null where it said nothing.
    "ALTER TABLE talks ADD COLUMN tokens INTEGER",
    "ALTER TABLE talks ADD COLUMN cost_usd REAL",
)

STEPS: Final = (
    Step(1, "tables", _TABLES),
    Step(2, "guards", _GUARDS),
    Step(3, "talks", _TALKS),
    Step(4, "usage", _USAGE),
)
VERSION: Final = STEPS[-1].version


def migrate(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Apply the steps that the database lacks, each whole or not at all. Safe to be killed anywhere."""
    for step in steps:
        if step.version <= version_of(connection):
            continue
        with transaction(connection):
            for statement in step.statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {step.version}")
            failpoint("store.migrate.before")
            connection.execute("COMMIT")
            failpoint("store.migrate.after")


def version_of(connection: sqlite3.Connection) -> int:
    """The schema that the database has; 0 is none yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
