"""The writer of one connection: answers in the order in which they are ready, and at most one notification in flight.

It never queues a notification: when the socket can take bytes it pulls the next one, which is then as new as can
be. Answers are queued, and a long queue slows the reading of requests. What the socket takes at once is given to it
at once; its task writes only where a client is slower than that. Source: spec protocol.md, Notifications;
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
    """Owns the sending half of a non-blocking socket. `run` is its only task.

    `pull` gives the next notification, `pull_change` the next one of those that a commit makes due.
    """

    def __init__(
        self,
        sock: socket.socket,
        pull: Pull,
        view: Callable[[Pull], Awaitable[bytes | None]],
        pull_change: Pull | None = None,
    ) -> None:
        self._sock = sock
        self._pull = pull
        self._pull_change = pull_change or pull
        self._view = view
        self._replies: deque[bytes] = deque()
        self._queued_bytes = 0
        self._sending_bytes = 0
        self._begun = b""  # the rest of what the socket took in part: it has to go before anything else
        self._trouble: OSError | None = None
        self._is_pull_due = False
        self.is_idle = False
        """Nothing waits to be sent: a notification may be given to `notify`."""
        self._last: bytes | None = None
        self._awake = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def bytes_in_flight(self) -> int:
        """Bytes that the daemon holds for this client: what the kernel has not taken yet."""
        return self._queued_bytes + self._sending_bytes + len(self._begun)

    @property
    def frames_in_flight(self) -> int:
        """Frames that the daemon holds for this client."""
        return len(self._replies) + bool(self._begun) + (self._sending_bytes > 0)

    def reply(self, frame: bytes) -> None:
        """Send an answer, or queue it behind what was not sent yet."""
        if self.is_idle:
            try:
                self._go_on_with(self._put_replies(frame))
            except OSError as trouble:
                self._fail(trouble)
            return
        self._replies.append(frame)
        self._queued_bytes += len(frame)
        if len(self._replies) > BACKLOG_LIMIT or self._queued_bytes > BACKLOG_LIMIT_BYTES:
            self._has_room.clear()
        self._wake()

    async def room(self) -> None:
        """Wait until the queue of answers is short enough to read another request."""
        await self._has_room.wait()

    def pull_soon(self) -> None:
        """There may be a notification: pull when the socket can take it."""
        self._is_pull_due = True
        self._wake()

    def pull_now(self, state: State) -> None:
        """The same at a committed moment: an idle writer gives it to the socket at once, from this very state."""
        while self.is_idle:
            frame = self._pull_change(state)
            if frame is None:
                return
            self.notify(frame)
        self._is_pull_due = True

    def notify(self, frame: bytes) -> None:
        """Give the socket a notification that was pulled, where nothing waits to go before it."""
        try:
            failpoint("server.notify.before")
            try:
                sent = self._sock.send(frame)
            except BlockingIOError:
                sent = 0
            failpoint("server.notify.after")
            if sent < len(frame):
                self._is_pull_due = True
                self._go_on_with(frame[sent:])
        except OSError as trouble:  # the client is gone: no business of the commit's
            self._fail(trouble)

    def finish(self, last: bytes = b"") -> None:
        """Send what is queued, then `last`, then end `run`. Notifications that were not begun are left out."""
        if self._last is None:
            self._last = last
        self._wake()

    def _wake(self) -> None:
        """`run` has something to do; until it is done nothing goes past it."""
        self.is_idle = False
        self._awake.set()

    def _go_on_with(self, rest: bytes) -> None:
        if rest:
            self._begun = rest
            self._wake()

    def _fail(self, trouble: OSError) -> None:
        """Let `run` say that the client is gone; whoever had something to send goes on."""
        self._trouble = trouble
        self._wake()

    async def run(self) -> None:
        """Write until `finish`, or until the client is gone (OSError)."""
        while self._trouble is None:
            if self._begun:
                rest, self._begun = self._begun, b""
                await self._send(rest)
            elif self._replies:
                await self._send_replies()
            elif self._last is not None:
                await self._send_last(self._last)
                return
            elif self._is_pull_due:
                self._is_pull_due = False
                frame = await self._view(self._pull)
                if frame is not None:
                    self._is_pull_due = True
                    self.notify(frame)
            else:
                await self._sleep()
        raise self._trouble

    async def _sleep(self) -> None:
        self._awake.clear()
        self.is_idle = True
        await self._awake.wait()

    async def _send_replies(self) -> None:
        batch, size = [], 0
        while self._replies and size < JOIN_LIMIT_BYTES:
            batch.append(self._replies.popleft())
            size += len(batch[-1])
        self._queued_bytes -= size
        await self._send(self._put_replies(b"".join(batch) if len(batch) > 1 else batch[0]))
        if len(self._replies) <= BACKLOG_LIMIT and self._queued_bytes <= BACKLOG_LIMIT_BYTES:
            self._has_room.set()

    def _put_replies(self, frames: bytes) -> bytes:
        """Give the socket what it takes now; returns the rest."""
        failpoint("server.reply.before")
        try:
            sent = self._sock.send(frames)
        except BlockingIOError:
            sent = 0
        failpoint("server.reply.after")
        return frames[sent:]

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
