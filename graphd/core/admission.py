"""What a profile allows to start now, over all graphs: its slots, its rest, one start after the other, memory.

Source: spec execution.md, One attempt 1, Provider weather.
"""

from typing import Final, Literal, NamedTuple

from graphd.core.commands import Capacity
from graphd.core.definition import Budget
from graphd.core.model import State
from graphd.core.weather import is_down, rest_of

Gate = Literal["slots", "rest", "stagger", "memory"]


class Admission(NamedTuple):
    """Whether a budget admits an attempt; `limit` is the rest of it where that is all that there is."""

    is_admitted: bool
    limit: Budget | None = None


ADMITTED: Final = Admission(is_admitted=True)


class Gates:
    """One look at all profiles. `wakes` collects when those that are held may start, in ms since the epoch."""

    def __init__(self, state: State, capacity: Capacity, now: int) -> None:
        self._state = state
        self._now = now
        self._caps = dict(capacity.per_profile)
        self._stagger_ms = dict(capacity.stagger_ms)
        self._memory_mb = capacity.memory_mb
        self._memory_mb_of = dict(capacity.memory_mb_of)
        self.wakes: list[int] = []

    def rests(self, profile: str) -> bool:
        """Its provider asked for a rest that is not over."""
        rest = rest_of(self._state, profile, self._now)
        if rest is not None:
            self.wakes.append(rest.until)
        return rest is not None

    def is_down(self, profile: str) -> bool:
        """It rests, and has again and again for long."""
        return is_down(self._state, profile, self._now)

    def hold(self, profile: str) -> Gate | None:
        """What keeps the profile from one more start; None where nothing does."""
        if self.rests(profile):
            return "rest"
        running = self._state.running_by_profile.get(profile, 0)
        if running >= self._caps.get(profile, running + 1):
            return "slots"
        if not self._has_memory(profile):
            return "memory"
        due = self._state.started_by_profile.get(profile, 0) + self._stagger_ms.get(profile, 0)
        if profile in self._stagger_ms and due > self._now:
            self.wakes.append(due)
            return "stagger"
        return None

    def _has_memory(self, profile: str) -> bool:
        """There is room for it, or nothing runs at all: what is too large for the machine is tried alone."""
        mine = self._memory_mb_of.get(profile, 0)
        if self._memory_mb is None or not mine or not self._state.running:
            return True
        taken = sum(count * self._memory_mb_of.get(name, 0) for name, count in self._state.running_by_profile.items())
        return taken + mine <= self._memory_mb
