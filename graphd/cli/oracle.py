"""The outside witness of `graphd demo --chaos`: a file that every node appends to, and what its lines prove. Pure.

Appends with O_APPEND are put one behind the other by the kernel, so the order of lines is the order in which things
happened.
"""

from collections import Counter
from dataclasses import dataclass

BEATS = 6
BEAT_S = 0.25


@dataclass(slots=True, frozen=True)
class Tally:
    """What the witness saw."""

    nodes: int
    started_once: int
    started_again: tuple[str, ...]
    never_ended: tuple[str, ...]
    double_live: tuple[str, ...]


def script(oracle: str, slug: str) -> str:
    """The work of one node: say start, beat a few times, say end. `oracle` is a quoted path."""
    return (
        f'say() {{ printf "%s {slug} %s\\n" "$1" "${{GRAPHD_ATTEMPT##*@}}" >> {oracle}; }}\n'
        f"say start\ni=0\nwhile [ $i -lt {BEATS} ]; do\n"
        f'  sleep {BEAT_S}\n  say beat\n  i=$((i+1))\n  echo "beat $i of {BEATS}" >&2\ndone\nsay end\n'
        f'echo "{slug} done"\n'
    )


def tally(lines: list[str], slugs: list[str]) -> Tally:
    """Count. Two attempts of a node were alive at once if the older one wrote after the younger one had started."""
    starts: Counter[str] = Counter()
    newest: dict[str, int] = {}
    ended: set[str] = set()
    doubled: dict[str, None] = {}
    for line in lines:
        parts = line.split()
        if len(parts) != 3 or not parts[2].isdecimal():
            continue
        kind, slug, number = parts[0], parts[1], int(parts[2])
        if kind == "start":
            starts[slug] += 1
            newest[slug] = max(newest.get(slug, 0), number)
        if number < newest.get(slug, 0):
            doubled[slug] = None
        if kind == "end":
            ended.add(slug)
    return Tally(
        nodes=len(slugs),
        started_once=sum(starts[slug] == 1 for slug in slugs),
        started_again=tuple(slug for slug in slugs if starts[slug] > 1),
        never_ended=tuple(slug for slug in slugs if slug not in ended),
        double_live=tuple(doubled),
    )
