"""Waiting for a state in tests that have no loop of their own."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], *, limit_s: float = 30.0, said: Callable[[], str] = lambda: "") -> T:
    """The first truthy value of `look`. Raises AssertionError with what `said` says at the end of the time."""
    deadline = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s. {said()}"
        time.sleep(0.05)
    return found
