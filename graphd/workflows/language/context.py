"""What stands at the cursor: which key, value or text may be written there. Works on half-typed text.

Only what is before the cursor is scanned, so nothing behind a half-typed line can spoil the answer; what the rest of
the container holds comes from the whole text's tree, where the container is found again by where it starts.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from graphd.workflows import schema
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.names import Outcome, long_entries
from graphd.workflows.language.outline import Frame, Outline
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar

Mode: TypeAlias = Literal["key", "value", "entry"]
Path: TypeAlias = tuple[str | None, ...]
"""Keys from the root; None is an entry of a list."""
_WORD = re.compile(r"[A-Za-z0-9_-]*")
_WORD_BEFORE = re.compile(r"[A-Za-z0-9_-]*\Z")


@dataclass(slots=True, frozen=True)
class Context:
    """`kind` is of the table for keys, of the value for values; `before` what of the token stands before the cursor."""

    mode: Mode
    kind: schema.Kind
    path: Path
    key: schema.Key | None
    container: YamlMap | YamlList | None
    node: Outcome | None
    before: str
    start: int
    end: int
    quote: str
    column: int
    is_flow: bool
    is_text: bool
    """Inside a longer text (a block, or after its first word), where `start` is the start of the last word."""


_SCALARS: Final = (schema.Text, schema.Bool, schema.Int, schema.Number, schema.Scalar)


def context_at(analysis: Analysis, offset: int) -> Context | None:
    """What may be written at an offset; None where nothing of ours may."""
    body = analysis.page.body
    if _is_in_comment(analysis, offset):
        return None
    outline = Outline(body[:offset])
    line = analysis.page.line_of(offset)
    line_start = analysis.page.starts[line]
    if outline.state in ("literal", "quote"):
        return _in_text(analysis, outline, offset)
    written = body[line_start:offset]
    if outline.state == "block" and not written.strip():
        return _on_blank(analysis, outline, offset, offset - line_start)
    return _on_token(analysis, outline, offset)


def _is_in_comment(analysis: Analysis, offset: int) -> bool:
    line = analysis.page.line_of(offset)
    written = analysis.page.body[analysis.page.starts[line] : offset]
    return written.lstrip().startswith("#") or re.search(r"""^[^"']*\s#""", written) is not None


def kind_at(path: Path) -> tuple[schema.Kind | None, schema.Key | None]:
    """What the schema has at a path, and the newest key on the way."""
    kind: schema.Kind | None = schema.ROOT
    key: schema.Key | None = None
    for step in path:
        kind = _inner(kind, is_map=step is not None)
        if step is None:
            kind = kind.item if isinstance(kind, schema.ListOf) else None
        elif isinstance(kind, schema.Table):
            key = kind.key(step)
            kind = key.kind if key is not None else None
        else:
            kind = kind.value if isinstance(kind, schema.MapOf) else None
        if kind is None:
            return None, None
    return kind, key


def _inner(kind: schema.Kind | None, *, is_map: bool) -> schema.Kind | None:
    if not isinstance(kind, schema.Either):
        return kind
    return next((k for k in kind.kinds if isinstance(k, schema.Table) == is_map), None)


def path_of(frames: list[Frame]) -> Path:
    """The way to what the innermost open container waits for."""
    return tuple((f.key.text if f.key is not None else "") if isinstance(f.node, YamlMap) else None for f in frames)


def _in_text(analysis: Analysis, outline: Outline, offset: int) -> Context | None:
    """In a block or in an open quote: the whole text so far counts, the last word is replaced."""
    body = analysis.page.body
    tail = outline.tail
    start = tail.start + 1 if outline.state == "quote" and tail is not None else _literal_start(outline)
    before = body[start:offset]
    is_text = outline.state == "literal"
    quote = body[start - 1] if outline.state == "quote" else ""
    return _value(analysis, outline, before, offset, start=start, quote=quote, is_text=is_text)


def _literal_start(outline: Outline) -> int:
    frame = outline.frames[-1]
    node: YamlNode = frame.node
    if isinstance(node, YamlMap) and frame.key is not None:
        node = node.entries[frame.key.text][1]
    elif isinstance(node, YamlList):
        node = node.items[-1]
    return node.start


def _on_blank(analysis: Analysis, outline: Outline, offset: int, column: int) -> Context | None:
    """On a line without anything yet: the column says what is meant."""
    frames = outline.frames
    while frames and frames[-1].column > column:
        frames.pop()
    top = frames[-1] if frames else None
    if top is None:
        return _keys(analysis, [], schema.ROOT, offset, offset, column, is_flow=False)
    if top.column == column:
        if isinstance(top.node, YamlMap):
            kind, _ = kind_at(path_of(frames[:-1]))
            return _keys(analysis, frames, kind, offset, offset, column, is_flow=False)
        kind, key = kind_at((*path_of(frames[:-1]), None))
        return _made(analysis, frames, "entry", kind, key, offset, column)
    if not top.awaits:
        return None
    kind, key = kind_at(path_of(frames))
    if isinstance(kind, schema.ListOf):
        return _made(analysis, frames, "entry", kind.item, key, offset, column)
    if isinstance(_inner(kind, is_map=True), schema.Table):
        return _keys(analysis, frames, _inner(kind, is_map=True), offset, offset, column, is_flow=False, is_new=True)
    return _made(analysis, frames, "value", kind, key, offset, column)


