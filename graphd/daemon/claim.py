"""The claim on a workspace: its lock, and its database opened as the newest epoch. It needs no core.

A daemon that holds it may tell clients who it is before it has loaded what it serves (ADR 0008).
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from graphd import __version__
from graphd.base.clock import Clock
from graphd.store.database import Database, Opening
from graphd.store.lock import WorkspaceLock


@contextlib.asynccontextmanager
async def claimed(workspace: Path, folder: Path, *, clock: Clock) -> AsyncIterator[Database]:
    """Lock the state folder and open its database; both are let go at the end. Raises WorkspaceLocked, OpeningRefused,
    StoreUnavailable.
    """
    lock = WorkspaceLock.take(folder, version=__version__, now_ms=clock.now_ms())
    try:
        database = await Database.open(lock, Opening(workspace, __version__, clock.now_ms()))
        try:
            yield database
        finally:
            await database.close()
    finally:
        lock.release()
