"""What the store uses of aiosqlite beyond its documentation, and the order that `hop` promises."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from graphd.store.sqlite import connect_reader, connect_writer, hop, transaction


async def test_a_hop_runs_on_the_one_thread_of_the_connection_with_the_raw_connection(tmp_path: Path) -> None:
    writer = await connect_writer(tmp_path / "a.db")
    try:
        threads = {await hop(writer, lambda raw: threading.current_thread()) for _ in range(3)}
        assert len(threads) == 1
        assert next(iter(threads)).daemon  # a process that fails ends, with a connection left open or not
        assert threading.current_thread() not in threads
        assert await hop(writer, type) is sqlite3.Connection
    finally:
        await writer.close()


async def test_hops_run_whole_and_in_order_whatever_their_callers_do(tmp_path: Path) -> None:
    writer = await connect_writer(tmp_path / "a.db")
    try:
        await hop(writer, lambda raw: raw.execute("CREATE TABLE t (a)"))

        def insert(raw: sqlite3.Connection, value: int) -> None:
            with transaction(raw):
                raw.execute("INSERT INTO t VALUES (?)", (value,))
                raw.execute("COMMIT")

        tasks = [asyncio.create_task(hop(writer, lambda raw, v=v: insert(raw, v))) for v in range(50)]  # type: ignore[misc]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        found = await hop(writer, lambda raw: raw.execute("SELECT a FROM t").fetchall())
        assert found == [(value,) for value in range(50)]  # cancelled is not undone
    finally:
        await writer.close()


async def test_an_error_in_a_hop_reaches_its_caller_alone_and_leaves_no_transaction(tmp_path: Path) -> None:
    writer = await connect_writer(tmp_path / "a.db")

    def fail(raw: sqlite3.Connection) -> None:
        with transaction(raw):
            raw.execute("CREATE TABLE t (a)")
            raise RuntimeError("no")

    try:
        with pytest.raises(RuntimeError):
            await hop(writer, fail)
        assert await hop(writer, lambda raw: raw.in_transaction) is False
        assert await hop(writer, lambda raw: raw.execute("SELECT * FROM sqlite_master").fetchall()) == []
    finally:
        await writer.close()


async def test_the_pragmas_are_those_that_the_promises_rest_on(tmp_path: Path) -> None:
    writer = await connect_writer(tmp_path / "a.db")
    reader = await connect_reader(tmp_path / "a.db")
    wanted = {
        "journal_mode": "wal", "synchronous": 2, "busy_timeout": 5000, "foreign_keys": 1, "wal_autocheckpoint": 1000,
        "journal_size_limit": 64 * 1024 * 1024, "temp_store": 2,
    }  # fmt: skip
    try:
        for name, value in wanted.items():
            found = await hop(writer, lambda raw, name=name: raw.execute(f"PRAGMA {name}").fetchone()[0])  # type: ignore[misc]
            assert (name, found) == (name, value)
        assert await hop(writer, lambda raw: raw.isolation_level) is None
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await hop(reader, lambda raw: raw.execute("CREATE TABLE t (a)"))
    finally:
        await reader.close()
        await writer.close()
