"""Words for drawings: marks of states, names cut to size, and a picture's twin in words. Pure.

The twin has one line a node, with its state and what it needs in words, so that it reads well aloud and in a terminal
of 80 to 120 columns. Source: spec protocol.md (`picture`).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

MARKS: Final = {
    "achieved": "✓",
    "failed": "✗",
    "blocked": "■",
    "skipped": "–",
    "cancelled": "✕",
    "waiting": "○",
    "ready": "◌",
    "running": "●",
}
LINE_COLUMNS: Final = 110
NAME_COLUMNS: Final = 32
_NAMED_LIMIT: Final = 20


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def shortened(text: str, limit: int) -> str:
    """One line of at most `limit` columns."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if columns(flat) <= limit:
        return flat
    while columns(flat) >= limit:
        flat = flat[:-1]
    return f"{flat.rstrip()}…"


def named(names: Sequence[str], *, limit: int) -> str:
    """`a, b, c and 4 more`."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def twin(
    title: str,
    layers: Sequence[Sequence[str]],
    needs: Mapping[str, Sequence[str]],
    states: Mapping[str, str],
    *,
    hidden: int,
) -> str:
    """The picture in words. `needs` may name nodes that are not drawn."""
    count = len(states)
    head = f"{shortened(title, 80)}: {count} {'node' if count == 1 else 'nodes'}"
    lines = [f"{head} in {len(layers)} {'layer' if len(layers) == 1 else 'layers'}" if layers else head]
    if hidden:
        lines.append(f"{hidden} more are not drawn: these are the ones around what runs and what failed")
    width = min(max(map(len, states), default=0), NAME_COLUMNS)
    for number, layer in enumerate(layers, 1):
        lines.append(f"{'┌' if number == 1 else '├'} layer {number}")
        lines += [f"│ {_line(slug, states[slug], needs[slug], width)}" for slug in layer]
    if layers:
        lines[-1] = "└" + lines[-1][1:]
    return "\n".join(lines) + "\n"


def _line(slug: str, state: str, needs: Sequence[str], width: int) -> str:
    line = f"{MARKS[state]} {slug:<{width}}  {state:<9}"
    if not needs:
        return line.rstrip()
    shown = min(len(needs), _NAMED_LIMIT)
    while shown > 1 and len(line) + len(named(needs, limit=shown)) + 8 > LINE_COLUMNS:
        shown -= 1
    return f"{line}  needs {named(needs, limit=shown)}"
