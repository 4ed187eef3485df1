"""The tree of a graph as plain lines: order, indentation, notes, and what to fold away when there is no room. Pure.

It reads wire snapshots (dicts), knows neither colours nor the terminal, and costs one pass over the nodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphd.cli.words import SKIP_WORDS, duration, harmless, last_line

Wire = dict[str, Any]
MAX_DEPTH = 8
SETTLED = ("achieved", "skipped", "cancelled")


@dataclass(slots=True, frozen=True)
class Line:
    """One line of the tree. `state` is a node's state, `stuck`, or `folded` for one that stands for `count` nodes."""

    state: str
    stem: str
    slug: str
    time: str = ""
    attempt: str = ""
    note: str = ""
    count: int = 1


def arranged(nodes: list[Wire]) -> list[tuple[Wire, int]]:
    """Nodes in plan order, each after what it needs, with its wave (longest path from a root)."""
    by_slug = {n["slug"]: n for n in nodes}
    waves: dict[str, int] = {}
    order: list[str] = []
    for root in nodes:
        stack = [root["slug"]]
        while stack:
            slug = stack[-1]
            needs = [n for n in by_slug[slug]["needs"] if n in by_slug]
            missing = [n for n in needs if n not in waves]
            if slug in waves or not missing:
                stack.pop()
                if slug not in waves:
                    waves[slug] = 1 + max((waves[n] for n in needs), default=-1)
                    order.append(slug)
            else:
                stack.extend(reversed(missing))
    return [(by_slug[slug], waves[slug]) for slug in order]


def _stems(depths: list[int]) -> list[str]:
    """Guides left of the names: a corner at the last line of a level, bars while a level goes on below."""
    stems: list[str] = []
    open_levels: set[int] = set()  # levels that have another line below, before a shallower one
    for depth in reversed(depths):
        corner = "" if depth == 0 else ("├ " if depth in open_levels else "└ ")
        bars = "".join("│ " if level in open_levels else "  " for level in range(1, depth))
        stems.append(bars + corner)
        open_levels = {level for level in open_levels if level < depth} | {depth}
    return list(reversed(stems))


def lines_of(snapshot: Wire, activity: dict[str, Wire], now_ms: int) -> list[Line]:
    """The whole tree. `activity` maps slugs to the last `workgraph/activity` entry of a running node."""
    placed = arranged([n for n in snapshot["nodes"] if not _is_removed(n)])
    stems = _stems([min(wave, MAX_DEPTH) for _, wave in placed])
    states = {n["slug"]: n for n, _ in placed}
    limit = snapshot["limits"]["attemptsPerNode"]
    lines = []
    for (node, _), stem in zip(placed, stems, strict=True):
        act = activity.get(node["slug"], {}) if node["state"] == "running" else {}
        phase = act.get("phase") or node.get("phase")
        state = "stuck" if node["state"] == "running" and phase == "stuck" else node["state"]
        tries = node["attempts"]
        attempt = f"{tries}/{limit}" if tries > 1 else ""
        note = _note(node, states=states, act=act, phase=phase, now_ms=now_ms)
        lines.append(Line(state, stem, node["slug"], _time(node, now_ms), attempt, note))
    return lines


def _is_removed(node: Wire) -> bool:
    return "removedIn" in node


def _time(node: Wire, now_ms: int) -> str:
    started, ended = node.get("startedAt"), node.get("endedAt")
    if node["state"] == "running" and started:
        return duration(now_ms - started)
    return duration(ended - started) if started and ended and ended >= started else ""


