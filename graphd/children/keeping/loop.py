"""The keeper's loop: one epoll and a few one-shot timers. Nothing wakes it while nothing is due."""
# contextlib would cost each keeper its import, so:
# ruff: noqa: SIM105

from __future__ import annotations

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.EPOLLIN
WRITE = select.EPOLLOUT


class Loop:
    """Calls what is ready or due, until `is_done`. One thread."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, tuple[int, Callable[[int], None]]] = {}
        self._timers: dict[str, tuple[float, Callable[[], None]]] = {}
        self.is_done = False

    def watch(self, fd: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler(mask)` whenever `fd` is ready for `mask`."""
        if fd not in self._handlers:
            self._poll.register(fd, mask)
        elif self._handlers[fd][0] != mask:
            self._poll.modify(fd, mask)
        self._handlers[fd] = (mask, handler)

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; harmless when it is not watched, or closed: a closed one left the epoll by itself."""
        if self._handlers.pop(fd, None):
            try:
                self._poll.unregister(fd)
            except OSError:
                pass

    def after(self, name: str, delay_s: float, action: Callable[[], None]) -> None:
        """Call `action` once, in `delay_s` on the clock that stops in sleep; a timer of the same name is replaced."""
        self._timers[name] = (time.monotonic() + delay_s, action)

    def forget(self, *names: str) -> None:
        """Drop timers; harmless when they are not set."""
        for name in names:
            self._timers.pop(name, None)

    def run(self) -> None:
        """Serve until `is_done`."""
        while not self.is_done:
            due = min((at for at, _ in self._timers.values()), default=None)
            wait_s = None if due is None else max(0.0, due - time.monotonic())
            for fd, mask in self._poll.poll(wait_s):
                if fd in self._handlers:
                    self._handlers[fd][1](mask)
            now = time.monotonic()
            for name in [name for name, (at, _) in self._timers.items() if at <= now]:
                timer = self._timers.pop(name, None)
                if timer:
                    timer[1]()
