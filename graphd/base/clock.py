"""Clocks. Durations are monotonic, display is wall time, nothing is ordered by either (execution.md, Time)."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the rim hands to the core as `now`."""

    def now_ms(self) -> int:
        """Wall time in ms since the epoch, for display."""

    def monotonic_s(self) -> float:
        """Seconds on the clock that stops in sleep."""

    def slept_s(self) -> float:
        """Seconds that the machine has slept since it was booted; 0 where nobody knows."""


class SystemClock:
    """The real clocks."""

    def now_ms(self) -> int:
        """Wall time in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """CLOCK_MONOTONIC, in s; it stands still while the machine sleeps."""
        return time.monotonic()

    def slept_s(self) -> float:
        """CLOCK_BOOTTIME goes on in sleep, CLOCK_MONOTONIC does not."""
        if not hasattr(time, "CLOCK_BOOTTIME"):
            return 0.0
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
