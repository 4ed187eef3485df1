"""Something that is wanted often and done seldom: soon after it is asked for, never more often than its interval."""

import asyncio
from collections.abc import Callable


class Pace:
    """Calls `act` after `delay_s`, at least `interval_s` after the last time. No timer while nobody asks."""

    def __init__(self, act: Callable[[], None], *, delay_s: float, interval_s: float) -> None:
        self._act = act
        self._delay_s = delay_s
        self._interval_s = interval_s
        self._last_s = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def touch(self) -> None:
        """Ask."""
        if self._timer is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            due_s = max(loop.time() + self._delay_s, self._last_s + self._interval_s)
            self._timer = loop.call_at(due_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self._last_s = asyncio.get_running_loop().time()
        self._act()

    def close(self) -> None:
        """Never again."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
