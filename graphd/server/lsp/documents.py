"""The workflow files that one editor has open: its own text of each, whatever is on the disk or in other editors.

A text is understood in a thread, once per version, and kept with its analysis; the one before serves while the newest
does not parse. Source: spec protocol.md, Language features (text belongs to the connection).
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from graphd.daemon.log import log
from graphd.server.errors import where
from graphd.server.hello import file_path
from graphd.server.lsp.texts import Text

if TYPE_CHECKING:
    from lsprotocol import types

    from graphd.workflows.language import Analysis

T = TypeVar("T")
Json = dict[str, Any]
Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
OPEN_LIMIT: Final = 256
WORK_LIMIT: Final = 20_000_000  # characters that one notification may have us read again: half a second


class Document:
    """One open file. `path` is its real path, None where it has none yet; `name` the stem that names the workflow."""

    def __init__(self, uri: str, text: Text, *, version: int, workspace: Path, spawn: Spawn) -> None:
        named = file_path(uri)
        self.uri = uri
        self.text = text
        self.version = version
        self.path = os.path.realpath(named) if named is not None else None
        self.name = PurePosixPath(named).stem if named is not None else None
        self._workspace = workspace
        self._spawn = spawn
        self._latest: Analysis | None = None
        self._latest_text: Text | None = None
        self._coming: asyncio.Future[Analysis] | None = None
        self._coming_text: Text | None = None
        self._turn = asyncio.Lock()

    def change(self, changes: "tuple[types.TextDocumentContentChangeEvent, ...]", encoding: str, version: int) -> bool:
        """Apply what the editor changed, in its order; False where that would hold everybody up: then nothing is."""
        if len(changes) * len(self.text.text) > WORK_LIMIT:
            return False
        for change in changes:
            span = getattr(change, "range", None)
            if span is None:
                self.text = Text(change.text, encoding)
                continue
            start = self.text.place(span.start.line, span.start.character)
            end = self.text.place(span.end.line, span.end.character)
            self.text = self.text.replaced(start, end, change.text)
        self.version = version
        return True

    def forget(self) -> None:
        """Something that the analysis rests on has changed on the disk."""
        self._latest_text = None

    async def analysed(self) -> "tuple[Text, Analysis]":
        """The text as it is now, understood."""
        text = self.text
        if self._latest is not None and self._latest_text is text:
            return text, self._latest
        if self._coming is None or self._coming_text is not text or self._coming.cancelled():
            self._coming, self._coming_text = asyncio.get_running_loop().create_future(), text
            self._spawn(partial(self._analyse, text, self._coming))
        return text, await asyncio.shield(self._coming)

    async def _analyse(self, text: Text, coming: "asyncio.Future[Analysis]") -> None:
        try:
            async with self._turn:
                analysis = await asyncio.to_thread(_understand, text.text, self.name, self._latest, self._workspace)
        except asyncio.CancelledError:
            coming.cancel()
            raise
        except Exception as trouble:  # noqa: BLE001 -- whoever waits is told
            log("lsp_analysis_failed", **where(trouble))
            coming.set_exception(trouble)
            coming.exception()  # seen: there may be nobody who waits any more
            return
        finally:
            if self._coming is coming:
                self._coming = self._coming_text = None
        self._latest, self._latest_text = analysis, text
        if not coming.done():
            coming.set_result(analysis)


class Documents:
    """The open documents of one editor, by URI."""

    def __init__(self) -> None:
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Any:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def get(self, uri: str) -> Document | None:
        """The open workflow file at this URI; None where it is not open, or is no workflow."""
        return self._open.get(uri)

    def open(self, document: Document) -> bool:
        """Keep it; False where too many are open."""
        if len(self._open) >= OPEN_LIMIT and document.uri not in self._open:
            return False
        self._open[document.uri] = document
        return True

    def close(self, uri: str) -> Document | None:
        """Forget it."""
        return self._open.pop(uri, None)


def _understand(text: str, name: str | None, previous: "Analysis | None", workspace: Path) -> "Analysis":
    """In a thread: reads prompt files, and works out what nearly every request asks for."""
    from graphd.workflows import language, prompt_reader

    made = language.analyse(text, name=name, previous=previous, read_prompt=prompt_reader(workspace))
    _ = made.nodes, made.mentions
    return made
