"""The open database of one workspace: checks before opening, the epoch that fences daemons, health, clean closing.

Order of an opening: the folder (`prepare_folder`) and the lock (`WorkspaceLock.take`), both by the caller; then, on
a read-only connection that changes no byte, what kind of file it is and whether it is sound; then migrations; then
one transaction that makes this daemon the newest epoch. Sources: reliability.md §3, R5, R8, R13 to R17.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar

import aiosqlite

from graphd.base.failpoints import failpoint
from graphd.base.ids import uuid4
from graphd.base.text import t
from graphd.store.lock import WorkspaceLock
from graphd.store.refusals import (
    Health,
    OpeningRefused,
    StaleDaemon,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
    WorkspaceMoved,
    refusal_of,
)
from graphd.store.schema import VERSION, migrate, version_of
from graphd.store.sqlite import APPLICATION_ID, connect_reader, connect_writer, hop, reading, transaction

T = TypeVar("T")

FILE: Final = "graph.db"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
CHECKED_BYTES: Final = 4 * 1024 * 1024
"""A database up to this size is checked at every opening, a larger one only after an unclean end."""
STARTS_KEPT: Final = 100


class Opening(NamedTuple):
    """Who opens the database, and for which workspace. `is_new_place` accepts that the workspace was moved."""

    workspace: Path
    version: str
    now_ms: int
    is_new_place: bool = False


class Database:
    """One write connection, one read-only connection. Made by `open`."""

    def __init__(
        self,
        path: Path,
        lock: WorkspaceLock,
        *,
        writer: aiosqlite.Connection,
        reader: aiosqlite.Connection,
        identity: tuple[str, int, bool],
    ) -> None:
        self.path = path
        self.lock = lock
        self.store, self.epoch, self.was_clean = identity
        self.health: Health = "ok"
        self._writer = writer
        self._reader = reader

    @classmethod
    async def open(cls, lock: WorkspaceLock, opening: Opening) -> Self:
        """Open or make `graph.db` beside the lock, which must be held. Raises OpeningRefused, StoreUnavailable."""
        path = lock.path.with_name(FILE)
        try:
            _inspect(path)  # here: nothing else runs yet, and a thread for it costs a start as much as it does
            writer = await connect_writer(path)
            try:
                identity = await hop(writer, lambda connection: _begin_epoch(connection, path, opening))
                reader = await connect_reader(path)
            except BaseException:
                await writer.close()
                raise
        except sqlite3.Error as error:
            raise _translated(error, path) from error
        return cls(path, lock, writer=writer, reader=reader, identity=identity)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, which holds its own `fenced` transaction, in one hop. Raises CommitRefused, StaleDaemon.

        Any other exception leaves it unknown whether the transaction was stored: the daemon must stop.
        """
        try:
            return await hop(self._writer, work)
        except StoreUnavailable as refusal:
            self._note(refusal)
            raise
        except sqlite3.Error as error:
            trouble = _translated(error, self.path)
            self._note(trouble)
            raise trouble from error

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the read-only connection. Raises StoreUnavailable, StoreCorrupt."""
        try:
            return await hop(self._reader, work)
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    @contextmanager
    def fenced(self, connection: sqlite3.Connection) -> Iterator[None]:
        """A transaction of the newest daemon alone; the body says COMMIT. Raises StaleDaemon before it runs.

        Both fences are needed: the epoch when a newer daemon has opened this file, the lock when the folder was
        removed and the newer one has made another file in its place.
        """
        self.lock.check()
        try:
            with transaction(connection):
                fence = "UPDATE meta SET commits = commits + 1 WHERE epoch = ?"
                if connection.execute(fence, (self.epoch,)).rowcount != 1:
                    raise StaleDaemon(f"a newer daemon owns {self.path}; this one had epoch {self.epoch}")
                yield
                is_committed = not connection.in_transaction
        except OSError as error:
            raise StoreUnavailable("readOnly", str(error)) from error
        if is_committed:
            self.health = "ok"

    async def probe(self) -> Health:
        """Try a small commit, and say how the store is: what ends a full disk's state where nothing else writes."""

        def touch(connection: sqlite3.Connection) -> None:
            with self.fenced(connection):
                failpoint("store.probe.before")
                connection.execute("COMMIT")
            failpoint("store.probe.after")

        with suppress(StoreUnavailable):
            await self.write(touch)
        return self.health

    async def has_unsettled_attempts(self) -> bool:
        """Whether anything may still run below a keeper; asked before the log is loaded. Raises as `read`."""
        query = "SELECT EXISTS (SELECT 1 FROM attempts WHERE state <> 'settled')"
        return await self.read(lambda connection: bool(connection.execute(query).fetchone()[0]))

    async def recent_starts(self, *, window_ms: int, now_ms: int) -> int:
        """How many daemons opened this database in the last `window_ms`, this one included."""
        query = "SELECT count(*) FROM starts WHERE at > ? OR epoch = ?"
        return await self.read(
            lambda connection: int(connection.execute(query, (now_ms - window_ms, self.epoch)).fetchone()[0])
        )

    async def checkpoint(self) -> None:
        """Move the journal into the database and cut it to nothing. For idle times; readers may hold it up."""
        await self.write(_checkpoint)

    async def close(self) -> None:
        """Mark the database clean and close it. A store that can't be written is closed without the mark."""
        try:
            await self.write(self._mark_clean)
        except (StoreUnavailable, StaleDaemon):
            pass  # the next opening checks the file
        finally:
            await self._reader.close()
            await self._writer.close()

    def _mark_clean(self, connection: sqlite3.Connection) -> None:
        with self.fenced(connection):
            connection.execute("UPDATE meta SET is_clean = 1")
            failpoint("store.close.before")
            connection.execute("COMMIT")
        failpoint("store.close.after")
        _checkpoint(connection)

    def _note(self, trouble: Exception) -> None:
        if isinstance(trouble, StoreUnavailable) and trouble.kind != "busy":
            self.health = trouble.kind


