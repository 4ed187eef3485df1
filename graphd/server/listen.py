"""The socket beside the database: bound under a temporary name, renamed, checked, bound again when it vanishes.

The process stands in its state folder, so names are relative and no path is too long. Source: spec protocol.md, Daemon,
socket, lock; research pitfalls.md 1.8, 1.11.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.daemon.watch import FolderWatch

SOCKET_NAME: Final = "socket"
BACKLOG: Final = 128
RETRY_S: Final = 0.2
SETTLE_S: Final = 0.05


class Listener:
    """Accepts connections of our own user and hands each, with the peer's pid, to `accepted`.

    `is_ours` says whether the lock on disk is the one that we hold; where it is not, `lost` is called and nobody
    is accepted.
    """

    def __init__(
        self,
        accepted: Callable[[socket.socket, int | None], None],
        *,
        is_ours: Callable[[], bool],
        lost: Callable[[], None],
        folder: Path = Path(),
    ) -> None:
        self._accepted = accepted
        self._is_ours = is_ours
        self._lost = lost
        self._folder = folder
        self._sock: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._watch: FolderWatch | None = None
        self._recheck: asyncio.TimerHandle | None = None

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Bind and begin to accept. Raises OSError where the socket can't be bound."""
        self._sock = self._bind()
        self._task = tasks.create_task(self._accept(self._sock))
        self._tasks = tasks

    def hand_to(self, accepted: Callable[[socket.socket, int | None], None], lost: Callable[[], None]) -> None:
        """From now on connections, and the loss of the lock, are these two's business."""
        self._accepted, self._lost = accepted, lost

    def watch(self) -> None:
        """Notice a vanished socket or folder, without a timer; where the system can't tell, accepts alone check."""
        if self._watch is None and self._sock is not None:
            self._watch = FolderWatch.on([self._folder], self._stirred)
            self._stirred()  # what went before the watch stood is not told by it

    def close(self) -> None:
        """Take the socket away and accept nobody any more."""
        if self._watch is not None:
            self._watch.close()
        if self._recheck is not None:
            self._recheck.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._sock is not None:
            if self._is_ours():
                failpoint("server.unlink.before")
                (self._folder / SOCKET_NAME).unlink(missing_ok=True)
                failpoint("server.unlink.after")
            self._sock.close()
            self._sock = None

    def _bind(self) -> socket.socket:
        temporary = self._folder / f"{SOCKET_NAME}.{os.getpid()}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            temporary.unlink(missing_ok=True)
            failpoint("server.bind.before")
            before = os.umask(0o177)
            try:
                sock.bind(str(temporary))
            finally:
                os.umask(before)
            failpoint("server.bind.after")
            sock.listen(BACKLOG)
            failpoint("server.rename.before")
            temporary.rename(self._folder / SOCKET_NAME)
            failpoint("server.rename.after")
        except BaseException:
            sock.close()
            raise
        return sock

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError:  # out of descriptors: what is waiting stays in the kernel's queue
                await asyncio.sleep(RETRY_S)
                continue
            if not self._is_ours():
                sock.close()
                self._lost()
                return
            pid, uid = peer(sock)
            if uid is not None and uid != os.geteuid():
                sock.close()
                continue
            self._accepted(sock, pid)

    def _stirred(self) -> None:
        """Something in the folder went: look once it has settled."""
        if self._recheck is None:
            self._recheck = asyncio.get_running_loop().call_later(SETTLE_S, self._look)

    def _look(self) -> None:
        self._recheck = None
        if self._sock is None:
            return
        if not self._is_ours():
            self._lost()
        elif not self._is_bound():
            self._bind_again()

    def _is_bound(self) -> bool:
        """The socket on disk exists. Ours: whoever replaces it would need the lock."""
        return (self._folder / SOCKET_NAME).exists()

    def _bind_again(self) -> None:
        old, task = self._sock, self._task
        try:
            self._sock = self._bind()
        except OSError:
            return  # the folder is going; its lock file goes too, and that ends us
        self._task = self._tasks.create_task(self._accept(self._sock))
        if task is not None:
            task.cancel()
        if old is not None:
            old.close()


def peer(sock: socket.socket) -> tuple[int | None, int | None]:
    """(pid, uid) of the other end as the kernel says; None where it does not."""
    if hasattr(socket, "SO_PEERCRED"):
        with contextlib.suppress(OSError):
            pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid, uid
    return None, None
