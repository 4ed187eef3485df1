"""SQLite as we use it: one thread hop for a whole transaction, explicit BEGIN and COMMIT, pragmas, read-only opening.

aiosqlite has no public call that runs a function on its thread; statement by statement it costs four hops a
transaction and lets other tasks' statements between (reliability.md §2.2). So its private `_execute`, `_conn` and
`_thread` are used here and nowhere else; the version is pinned in pyproject.toml, and
tests/sim/test_store_contract.py holds it to that use.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import aiosqlite

T = TypeVar("T")

APPLICATION_ID: Final = 0x67726664  # "grfd"
BUSY_TIMEOUT_S: Final = 5.0


async def hop(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` on the connection's own thread. A cancelled caller does not stop it: the work is done all the same."""
    result: T = await connection._execute(work, connection._conn)  # type: ignore[no-untyped-call]  # no public way
    return result


async def connect_writer(path: Path) -> aiosqlite.Connection:
    """Open for reading and writing, in autocommit mode, with the pragmas that every promise rests on."""
    connection = await _opened(aiosqlite.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S))
    try:
        await hop(connection, _set_up)
    except BaseException:
        await connection.close()
        raise
    return connection


async def connect_reader(path: Path) -> aiosqlite.Connection:
    """Open read-only, for history: it sees committed state alone and never waits for the writer."""
    return await _opened(
        aiosqlite.connect(_read_only_uri(path), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    )


async def _opened(connection: aiosqlite.Connection) -> aiosqlite.Connection:
    """Open it, on a thread that does not keep a failing process from its end: SQLite is safe against that."""
    connection._thread.daemon = True
    return await connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection in this thread: it neither recovers into the database nor checkpoints it."""
    connection = sqlite3.connect(_read_only_uri(path), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE, and ROLLBACK of whatever the body leaves open. The body itself says COMMIT."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        if connection.in_transaction:  # on a full disk SQLite has rolled back already; ROLLBACK would raise
            connection.execute("ROLLBACK")


def _set_up(connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise sqlite3.OperationalError(f"the journal mode is {mode}, it can't be WAL here")
    for pragma in (
        "synchronous = FULL",
        f"busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}",
        "foreign_keys = ON",
        "wal_autocheckpoint = 1000",
        f"journal_size_limit = {64 * 1024 * 1024}",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _read_only_uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"
