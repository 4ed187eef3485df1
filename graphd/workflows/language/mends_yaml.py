"""Mends of what YAML, or our stricter reading of it, refuses. A guess is offered only if the text is YAML with it."""

import re
from collections.abc import Iterator

from graphd.base.text import Text, t
from graphd.workflows import schema
from graphd.workflows.diagnostics import Findings
from graphd.workflows.language.case import Case, Mend, Mends
from graphd.workflows.language.writing import Edit, without_lines
from graphd.workflows.source import compose
from graphd.workflows.writing import quoted

_VALUE = re.compile(r"(\s*(?:- +)*[\w.$-]+:[ \t]+|\s*(?:- +)+)([^\s\"'\[{|>&#].*?)\s*$")
_NO_COLON = re.compile(r"(\s*(?:- +)*)([a-z_]+)(\s+\S.*|\s*)$")
_NO_SPACE = re.compile(r"(\s*(?:- +)*[a-z_]+:)(?=[^\s:/])")
_NEXT_KEY = re.compile(r",\s*[A-Za-z_]+:(?=\s)")
_COLON_INSIDE = re.compile(r":\s+([^\s,\[\]{}\"'][^,\[\]{}\"']*:\s[^,\[\]{}\"']*[^\s,\[\]{}\"'])\s*(?=[,}\]])")
_STARTER = "nodes:\n  - { id: hello, run: echo hello }\n"
_KEYS = frozenset(spelling for table in schema.TABLES for spelling in table.spellings)
_GUESSES_READ = 12
_LINE_GUESSED = 2_000  # characters; each guess looks at the line, and reads the text, once more
_TEXT_GUESSED = 300_000


def syntax(case: Case) -> Mends:
    """No YAML: tabs, quotes, brackets, colons near the place."""
    page = case.page
    line = page.line_of(case.start)
    read = 0
    for number in (line, line - 1):
        if number < 0 or len(page.line(number)) > _LINE_GUESSED or len(case.body) > _TEXT_GUESSED:
            continue
        for title, edit in _guesses(case, number):
            read += 1
            if read > _GUESSES_READ:
                return
            if _is_read(case, edit):
                yield Mend(title, (edit,), is_preferred=True)
                return


def _guesses(case: Case, number: int) -> Iterator[tuple[Text, Edit]]:
    page = case.page
    line, start = page.line(number), page.starts[number]
    indent = line[: len(line) - len(line.lstrip())]
    end = start + len(line.rstrip())
    if "\t" in indent:
        above = next((page.line(n) for n in range(number - 1, -1, -1) if page.line(n).strip()), "")
        for spaces in (" " * len(above[: len(above) - len(above.lstrip(" -"))]), indent.replace("\t", "  ")):
            yield t("indent with spaces"), (start, start + len(indent), spaces)
    if match := _NO_SPACE.match(line):
        yield t("put a space after the colon"), (start + match.end(), start + match.end(), " ")
    if (match := _NO_COLON.match(line)) and match.group(2) in _KEYS:
        at = start + match.end(2)
        yield t("put a colon after {key}", key=match.group(2)), (at, at, ":")
    if match := _VALUE.match(line):
        at = start + match.start(2)
        yield t("put the text in quotes"), (at, start + match.end(2), quoted(match.group(2)))
    for mark in ('"', "'"):
        if line.replace("\\" + mark, "").count(mark) % 2:
            yield t("close the quote"), (end, end, mark)
    yield from _in_flow(line, start)
    closers = _closers(line)
    if closers:
        yield t("close the bracket with {closers}", closers=closers), (end, end, closers)


def _in_flow(line: str, start: int) -> Iterator[tuple[Text, Edit]]:
    """What is missing before the next key on the same line."""
    for match in _NEXT_KEY.finditer(line):
        before = line[: match.start()].rstrip()
        for mark in ("'", '"'):
            if before.count(mark) % 2:
                yield t("close the quote"), (start + len(before), start + len(before), mark)
        if _closers(before).startswith("]"):
            yield t("close the bracket with {closers}", closers="]"), (start + len(before), start + len(before), "]")
    for match in _COLON_INSIDE.finditer(line):
        yield t("put the text in quotes"), (start + match.start(1), start + match.end(1), quoted(match.group(1)))


def _closers(line: str) -> str:
    bare = re.sub(r""""(?:[^"\\]|\\.)*"|'[^']*'|\s#.*""", "", line)
    wanted: list[str] = []
    for mark in bare:
        if mark in "[{":
            wanted.append("]" if mark == "[" else "}")
        elif wanted and mark == wanted[-1]:
            wanted.pop()
    return "".join(reversed(wanted))


def _is_read(case: Case, edit: Edit) -> bool:
    start, end, new = edit
    text = case.body[:start] + new + case.body[end:]
    return compose(text, Findings(text)) is not None


def duplicate(case: Case) -> Mends:
    """A key that is there twice: the second goes, with all below it."""
    page = case.page
    line = page.line_of(case.start)
    column = case.start - page.starts[line]
    if page.line(line)[:column].strip():
        return
    last = line
    while last + 1 < len(page.starts):
        below = page.line(last + 1)
        if below.strip() and len(below) - len(below.lstrip()) <= column:
            break
        last += 1
    while last > line and not page.line(last).strip():
        last -= 1
    edit = without_lines(page, case.start, page.starts[last])
    yield Mend(t("remove the second {key}", key=case.shown[:60]), (edit,))


def key(case: Case) -> Mends:
    """A key that is a number or a boolean: quotes make it a text."""
    is_whole = not re.match(r"[\w{\[]", case.body[case.end : case.end + 1])
    if is_whole and re.fullmatch(r"~|[-+]?\w[\w.+-]*", case.shown):
        yield Mend(t("put the key in quotes"), ((case.start, case.end, quoted(case.shown)),), is_preferred=True)


def mark(case: Case) -> Mends:
    """An anchor or a tag: it goes, or the text that starts so gets quotes."""
    match = re.compile(r"[&!][^\s,\[\]{}]*[ \t]*").match(case.body, case.start)
    if match is not None:
        yield Mend(t("remove {mark}", mark=match.group().strip()), ((match.start(), match.end(), ""),))


def alias(case: Case) -> Mends:
    """An alias: quotes make it a text."""
    yield Mend(t("put {text} in quotes", text=case.shown[:60]), ((case.start, case.end, quoted(case.shown)),))


def character(case: Case) -> Mends:
    """A character that can't stand in a file."""
    yield Mend(t("remove the character"), ((case.start, case.end, ""),), is_preferred=True)


def line(case: Case) -> Mends:
    """A directive or a second document's mark: its line goes."""
    yield Mend(t("remove the line"), (without_lines(case.page, case.start, case.start),))


def empty(case: Case) -> Mends:
    """A file without anything."""
    at = len(case.body)
    gap = case.page.line_break if case.page.line(len(case.page.starts) - 1) else ""
    text = gap + _STARTER.replace("\n", case.page.line_break)
    yield Mend(t("start with one node"), ((at, at, text),), is_preferred=True)
