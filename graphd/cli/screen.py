"""The live tree on a terminal, drawn with rich: a title, the nodes, what is going on, and a line for questions.

The only module that imports rich. Everything that is shown comes from `tree` and passes through `harmless`.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from graphd.cli.closing import closing
from graphd.cli.tree import Line, counts_text, done_of_all, fitted, lines_of
from graphd.cli.words import STATUS_WORDS, duration, harmless

Wire = dict[str, Any]
FRAMES_PER_S = 8
_BESIDE_TITLE = 40  # status, counts and time stand beside it
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
        self._live: Live | None = None
        self._ticker: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to draw, `FRAMES_PER_S` times a second while something moves."""
        self._live = Live(console=self.console, auto_refresh=False, transient=False, vertical_overflow="crop")
        self._live.start()
        self._ticker = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """Leave the last frame standing and give the terminal back."""
        if self._ticker is not None:
            self._ticker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticker
        if self._live is not None:
            self._question = ""
            self._draw()
            self._live.stop()

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
        if self._live is not None and self._snapshot is not None:
            self._live.update(self.frame(self._snapshot), refresh=True)

    def frame(self, snapshot: Wire) -> Group:
        """One picture of the graph, no higher than the terminal."""
        now = self._now_ms()
        width = self.console.width
        rows = max(3, self.console.height - 4 - len(self._notes) - bool(self._question))
        lines = fitted(lines_of(snapshot, self._activity, now), rows)
        name_cells = min(max((cell_len(x.stem + x.slug) for x in lines), default=0), max(12, width // 2))
        has_attempts = any(line.attempt for line in lines)
        drawn = [self._title(snapshot, now)]
        drawn.extend(self._line(line, name_cells=name_cells, width=width, attempts=has_attempts) for line in lines)
        drawn.append(self._footer(snapshot))
        drawn.extend(Text(text, style=style, no_wrap=True, overflow="ellipsis") for text, style in self._notes)
        if self._question:
            drawn.append(Text(self._question, style="bold", no_wrap=True, overflow="ellipsis"))
        return Group(*drawn)

    def _title(self, snapshot: Wire, now: int) -> Text:
        status = snapshot["status"]
        done, total = done_of_all(snapshot)
        end = now if status == "active" or snapshot.get("stopping") else snapshot["updatedAt"]
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(_clipped(snapshot["title"], max(10, self.console.width - _BESIDE_TITLE)), style="bold")
        stopping = snapshot.get("stopping")
        word = f"{STATUS_WORDS[status]}, {stopping['verb']} wanted" if stopping else STATUS_WORDS[status]
        if snapshot.get("outcome") in ("withFailures", "rejected"):
            word += " with failures" if snapshot["outcome"] == "withFailures" else ", rejected"
        text.append("  " + word, style=_STATUS_STYLES.get(status, "bold yellow"))
        return text.append(f"  {done} of {total}  {duration(end - snapshot['createdAt'])}", style="bright_black")

    def _line(self, line: Line, *, name_cells: int, width: int, attempts: bool) -> Text:
        mark, style = _MARKS[line.state]
        if line.state == "running":
            mark = _SPINNER[self._now_ms() * FRAMES_PER_S // 1000 % len(_SPINNER)]
        if not self._is_unicode:
            mark = _PLAIN_MARKS[line.state]
        stem = line.stem if self._is_unicode else line.stem.translate(str.maketrans("├└│", "|`|"))
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f" {stem}", style="bright_black").append(mark, style=style)
        name = set_cell_size(line.slug, max(1, name_cells - cell_len(line.stem)))
        text.append(f" {name}", style="bright_black" if line.state in ("waiting", "folded", "skipped") else "")
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


def can_draw() -> bool:
    """Whether stdout is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