def _note(node: Wire, *, states: dict[str, Wire], act: Wire, phase: str | None, now_ms: int) -> str:
    match node["state"]:
        case "running":
            return _running_note(act, phase)
        case "achieved":
            return last_line((node.get("output") or {}).get("text", ""))
        case "failed":
            failure = node.get("failure") or {}
            return harmless(f"{failure.get('class', 'failed')}: {failure.get('reason', '')}").split("\n")[0]
        case "blocked":
            return f"behind {node['blockedBy']}" if node.get("blockedBy") else ""
        case "skipped":
            return SKIP_WORDS.get(node.get("skip") or "", "")
        case "cancelled":
            return harmless(node.get("cancelReason") or "")
        case "ready":
            return _ready_note(node, phase, now_ms)
        case _:
            left = [s for s in node["needs"] if s in states and not is_settled(states[s])]
            return (
                "needs " + ", ".join(left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "") if left else ""
            )


def _running_note(act: Wire, phase: str | None) -> str:
    if phase and phase not in ("working", "starting"):
        return phase.replace("_", " ")
    return last_line(act.get("lastLine") or "")


def _ready_note(node: Wire, phase: str | None, now_ms: int) -> str:
    due = node.get("notBefore")
    if due and due > now_ms:
        return f"again in {duration(due - now_ms)}"
    return (phase or "").replace("_", " ")


def is_settled(node: Wire) -> bool:
    """As model.md, Node, has it."""
    return node["state"] in SETTLED or (node["state"] == "failed" and not node["required"])


def fitted(lines: list[Line], rows: int, *, keep: Sequence[str] = ()) -> list[Line]:
    """At most `rows` lines: runs of done nodes are folded first, then waiting ones, then what is left at the end.

    What runs, failed, is stuck or blocked stays visible for as long as there is any room; the nodes of `keep`
    do for longer, the first of them always.
    """
    if len(lines) <= rows:
        return lines
    for foldable in ({"achieved", "skipped", "cancelled"}, {"achieved", "skipped", "cancelled", "waiting"}):
        folded = _folded(lines, foldable, keep)
        if len(folded) <= rows:
            return folded
    telling = [line for line in lines if line.state in ("running", "stuck", "failed") or line.slug in keep]
    room = max(0, rows - 1)
    at = next((place for place, line in enumerate(telling) if line.slug in keep[:1]), 0)
    begin = max(0, at - room + 1)
    cut = telling[begin : begin + room]
    hidden = len(lines) - len(cut)
    return [*cut, Line("folded", "", f"and {hidden} more", count=hidden)]


def _folded(lines: list[Line], foldable: set[str], keep: Sequence[str]) -> list[Line]:
    """Runs of two and more lines of one foldable kind become one line."""
    result: list[Line] = []
    run: list[Line] = []
    for line in [*lines, None]:
        kind = None if line is not None and line.slug in keep else _kind(line, foldable)
        if run and kind != _kind(run[0], foldable):
            result.extend(run if len(run) < 2 else [_summary(run)])
            run = []
        if line is not None:
            if kind is None:
                result.append(line)
            else:
                run.append(line)
    return result


def _kind(line: Line | None, foldable: set[str]) -> str | None:
    if line is None or line.state not in foldable:
        return None
    return "waiting" if line.state == "waiting" else "done"


def _summary(run: list[Line]) -> Line:
    word = "waiting" if run[0].state == "waiting" else "done"
    return Line("folded", run[0].stem, f"{len(run)} {word}", count=len(run))


def counts_text(counts: dict[str, int]) -> str:
    """`2 running, 1 failed, 3 waiting`: what there is, in the order in which people ask for it."""
    order: Iterable[tuple[str, str]] = (
        ("running", "running"), ("ready", "ready"), ("failed", "failed"), ("blocked", "blocked"),
        ("skipped", "skipped"), ("cancelled", "cancelled"), ("waiting", "waiting"), ("achieved", "achieved"),
    )  # fmt: skip
    return ", ".join(f"{counts[key]} {word}" for key, word in order if counts.get(key))


def done_of_all(snapshot: Wire) -> tuple[int, int]:
    """How many nodes have come to an end, of how many."""
    nodes = [n for n in snapshot["nodes"] if not _is_removed(n)]
    return sum(n["state"] not in ("waiting", "ready", "running") for n in nodes), len(nodes)
