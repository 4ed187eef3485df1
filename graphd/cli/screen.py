"""The live tree on a terminal, drawn with rich: a title, the nodes, what is going on, questions, and the keys.

Only this module, `paper` and `keybar` import rich. All that is shown comes from `tree` and passes through `harmless`.
"""

import asyncio
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.text import Text

from graphd.cli.closing import closing
from graphd.cli.details import details_of
from graphd.cli.keybar import Keys
from graphd.cli.paper import Paper
from graphd.cli.steering import Face
from graphd.cli.tree import Line, counts_text, done_of_all, fitted, lines_of
from graphd.cli.words import STATUS_WORDS, duration, harmless

Wire = dict[str, Any]
FRAMES_PER_S = 8
_LEAST_TITLE = 10
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS = {
    "achieved": ("✓", "green"), "failed": ("✗", "bold red"), "blocked": ("■", "yellow"),
    "skipped": ("–", "bright_black"), "cancelled": ("✕", "bright_black"), "waiting": ("○", "bright_black"),
    "ready": ("◌", "cyan"), "running": ("●", "bold cyan"), "stuck": ("!", "bold yellow"),
    "folded": ("⋯", "bright_black"),
}  # fmt: skip
_PLAIN_MARKS = {
    "achieved": "+", "failed": "x", "blocked": "#", "skipped": "-", "cancelled": "-", "waiting": ".",
    "ready": "o", "running": "*", "stuck": "!", "folded": "~",
}  # fmt: skip
_STATUS_STYLES = {
    "active": "bold cyan", "complete": "bold green", "blocked": "bold red", "cancelled": "bright_black",
}  # fmt: skip
_NOTE_STYLES = {"failed": "red", "stuck": "yellow", "blocked": "yellow", "running": ""}
_QUESTION_LINES = 4
_LEAST_ROWS = 3