def _on_token(analysis: Analysis, outline: Outline, offset: int) -> Context | None:
    body, frames, tail = analysis.page.body, outline.frames, outline.tail
    if tail is not None and tail.end < offset and tail.role == "value" and tail.quote:
        return None
    top = frames[-1] if frames else None
    line_start = analysis.page.starts[analysis.page.line_of(offset)]
    if tail is not None and tail.role == "key":
        if tail.end != offset:
            return None
        start = tail.start + (1 if tail.quote else 0)
        kind, _ = kind_at(path_of(frames[:-1]))
        is_flow = top is not None and top.is_flow
        return _keys(analysis, frames, kind, start, offset, start - line_start, is_flow=is_flow, quote=tail.quote)
    if top is not None and isinstance(top.node, YamlMap) and top.is_flow and not top.awaits and tail is None:
        kind, _ = kind_at(path_of(frames[:-1]))
        return _keys(analysis, frames, kind, offset, offset, 0, is_flow=True)
    if tail is None and (top is None or not top.awaits):
        return None
    start = tail.start if tail is not None else offset
    kind, _ = kind_at(path_of(frames))
    if isinstance(kind, schema.Table):
        starts_line = not body[line_start:start].strip(" -")
        if not starts_line or (top is not None and top.is_flow):
            return None
        return _keys(analysis, frames, kind, start, offset, start - line_start, is_flow=False, is_new=True)
    return _value(analysis, outline, body[start:offset], offset, start=start)


def _value(
    analysis: Analysis,
    outline: Outline,
    before: str,
    offset: int,
    *,
    start: int,
    quote: str = "",
    is_text: bool = False,
) -> Context | None:
    frames = outline.frames
    kind, key = kind_at(path_of(frames))
    kind = _inner(kind, is_map=False)
    if not isinstance(kind, (*_SCALARS, schema.ListOf)):
        return None
    body = analysis.page.body
    word = _WORD_BEFORE.search(before)
    word_start = offset - len(word.group()) if word else offset
    after = _WORD.match(body, offset)
    container = _same(analysis.tree, frames[-1].node) if frames else None
    return Context(
        "value", kind, path_of(frames), key, container, _node(analysis, frames), before,
        word_start if is_text else start, after.end() if after else offset, quote,
        0, bool(frames) and frames[-1].is_flow, is_text,
    )  # fmt: skip


def _keys(  # noqa: PLR0913  # the parts of one context
    analysis: Analysis, frames: list[Frame], kind: schema.Kind | None, start: int, offset: int, column: int,
    *, is_flow: bool, quote: str = "", is_new: bool = False,
) -> Context | None:  # fmt: skip
    if not isinstance(kind, schema.Table):
        return None
    after = _WORD.match(analysis.page.body, offset)
    top = frames[-1].node if frames else analysis.tree
    container = None if is_new or not isinstance(top, YamlMap) else _same(analysis.tree, top) or top
    path = path_of(frames) if is_new else path_of(frames[:-1])
    return Context(
        "key", kind, path, None, container, _node(analysis, frames), analysis.page.body[start:offset],
        start, after.end() if after else offset, quote, column, is_flow, is_text=False,
    )  # fmt: skip


def _made(  # noqa: PLR0913  # the parts of one context
    analysis: Analysis,
    frames: list[Frame],
    mode: Mode,
    kind: schema.Kind | None,
    key: schema.Key | None,
    offset: int,
    column: int,
) -> Context | None:
    if kind is None:
        return None
    container = _same(analysis.tree, frames[-1].node)
    node = _node(analysis, frames)
    return Context(mode, kind, path_of(frames), key, container, node, "", offset, offset, "", column, False, False)


def _node(analysis: Analysis, frames: list[Frame]) -> Outcome | None:
    """The workflow's node that the cursor is in, by where its map starts."""
    for depth, frame in enumerate(frames):
        kind, _ = kind_at(path_of(frames[:depth]))
        if kind is schema.NODE or kind is schema.BLOCK:
            return next((o for o in analysis.outcomes if o.start == frame.node.start), None) or _unnamed(frame)
    return None


def _unnamed(frame: Frame) -> Outcome | None:
    if not isinstance(frame.node, YamlMap):
        return None
    entries = long_entries(schema.NODE, frame.node)
    named = entries["id"][1] if "id" in entries else None
    slug = named.text if isinstance(named, YamlScalar) else ""
    return Outcome(-1, slug, 0, 0, frame.node.start, frame.node.end, (), frame.node, entries, is_block=False)


def _same(tree: YamlNode | None, wanted: YamlMap | YamlList) -> YamlMap | YamlList | None:
    """The container of a tree that starts where this one does, and is of its kind."""
    while tree is not None and not isinstance(tree, YamlScalar):
        if tree.start == wanted.start and type(tree) is type(wanted):
            return tree
        inner = tree.items if isinstance(tree, YamlList) else [value for _, value in tree.entries.values()]
        tree = max((n for n in inner if n.start <= wanted.start), key=lambda n: n.start, default=None)
    return wanted
