"""What an editor draws beside the text: outline, folds, and where lenses and hints stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphd.workflows import schema
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.names import Outcome, config_of, end_of, inputs_of, long_entries
from graphd.workflows.language.places import Point, Span
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar

SymbolKind: TypeAlias = Literal["file", "group", "node", "input"]


@dataclass(slots=True, frozen=True)
class Symbol:
    """One line of the outline. `detail` of a node is what it needs."""

    name: str
    detail: str
    kind: SymbolKind
    span: Span
    name_span: Span
    children: tuple["Symbol", ...] = ()


def symbols(analysis: Analysis) -> list[Symbol]:
    """Inputs and nodes below the workflow's title; empty where the text has neither."""
    groups = [g for g in (_inputs(analysis), *(_group(analysis, part) for part in ("nodes", "blocks"))) if g]
    if not groups:
        return []
    page = analysis.page
    titled = long_entries(schema.ROOT, analysis.tree).get("title")
    start = page.span(titled[1].start, titled[1].end) if titled else page.span(0, 0)
    whole = page.span(0, len(page.body))
    return [Symbol(analysis.title or "workflow", "", "file", whole, start, tuple(groups))]


def _inputs(analysis: Analysis) -> Symbol | None:
    page = analysis.page
    held = long_entries(schema.ROOT, analysis.tree).get("inputs")
    children = []
    for name, (key, value) in inputs_of(analysis.tree).items():
        kind = long_entries(schema.INPUT, value).get("type")
        detail = kind[1].text if kind and isinstance(kind[1], YamlScalar) else "string"
        whole = page.span(key.start, max(key.end, end_of(page.body, value)))
        children.append(Symbol(name or '""', detail, "input", whole, page.span(key.start, key.end)))
    return _over(analysis, "inputs", held, children)


def _group(analysis: Analysis, part: str) -> Symbol | None:
    page = analysis.page
    children = [
        Symbol(
            node.slug, ", ".join(slug for slug, _, _ in node.needs), "node",
            page.span(node.start, max(node.end, node.id_end)), page.span(node.id_start, node.id_end),
        )
        for node in analysis.outcomes
        if node.is_block == (part == "blocks")
    ]  # fmt: skip
    return _over(analysis, part, config_of(analysis.tree).get(part), children)


def _over(
    analysis: Analysis, name: str, held: tuple[YamlScalar, YamlNode] | None, children: list[Symbol]
) -> Symbol | None:
    if held is None or not children:
        return None
    page, (key, value) = analysis.page, held
    whole = page.span(key.start, max(key.end, end_of(page.body, value)))
    return Symbol(name, "", "group", whole, page.span(key.start, key.end), tuple(children))


def folding(analysis: Analysis) -> list[tuple[int, int, str]]:
    """First line, last line and kind (`region` or `comment`) of all that can be folded, by first line."""
    found = dict.fromkeys(_regions(analysis), "region")
    found |= dict.fromkeys(_comments(analysis), "comment")
    return sorted((first, last, kind) for (first, last), kind in found.items())


def _regions(analysis: Analysis) -> Iterator[tuple[int, int]]:
    page = analysis.page
    todo: list[tuple[int, YamlNode]] = [(analysis.tree.start, analysis.tree)] if analysis.tree is not None else []
    while todo:
        start, node = todo.pop()
        first, last = page.line_of(start), page.line_of(max(start, end_of(page.body, node) - 1))
        if last > first:
            yield first, last
        if isinstance(node, YamlMap):
            todo += [(key.start, value) for key, value in node.entries.values()]
        elif isinstance(node, YamlList):
            todo += [(item.start, item) for item in node.items]


def _comments(analysis: Analysis) -> Iterator[tuple[int, int]]:
    page = analysis.page
    first = -1
    for number in range(len(page.starts) + 1):
        is_comment = number < len(page.starts) and page.line(number).lstrip().startswith("#")
        if is_comment and first < 0:
            first = number
        elif not is_comment and first >= 0:
            if number - first > 1:
                yield first, number - 1
            first = -1


def lens_places(analysis: Analysis) -> list[tuple[Span, str | None]]:
    """Where lenses stand: the whole file's first (None, on its first key), then each node's, on its id."""
    nodes = [node for node in analysis.outcomes if not node.is_block]
    if not nodes:
        return []
    page = analysis.page
    first = analysis.tree.start if isinstance(analysis.tree, YamlMap) else 0
    top = Span(page.at(first), page.at(first))
    return [(top, None), *((page.span(n.id_start, n.id_end), n.slug) for n in _first_of_each(nodes))]


def hint_places(analysis: Analysis) -> list[tuple[Point, str]]:
    """Where the live state of each node goes: after its id, quotes included."""
    page = analysis.page
    found = []
    for node in _first_of_each([n for n in analysis.outcomes if not n.is_block]):
        written = node.entries["id"][1]
        found.append((page.at(max(node.id_end, written.end if isinstance(written, YamlScalar) else 0)), node.slug))
    return found


def _first_of_each(nodes: list[Outcome]) -> Iterator[Outcome]:
    seen: set[str] = set()
    for node in nodes:
        if node.slug not in seen:
            seen.add(node.slug)
            yield node
