"""What shows a graph while it is followed: a live tree on a terminal, plain lines elsewhere, nothing for `--json`."""

import sys
from typing import Any, Protocol

from graphd.cli.plain import PlainLines

Wire = dict[str, Any]


class View(Protocol):
    """What shows a graph while it is followed: `Screen` on a terminal, `PlainLines` in a pipe."""

    def open(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End; the last value stays visible."""

    def show(self, snapshot: Wire, activity: dict[str, Wire]) -> None:
        """A newer value."""

    def note(self, text: str, style: str = ...) -> None:
        """A line beside the tree."""

    def ask(self, text: str) -> None:
        """A question; the empty text takes it away."""

    def bell(self) -> None:
        """A person is wanted."""


class Silence:
    """The view of `--json`: stdout belongs to the objects, and nothing is said on stderr."""

    def open(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""

    def show(self, snapshot: Wire, activity: dict[str, Wire]) -> None:
        """Nothing."""

    def note(self, text: str, style: str = "") -> None:
        """Nothing."""

    def ask(self, text: str) -> None:
        """Nothing."""

    def bell(self) -> None:
        """Nothing."""


def view_for(*, as_json: bool) -> View:
    """The live tree on a terminal, plain lines elsewhere, nothing beside `--json`."""
    if as_json:
        return Silence()
    if not sys.stdout.isatty():
        return PlainLines()
    from graphd.cli.screen import Screen, can_draw

    return Screen() if can_draw() else PlainLines()
