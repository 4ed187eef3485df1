"""Provider weather as pure functions: how long a profile stays away.

What weather looks like is in the profiles (patterns) and in `acp.weather`, which reads it. Times in s. The jitter comes
from a seed, so that a replay waits as long as the first run did. Source: execution.md, Provider weather.
"""

import hashlib
from typing import Final

from graphd.children.profiles.shape import Weather

LONGEST_S: Final = 3600.0


def cooldown_s(weather: Weather, *, in_row: int, seed: str, retry_after_s: float | None = None) -> float:
    """How long a profile rests after the `in_row`-th trouble of a row (from 1).

    Doubled each time, at most an hour, never less than what the provider asked for, and up to a quarter longer by a
    jitter that `seed` decides: nodes that failed together must not come back together.
    """
    plain = min(weather.cooldown_s * float(1 << min(max(in_row, 1) - 1, 16)), LONGEST_S)
    return max(plain, retry_after_s or 0.0) * (1 + jitter(seed) / 4)


def jitter(seed: str) -> float:
    """A number from 0 to below 1 that is the same for the same seed."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:6], "big") / (1 << 48)
