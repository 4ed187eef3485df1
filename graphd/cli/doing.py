"""What the keys of the live tree come to: verbs are sent; reasons, patches and outputs are said above it, and stay."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from graphd.base.text import t
from graphd.cli.differing import beside, patch_lines
from graphd.cli.exits import CommandRefused
from graphd.cli.options import colour
from graphd.cli.past import why_lines
from graphd.cli.printed import observed
from graphd.cli.speech import say
from graphd.cli.talk import call, call_once, open_session
from graphd.cli.words import harmless, short_id

if TYPE_CHECKING:
    from graphd.cli.screen import Screen
    from graphd.client.session import Session

Wire = dict[str, Any]
LINES_AT_ONCE: Final = 200
"""Of a patch, and of what a node printed within one beat."""
HELD_CHARS: Final = 1 << 20
"""Of a line that does not end, and of what came within one beat."""
BEAT_S: Final = 0.125


class Doing:
    """The deeds of one follower. Every one of them is a task that the follower ends with itself."""

    def __init__(
        self, workspace: Path | None, graph: str, screen: "Screen", *,
        begin: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]], leave: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._workspace = workspace
        self._graph = graph
        self._screen = screen
        self._begin = begin
        self._following: asyncio.Task[None] | None = None
        self._ended = ended
        self.leave = leave

    def ask(self, text: str) -> None:
        """A question below the tree."""
        self._screen.ask(harmless(text))

    def send(self, verb: str, **params: Any) -> None:
        """A verb of the graph, applied once."""
        self._begin(self._asked(verb, lambda session: self._sent(session, verb, params)))

    async def _sent(self, session: "Session", verb: str, params: Wire) -> None:
        await call_once(session, f"workgraph/{verb}", {"graph": self._graph, **params})

    async def _asked(self, what: str, work: Callable[["Session"], Coroutine[Any, Any, None]]) -> None:
        """Work with a session of its own; a refusal is a line with its hint."""
        try:
            session = await open_session(self._workspace)
            try:
                await work(session)
            finally:
                await session.close()
        except CommandRefused as refusal:
            hint = f"  ({refusal.hint})" if refusal.hint else ""
            self._refused(f"{what}: {refusal.message}{hint}")

    def _refused(self, text: str) -> None:
        self._screen.face.hint, self._screen.face.hint_style = harmless(text), "red"

    # ---- above the tree -------------------------------------------------------------------------------------------

    def tell(self, what: str, node: str) -> None:
        """`why` or `diff` of a node."""
        self._begin(self._asked(what, lambda session: self._told(session, what, node)))

    async def _told(self, session: "Session", what: str, node: str) -> None:
        found = await call(session, f"workgraph/{what}", {"graph": self._graph, "node": node})
        if what == "why":
            lines = [line for why in found for line in why_lines(node, why)]
        else:
            patch = patch_lines(found)
            lines = [*beside(found), *(patch if colour() else map(click.unstyle, patch))]
            more = len(lines) - LINES_AT_ONCE
            if more > 0:
                rest = t("… {count} more lines:", count=more)
                lines = [*lines[:LINES_AT_ONCE], f"{say(rest)} graphd diff {node} --graph {short_id(self._graph)}"]
        self._screen.above(_rule(f"{what} {node}"), *lines)

    def follow_output(self, node: str | None) -> None:
        """What a node prints, from its beginning on; None ends it."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
        if node is not None:
            self._following = self._begin(self._printed(node))

    async def _printed(self, node: str) -> None:
        lines = Lines(f"graphd logs {node} --graph {short_id(self._graph)}")
        self._screen.above(_rule(f"output {node}"))
        reading = asyncio.create_task(self._read(node, lines))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=BEAT_S)
                self._screen.above(*lines.take())
            await reading
            self._screen.above(*lines.take(is_all=True), _rule(say(t("{node}: its output has ended", node=node))))
        except CommandRefused as refusal:
            self._refused(f"output: {refusal.message}")
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._ended(node)

    async def _read(self, node: str, lines: "Lines") -> None:
        async for item in observed(self._workspace, self._graph, node, attempt=None, follow=True):
            lines.add(item.get("text") or "")


class Lines:
    """Text in pieces becomes whole lines; of a flood within one beat the last ones. `whole`: where all of it is."""

    def __init__(self, whole: str) -> None:
        self._whole = whole
        self._held = ""
        self._is_cut = False

    def add(self, text: str) -> None:
        """More of it."""
        self._held += text
        if len(self._held) > HELD_CHARS:
            self._held, self._is_cut = self._held[-HELD_CHARS:], True

    def take(self, *, is_all: bool = False) -> list[str]:
        """The lines that are whole by now; at the end the last one too."""
        text, mark, rest = self._held.rpartition("\n")
        if is_all:
            text, mark, rest = self._held.rstrip("\n"), self._held, ""
        if not mark:
            return []
        lines = harmless(text).split("\n")
        is_cut, self._held, self._is_cut = self._is_cut or len(lines) > LINES_AT_ONCE, rest, False
        left_out = [f"{say(t('… some is left out:'))} {self._whole}"] if is_cut else []
        return [*left_out, *lines[-LINES_AT_ONCE:]]


def _rule(title: str) -> str:
    return f"── {title} ──"
