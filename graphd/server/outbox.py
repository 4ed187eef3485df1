"""The writer of one connection: answers in the order in which they are ready, and at most one notification in flight.

It never queues a notification: when the socket can take bytes it pulls the next one, which is then as new as can
be. Answers are queued, and a long queue slows the reading of requests. Source: spec protocol.md, Notifications;
architecture.md.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.core.model import State

Pull = Callable[[State], bytes | None]
JOIN_LIMIT_BYTES: Final = 256 * 1024
BACKLOG_LIMIT_BYTES: Final = 1024 * 1024
BACKLOG_LIMIT: Final = 64


class Outbox:
    """Owns the sending half of a non-blocking socket. `run` is its only task."""

    def __init__(self, sock: socket.socket, pull: Pull, view: Callable[[Pull], Awaitable[bytes | None]]) -> None:
        self._sock = sock
        self._pull = pull
        self._view = view
        self._replies: deque[bytes] = deque()
        self._queued_bytes = 0
        self._sending_bytes = 0
        self._notification: bytes | None = None
        self._is_pull_due = False
        self._is_idle = False
        self._is_notifying = False
        self._last: bytes | None = None
        self._awake = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def bytes_in_flight(self) -> int:
        """Bytes that the daemon holds for this client: what the kernel has not taken yet."""
        waiting = len(self._notification) if self._notification is not None else 0
        return self._queued_bytes + self._sending_bytes + waiting

    @property
    def frames_in_flight(self) -> int:
        """Frames that the daemon holds for this client."""
        return len(self._replies) + (self._notification is not None) + (self._sending_bytes > 0)

    def reply(self, frame: bytes) -> None:
        """Queue an answer."""
        self._replies.append(frame)
        self._queued_bytes += len(frame)
        if len(self._replies) > BACKLOG_LIMIT or self._queued_bytes > BACKLOG_LIMIT_BYTES:
            self._has_room.clear()
        self._awake.set()

    async def room(self) -> None:
        """Wait until the queue of answers is short enough to read another request."""
        await self._has_room.wait()

    def pull_soon(self) -> None:
        """There may be a notification: pull when the socket can take it."""
        self._is_pull_due = True
        self._awake.set()

    def pull_now(self, state: State) -> None:
        """The same at a committed moment: an idle writer takes it at once, from this very state."""
        self._is_pull_due = True
        if self._is_idle and self._notification is None and self._last is None:
            self._notification = self._pull(state)
            if self._notification is None:
                self._is_pull_due = False
                return
        self._awake.set()

    def finish(self, last: bytes = b"") -> None:
        """Send what is queued, then `last`, then end `run`. Notifications that were not begun are left out."""
        if self._last is None:
            self._last = last
        self._awake.set()

    async def run(self) -> None:
        """Write until `finish`, or until the client is gone (OSError)."""
        while True:
            if self._notification is not None:  # pulled before what was answered since: it has to stay before
                frame, self._notification = self._notification, None
                await self._send_notification(frame)
            elif self._replies:
                await self._send_replies()
            elif self._last is not None:
                await self._send_last(self._last)
                return
            elif self._is_pull_due:
                self._is_pull_due = False
                self._notification = await self._view(self._pull)
                self._is_pull_due = self._is_pull_due or self._notification is not None
            else:
                await self._sleep()

    async def _sleep(self) -> None:
        self._awake.clear()
        self._is_idle = True
        await self._awake.wait()
        self._is_idle = False

    async def _send_replies(self) -> None:
        batch, size = [], 0
        while self._replies and size < JOIN_LIMIT_BYTES:
            batch.append(self._replies.popleft())
            size += len(batch[-1])
        self._queued_bytes -= size
        failpoint("server.reply.before")
        await self._send(b"".join(batch) if len(batch) > 1 else batch[0])
        failpoint("server.reply.after")
        if len(self._replies) <= BACKLOG_LIMIT and self._queued_bytes <= BACKLOG_LIMIT_BYTES:
            self._has_room.set()

    async def _send_notification(self, frame: bytes) -> None:
        failpoint("server.notify.before")
        await self._send(frame)
        failpoint("server.notify.after")

    async def _send_last(self, frame: bytes) -> None:
        failpoint("server.goodbye.before")
        await self._send(frame)
        failpoint("server.goodbye.after")

    async def _send(self, frame: bytes) -> None:
        left = memoryview(frame)
        self._sending_bytes = len(left)
        while left:
            try:
                sent = self._sock.send(left)
            except BlockingIOError:
                await self._writable()
                continue
            left = left[sent:]
            self._sending_bytes = len(left)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_writer(self._sock, _settle, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._sock)


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
