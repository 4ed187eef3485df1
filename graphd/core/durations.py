"""Durations and times as people write them: `90s`, `1h30m`, `2026-12-01T09:00+01:00`. Reads texts, never a clock."""

import re
from datetime import datetime
from typing import Final

MAX_MS: Final = 366 * 86_400_000
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+\Z")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int | None:
    """How long `500ms`, `90s`, `1h30m` or `2d` is; None for what is no duration, or one of more than a year."""
    text = text.strip()
    if not _WHOLE.match(text):
        return None
    total = round(sum(float(match.group(1)) * _UNITS[match.group(2)] for match in _PART.finditer(text)))
    return total if total <= MAX_MS else None


def moment_ms(text: str) -> int | None:
    """Which moment an ISO 8601 time with its offset or Z names, in ms since the epoch; None for what names none.

    Without an offset it would mean another moment on another machine.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return round(moment.timestamp() * 1000) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
