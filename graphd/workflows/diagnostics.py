"""Diagnostics: what is wrong in a workflow file, where, and what to do about it. Source: spec workflow.md.

Positions are zero-based and count UTF-16 code units, as LSP does; `render` prints them from 1.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Severity = Literal["error", "warning"]
MAX_DIAGNOSTICS: Final = 200
_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(slots=True, frozen=True, order=True)
class Position:
    """Zero-based line, and character in UTF-16 code units."""

    line: int
    character: int


@dataclass(slots=True, frozen=True, order=True)
class Range:
    """From start to end, the end excluded."""

    start: Position
    end: Position


@dataclass(slots=True, frozen=True)
class Diagnostic:
    """One finding. `code` is stable for machines, `message` says what is wrong, `hint` what to do.

    `place` is what `range` shows before it was cut to one line: offsets in code points, a BOM not counted.
    """

    severity: Severity
    code: str
    path: str
    range: Range
    message: str
    hint: str
    place: "Place" = field(default_factory=lambda: Place(0, 0), compare=False)


class Span(Protocol):
    """Anything with a place in the text; both ends are offsets in code points."""

    @property
    def start(self) -> int:
        """Offset of its first character."""

    @property
    def end(self) -> int:
        """Offset after its last character."""


@dataclass(slots=True, frozen=True)
class Place:
    """A span that is no node of the tree."""

    start: int
    end: int


class Lines:
    """Offsets in code points to positions. Lines end where editors end them, not where YAML does (U+2028)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def position(self, offset: int) -> Position:
        """Where this offset is; past the end, the end."""
        offset = max(0, min(offset, len(self._text)))
        line = bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : offset]
        return Position(line, len(before) + sum(1 for c in before if c > "\uffff"))

    def range(self, span: Span) -> Range:
        """The range of a span, cut at the end of its first line: a diagnostic never paints a page."""
        start, end = self.position(span.start), self.position(max(span.start, span.end))
        if end.line > start.line:
            stop = self._starts[start.line + 1]
            shown = self._text[span.start : stop].rstrip("\r\n")
            end = self.position(span.start + len(shown))
        return Range(start, end)


class Findings:
    """Collects diagnostics while a file is read; at most `MAX_DIAGNOSTICS`."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self._text = text
        self._found: list[Diagnostic] = []

    def error(self, code: str, span: Span, path: str, message: str, hint: str) -> None:
        """The file is refused."""
        self._add("error", code, span, path, message, hint)

    def warning(self, code: str, span: Span, path: str, message: str, hint: str) -> None:
        """The file runs, but says something that it may not mean."""
        self._add("warning", code, span, path, message, hint)

    def _add(self, severity: Severity, code: str, span: Span, path: str, message: str, hint: str) -> None:  # noqa: PLR0913  # the fields of one record
        if len(self._found) < MAX_DIAGNOSTICS:
            place = Place(span.start, max(span.start, span.end))
            self._found.append(Diagnostic(severity, code, path, self.lines.range(span), message, hint, place))

    def place_in(self, span: Span, value: str, start: int, end: int) -> Span:
        """Where `value[start:end]` stands inside the scalar at `span`; the span where it is written otherwise."""
        whole = self._text[span.start : span.end]
        if (at := whole.find(value)) >= 0:
            return Place(span.start + at + start, span.start + at + max(end, start + 1))
        part = value[start:end]  # a block or an escape: the value is not in the text as it is, this part may be
        if len(part) > 2 and (at := whole.find(part)) >= 0:
            return Place(span.start + at, span.start + at + len(part))
        return span

    @property
    def has_errors(self) -> bool:
        """Whether the file is refused so far."""
        return any(d.severity == "error" for d in self._found)

    @property
    def count(self) -> int:
        """How many were found so far."""
        return len(self._found)

    def all(self) -> list[Diagnostic]:
        """Every finding once, in the order of the text."""
        return ordered(self._found)


def ordered(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By place, then severity, code and message; the same file always gives the same list."""
    return sorted(dict.fromkeys(diagnostics), key=lambda d: (d.range, d.severity, d.code, d.path, d.message))


def render(diagnostics: Iterable[Diagnostic], file: str) -> str:
    """`file:line:column: severity code: message`, the hint indented below it; lines and columns from 1."""
    lines = []
    for d in diagnostics:
        start = d.range.start
        lines.append(f"{file}:{start.line + 1}:{start.character + 1}: {d.severity} {d.code}: {d.message}")
        if d.hint:
            lines.append(f"    {d.hint}")
    return "".join(f"{line}\n" for line in lines)
