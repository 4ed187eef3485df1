"""Faults of disk and neighbours: full at every write, unwritable, locked by others, the journal cut anywhere."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphd.base import failpoints
from graphd.base.clock import SystemClock
from graphd.core.commands import Command
from graphd.store.database import Database
from graphd.store.log import Log
from graphd.store.rebuild import differences, differences_in
from graphd.store.refusals import StoreUnavailable
from tests.data.store.workload import Workload, apply, close_database, open_database, plan


async def pages(database: Database) -> int:
    return await database.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))


async def allow(database: Database, limit: int) -> None:
    await database.write(lambda c: c.execute(f"PRAGMA max_page_count = {limit}").fetchall())


async def sound(database: Database) -> list[str]:
    return await database.read(lambda connection: differences(connection, apply))


async def test_a_disk_full_at_any_write_loses_nothing_and_takes_nothing_half(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 3))
    start = await pages(database)
    refused = 0
    while True:
        await allow(database, start + refused)
        try:
            await workload.batch(plan("big", 60, spec="x" * 2000))
        except StoreUnavailable as trouble:
            refused += 1
            assert (trouble.kind, database.health) == ("full", "full")  # noqa: PT017 -- it may also succeed
            assert list(workload.state.graphs) == ["a"]
            assert await database.read(lambda c: c.execute("SELECT id FROM graphs").fetchall()) == [("a",)]
            assert await sound(database) == []
            continue
        break
    assert refused > 20
    assert database.health == "ok"
    await allow(database, 1_000_000)
    await workload.finish("a")
    assert list((await Log(database, clock=SystemClock()).load(apply)).graphs) == ["a", "big"]
    assert await sound(database) == []
    await close_database(database)


async def test_health_heals_by_a_probe_once_there_is_space(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await allow(database, await pages(database))
    with pytest.raises(StoreUnavailable):
        await workload.batch(plan("big", 60, spec="x" * 2000))
    assert database.health == "full"
    await allow(database, 1_000_000)
    assert await database.probe() == "ok"
    await close_database(database)


async def test_a_database_that_may_not_be_written_is_read_only_until_it_may(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))
    await database.write(lambda c: c.execute("PRAGMA query_only = ON").fetchall())
    with pytest.raises(StoreUnavailable) as refusal:
        await workload.batch(plan("b", 2))
    assert refusal.value.kind == "readOnly"
    assert await database.probe() == "readOnly"
    assert (await workload.log.history("a")).events != []
    await database.write(lambda c: c.execute("PRAGMA query_only = OFF").fetchall())
    await workload.batch(plan("b", 2))
    assert database.health == "ok"
    await close_database(database)


@pytest.fixture
def hook() -> Iterator[None]:
    yield
    failpoints.hook_in(None)


@pytest.mark.usefixtures("hook")
async def test_an_error_at_the_commit_takes_the_batch_back_and_the_next_goes_through(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)

    def fail(name: str) -> None:
        if name == "store.commit.before":
            raise OSError(5, "Input/output error")

    failpoints.hook_in(fail)
    with pytest.raises(StoreUnavailable, match="Input/output error"):
        await workload.batch(plan("a", 2))
    failpoints.hook_in(None)
    assert workload.state.graphs == {}
    await workload.batch(plan("a", 2))
    assert await sound(database) == []
    await close_database(database)


async def test_a_cancelled_caller_does_not_take_a_commit_back(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    task = asyncio.create_task(workload.batch(plan("a", 50)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.write(lambda c: None)  # the queue behind it is drained
    assert list((await Log(database, clock=SystemClock()).load(apply)).graphs) == ["a"]
    await close_database(database)


async def test_a_foreign_writer_is_waited_for(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    foreign = sqlite3.connect(tmp_path / "state" / "graph.db", isolation_level=None)
    foreign.execute("BEGIN EXCLUSIVE")
    commit = asyncio.create_task(workload.batch(plan("a", 2)))
    lags = []
    for _ in range(10):  # the loop goes on meanwhile
        start = time.monotonic()
        await asyncio.sleep(0.02)
        lags.append(time.monotonic() - start)
    assert not commit.done()
    assert (await workload.log.history("a")).events == []  # reads pass it
    foreign.execute("COMMIT")
    await commit
    assert sorted(lags)[5] < 0.2
    foreign.close()
    await close_database(database)


async def test_a_foreign_writer_that_stays_is_a_named_refusal(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await database.write(lambda c: c.execute("PRAGMA busy_timeout = 100").fetchall())
    foreign = sqlite3.connect(tmp_path / "state" / "graph.db", isolation_level=None)
    foreign.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable) as refusal:
        await workload.batch(plan("a", 2))
    assert refusal.value.kind == "busy"
    assert database.health == "ok"
    foreign.execute("ROLLBACK")
    foreign.close()
    await workload.batch(plan("a", 2))
    await close_database(database)


async def test_a_foreign_reader_holds_up_neither_commits_nor_checkpoints(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 5))
    foreign = sqlite3.connect(tmp_path / "state" / "graph.db", isolation_level=None)
    foreign.execute("BEGIN")
    foreign.execute("SELECT count(*) FROM events").fetchone()
    await database.write(lambda c: c.execute("PRAGMA busy_timeout = 100").fetchall())
    await workload.finish("a")
    await database.checkpoint()
    await workload.batch(plan("b", 5))
    foreign.execute("COMMIT")
    foreign.close()
    assert await sound(database) == []
    await close_database(database)


def run_workload(folder: Path, batches: int, *words: str) -> list[tuple[str, int]]:
    """Run the script to its end; what it acknowledged."""
    acknowledged = folder / "acknowledged"
    command = [sys.executable, "-m", "tests.data.store.workload", str(folder), str(acknowledged), str(batches), *words]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    return [(line.split()[0], int(line.split()[1])) for line in acknowledged.read_text().splitlines()]


def revs(path: Path) -> dict[str, int]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # the copy is thrown away
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'graphs'").fetchone():
            return {}
        return dict(connection.execute("SELECT id, rev FROM graphs").fetchall())
    finally:
        connection.close()


def test_a_journal_cut_anywhere_leaves_a_prefix_of_the_commits(tmp_path: Path) -> None:
    """A power cut: every frame of the journal, the middle of every frame, one byte turned over in every frame."""
    acknowledged = run_workload(tmp_path, 16, "die")
    source = tmp_path / "state"
    journal = (source / "graph.db-wal").read_bytes()
    frame = 24 + 4096
    frames = (len(journal) - 32) // frame
    assert frames > 60
    prefixes: list[dict[str, int]] = [{}] + [dict(acknowledged[:n]) for n in range(1, len(acknowledged) + 1)]
    seen: set[str] = set()
    last = -1
    for number in range(frames + 1):
        end = 32 + number * frame
        flipped = bytearray(journal)
        flipped[min(end + 900, len(journal) - 1)] ^= 0x10
        position = -1
        for content in (journal[:end], journal[: end + frame // 2], bytes(flipped)):
            folder = tmp_path / "cut"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            shutil.copy(source / "graph.db", folder)
            (folder / "graph.db-wal").write_bytes(content)
            found = revs(folder / "graph.db")
            assert found in prefixes, f"frame {number}"
            position = max(position, prefixes.index(found))
            if str(found) not in seen:
                seen.add(str(found))
                assert not found or differences_in(folder / "graph.db", apply) == []
        assert position >= last  # the longer the journal, the more of it
        last = position
    assert len(seen) > 10
    assert revs(source / "graph.db") == prefixes[-1]


async def test_a_missing_index_file_is_made_again(tmp_path: Path) -> None:
    acknowledged = run_workload(tmp_path, 6, "die")
    (tmp_path / "state" / "graph.db-shm").unlink()
    database = await open_database(tmp_path)
    assert not database.was_clean
    state = await Log(database, clock=SystemClock()).load(apply)
    assert {name: graph.rev for name, graph in state.graphs.items()} == dict(acknowledged)
    await close_database(database)


async def test_a_journal_that_can_not_grow_at_any_write_counts_as_a_full_disk(tmp_path: Path) -> None:
    """RLIMIT_FSIZE in a process of its own: the limit would hit the test runner."""
    script = """
