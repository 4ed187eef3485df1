"""`graphd attach --take-over`: the agent's own program on a node's session, at this terminal."""

import asyncio
import fcntl
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.cli.exits import CommandRefused
from graphd.cli.talk import call, open_session
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

GOES_ON_S: Final = 10.0
LET_GO_S: Final = 10.0
POLL_S: Final = 0.1


async def take_over(workspace: Path | None, graph: str, node: str) -> int | None:
    """Hold the node, run the program to its end, let the node go on: the attempt that does. Raises CommandRefused."""
    session = await open_session(workspace)
    try:
        held = await call(session, "workgraph/hold", {"graph": graph, "node": node})
        click.echo(f"{harmless(node)} is paused; it goes on when {harmless(held['argv'][0])} ends", err=True)
        before = await _last_attempt(session, graph, node)
        await _run(held["argv"], held["cwd"], held.get("sessionLock"))
    finally:
        await session.close()
    return await _gone_on(workspace, graph, node, after=before)


async def _last_attempt(session: "Session", graph: str, node: str) -> int:
    observed = await call(session, "workgraph/observe", {"graph": graph, "node": node, "limit": 1})
    return int(observed["attempt"])


async def _gone_on(workspace: Path | None, graph: str, node: str, *, after: int) -> int | None:
    """The attempt that goes on; None where none does soon: its graph is paused, or other work has the slots."""
    session = await open_session(workspace)
    try:
        for _ in range(int(GOES_ON_S / POLL_S)):
            number = await _last_attempt(session, graph, node)
            if number > after:
                return number
            await asyncio.sleep(POLL_S)
    finally:
        await session.close()
    return None


async def _run(argv: list[str], cwd: str, lock: str | None) -> None:
    """The program has the session's lock for its life: it outlives us where we are killed, and nobody else opens it."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is the program's
    lock_fd = -1 if lock is None else await _locked(lock)
    try:
        failpoint("takeover.spawn.before")
        program = await asyncio.create_subprocess_exec(*argv, cwd=cwd, pass_fds=() if lock is None else (lock_fd,))
        failpoint("takeover.spawn.after")
        await program.wait()
    except OSError as trouble:
        raise CommandRefused("agentMissing", f"{argv[0]}: {trouble.strerror}", "is it on your PATH?") from None
    finally:
        if lock_fd >= 0:
            os.close(lock_fd)


async def _locked(path: str) -> int:
    """The lock of the session: the keeper of what was paused lets go of it soon. Raises CommandRefused."""
    for _ in range(int(LET_GO_S / POLL_S)):
        lock_fd = _lock(Path(path))
        if lock_fd >= 0:
            return lock_fd
        await asyncio.sleep(POLL_S)
    raise CommandRefused("conflict", t("another process has this session open"), t("it is free when that one ends"))


def _lock(path: Path) -> int:
    """The locked file of a session; -1 while another process has it, or it was removed before we had it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), path.stat()):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return -1
