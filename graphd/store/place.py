"""Which folders have graphs here: the databases below the state folder, moved or forgotten while no daemon has them.

A database stores the path, device and inode of its workspace, so that another project at the same path is seen. Every
change here holds the lock of the state folder that it changes. Source: spec protocol.md, Which workspace.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.store.database import BOOT_ID, FILE
from graphd.store.lock import FILE as LOCK_FILE
from graphd.store.lock import WorkspaceLock
from graphd.store.sqlite import APPLICATION_ID, reading, transaction

ENDED: Final = "('complete', 'cancelled')"


@dataclass(slots=True, frozen=True)
class Place:
    """One workspace that has a database. `standing` compares its path with what is there now."""

    folder: Path
    workspace: str
    device: int
    inode: int
    boot_id: str
    graphs: int
    live: int
    last_start_ms: int
    has_daemon: bool

    @property
    def standing(self) -> str:
        """`here`, `gone` (nothing at that path), or `replaced` (another folder is there)."""
        return "here" if self.is_at(Path(self.workspace)) else "gone" if not self._is_there() else "replaced"

    def is_at(self, path: Path) -> bool:
        """Whether that folder is the one that the graphs belong to, by inode, and by device within one boot."""
        try:
            found = path.stat()
        except OSError:
            return False
        return found.st_ino == self.inode and (found.st_dev == self.device or self.boot_id != _boot_id())

    def _is_there(self) -> bool:
        return Path(self.workspace).is_dir()


def places(state_root: Path) -> list[Place]:
    """Every workspace with a database below `state_root`, by path. What can't be read is left out."""
    found = []
    for folder in sorted(state_root.iterdir()) if state_root.is_dir() else []:
        place = place_of(folder)
        if place is not None:
            found.append(place)
    return sorted(found, key=lambda place: place.workspace)


def place_of(folder: Path) -> Place | None:
    """The workspace whose state lies in `folder`; None where there is no database of ours."""
    path = folder / FILE
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        with reading(path) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                return None
            meta = connection.execute("SELECT workspace, device, inode, boot_id FROM meta").fetchone()
            if meta is None:
                return None
            counts = f"SELECT count(*), coalesce(sum(status NOT IN {ENDED}), 0) FROM graphs"  # noqa: S608 - our own words
            graphs, live = connection.execute(counts).fetchone()
            last = connection.execute("SELECT coalesce(max(at), 0) FROM starts").fetchone()[0]
    except sqlite3.Error:
        return None
    workspace, device, inode, boot_id = meta
    return Place(
        folder=folder,
        workspace=workspace,
        device=device,
        inode=inode,
        boot_id=boot_id,
        graphs=graphs,
        live=live,
        last_start_ms=last,
        has_daemon=_is_held(folder / LOCK_FILE),
    )


def folder_of(state_root: Path, workspace: Path) -> Path:
    """The state folder of a path, by the rule of `graphd.client.paths`, for paths that are gone too."""
    real = os.fsencode(os.path.realpath(workspace))
    return state_root / hashlib.sha256(real, usedforsecurity=False).hexdigest()[:16]


def move(state_root: Path, old: Path, new: Path) -> Place:
    """Give the graphs of `old` to the folder that is at `new` now. The same path twice accepts what is there.

    Raises Refused: `notFound` without graphs at `old` or a folder at `new`, `locked` while a daemon or a process of an
    attempt has them, `alreadyExists` where `new` has graphs of its own.
    """
    source, target = folder_of(state_root, old), folder_of(state_root, new)
    place = place_of(source)
    if place is None:
        hint = t("graphd workspace list names those that have graphs")
        raise Refused("notFound", t("no graphs are kept for {path}", path=str(old)), hint)
    if not new.is_dir():
        raise Refused("notFound", t("{path} is no folder", path=str(new)), t("name the folder that it is now"))
    with _held(source):
        _refuse_live_attempts(source)
        if source != target:
            _make_room(target, new)
            failpoint("place.rename.before")
            source.rename(target)
            failpoint("place.rename.after")
        _claim(target / FILE, Path(os.path.realpath(new)))
    moved = place_of(target)
    assert moved is not None  # noqa: S101 - it was just written
    return moved


def forget(state_root: Path, workspace: Path) -> Place:
    """Remove everything that is kept for a path: graphs, results, transcripts. Raises Refused as `move` does."""
    folder = folder_of(state_root, workspace)
    place = place_of(folder)
    if place is None:
        hint = t("graphd workspace list names those that have graphs")
        raise Refused("notFound", t("no graphs are kept for {path}", path=str(workspace)), hint)
    with _held(folder):
        _refuse_live_attempts(folder)
        grave = folder.with_name(f"{folder.name}.forgotten.{os.getpid()}")
        failpoint("place.forget.before")
        folder.rename(grave)  # at once: a daemon that starts meanwhile begins afresh
        failpoint("place.forget.after")
    shutil.rmtree(grave, ignore_errors=True)
    return place


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, as a daemon does."""
    lock = WorkspaceLock.take(folder, version="workspace", now_ms=int(time.time() * 1000))
    try:
        yield
    finally:
        lock.release()


def _refuse_live_attempts(folder: Path) -> None:
    held = [path.parent for path in (folder / "attempts").glob("*/*/lock") if _is_held(path)]
    if held:
        raise Refused(
            "locked",
            t("processes of {count} attempts run under their keepers", count=len(held)),
            t("start the daemon there and let them end, or graphd stop --cancel"),
        )


def _make_room(target: Path, new: Path) -> None:
    """Remove what a daemon left at the new place, where that is nothing. Raises Refused where it has graphs."""
    there = place_of(target)
    if there is not None and there.graphs:
        hint = t("graphd workspace forget {path} removes them", path=str(new))
        raise Refused("alreadyExists", t("{path} has graphs of its own", path=str(new)), hint)
    if target.exists():
        with _held(target):
            shutil.rmtree(target)


def _claim(path: Path, workspace: Path) -> None:
    """Write into the database that its workspace is this folder now."""
    found = workspace.stat()
    here = (str(workspace), found.st_dev, found.st_ino, _boot_id())
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with transaction(connection):
            connection.execute("UPDATE meta SET workspace = ?, device = ?, inode = ?, boot_id = ?", here)
            failpoint("place.claim.before")
            connection.execute("COMMIT")
        failpoint("place.claim.after")
    finally:
        connection.close()


def _is_held(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