import asyncio, resource, signal, sys
from pathlib import Path
from graphd.store.refusals import StoreUnavailable
from tests.data.store.workload import Workload, close_database, open_database, plan

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = await open_database(Path(sys.argv[1]))
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))
    journal = database.path.with_name("graph.db-wal")
    limit, refused = journal.stat().st_size, 0
    while True:  # half a frame more each time
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit + refused * 2060, resource.RLIM_INFINITY))
        try:
            await workload.batch(plan("big", 20, spec="x" * 2000))
            break
        except StoreUnavailable as trouble:
            assert (trouble.kind, database.health) == ("full", "full"), trouble
            assert list(workload.state.graphs) == ["a"]
            refused += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert refused > 20 and database.health == "ok", refused
    await workload.finish("big")
    await close_database(database)

asyncio.run(main())
"""
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script, str(tmp_path)],
        check=True,
        cwd=os.fspath(Path(__file__).parents[2]),
    )
    database = await open_database(tmp_path)
    assert database.was_clean
    assert list((await Log(database, clock=SystemClock()).load(apply)).graphs) == ["a", "big"]
    assert await sound(database) == []
    await close_database(database)


async def test_commands_of_a_refused_batch_can_be_given_again(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 6))
    commands: list[Command] = workload.steps(workload.state.graphs["a"])
    await allow(database, await pages(database))
    await database.write(lambda c: c.execute("PRAGMA query_only = ON").fetchall())
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await workload.batch(*commands)
    await database.write(lambda c: c.execute("PRAGMA query_only = OFF").fetchall())
    await allow(database, 1_000_000)
    await workload.batch(*commands)
    assert await sound(database) == []
    await close_database(database)
