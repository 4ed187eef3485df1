"""Opening: what is refused and left as it is, epochs and fences, migrations that are killed anywhere."""

import hashlib
import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest

from graphd.base import failpoints
from graphd.base.clock import SystemClock
from graphd.store import database as database_module
from graphd.store import schema
from graphd.store.database import Database, Opening
from graphd.store.folder import file_system, prepare_folder
from graphd.store.lock import WorkspaceLock
from graphd.store.log import Log
from graphd.store.rebuild import differences, differences_in
from graphd.store.refusals import (
    FileSystemUnfit,
    FolderUnsafe,
    OpeningRefused,
    StaleDaemon,
    StoreCorrupt,
    StoreTooNew,
    WorkspaceLocked,
    WorkspaceMoved,
)
from graphd.store.schema import STEPS, VERSION, Step, migrate, version_of
from graphd.store.sqlite import APPLICATION_ID
from tests.data.store.workload import Workload, apply, close_database, open_database, plan

DATA = Path(__file__).parent.parent / "data" / "store"


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of what holds data; the index file beside the journal is rebuilt at will."""
    files = [path for path in folder.iterdir() if path.name in ("graph.db", "graph.db-wal") and path.stat().st_size]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def fill(folder: Path, *, nodes: int = 12) -> None:
    database = await open_database(folder)
    workload = await Workload.on(database)
    await workload.batch(plan("a", nodes))
    await workload.finish("a")
    await close_database(database)


def edit(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "state" / "graph.db", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# ---- folder, lock -------------------------------------------------------------------------------------------------


async def test_everything_in_the_folder_is_private(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    os.umask(os.umask(0o022))
    database = await open_database(tmp_path)
    await (await Workload.on(database)).batch(plan("a", 2))
    try:
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
        assert modes == dict.fromkeys(("graph.db", "graph.db-wal", "graph.db-shm", "lock"), 0o600)
    finally:
        await close_database(database)


def test_network_and_host_file_systems_are_refused_by_name(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    folder = tmp_path / "a b" / "state"
    for kind, refused in (("nfs4", True), ("fuse.sshfs", True), ("9p", True), ("ext4", False), ("tmpfs", False)):
        escaped = str(tmp_path / "a b").replace(" ", "\\040")
        table.write_text(
            "22 1 0:1 / / rw,relatime shared:1 - ext4 /dev/a rw\n"
            f"23 22 0:2 / {escaped} rw - xfs /dev/b rw\n"
            f"24 22 0:3 / {escaped} rw master:2 propagate_from:2 - {kind} host:/x rw\n"
            f"25 22 0:4 / {tmp_path}/a rw - nfs host:/y rw\n"
        )
        assert file_system(folder, mounts=table) == kind
        if refused:
            with pytest.raises(FileSystemUnfit, match=kind.replace(".", r"\.")):
                prepare_folder(folder, mounts=table)
        else:
            prepare_folder(folder, mounts=table)
    assert file_system(folder, mounts=tmp_path / "missing") is None
    assert file_system(tmp_path) is not None


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "real")
    with pytest.raises((FolderUnsafe, FileExistsError)):
        prepare_folder(tmp_path / "state")


def test_a_second_lock_names_the_owner_and_the_file_stays(tmp_path: Path) -> None:
    lock = WorkspaceLock.take(tmp_path, version="1.2", now_ms=5)
    with pytest.raises(WorkspaceLocked, match=f"graphd 1.2 with pid {os.getpid()}") as refusal:
        WorkspaceLock.take(tmp_path, version="1.3", now_ms=6)
    assert refusal.value.owner == {"pid": os.getpid(), "version": "1.2", "startedAt": 5}
    lock.release()
    lock.release()
    assert not lock.still_ours()
    assert (tmp_path / "lock").exists()
    WorkspaceLock.take(tmp_path, version="1.3", now_ms=6).release()


def test_a_lock_knows_that_its_file_was_removed_or_replaced(tmp_path: Path) -> None:
    lock = WorkspaceLock.take(tmp_path / "s", version="1", now_ms=1)
    assert lock.still_ours()
    (tmp_path / "s" / "lock").rename(tmp_path / "s" / "aside")
    assert not lock.still_ours()
    other = WorkspaceLock.take(tmp_path / "s", version="1", now_ms=1)
    assert other.still_ours()
    assert not lock.still_ours()
    other.release()
    lock.release()


def test_the_lock_is_not_inherited(tmp_path: Path) -> None:
    lock = WorkspaceLock.take(tmp_path, version="1", now_ms=1)
    child = os.posix_spawn("/bin/sleep", ["sleep", "5"], {})
    lock.release()
    try:
        # The descriptor goes a moment after the spawn returns: exec frees the parent before it closes files.
        deadline = time.monotonic() + 3
        while True:
            try:
                WorkspaceLock.take(tmp_path, version="1", now_ms=1).release()
                break
            except WorkspaceLocked:
                assert time.monotonic() < deadline
                time.sleep(0.001)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


# ---- epochs -------------------------------------------------------------------------------------------------------


async def test_each_opening_is_the_next_epoch_of_one_store(tmp_path: Path) -> None:
    seen = []
    for at in (1_000, 2_000, 700_000):
        database = await open_database(tmp_path, now_ms=at)
        seen.append((database.store, database.epoch))
        starts = await database.recent_starts(window_ms=600_000, now_ms=at)
        assert starts == {1: 1, 2: 2, 3: 1}[database.epoch]
        await close_database(database)
    assert len({store for store, _ in seen}) == 1
    assert [epoch for _, epoch in seen] == [1, 2, 3]


async def test_a_daemon_of_an_older_epoch_can_not_write(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))
    edit(tmp_path, "UPDATE meta SET epoch = epoch + 1")
    with pytest.raises(StaleDaemon, match="newer daemon"):
        await workload.batch(plan("b", 2))
    assert list(workload.state.graphs) == ["a"]
    assert await database.read(lambda c: c.execute("SELECT id FROM graphs").fetchall()) == [("a",)]
    await close_database(database)


async def test_a_daemon_whose_folder_was_removed_can_not_write(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    workload = await Workload.on(database)
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    with pytest.raises(StaleDaemon, match="no longer the lock"):
        await workload.batch(plan("a", 2))
    second = await open_database(tmp_path)
    assert second.epoch == 1
    assert second.store != database.store
    with pytest.raises(StaleDaemon):
        await workload.batch(plan("a", 2))
    await close_database(second)
    await close_database(database)


# ---- another place ------------------------------------------------------------------------------------------------


async def test_another_project_at_the_same_path_is_refused_naming_both(tmp_path: Path) -> None:
    await fill(tmp_path)
    before = fingerprint(tmp_path / "state")
    old = (tmp_path / "ws").stat().st_ino
    (tmp_path / "ws").rename(tmp_path / "old")
    with pytest.raises(WorkspaceMoved) as refusal:
        await open_database(tmp_path)
    new = (tmp_path / "ws").stat().st_ino
    assert f"inode {old}" in refusal.value.was
    assert f"inode {new}" in refusal.value.is_now
    assert str(tmp_path / "ws") in str(refusal.value)
    assert fingerprint(tmp_path / "state") == before
    await close_database(await open_database(tmp_path, is_new_place=True))
    await close_database(await open_database(tmp_path))


async def test_a_device_number_counts_within_one_boot_alone(tmp_path: Path) -> None:
    await fill(tmp_path)
    edit(tmp_path, "UPDATE meta SET device = 1, boot_id = 'another'")
    await close_database(await open_database(tmp_path))
    edit(tmp_path, "UPDATE meta SET device = 1")
    with pytest.raises(WorkspaceMoved):
        await open_database(tmp_path)


async def test_a_copied_state_folder_is_refused_for_another_path(tmp_path: Path) -> None:
    await fill(tmp_path)
    (tmp_path / "other").mkdir()
    lock = WorkspaceLock.take(tmp_path / "state", version="1", now_ms=1)
    with pytest.raises(WorkspaceMoved, match="/other"):
        await Database.open(lock, Opening(tmp_path / "other", "1", 1))
    lock.release()


# ---- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["header", "whole", "page", "schema"])
async def test_a_damaged_database_is_refused_and_no_byte_changed(tmp_path: Path, place: str) -> None:
    await fill(tmp_path, nodes=60)
    path = tmp_path / "state" / "graph.db"
    content = bytearray(path.read_bytes())
    match place:
        case "header":
            content[0:16] = b"not a database!!"
        case "whole":
            content = bytearray(os.urandom(len(content)))
        case "page":
            middle = len(content) // 4096 // 2 * 4096
            content[middle : middle + 4096] = b"\xa5" * 4096
        case _:
            content[100:140] = bytes(40)
    path.write_bytes(bytes(content))
    before = fingerprint(tmp_path / "state")
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=r"graph\.db: the database is damaged"):
            await open_database(tmp_path)
        assert fingerprint(tmp_path / "state") == before


async def test_a_large_database_is_checked_after_an_unclean_end_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, nodes=60)
    monkeypatch.setattr(database_module, "CHECKED_BYTES", 0)
    path = tmp_path / "state" / "graph.db"
    content = bytearray(path.read_bytes())
    middle = len(content) // 4096 // 2 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(bytes(content))
    database = await open_database(tmp_path)
    with pytest.raises(StoreCorrupt):
        await read_everything(database)
    database.lock.release()
    await database._reader.close()
    await database._writer.close()
    with pytest.raises(StoreCorrupt):
        await open_database(tmp_path)


async def read_everything(database: Database) -> None:
    await Log(database, clock=SystemClock()).load(apply)
    await database.read(lambda connection: differences(connection, apply))


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    edit(tmp_path, "CREATE TABLE notes (a)")
    before = fingerprint(tmp_path / "state")
    with pytest.raises(OpeningRefused, match="another program's"):
        await open_database(tmp_path)
    assert fingerprint(tmp_path / "state") == before


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    await fill(tmp_path)
    edit(tmp_path, f"PRAGMA user_version = {VERSION + 1}")
    before = fingerprint(tmp_path / "state")
    with pytest.raises(StoreTooNew, match=f"schema {VERSION + 1}, this graphd knows up to {VERSION}"):
        await open_database(tmp_path)
    assert fingerprint(tmp_path / "state") == before


# ---- migrations ---------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


async def test_a_first_opening_killed_at_every_point_is_made_good_by_the_next(tmp_path: Path) -> None:
    hits: list[str] = []
    failpoints.hook_in(hits.append)
    try:
        await fill(tmp_path / "whole")
    finally:
        failpoints.hook_in(None)
    opening = [name for name in hits if name.startswith(("store.migrate", "store.open"))]
    assert opening == ["store.migrate.before", "store.migrate.after"] * len(STEPS) + [
        "store.open.before",
        "store.open.after",
    ]
    for number in range(len(opening)):
        folder = tmp_path / str(number)
        left = number

        def kill(name: str) -> None:
            nonlocal left
            if left == 0:
                raise Killed(name)
            left -= 1

        failpoints.hook_in(kill)
        try:
            with pytest.raises(Killed):
                await open_database(folder)
        finally:
            failpoints.hook_in(None)
        database = await open_database(folder)
        assert database.epoch == (2 if opening[number] == "store.open.after" else 1)
        assert await database.read(version_of) == VERSION
        await (await Workload.on(database)).batch(plan("a", 2))
        await close_database(database)
        assert differences_in(folder / "state" / "graph.db", apply) == []


def test_a_step_that_fails_in_its_middle_leaves_the_schema_before_it(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    bad = Step(VERSION + 1, "broken", ("CREATE TABLE extra (a)", "CREATE TABLE meta (a)"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*STEPS, bad))
    assert version_of(connection) == VERSION
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert "extra" not in tables
    migrate(connection, (*STEPS, Step(VERSION + 1, "good", ("CREATE TABLE extra (a)",))))
    assert version_of(connection) == VERSION + 1
    connection.close()


@pytest.mark.parametrize("version", range(1, VERSION + 1))
async def test_a_database_of_every_schema_so_far_is_carried_on(tmp_path: Path, version: int) -> None:
    (tmp_path / "state").mkdir()
    connection = sqlite3.connect(tmp_path / "state" / "graph.db", isolation_level=None)
    connection.executescript((DATA / f"schema-{version}.sql").read_text())
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    database = await open_database(tmp_path, is_new_place=True)
    workload = await Workload.on(database)
    assert await database.read(version_of) == VERSION
    assert {name: graph.status for name, graph in workload.state.graphs.items()} == {"a": "complete", "b": "active"}
    await workload.finish("b")
    assert await database.read(lambda c: differences(c, apply)) == []
    await close_database(database)


def test_steps_are_numbered_without_gaps() -> None:
    assert [step.version for step in schema.STEPS] == list(range(1, VERSION + 1))
