"""Places in a text that an editor shows: lines and columns in code points, and back to offsets.

The language server turns columns into utf-8, utf-16 or utf-32 units; nothing in this package knows of those. Offsets
count from after a BOM, as the parser does; columns count the BOM, as an editor that shows it does.
"""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final, NamedTuple

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_BOM: Final = "\ufeff"


class Point(NamedTuple):
    """Zero-based line, and column in code points."""

    line: int
    column: int


class Span(NamedTuple):
    """From start to end, the end excluded."""

    start: Point
    end: Point


class Page:
    """A text with its lines. Lines end where editors end them: after LF, CR LF or CR."""

    def __init__(self, text: str) -> None:
        self.bom = 1 if text.startswith(_BOM) else 0
        self.body = text[self.bom :]

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line's first character."""
        return [0, *(match.end() for match in _BREAK.finditer(self.body))]

    @cached_property
    def line_break(self) -> str:
        """How this file ends its lines."""
        match = _BREAK.search(self.body)
        return match.group() if match else "\n"

    def line_of(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self.starts, offset) - 1

    def line(self, number: int) -> str:
        """The text of a line without its break."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.body)
        return self.body[self.starts[number] : end].rstrip("\r\n")

    def at(self, offset: int) -> Point:
        """Where an offset is; outside the text, at its near end."""
        offset = max(0, min(offset, len(self.body)))
        line = self.line_of(offset)
        return Point(line, offset - self.starts[line] + (self.bom if line == 0 else 0))

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        first = self.at(start)
        line = first.line
        starts = self.starts
        if start <= end < (starts[line + 1] if line + 1 < len(starts) else len(self.body) + 1) and start >= 0:
            return Span(first, Point(line, first.column + end - start))
        return Span(first, self.at(max(start, end)))

    def offset(self, at: tuple[int, int]) -> int:
        """The offset of a point; past the end of its line, the end of the line."""
        line, column = at
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.body)
        column = max(0, column - (self.bom if line == 0 else 0))
        return self.starts[line] + min(column, len(self.line(line)))


def replaced(text: str, edits: list[tuple[Span, str]]) -> str:
    """The text after edits that do not overlap, as a client applies them."""
    page = Page(text)
    body = page.body
    placed = sorted(((page.offset(s.start), page.offset(s.end), new) for s, new in edits), reverse=True)
    for start, end, new in placed:
        body = body[:start] + new + body[end:]
    return text[: page.bom] + body
