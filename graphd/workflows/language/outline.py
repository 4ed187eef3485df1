"""The line scan: a tolerant tree of a text that is no YAML at this moment, and what is open at a place of it.

The parser of `source` says whether a file is valid; this scan never refuses and only guesses. Indentation decides
where an unclosed bracket or quote was meant to end: at the next line that starts a key or an entry no deeper than
the line that opened it. Source: spec protocol.md, Language features; background sidecar.md §8.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar

MAX_DEPTH: Final = 64
State: TypeAlias = Literal["block", "flow", "quote", "literal"]
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_COLON = re.compile(r":(?=\s|$)")
_COMMENT = re.compile(r"(?:^|\s)#")
_DOUBLE = re.compile(r'(?:[^"\\]|\\.)*"')
_SINGLE = re.compile(r"(?:[^']|'')*'(?!')")
_FLOW_END = re.compile(r"[,\[\]{}]|:(?=[\s,\[\]{}]|$)|\s#")
_STARTS_BLOCK = re.compile(r"""[ ]*(?:-(?:\s|$)|["']?[\w.$-]+["']?\s*:(?:\s|$))""")
_NO_KEY_START: Final = frozenset("#[]{},&*!|>%@`")


@dataclass(slots=True)
class Frame:
    """A container that is open. `key` is the newest key of a map, `awaits` whether its value (or an entry) may come."""

    node: YamlMap | YamlList
    column: int
    is_flow: bool
    key: YamlScalar | None = None
    awaits: bool = False
    plain: YamlScalar | None = None
    """The newest value, where it is a plain text that the next deeper line would go on with."""


@dataclass(slots=True)
class Tail:
    """The newest token: a `key` without its colon, or a `value`; `quote` is the mark that opened it."""

    role: Literal["key", "value"]
    start: int
    end: int
    quote: str = ""


class Outline:
    """What a text looks like up to its end. Linear in the text."""

    def __init__(self, text: str) -> None:
        self.root: YamlNode | None = None
        self.frames: list[Frame] = []
        self.tail: Tail | None = None
        self.state: State = "block"
        self._literal: tuple[YamlScalar, int] | None = None
        self._quoted: YamlScalar | None = None
        self._text = text
        for match in _LINE.finditer(text):
            if match.end() > match.start():
                self._line(match.start(), match.group().rstrip("\r\n"))
        self.state = self._state(text)

    def _state(self, text: str) -> State:
        if self._quoted is not None:
            return "quote"
        if self._literal is not None:
            # a new line as far out as its key, or further, would end the block
            start = max(text.rfind("\n"), text.rfind("\r")) + 1
            scalar, column = self._literal
            is_inside = scalar.start < start and (text[start:].strip() != "" or len(text) - start > column)
            return "literal" if is_inside else "block"
        return "flow" if self._is_in_flow() else "block"

    def _is_in_flow(self) -> bool:
        return bool(self.frames) and self.frames[-1].is_flow

    # ---- lines -----------------------------------------------------------------------------------------------------

    def _line(self, start: int, line: str) -> None:
        indent = len(line) - len(line.lstrip(" \t"))
        if self._literal is not None:
            scalar, column = self._literal
            if indent > column or not line.strip():
                if line.strip():
                    scalar.end = start + len(line)
                return
            self._literal = None
        if (self._quoted is not None or self._is_in_flow()) and self._is_abandoned(line, indent):
            self._abandon(start)
        if self._quoted is not None:
            at = self._more_quoted(start, line)
            if at >= 0 and self._is_in_flow():
                self._flow(start, line, at)
        elif self._is_in_flow():
            self._flow(start, line, indent)
        elif indent < len(line) and line[indent] != "#" and not line.startswith(("---", "...", "%")):
            self._block(start, line, indent)

    def _is_abandoned(self, line: str, indent: int) -> bool:
        home = next((f.column for f in reversed(self.frames) if not f.is_flow), -1)
        return indent <= home and _STARTS_BLOCK.match(line) is not None

    def _abandon(self, at: int) -> None:
        self._quoted = None
        while self._is_in_flow():
            frame = self.frames.pop()
            frame.node.end = max(frame.node.end, len(self._text[:at].rstrip()))

    def _block(self, start: int, line: str, at: int) -> None:
        while True:
            if line[at] == "-" and (at + 1 == len(line) or line[at + 1] in " \t"):
                self._settle(at, is_dash=True)
                top = self.frames[-1] if self.frames else None
                if top is None or not isinstance(top.node, YamlList) or top.column != at:
                    self._open(YamlList(start + at, start + at + 1), at, is_flow=False)
                self.frames[-1].awaits, self.frames[-1].plain = True, None
                self.tail = None
                at = _skip(line, at + 1)
                if at >= len(line) or line[at] == "#":
                    return
                continue
            if self._key(start, line, at):
                return
            self._rest(start, line, at)
            return

    def _key(self, start: int, line: str, at: int) -> bool:
        """A key with its colon, and the value behind it."""
        end, text = _key_end(line, at)
        if end < 0:
            return False
        colon = line.index(":", end)
        self._settle(at, is_dash=False)
        top = self.frames[-1] if self.frames else None
        if top is None or not isinstance(top.node, YamlMap) or top.column != at:
            self._open(YamlMap(start + at, start + end), at, is_flow=False)
        self._name(YamlScalar(start + at, start + end, text, is_plain=True), start + colon + 1)
        at = _skip(line, colon + 1)
        if at < len(line) and line[at] != "#":
            self._value(start, line, at)
        return True

    def _rest(self, start: int, line: str, at: int) -> None:
        """A line, or what is behind a dash, that is no key: a value, more of one, or a key without its colon."""
        self._settle(at, is_dash=False)
        top = self.frames[-1] if self.frames else None
        if top is not None and top.awaits and at > top.column:
            self._value(start, line, at)
        elif top is not None and top.plain is not None and at > top.column:
            top.plain.end = start + _plain_end(line, at)
            self.tail = Tail("value", top.plain.start, top.plain.end)
        elif top is None or (isinstance(top.node, YamlMap) and top.column == at):
            if line[at] in "[{" and top is None:
                self._flow(start, line, at)
            else:
                self.tail = Tail("key", start + at, start + _plain_end(line, at))

    def _settle(self, column: int, *, is_dash: bool) -> None:
        """Close what a token in this column ends."""
        while self.frames:
            top = self.frames[-1]
            ends_list = isinstance(top.node, YamlList) and not is_dash
            if top.column < column or (top.column == column and not ends_list):
                return
            self.frames.pop()

    # ---- values ----------------------------------------------------------------------------------------------------

    def _value(self, start: int, line: str, at: int) -> None:
        mark = line[at]
        if mark in "|>":
            scalar = YamlScalar(start + at, start + len(line), "", is_plain=False)
            self._literal = (scalar, self.frames[-1].column)
            self._attach(scalar)
            self.tail = None
        elif mark in "[{":
            self._flow(start, line, at)
        elif mark in "\"'":
            self._quote(start, line, at)
        else:
            end = _plain_end(line, at)
            scalar = YamlScalar(start + at, start + end, line[at:end], is_plain=True)
            self._attach(scalar)
            self.frames[-1].plain = scalar
            self.tail = Tail("value", start + at, start + end)

    def _quote(self, start: int, line: str, at: int) -> int:
        """Where the quoted text ends in this line; -1 where it does not."""
        mark = line[at]
        match = (_DOUBLE if mark == '"' else _SINGLE).match(line, at + 1)
        end = match.end() if match else len(line)
        text = line[at + 1 : end - 1 if match else end]
        scalar = YamlScalar(start + at, start + end, text, is_plain=False)
        self.tail = Tail("value", start + at, start + end, mark)
        if match is None:
            self._quoted = scalar
        self._attach(scalar)
        return end if match else -1

    def _more_quoted(self, start: int, line: str) -> int:
        scalar = self._quoted
        if scalar is None:
            return -1
        mark = self._text[scalar.start]
        match = (_DOUBLE if mark == '"' else _SINGLE).match(line)
        scalar.end = start + (match.end() if match else len(line))
        self.tail = Tail("value", scalar.start, scalar.end, mark)
        if match is None:
            return -1
        self._quoted = None
        scalar.text = self._text[scalar.start + 1 : scalar.end - 1]
        return match.end()

    def _flow(self, start: int, line: str, at: int) -> None:
        depth = len(self.frames)
        while at < len(line) and (self._is_in_flow() or len(self.frames) == depth):
            mark = line[at]
            if mark in " \t":
                at += 1
            elif mark == "#" and (at == 0 or line[at - 1] in " \t"):
                return
            elif mark in "[{":
                made = YamlList if mark == "[" else YamlMap
                self._open(made(start + at, start + at + 1), at, is_flow=True)
                self.frames[-1].awaits = mark == "["
                self.tail = None
                at += 1
            elif mark in "]}":
                self._close(start + at + 1)
                at += 1
                if not self._is_in_flow():
                    return
            elif mark in ",:":
                self._separate(mark)
                at += 1
            else:
                at = self._flow_token(start, line, at)

    def _separate(self, mark: str) -> None:
        frame = self.frames[-1]
        self.tail = None
        if mark == ",":
            frame.awaits = isinstance(frame.node, YamlList)
            frame.key = None

    def _flow_token(self, start: int, line: str, at: int) -> int:
        frame = self.frames[-1]
        is_key = isinstance(frame.node, YamlMap) and not frame.awaits
        if line[at] in "\"'":
            end = self._quote(start, line, at) if not is_key else _closed(line, at)
            if not is_key:
                return end if end >= 0 else len(line)
            text = line[at + 1 : end - 1]
        else:
            match = _FLOW_END.search(line, at)
            end = match.start() if match else len(line)
            end = max(at + 1, at + len(line[at:end].rstrip()))
            text = line[at:end]
            if not is_key:
                self._attach(YamlScalar(start + at, start + end, text, is_plain=True))
                self.tail = Tail("value", start + at, start + end)
                return end
        colon = _skip(line, end)
        self.tail = Tail("key", start + at, start + end, line[at] if line[at] in "\"'" else "")
        if colon < len(line) and line[colon] == ":":
            self._name(YamlScalar(start + at, start + end, text, is_plain=True), start + colon + 1)
            return colon + 1
        return end

    # ---- the tree --------------------------------------------------------------------------------------------------

    def _name(self, key: YamlScalar, after: int) -> None:
        frame = self.frames[-1]
        frame.key, frame.awaits, frame.plain = key, True, None
        self.tail = None
        if isinstance(frame.node, YamlMap):
            frame.node.entries.setdefault(key.text, (key, YamlScalar(after, after, "", is_plain=True)))

    def _attach(self, node: YamlNode) -> None:
        if not self.frames:
            self.root = self.root or node
            return
        frame = self.frames[-1]
        if not frame.awaits:
            return
        frame.awaits = False
        frame.plain = None
        if isinstance(frame.node, YamlList):
            frame.node.items.append(node)
        elif frame.key is not None and frame.node.entries[frame.key.text][0] is frame.key:
            frame.node.entries[frame.key.text] = (frame.key, node)

    def _open(self, node: YamlMap | YamlList, column: int, *, is_flow: bool) -> None:
        if len(self.frames) < MAX_DEPTH:
            self._attach(node)
        else:
            self.frames.pop()
        self.frames.append(Frame(node, column, is_flow))

    def _close(self, at: int) -> None:
        self.tail = None
        if self._is_in_flow():
            self.frames.pop().node.end = at


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t":
        at += 1
    return at


def _plain_end(line: str, at: int) -> int:
    comment = _COMMENT.search(line, at + 1)
    return at + len(line[at : comment.start() if comment else len(line)].rstrip())


def _closed(line: str, at: int) -> int:
    match = (_DOUBLE if line[at] == '"' else _SINGLE).match(line, at + 1)
    return match.end() if match else len(line)


def _key_end(line: str, at: int) -> tuple[int, str]:
    """Where a key ends, and its text; -1 where no key with a colon stands here."""
    if line[at] in "\"'":
        end = _closed(line, at)
        colon = _skip(line, end)
        is_key = colon < len(line) and line[colon] == ":" and (colon + 1 == len(line) or line[colon + 1] in " \t")
        return (end, line[at + 1 : end - 1]) if is_key else (-1, "")
    if line[at] in _NO_KEY_START:
        return -1, ""
    match = _COLON.search(line, at)
    if match is None or match.start() == at:
        return -1, ""
    text = line[at : match.start()].rstrip()
    return (-1, "") if _COMMENT.search(text) else (at + len(text), text)