class Screen:
    """Draws one graph until it is closed. Not thread-safe: it lives on the loop, which it shares with the follower."""

    def __init__(self, console: Console | None = None, now_ms: Callable[[], int] | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._now_ms = now_ms or (lambda: int(time.time() * 1000))
        self._is_unicode = self.console.encoding.lower().startswith("utf")
        self._snapshot: Wire | None = None
        self._activity: dict[str, Wire] = {}
        self._notes: list[tuple[str, str]] = []
        self._question = ""
        self.face = Face()
        self._paper: Paper | None = None
        self._ticker: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to draw, `FRAMES_PER_S` times a second while something moves."""
        self._paper = Paper(self.console)
        self._paper.open()
        self._ticker = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """Leave the last frame standing, without keys, and give the terminal back."""
        if self._ticker is not None:
            self._ticker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticker
        if self._paper is not None:
            self._question, self.face = "", Face()
            self._draw()
            self._paper.close()

    def rest(self) -> None:
        """Give the terminal away for a while."""
        if self._paper is not None:
            self._paper.close()

    def go_on(self) -> None:
        """Draw again, below what was written meanwhile."""
        if self._paper is not None:
            self._paper.open()
            self._draw()

    def above(self, *lines: str) -> None:
        """Say lines that stay: they go into the terminal's scrollback, and the tree goes on below them."""
        if self._paper is not None and lines:
            self._paper.above("\n".join(lines))
            self._draw()

    def show(self, snapshot: Wire, activity: dict[str, Wire]) -> None:
        """Take a newer value; it is drawn with the next frame."""
        self._snapshot, self._activity = snapshot, activity

    def note(self, text: str, style: str = "yellow") -> None:
        """Keep a line below the tree: a restart of the daemon, a notice."""
        self._notes = [*self._notes[-2:], (text, style)]

    def ask(self, text: str) -> None:
        """Show a question below the tree; the empty text takes it away."""
        self._question = text
        self._draw()

    def bell(self) -> None:
        """Ring, once."""
        self.console.bell()

    async def _tick(self) -> None:
        while True:
            begun = time.monotonic()
            self._draw()
            cost_s = time.monotonic() - begun
            await asyncio.sleep(max(1 / FRAMES_PER_S, 8 * cost_s))  # a graph of thousands may not eat the loop

    def _draw(self) -> None:
        if self._paper is not None and self._snapshot is not None:
            self._paper.draw(self.frame(self._snapshot))

    def frame(self, snapshot: Wire) -> Group:
        """One picture of the graph, no higher than the terminal."""
        now = self._now_ms()
        below = [self._footer(snapshot)]
        below += [Text(text, style=style, no_wrap=True, overflow="ellipsis") for text, style in self._notes]
        keys = Keys(self.console.width - 1, is_unicode=self._is_unicode)
        below += self._said() + keys.bar(self.face.keys)
        room = max(_LEAST_ROWS, self.console.height - 2 - len(below))
        middle = keys.help(self.face.keys, room) if self.face.has_help else self._tree(snapshot, now, room)
        return Group(self._title(snapshot, now), *middle, *below)

    def _tree(self, snapshot: Wire, now: int, room: int) -> list[Text]:
        """The nodes, and below the open one what is known of it."""
        width = self.console.width
        opened = self.face.opened
        details = details_of(snapshot, opened, self._activity, now) if opened else []
        details = details[: max(0, room - _LEAST_ROWS)]
        keep = [slug for slug in (self.face.selected, opened) if slug]
        lines = fitted(lines_of(snapshot, self._activity, now), room - len(details), keep=keep)
        name_cells = min(max((cell_len(x.stem + x.slug) for x in lines), default=0), max(12, width // 2))
        has_attempts = any(line.attempt for line in lines)
        drawn = []
        for line in lines:
            drawn.append(self._line(line, name_cells=name_cells, width=width, attempts=has_attempts))
            if opened and line.slug == opened:
                drawn += [Text(_clipped(f"     {text}", width - 1), style="bright_black") for text in details]
        return drawn

    def _said(self) -> list[Text]:
        """What the last key came to, and the question, on as many lines as they need: its keys stand at its end."""
        face = self.face
        said = [(face.hint, face.hint_style)] if face.hint else []
        said += [(self._question, "bold")] if self._question else []
        width = max(10, self.console.width - 1)
        return [Text(line, style=style, no_wrap=True) for text, style in said for line in flowed(text, width)]

    def _title(self, snapshot: Wire, now: int) -> Text:
        status = snapshot["status"]
        done, total = done_of_all(snapshot)
        end = now if status == "active" or snapshot.get("stopping") else snapshot["updatedAt"]
        stopping = snapshot.get("stopping")
        word = f"{STATUS_WORDS[status]}, {stopping['verb']} wanted" if stopping else STATUS_WORDS[status]
        if snapshot.get("outcome") in ("withFailures", "rejected"):
            word += " with failures" if snapshot["outcome"] == "withFailures" else ", rejected"
        beside = f"  {done} of {total}  {duration(end - snapshot['createdAt'])}"
        room = max(_LEAST_TITLE, self.console.width - cell_len(word + beside) - 2)
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(_clipped(snapshot["title"], room), style="bold")
        text.append("  " + word, style=_STATUS_STYLES.get(status, "bold yellow"))
        return text.append(beside, style="bright_black")

    def _line(self, line: Line, *, name_cells: int, width: int, attempts: bool) -> Text:
        mark, style = _MARKS[line.state]
        if line.state == "running":
            mark = _SPINNER[self._now_ms() * FRAMES_PER_S // 1000 % len(_SPINNER)]
        if not self._is_unicode:
            mark = _PLAIN_MARKS[line.state]
        stem = line.stem if self._is_unicode else line.stem.translate(str.maketrans("├└│", "|`|"))
        text = Text(no_wrap=True, overflow="ellipsis")
        is_selected = line.slug == self.face.selected
        text.append("›" if is_selected and self._is_unicode else ">" if is_selected else " ", style="bold cyan")
        text.append(stem, style="bright_black").append(mark, style=style)
        name = set_cell_size(line.slug, max(1, name_cells - cell_len(line.stem)))
        tone = "bright_black" if line.state in ("waiting", "folded", "skipped") else ""
        text.append(f" {name}", style="bold" if is_selected else tone)
        text.append(f" {line.time:>8}", style="bright_black")
        text.append(f" {line.attempt:>4}  " if attempts else "  ", style="magenta")
        room = max(0, width - cell_len(text.plain) - 1)
        return text.append(
            _clipped(line.note, room) if room else "", style=_NOTE_STYLES.get(line.state, "bright_black")
        )

    def _footer(self, snapshot: Wire) -> Text:
        if snapshot["status"] == "active":
            return Text(" " + counts_text(snapshot["counts"]), style="bright_black", no_wrap=True)
        reason = harmless(snapshot.get("pauseReason") or "")
        text = f" {reason}" if reason else " " + closing(snapshot)[0]
        return Text(text, style="bright_black", no_wrap=True, overflow="ellipsis")


def _clipped(text: str, cells: int) -> str:
    """`text` on one line, no wider than `cells`."""
    line = harmless(text).replace("\n", " ")
    return line if cell_len(line) <= cells else set_cell_size(line, cells - 1) + "…"


def flowed(text: str, width: int) -> list[str]:
    """A question on few lines: its answers, each behind three spaces, are kept whole before its words are."""
    text = " ".join(text.split("\n"))
    if cell_len(text) <= width:
        return [text]
    head, *answers = text.split("   ")
    below: list[str] = []
    for answer in answers:
        if below and cell_len(below[-1]) + cell_len(answer) + 3 <= width:
            below[-1] += f"   {answer}"
        else:
            below.append(answer)
    below = [line for answer in below for line in _wrapped(answer, width)]
    above = _wrapped(head, width)
    room = max(1, _QUESTION_LINES - len(below))
    if len(above) > room:
        above = [*above[: room - 1], _clipped(f"{above[room - 1]} …", width)]
    return above + below


def _wrapped(text: str, width: int) -> list[str]:
    return [line.plain.rstrip() for line in Text(text).wrap(Console(width=width, file=io.StringIO()), width)]


def can_draw() -> bool:
    """Whether stdout is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
