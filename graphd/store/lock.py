"""The workspace lock: a kernel `flock` for the daemon's life, so that one daemon alone opens the database.

The file is never deleted: unlinking makes two inodes, and two holders. What stands in it is information for
people and never decides. Source: protocol.md, Daemon, socket, lock; pitfalls.md 1.11.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Self

from graphd.store.folder import prepare_folder
from graphd.store.refusals import StaleDaemon, WorkspaceLocked

FILE = "lock"


class WorkspaceLock:
    """A held lock. Its descriptor is closed on exec: no child of ours keeps it over our death."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd

    @classmethod
    def take(cls, folder: Path, *, version: str, now_ms: int) -> Self:
        """Take the lock of a state folder, made and checked first. Raises WorkspaceLocked where it is held."""
        prepare_folder(folder)
        path = folder.absolute() / FILE
        while True:
            lock = cls(path, _locked(path))
            if lock.still_ours():
                break
            lock.release()  # someone replaced the file between open and flock: what we hold guards nothing
        lock._describe({"pid": os.getpid(), "version": version, "startedAt": now_ms})
        return lock

    def still_ours(self) -> bool:
        """Is the file that we hold still the one on disk? False once the folder was removed or replaced."""
        if self._fd is None:
            return False
        held = os.fstat(self._fd)
        try:
            found = self.path.stat()
        except OSError:
            return False
        return held.st_nlink > 0 and (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise StaleDaemon unless the lock still guards the folder."""
        if not self.still_ours():
            raise StaleDaemon(f"{self.path} is no longer the lock that this daemon took")

    def release(self) -> None:
        """Let it go; the file stays. Safe to call twice."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _describe(self, owner: dict[str, Any]) -> None:
        if self._fd is None:
            return
        text = json.dumps(owner).encode() + b"\n"
        try:
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
        except OSError:
            return  # a full disk: the lock itself stands, its text is for people


def read_owner(folder: Path) -> dict[str, Any]:
    """What the last holder wrote of itself: `pid`, `version`, `startedAt`; {} where nothing can be read."""
    try:
        owner = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _locked(path: Path) -> int:
    """Open and lock the file without waiting."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise WorkspaceLocked(path, read_owner(path.parent)) from None
    except BaseException:
        os.close(fd)
        raise
    return fd
