"""Text for people: durations, counts, one-line excerpts, names of states. Pure, standard library alone."""

import re
import time
import unicodedata

STATUS_WORDS = {
    "active": "running",
    "user_paused": "paused",
    "infra_paused": "held up",
    "blocked": "blocked",
    "budget_limited": "out of budget",
    "complete": "complete",
    "cancelled": "cancelled",
}
SKIP_WORDS = {
    "condition_false": "its condition is false",
    "gate_not_accepted": "a gate did not accept",
    "no_input": "nothing that it needs was achieved",
    "finished_early": "the graph was finished early",
}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_SHORT_ID = 13


def duration(ms: float) -> str:
    """Milliseconds as people say them: `0.4s`, `12s`, `1m 04s`, `2h 05m`."""
    seconds = max(0.0, ms / 1000)
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def seconds_of(text: str) -> float:
    """Seconds in `30s`, `5m`, `2h`, `1m30s` or `90`. Raises ValueError for anything else, and for zero."""
    found = _DURATION.fullmatch(text.strip().replace(" ", ""))
    parts = [float(p) if p else 0.0 for p in found.groups()] if found else []
    total = parts[0] * 3600 + parts[1] * 60 + parts[2] if parts else 0.0
    if total <= 0:
        raise ValueError(f"{text!r} is not a duration")
    return total


def clock(ms: int) -> str:
    """A time of day, with the date when it is not today's."""
    then = time.localtime(ms / 1000)
    today = time.localtime()
    shape = "%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S"
    return time.strftime(shape, then)


def size(count: int) -> str:
    """Bytes as people say them."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 node`, `3 nodes`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def short_id(graph: str) -> str:
    """The start of a graph's id that is enough to name it: a UUIDv7's whole time, to the millisecond."""
    return graph[:_SHORT_ID]


def harmless(text: str) -> str:
    """`text` without what a terminal would obey: escape sequences, control and direction characters.

    Line breaks and tabs stay. Text of children is data (execution.md, Secrets and text).
    """
    if text.isprintable():
        return text
    bare = _ESCAPES.sub("", text)
    return "".join(c for c in bare if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf") or c == "\u200d")


def last_line(text: str) -> str:
    """The last line with something on it, harmless; a carriage return starts it again, as on a terminal."""
    for line in reversed(text.replace("\r\n", "\n").split("\n")):
        bare = harmless(line.rstrip("\r").rsplit("\r", 1)[-1]).strip()
        if bare:
            return bare.replace("\t", " ")
    return ""
