"""When an attempt's time is up: on the clock that stops in sleep, counted from its keeper's start, and movable.

A deadline that is told and neither moved nor answered by a stop is told again: whoever was told may have had a reason
to wait that is gone since.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

AGAIN_S: Final = 60.0


class DeadlineWatch:
    """`total_s` after the start somebody is told; None: never. `monotonic_s` and `doze` are for tests."""

    def __init__(
        self, total_s: float | None, *, monotonic_s: Callable[[], float] = time.monotonic,
        doze: "Callable[[asyncio.Event, float], Awaitable[None]] | None" = None,
    ) -> None:  # fmt: skip
        self._total_s = total_s
        self._monotonic_s = monotonic_s
        self._doze = doze or _until_set
        self._moved = asyncio.Event()

    def move(self, total_s: float) -> None:
        """The deadline is `total_s` after the start now: earlier or later than it was."""
        self._total_s = total_s
        self._moved.set()

    async def watch(self, started_s: float, late: Callable[[], Awaitable[None]]) -> None:
        """Call `late` whenever the time is up, until cancelled. `started_s` is on the monotonic clock."""
        while True:
            self._moved.clear()
            if self._total_s is None:
                await self._moved.wait()
                continue
            left_s = started_s + self._total_s - self._monotonic_s()
            if left_s <= 0:
                await late()
                left_s = AGAIN_S
            if not self._moved.is_set():
                await self._doze(self._moved, left_s)


async def _until_set(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
