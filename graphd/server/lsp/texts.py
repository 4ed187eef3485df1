"""A text as an editor counts it: positions in utf-8, utf-16 or utf-32 to lines and columns in code points, and back.

Lines end at LF, CR LF and CR alone, as LSP says; U+2028 and its like end none. Source: spec protocol.md, Language
features; research sidecar.md §8.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_LINE_FEED: Final = re.compile(r"\n")  # five times as fast where that is all there is
Json = dict[str, Any]
Point = tuple[int, int]
"""(zero-based line, column in code points)."""


class Text:
    """One version of a text. Everything outside its bounds means its nearest end."""

    __slots__ = ("_encoding", "_starts", "text")

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._encoding = encoding
        pattern = _BREAK if "\r" in text else _LINE_FEED
        self._starts = [0, *(match.end() for match in pattern.finditer(text))]

    def place(self, line: int, character: int) -> Point:
        """The point of a client's position; inside a character it is that character's start."""
        if line >= len(self._starts):
            line, character = len(self._starts) - 1, len(self.text)
        row = self._row(line)
        if row.isascii() or self._encoding == "utf-32":
            return line, min(character, len(row))
        units = 0
        for column, char in enumerate(row):
            units += self._units(char)
            if units > character:
                return line, column
        return line, len(row)

    def position(self, point: Point) -> Json:
        """The client's position of a point."""
        line, column = point
        if line >= len(self._starts):
            line, column = len(self._starts) - 1, len(self.text)
        return {"line": line, "character": self._units(self._row(line)[:column])}

    def range(self, span: Sequence[Point]) -> Json:
        """The client's range of a start and an end."""
        start, end = span
        return {"start": self.position(start), "end": self.position(end)}

    def replaced(self, start: Point, end: Point, new: str) -> "Text":
        """The text with what is between two points replaced."""
        first, last = self._offset(start), self._offset(end)
        return Text(self.text[:first] + new + self.text[max(first, last) :], self._encoding)

    def _offset(self, point: Point) -> int:
        return self._starts[point[0]] + point[1]

    def _row(self, line: int) -> str:
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[line] : end].rstrip("\r\n")

    def _units(self, part: str) -> int:
        if self._encoding == "utf-32" or part.isascii():
            return len(part)
        if self._encoding == "utf-8":
            return len(part.encode("utf-8", "surrogatepass"))
        return len(part) + sum(char > "\uffff" for char in part)
