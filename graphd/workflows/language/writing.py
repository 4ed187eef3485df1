"""Edits of a workflow's text that keep its style: flow or block, indentation, line breaks, quotes.

All edits are (start, end, new text) in offsets of the text without a BOM. Nothing else of the text is touched: comments
and order belong to the user.
"""

import re
from typing import TypeAlias

from graphd.workflows import schema
from graphd.workflows.language.names import Entries, end_of, long_entries
from graphd.workflows.language.places import Page
from graphd.workflows.scalars import ScalarMisread, read_scalar
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar
from graphd.workflows.writing import quoted

Edit: TypeAlias = tuple[int, int, str]
_PLAIN = re.compile(r"[^\W_][\w ./@%+=-]*(?<! )\Z")


def scalar_for(text: str) -> str:
    """A text as YAML: plain where it stays a text, else in double quotes."""
    if _PLAIN.match(text):
        try:
            read_scalar(schema.Text(), text, is_plain=True)
        except ScalarMisread:
            return quoted(text)
        return text
    return quoted(text)


def is_flow(text: str, node: YamlNode) -> bool:
    """Whether a list or map is written with brackets."""
    return text[node.start : node.start + 1] in ("[", "{")


def column_of(page: Page, offset: int) -> int:
    """The column of an offset in its line, a BOM not counted."""
    return offset - page.starts[page.line_of(offset)]


def template_input(entries: Entries) -> list[str]:
    """Names that `prompt_template.input` gives values to."""
    held = long_entries(schema.PROMPT_TEMPLATE, entries.get("prompt_template", (None, None))[1]).get("input")
    return list(held[1].entries) if held is not None and isinstance(held[1], YamlMap) else []


def without_lines(page: Page, start: int, end: int) -> Edit:
    """Whole lines away, from the one that holds `start` to the one that holds `end`."""
    first, last = page.line_of(start), page.line_of(end)
    if last + 1 < len(page.starts):
        return page.starts[first], page.starts[last + 1], ""
    begin = len(page.body[: page.starts[first]].rstrip("\r\n")) if first else 0
    return begin, len(page.body), ""


def without_item(page: Page, held: YamlList, item: YamlNode) -> Edit:
    """A list without one entry."""
    if not is_flow(page.body, held):
        if len(held.items) == 1:
            return item.start - _dash_before(page, item.start), end_of(page.body, item), "[]"
        return without_lines(page, item.start, end_of(page.body, item))
    place = next(i for i, other in enumerate(held.items) if other is item)
    return _without_part(held.items, [n.start for n in held.items], place, page)


def without_key(page: Page, held: YamlMap, written: str) -> Edit | None:
    """A map without one key; None where its line holds more than this key."""
    key, value = held.entries[written]
    end = max(key.end, end_of(page.body, value))
    if is_flow(page.body, held):
        pairs = list(held.entries.values())
        place = next(i for i, (other, _) in enumerate(pairs) if other is key)
        return _without_part([value for _, value in pairs], [k.start for k, _ in pairs], place, page)
    line = page.starts[page.line_of(key.start)]
    if page.body[line : key.start].strip():
        following = [k.start for k, _ in held.entries.values() if k.start > key.start]
        return (key.start, min(following), "") if following else None
    return without_lines(page, key.start, end)


def _without_part(values: list[YamlNode], starts: list[int], place: int, page: Page) -> Edit:
    if place + 1 < len(starts):
        return starts[place], starts[place + 1], ""
    end = max(starts[place], end_of(page.body, values[place]))
    comma = re.compile(r"\s*,?").match(page.body, end)
    if place:
        before = max(end_of(page.body, values[place - 1]), starts[place - 1])
        return before, end, ""
    return starts[place], comma.end() if comma else end, ""


def _dash_before(page: Page, start: int) -> int:
    line = page.body[page.starts[page.line_of(start)] : start]
    return len(line) - len(line.rstrip().removesuffix("-"))


def with_item(page: Page, held: YamlList, text: str) -> Edit:
    """A list with one more entry at its end."""
    if is_flow(page.body, held):
        at = end_of(page.body, held.items[-1]) if held.items else held.start + 1
        return at, at, f", {text}" if held.items else text
    at = line_end(page, end_of(page.body, held))
    indent = " " * column_of(page, held.start)
    return at, at, f"{page.line_break}{indent}- {text}"


def with_key(page: Page, held: YamlMap, text: str) -> Edit:
    """A map with one more `key: value` at its end."""
    if is_flow(page.body, held):
        pairs = list(held.entries.values())
        if not pairs:
            return held.start + 1, held.start + 1, f" {text} "
        at = max(pairs[-1][0].end, end_of(page.body, pairs[-1][1]))
        return at, at, f", {text}"
    at = line_end(page, end_of(page.body, held))
    return at, at, f"{page.line_break}{' ' * column_of(page, held.start)}{text}"


def line_end(page: Page, offset: int) -> int:
    """The end of the line that holds an offset."""
    line = page.line_of(offset)
    return page.starts[line] + len(page.line(line))


def with_need(page: Page, entries: Entries, held: YamlMap, slug: str) -> Edit | None:
    """A node that also needs this one; None where its needs are no list."""
    if "depends_on" not in entries:
        return with_key(page, held, f"needs: [{scalar_for(slug)}]")
    listed = entries["depends_on"][1]
    if isinstance(listed, YamlScalar):
        return (listed.start, listed.end, f"[{scalar_for(slug)}]") if not listed.text else None
    return with_item(page, listed, scalar_for(slug)) if isinstance(listed, YamlList) else None