def _translated(error: sqlite3.Error, path: Path) -> Exception:
    return refusal_of(error, path) or error


def _checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


# ---- opening ------------------------------------------------------------------------------------------------


def _inspect(path: Path) -> None:
    """Refuse what is not a sound database of ours, on a connection that can't change it; make an empty file if none."""
    if not path.exists() or path.stat().st_size == 0:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return
    path.chmod(0o600)
    with reading(path) as connection:
        version = version_of(connection)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                return  # killed before its first migration
            hint = t("move it away: graphd did not make it")
            raise OpeningRefused(t("this is another program's database"), hint, path=path, application=application)
        if version > VERSION:
            raise StoreTooNew(path=path, found=version, known=VERSION)
        is_clean = bool(connection.execute("SELECT is_clean FROM meta").fetchone() == (1,))
        if not is_clean or path.stat().st_size <= CHECKED_BYTES:
            found = connection.execute("PRAGMA quick_check(5)").fetchall()
            if found != [("ok",)]:
                raise StoreCorrupt("; ".join(str(row[0]) for row in found), path=path)


def _begin_epoch(connection: sqlite3.Connection, path: Path, opening: Opening) -> tuple[str, int, bool]:
    """Migrate, then become the newest daemon: the store's id, our epoch, and whether the last end was clean."""
    migrate(connection)
    with transaction(connection):
        was_clean = _claim_workspace(connection, path, opening)
        connection.execute("UPDATE meta SET epoch = epoch + 1, is_clean = 0")
        store, epoch = connection.execute("SELECT store, epoch FROM meta").fetchone()
        connection.execute(
            "INSERT INTO starts (epoch, at, version, pid) VALUES (?, ?, ?, ?)",
            (epoch, opening.now_ms, opening.version, os.getpid()),
        )
        connection.execute("DELETE FROM starts WHERE epoch <= ?", (epoch - STARTS_KEPT,))
        failpoint("store.open.before")
        connection.execute("COMMIT")
        failpoint("store.open.after")
    return store, epoch, was_clean


def _claim_workspace(connection: sqlite3.Connection, path: Path, opening: Opening) -> bool:
    """Compare the workspace with the one the database was made for. Returns whether it was closed cleanly.

    A device number means something within one boot alone; over a boot, path and inode decide.
    """
    workspace = opening.workspace.resolve()
    found = workspace.stat()
    here = (str(workspace), found.st_dev, found.st_ino, _boot_id())
    known = connection.execute("SELECT workspace, device, inode, boot_id, is_clean FROM meta").fetchone()
    if known is None:
        connection.execute(
            "INSERT INTO meta (id, store, created_at, epoch, commits, is_clean, workspace, device, inode, boot_id)"
            " VALUES (1, ?, ?, 0, 0, 1, ?, ?, ?, ?)",
            (uuid4(), opening.now_ms, *here),
        )
        return True
    is_same = known[0] == here[0] and known[2] == here[2] and (known[1] == here[1] or known[3] != here[3])
    if not is_same and not opening.is_new_place:
        was, is_now = (f"{place[0]} (device {place[1]}, inode {place[2]})" for place in (known, here))
        raise WorkspaceMoved(path=path, was=was, is_now=is_now)
    connection.execute("UPDATE meta SET workspace = ?, device = ?, inode = ?, boot_id = ?", here)
    return bool(known[4])


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
