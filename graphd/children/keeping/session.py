"""The lock of the agent's session: one inode, flocked for as long as anything of the tree lives, named by the session.

The agent inherits its descriptor: a killed keeper leaves the lock to what it leaves alive. A session that is taken up
again is locked before anything is claimed; the id of a new one is known later, so the file that was locked before the
fork gets that name then. Files that nobody locks are removed by daemons, so whoever locks one looks whether it is
still the one of that name. Source: execution.md, Drivers (one process per session and a lock per session id).
"""
# ruff: noqa: PTH105, PTH116

from __future__ import annotations

import fcntl
import os

from graphd.children.keeping.points import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

OWN: Final = "session"
"""In the attempt's folder: the file of a session that has no name yet."""
TRIES: Final = 100


class SessionLock:
    """`fd` is -1 until it is taken. OSError where a file can't be made or looked at."""

    def __init__(self) -> None:
        self.fd = -1
        self._path = ""

    def take(self, path: str) -> bool:
        """Lock the file of a session, or one without a name yet (""); False where another process has it."""
        for _ in range(TRIES):
            fd = _locked(path or OWN)
            if fd < 0:
                return False
            if _is_same(fd, path or OWN):
                self.fd, self._path = fd, path or OWN
                return True
            os.close(fd)
        return False

    def name(self, path: str) -> str | None:
        """Give what is locked the name of the session that was opened; why not, where that is so."""
        if self.fd < 0:
            return "noSession"
        for _ in range(TRIES):
            try:
                failpoint("keeper.name.before")
                os.link(self._path, path)
                failpoint("keeper.name.after")
                return None
            except FileExistsError:
                if _is_same(self.fd, path):
                    return None
            if not _remove_free(path):
                return "taken"
        return "taken"


def _locked(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    return fd


def _is_same(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_free(path: str) -> bool:
    """Remove a session's file that nobody has locked; False where somebody has."""
    fd = _locked(path)
    if fd < 0:
        return False
    if _is_same(fd, path):
        os.unlink(path)  # noqa: PTH108  no pathlib in a keeper
    os.close(fd)
    return True
