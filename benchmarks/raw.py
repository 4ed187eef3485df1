"""Raw SQLite loops: one thread, no scheduler, WAL and FULL. What the transitions of a chain cost by themselves.

`transitions` commits what the floor commits for a chain: a transaction a node with done(i-1), ready(i), running(i),
each an UPDATE and an INSERT. `replay` commits the very rows that graphd committed in a recorded run, through
graphd's own tables and guards.

usage: python -m benchmarks.raw transitions|replay SIZE FOLDER [--rows FILE]
"""

import argparse
import pickle
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.floor import INSERT, TABLES, UPDATE
from benchmarks.machine import cpu_s
from benchmarks.processes import emit
from graphd.store.schema import migrate
from graphd.store.sqlite import _set_up

Statements = list[tuple[str, list[tuple[Any, ...]]]]
META = "INSERT INTO meta VALUES (1, 'raw', 0, 1, 0, 0, '', 0, 0, '')"


def transitions(connection: sqlite3.Connection, size: int) -> Callable[[], int]:
    """Make the floor's tables; returns the loop to be measured."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(TABLES)
    connection.executemany("INSERT INTO nodes VALUES(?,'pending',0,0,'x')", [(node,) for node in range(size)])

    def loop() -> int:
        rev = 0
        for node in range(size):
            connection.execute("BEGIN IMMEDIATE")
            for state, moved in (("done", max(0, node - 1)), ("ready", node), ("running", node)):
                rev += 1
                connection.execute(UPDATE, (state, rev, 1.0, moved))
                connection.execute(INSERT, (rev, moved, state, 1.0))
            connection.execute("COMMIT")
        return size

    return loop


def replay(connection: sqlite3.Connection, recorded: Path) -> Callable[[], int]:
    """Make graphd's tables and its graph; returns the loop over the commits after the one that set it."""
    _set_up(connection)
    migrate(connection)
    connection.execute(META)
    batches = list(_recorded(recorded))

    def commit(batch: Statements) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE meta SET commits = commits + 1 WHERE epoch = ?", (1,))
        for statement, values in batch:
            connection.executemany(statement, values)
        connection.execute("COMMIT")

    commit(batches[0])

    def loop() -> int:
        for batch in batches[1:]:
            commit(batch)
        return len(batches) - 1

    return loop


def _recorded(path: Path) -> Iterator[Statements]:
    with path.open("rb") as source:
        while True:
            try:
                yield pickle.load(source)
            except EOFError:
                return


def main() -> None:
    """Run one loop and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("loop", choices=("transitions", "replay"))
    parser.add_argument("size", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=Path)
    given = parser.parse_args()
    connection = sqlite3.connect(given.folder / "raw.db", isolation_level=None)
    loop = transitions(connection, given.size) if given.loop == "transitions" else replay(connection, given.rows)
    cpu, start = cpu_s(), time.perf_counter()
    commits = loop()
    emit(wall_s=time.perf_counter() - start, cpu_s=cpu_s() - cpu, nodes=given.size, commits=commits)
    connection.close()


if __name__ == "__main__":
    main()
