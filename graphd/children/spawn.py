"""Starts keepers: off the loop, by vfork, in a session of their own, with nothing inherited; and reaps them.

Never `preexec_fn`: it is unsafe with threads and forces the slow fork. Source: execution.md, One attempt 3.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.children.identity import abandoned, keepers, spawning

KEEPER: Final = Path(__file__).with_name("keeper.py")


class KeeperProcess:
    """A keeper that is a child of this process, reaped by the loop as soon as it ends. Use on the loop alone."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(popen.pid)
        self._gone = asyncio.Event()
        self._loop.add_reader(self._pidfd, self._reap)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """Its exit code once it is gone, negative for a signal."""
        return self._popen.returncode if self._gone.is_set() else None

    async def first_word(self) -> str:
        """`ready`, `void` (another was first: nothing was started), or nothing when it died before it could say."""
        assert self._popen.stdout is not None  # noqa: S101  a pipe by construction
        pipe, done = self._popen.stdout, asyncio.Event()
        self._loop.add_reader(pipe.fileno(), done.set)
        try:
            await done.wait()
            return pipe.read().decode().strip()  # one short write, then its end: the keeper closes it at once
        finally:
            self._loop.remove_reader(pipe.fileno())
            pipe.close()

    async def gone(self) -> int:
        """Wait for its end; the exit code."""
        await self._gone.wait()
        return self._popen.returncode or 0

    def kill(self) -> None:
        """SIGKILL. Only for one that can claim nothing any more: a keeper is never killed with its tree alive."""
        failpoint("spawn.kill.before")
        self._popen.kill()
        failpoint("spawn.kill.after")

    def abandon(self) -> None:
        """This process ends or lets go: the keeper lives on, whoever inherits it reaps it."""
        if not self._gone.is_set():
            abandoned.add(self._popen.pid)
            self._unwatch()
            self._popen.returncode = 0  # else its destructor warns of a child that runs on, which it shall

    def _reap(self) -> None:
        failpoint("spawn.reap.before")
        self._popen.wait()
        failpoint("spawn.reap.after")
        self._unwatch()

    def _unwatch(self) -> None:
        self._gone.set()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        keepers.discard(self._popen.pid)


async def spawn_keeper(folder: Path, launch: dict[str, Any], environment: dict[str, str]) -> KeeperProcess:
    """Start a keeper in `folder` and give it its launch spec. OSError when it can't be started."""
    starting = asyncio.ensure_future(asyncio.to_thread(_start, folder, launch, environment))
    try:
        popen = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The thread can't be called back: let it end, so that no process is left without an owner.
        KeeperProcess(await starting).abandon()
        raise
    return KeeperProcess(popen)


def _start(folder: Path, launch: dict[str, Any], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "keeper.log").open("ab") as log, spawning:
        failpoint("spawn.keeper.before")
        popen = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-I", "-S", str(KEEPER)],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True, close_fds=True, bufsize=0,
        )  # fmt: skip
        failpoint("spawn.keeper.after")
        keepers.add(popen.pid)
    assert popen.stdin is not None  # noqa: S101  a pipe by construction
    try:
        rest = memoryview(json.dumps(launch).encode())
        while rest:
            rest = rest[popen.stdin.write(rest) or 0 :]
    except BrokenPipeError:
        pass  # it died; its first word says so
    finally:
        popen.stdin.close()
    return popen


async def word_or_stop(keeper: KeeperProcess, stop: asyncio.Event) -> str | None:
    """The keeper's first word; None when a stop is wanted before it says anything."""
    word, stopped = asyncio.ensure_future(keeper.first_word()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([word, stopped], return_when=asyncio.FIRST_COMPLETED)
        return word.result() if word.done() else None
    finally:
        for waiting in (word, stopped):
            waiting.cancel()
        await asyncio.gather(word, stopped, return_exceptions=True)
