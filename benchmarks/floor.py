"""The floor: a minimal durable scheduler, asyncio and SQLite alone. A yardstick, not a product.

Three transitions a node (ready, running, done), each an UPDATE of the node and an INSERT of an event. All transitions
that are known at one moment share one transaction and one thread hop; a node starts only after its `running` row is
committed. No retries, no cancel, no clients, no supervision: what this design costs in Python before any of these.

usage: python -m benchmarks.floor WORKLOAD SIZE FOLDER [--payload noop|true|python] [--concurrency N] [--resume]
"""

import argparse
import asyncio
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import aiosqlite

from benchmarks.machine import cpu_s, mark, peak_mb
from benchmarks.processes import PAYLOADS, emit
from benchmarks.workloads import graph

UPDATE = "UPDATE nodes SET state=?,rev=?,ts=? WHERE id=?"
INSERT = "INSERT INTO events(rev,node,kind,ts,data) VALUES(?,?,?,?,'{}')"
TABLES = """CREATE TABLE nodes(id INTEGER PRIMARY KEY,state TEXT,rev INT,ts REAL,title TEXT);
CREATE TABLE deps(node INT,dep INT,PRIMARY KEY(node,dep)) WITHOUT ROWID;
CREATE TABLE events(rev INTEGER PRIMARY KEY,node INT,kind TEXT,ts REAL,data TEXT);"""

Row = tuple[str, int, float, int]
T = TypeVar("T")


class Floor:
    """One run of one graph."""

    def __init__(self, db: aiosqlite.Connection, payload: str, concurrency: int) -> None:
        self._db = db
        self._command = PAYLOADS[payload]
        self._concurrency = concurrency
        self._finished: list[int] = []
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._outs: dict[int, list[int]] = {}
        self._unmet: dict[int, int] = {}
        self._live = 0
        self._rev = 0
        self.commits = 0
        self.transitions = 0

    async def hop(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """One hop to the connection's thread."""
        result: T = await self._db._execute(work, self._db._conn)  # type: ignore[no-untyped-call]
        return result

    async def load(self) -> None:
        """Read what is stored: what runs or is ready goes first."""

        def read(connection: sqlite3.Connection) -> tuple[list[tuple[int, str]], list[tuple[int, int]], int]:
            return (
                connection.execute("SELECT id,state FROM nodes").fetchall(),
                connection.execute("SELECT node,dep FROM deps").fetchall(),
                connection.execute("SELECT coalesce(max(rev),0) FROM events").fetchone()[0],
            )

        rows, edges, self._rev = await self.hop(read)
        state = dict(rows)
        self._outs = {node: [] for node in state}
        self._unmet = dict.fromkeys(state, 0)
        for node, need in edges:
            self._outs[need].append(node)
            self._unmet[node] += state[need] != "done"
        self.todo = sum(word != "done" for word in state.values())
        self._ready = [node for node, word in state.items() if word in ("ready", "running")]
        self._newly = [node for node, word in state.items() if word == "pending" and not self._unmet[node]]

    async def run(self) -> None:
        """To the end."""
        self._wake.set()
        while self.todo:
            await self._wake.wait()
            self._wake.clear()
            rows, starts = self._decide(time.time())
            if not rows:
                continue
            self.transitions += len(rows)
            await self.hop(partial(write, rows))
            self.commits += 1
            for node in starts:
                task = asyncio.create_task(self._body(node))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _decide(self, now: float) -> tuple[list[Row], list[int]]:
        rows: list[Row] = []

        def move(node: int, state: str) -> None:
            self._rev += 1
            rows.append((state, self._rev, now, node))

        finished, self._finished = self._finished, []
        for node in finished:
            move(node, "done")
            for out in self._outs[node]:
                self._unmet[out] -= 1
                if not self._unmet[out]:
                    self._newly.append(out)
        self._live -= len(finished)
        self.todo -= len(finished)
        for node in self._newly:
            move(node, "ready")
        self._ready += self._newly
        self._newly = []
        free = self._concurrency - self._live
        starts, self._ready = self._ready[:free], self._ready[free:]
        for node in starts:
            move(node, "running")
        self._live += len(starts)
        return rows, starts

    async def _body(self, node: int) -> None:
        mark(node)
        if self._command:
            process = await asyncio.create_subprocess_exec(*self._command)
            await process.wait()
        self._finished.append(node)
        self._wake.set()


def write(rows: list[Row], connection: sqlite3.Connection) -> None:
    """One transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for state, rev, now, node in rows:
        connection.execute(UPDATE, (state, rev, now, node))
        connection.execute(INSERT, (rev, node, state, now))
    connection.execute("COMMIT")


def fill(connection: sqlite3.Connection, workload: str, size: int) -> None:
    """Make the tables and the graph."""
    nodes = graph(workload, size)
    connection.executescript(TABLES)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO nodes VALUES(?,'pending',0,0,?)", [(n, f"node {n}") for n in nodes])
    connection.executemany("INSERT INTO deps VALUES(?,?)", [(n, need) for n, needs in nodes.items() for need in needs])
    connection.execute("COMMIT")


async def main() -> None:
    """Run one workload and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("size", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--payload", default="noop", choices=PAYLOADS)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    path = given.folder / "floor.db"
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA journal_mode=WAL")
        await db.execute("PRAGMA synchronous=FULL")
        begun = time.perf_counter()
        floor = Floor(db, given.payload, given.concurrency)
        if not given.resume:
            await floor.hop(lambda connection: fill(connection, given.workload, given.size))
        await floor.load()
        nodes, cpu, start = floor.todo, cpu_s(), time.perf_counter()
        await floor.run()
        wall_s, used_s = time.perf_counter() - start, cpu_s() - cpu
    emit(
        wall_s=wall_s, cpu_s=used_s, run_s=start + wall_s - begun, nodes=nodes, commits=floor.commits,
        transitions=floor.transitions, peak_mb=peak_mb(), db_bytes=path.stat().st_size,
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
