"""Progress as plain lines, one a change: what a pipe, a log or a dumb terminal gets. Standard library alone."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from graphd.cli.closing import closing
from graphd.cli.tree import lines_of
from graphd.cli.words import STATUS_WORDS, harmless

Wire = dict[str, Any]


class PlainLines:
    """Tells on `stream` (stderr, so that stdout holds only what was asked for) what moved since the last value."""

    def __init__(self, stream: TextIO | None = None, now_ms: Callable[[], int] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._now_ms = now_ms or (lambda: int(time.time() * 1000))
        self._told: dict[str, tuple[str, int]] = {}
        self._status = ""

    def open(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Nothing to put back."""

    def show(self, snapshot: Wire, activity: dict[str, Wire]) -> None:
        """Print a line for the graph and each node whose state changed; a first value prints what is not waiting."""
        self._say_status(snapshot)
        lines = {line.slug: line for line in lines_of(snapshot, activity, self._now_ms())}
        for node in snapshot["nodes"]:
            line = lines.get(node["slug"])
            if line is None:
                continue
            key = (line.state, node["attempts"])
            if self._told.get(node["slug"]) == key:
                continue
            is_news = node["slug"] in self._told or line.state not in ("waiting", "ready")
            self._told[node["slug"]] = key
            if is_news and line.state != "ready":
                took = "" if line.state == "running" else line.time
                parts = [line.state.ljust(9), line.slug, took, line.attempt and f"try {line.attempt}", line.note]
                self._say("  " + "  ".join(p for p in parts if p))

    def _say_status(self, snapshot: Wire) -> None:
        stopping = snapshot.get("stopping")
        status = STATUS_WORDS[snapshot["status"]] + (f", {stopping['verb']} wanted" if stopping else "")
        if status == self._status:
            return
        reason = harmless(snapshot.get("pauseReason") or "")
        is_over = snapshot["status"] in ("complete", "cancelled")
        self._status = status
        if not is_over:
            self._say(f"{harmless(snapshot['title'])}: {status}" + (f" ({reason})" if reason else ""))

    def note(self, text: str, style: str = "") -> None:
        """Print a line as it is."""
        self._say(text)

    def ask(self, text: str) -> None:
        """Print the question, if there is one."""
        if text:
            self._say(text)

    def bell(self) -> None:
        """Not where nobody listens."""

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def ending(snapshot: Wire) -> str:
    """The closing line for people: what happened and what to type next."""
    happened, command = closing(snapshot)
    return f"{happened}\n  {command}"
