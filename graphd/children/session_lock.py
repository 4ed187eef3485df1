"""One process per session: where the lock of a session lies, who has it, and how a keeper is told of a new one.

The key is the agent's profile, its HOME and the session's id, over all workspaces whose state lies together. The keeper
holds the lock, and everything below it; `graphd attach --take-over` holds it with the program that it opens. Source:
execution.md, Drivers; research agents.md §9.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from graphd.base.text import t
from graphd.children.driver import Fact, Order
from graphd.children.escalation import Wanted
from graphd.children.identity import is_held
from graphd.children.link import CallRefused, Link

FOLDER: Final = "sessions"


def lock_of(sessions: Path, profile: str, home: str, session: str) -> Path:
    """The file that whoever opens this session has locked."""
    key = "\0".join((profile, home, session)).encode("utf-8", "surrogateescape")
    return sessions / hashlib.sha256(key).hexdigest()[:32]


def lock_of_order(order: Order, session: str | None) -> Path | None:
    """The lock of a session of this order's agent; None where sessions are not locked."""
    if order.sessions is None or session is None:
        return None
    return lock_of(order.sessions, order.profile, order.environment.get("HOME", ""), session)


def wanted_lock(order: Order) -> str | None:
    """What the keeper locks before it starts: the session to be taken up, "" for one to come, None for neither."""
    if order.sessions is None or order.driver == "shell":
        return None
    order.sessions.mkdir(mode=0o700, exist_ok=True)
    return str(lock_of_order(order, order.resume_session) or "")


def is_taken(path: Path | None) -> bool:
    """Some process has this session open now."""
    return path is not None and is_held(path)


def remove_free(sessions: Path) -> None:
    """Remove the files that nobody has locked. Whoever locks one meanwhile looks for it again."""
    for path in sessions.iterdir() if sessions.is_dir() else ():
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(fd), path.stat()):
                    path.unlink()
            finally:
                os.close(fd)


class SessionHold:
    """Tells the keeper, over any number of connections, which session its agent has opened."""

    def __init__(self, order: Order, wanted: Wanted) -> None:
        self._order = order
        self._wanted = wanted
        self._session: str | None = None
        self._changed = asyncio.Event()

    def opened(self, facts: Iterable[Fact]) -> None:
        """Facts in which the agent may say which session is its."""
        for fact in facts:
            if fact.kind == "session":
                self._session = fact.content["id"]
                self._changed.set()

    async def hold_over(self, link: Link) -> None:
        """Say it, now and when it changes. A session that another process has open already ends the attempt."""
        while True:
            path = lock_of_order(self._order, self._session)
            if path is not None:
                try:
                    await link.call("holdSession", path=str(path))
                except CallRefused as refusal:  # an older keeper knows no such call: as before there were locks
                    if refusal.code == "taken":
                        self._wanted.overdue = t(
                            "the agent opened the session {session}, which another process has open",
                            session=self._session,
                        )
                        self._wanted.stop.set()
            await self._changed.wait()
            self._changed.clear()
