"""Completion: what may stand at the cursor, best first. Source: spec protocol.md, Language features."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from graphd.base.text import t
from graphd.core.conditions import PARTS, VERDICTS
from graphd.workflows import schema
from graphd.workflows.explanations import WORKER_DOCS, doc_of
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.context import Context, context_at
from graphd.workflows.language.names import Entries, Outcome, inputs_of, long_entries
from graphd.workflows.language.places import Span
from graphd.workflows.language.writing import scalar_for, template_input
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar
from graphd_protocol.states import NODE_STATES

CompletionKind: TypeAlias = Literal["key", "node", "worker", "value", "reference", "variable"]
_EARLIER: Final = ("revise", "implementation_node_id", "verification_node_id")
_PROMPTS: Final = ("run", "prompt", "prompt_template")
_OPEN_PLACEHOLDER = re.compile(r"\{\{\s*((?:inputs\.)?[A-Za-z0-9_-]*)\Z")
_OPEN_VARIABLE = re.compile(r"\$\{?(GRAPHD_[A-Z_]*[A-Za-z0-9_]*)\Z")
_OPEN_FILE = re.compile(r"GRAPHD_INPUT_DIR\}?[\"']?/([A-Za-z0-9_-]*)\Z")
_AFTER_DOT = re.compile(r"(?<![\w.-])([A-Za-z0-9][\w-]*)\.([A-Za-z]*)\Z")
_COMPARED = re.compile(r"\.(state|verdict)\s*(?:==|!=|in\s*\[(?:[^\]]*,)?)\s*([\"']?)([A-Za-z_]*)\Z")
_AFTER_VALUE = re.compile(r"(?:[\"'\])]|\b(?:true|false|null)|[0-9])\s+([a-z]*)\Z")
_AFTER_PART = re.compile(r"(?<![\w.-])[A-Za-z0-9][\w-]*\.[\w.\[\]-]+\s+([a-z=!<>]*)\Z")
_OPERAND = re.compile(r"(?:^|\(|\b(?:and|or|not))\s*([A-Za-z0-9_-]*)\Z")
_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")


@dataclass(slots=True, frozen=True)
class Completion:
    """One candidate. `edit_span` is replaced by `new_text`; it covers the word under the cursor."""

    label: str
    kind: CompletionKind
    detail: str
    documentation: str
    edit_span: Span
    new_text: str


@dataclass(slots=True, frozen=True)
class _Candidate:
    label: str
    kind: CompletionKind
    detail: str = ""
    documentation: str = ""
    new_text: str | None = None


def complete(analysis: Analysis, at: tuple[int, int]) -> list[Completion]:
    """Candidates at a point, those that fit what is typed already, in the order in which people want them."""
    offset = analysis.page.offset(at)
    context = context_at(analysis, offset)
    if context is None:
        return []
    body = analysis.page.body
    start, typed, found = _candidates(analysis, context, offset)
    space = " " if start == offset and start > 0 and body[start - 1] in ":-" and context.mode != "entry" else ""
    in_placeholder = any(c.kind == "variable" for c in found)
    span = analysis.page.span(start, context.end)
    wanted = typed.casefold()
    return [
        Completion(
            c.label, c.kind, c.detail, c.documentation, span,
            ("" if in_placeholder or context.is_text else space) + (c.label if c.new_text is None else c.new_text),
        )
        for c in found
        if _fits(wanted, c.label.casefold())
    ]  # fmt: skip


def _fits(typed: str, label: str) -> bool:
    letters = iter(label)
    return typed in label or all(letter in letters for letter in typed)


def _candidates(analysis: Analysis, context: Context, offset: int) -> tuple[int, str, list[_Candidate]]:
    """Where what is typed starts, what it is, and what may replace it."""
    if context.mode == "key":
        return context.start, context.before, list(_keys(analysis, context))
    if context.mode == "entry":
        return context.start, "", list(_entries(analysis, context))
    place = context.path[-2:] if context.path and context.path[-1] is None else context.path[-1:]
    if (inner := _in_long_text(analysis, context, offset)) is not None:
        return inner
    if context.is_text:
        return offset, "", []
    if place[-1:] == ("condition",):
        return _condition(analysis, context, offset)
    return context.start, context.before, list(_values(analysis, context))


# ---- keys -----------------------------------------------------------------------------------------------------------


def _keys(analysis: Analysis, context: Context) -> Iterator[_Candidate]:
    table = context.kind
    if not isinstance(table, schema.Table):
        return
    present = _present(analysis, context, table)
    if table is schema.NODE and present & set(_PROMPTS):
        present |= set(_PROMPTS)
    if "run" in present and context.node is not None and "run" in context.node.entries:
        present.add("worker_type")
    excluded = {name for group in table.exactly_one if present & set(group) for name in group}
    for key in table.keys:
        if key.name in present or key.name in excluded or (key.later and key.name != context.before):
            continue
        for spelling in (*key.short, key.name):
            new_text = _key_text(analysis, context, key, spelling)
            yield _Candidate(spelling, "key", _detail(key, spelling), doc_of(table, key), new_text)


def _present(analysis: Analysis, context: Context, table: schema.Table) -> set[str]:
    """Long names of the keys that the map has, the one under the cursor not counted."""
    if not isinstance(context.container, YamlMap):
        return set()
    found = set()
    for written, (key, _) in context.container.entries.items():
        known = table.key(written)
        if known is not None and not key.start <= context.start <= key.end:
            found.add(known.name)
    return found


def _detail(key: schema.Key, spelling: str) -> str:
    if spelling != key.name:
        return t("{meaning}; short for {key}", meaning=key.kind.meaning, key=key.name)
    if key.default is None or key.default == ():
        return key.kind.meaning
    default = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
    return t("{meaning}; default {default}", meaning=key.kind.meaning, default=default)


def _key_text(analysis: Analysis, context: Context, key: schema.Key, spelling: str) -> str:
    body = analysis.page.body
    rest = body[context.end : context.end + 80].split("\n", 1)[0]
    if rest.lstrip("\"' ").startswith(":"):
        return spelling
    if context.quote:
        return f"{spelling}{context.quote}: "
    if context.is_flow or rest.strip():
        return f"{spelling}: "
    deeper = analysis.page.line_break + " " * (context.column + 2)
    if key.kind is schema.NODES:
        return f"{spelling}:{deeper}- id: "
    if isinstance(key.kind, schema.Table | schema.MapOf):
        return f"{spelling}:{deeper}"
    return f"{spelling}: "


def _entries(analysis: Analysis, context: Context) -> Iterator[_Candidate]:
    """New lines of a list."""
    if isinstance(context.kind, schema.Table):
        first = context.kind.keys[0].name
        yield _Candidate(f"- {first}:", "key", t("a new entry"), "", f"- {first}: ")
        return
    for candidate in _of_kind(analysis, context, context.kind):
        text = candidate.new_text if candidate.new_text is not None else candidate.label
        yield _Candidate(candidate.label, candidate.kind, candidate.detail, candidate.documentation, f"- {text}")


# ---- values ---------------------------------------------------------------------------------------------------------


def _values(analysis: Analysis, context: Context) -> Iterator[_Candidate]:
    kind = context.kind
    if isinstance(kind, schema.ListOf):
        for candidate in _of_kind(analysis, context, kind.item):
            text = candidate.new_text if candidate.new_text is not None else candidate.label
            yield _Candidate(candidate.label, candidate.kind, candidate.detail, candidate.documentation, f"[{text}]")
        return
    yield from _of_kind(analysis, context, kind)


def _of_kind(analysis: Analysis, context: Context, kind: schema.Kind) -> Iterator[_Candidate]:
    name = next((step for step in reversed(context.path) if step is not None), "")
    if name in ("depends_on", "needs"):
        yield from _needs(analysis, context)
    elif name in _EARLIER and context.node is not None:
        before = analysis.before(context.node.slug)
        yield from _nodes(analysis, context, (o for o in analysis.outcomes if o.slug in before))
    elif kind is schema.SLUG and name != "id":
        yield from _nodes(analysis, context, analysis.outcomes)
    elif name in ("worker_type", "worker"):
        for worker in analysis.workers:
            yield _Candidate(worker, "worker", WORKER_DOCS.get(worker, ""))
    elif len(context.path) > 1 and context.path[-2] == "input_mapping":
        for node in _needed(analysis, context):
            yield _Candidate(node, "reference", t("the whole output"), new_text=_written(context, node))
            yield _Candidate(f"{node}.output", "reference", t("the output, or a part of it"))
    elif context.path[-2:] == ("for_each", "in"):
        for node in _needed(analysis, context):
            yield _Candidate(f"{node}.output", "reference", t("the list that this node puts out, or a part of it"))
    elif isinstance(kind, schema.Text):
        for choice in kind.choices:
            yield _Candidate(choice, "value", new_text=_written(context, choice))
    elif isinstance(kind, schema.Bool) and not context.quote:
        yield _Candidate("true", "value")
        yield _Candidate("false", "value")


def _needs(analysis: Analysis, context: Context) -> Iterator[_Candidate]:
    """Nodes that this one may need: not itself, nothing that waits for it, nothing that is there already."""
    node = context.node
    own = node.slug if node is not None else ""
    there = {
        item.text
        for item in (context.container.items if isinstance(context.container, YamlList) else [])
        if isinstance(item, YamlScalar) and not item.start <= context.start <= item.end
    }
    banned = there | _after(analysis, own) | {own}
    is_block = node is not None and node.is_block
    yield from _nodes(
        analysis, context, (o for o in analysis.outcomes if o.slug not in banned and o.is_block == is_block)
    )


def _nodes(analysis: Analysis, context: Context, nodes: Iterable[Outcome]) -> Iterator[_Candidate]:
    for node in dict.fromkeys((o.slug, _label(o)) for o in nodes):
        yield _Candidate(node[0], "node", node[1], new_text=_written(context, node[0]))


def _label(node: Outcome) -> str:
    named = node.entries.get("name")
    return named[1].text if named is not None and isinstance(named[1], YamlScalar) else ""


def _written(context: Context, text: str) -> str:
    return text if context.quote else scalar_for(text)


def _after(analysis: Analysis, slug: str) -> set[str]:
    """All that waits for a node, through however many others."""
    dependants: dict[str, list[str]] = {}
    for node in analysis.outcomes:
        for need, _, _ in node.needs:
            dependants.setdefault(need, []).append(node.slug)
    found: set[str] = set()
    todo = [slug] if slug else []
    while todo:
        for dependant in dependants.get(todo.pop(), ()):
            if dependant not in found:
                found.add(dependant)
                todo.append(dependant)
    return found


def _needed(analysis: Analysis, context: Context) -> list[str]:
    """Needs of the node, from the whole text where its tree still has them."""
    node = context.node
    if node is None:
        return []
    listed = node.entries.get("depends_on")
    inner: list[YamlNode] = listed[1].items if listed is not None and isinstance(listed[1], YamlList) else []
    return list(dict.fromkeys(item.text for item in inner if isinstance(item, YamlScalar) and item.text))


# ---- texts ----------------------------------------------------------------------------------------------------------


def _in_long_text(analysis: Analysis, context: Context, offset: int) -> tuple[int, str, list[_Candidate]] | None:
    """Placeholders of prompts, variables of scripts."""
    node = context.node
    name = next((step for step in reversed(context.path) if step is not None), "")
    if node is None or name not in ("prompt", "inline", "run", "instruction"):
        return None
    before = context.before[-400:]
    is_script = name == "run" or analysis.mentions.worker_of(node) == "shell"
    inputs = inputs_of(analysis.tree)
    if is_script and (match := _OPEN_FILE.search(before)):
        files = _mapped(node.entries) or _needed(analysis, context)
        return offset - len(match.group(1)), match.group(1), [_Candidate(file, "variable") for file in files]
    if is_script and (match := _OPEN_VARIABLE.search(before)):
        found = [_Candidate("GRAPHD_INPUT_DIR", "variable", t("the folder with the outputs of the needs"))]
        found += [_Candidate(f"GRAPHD_VAR_{n}", "variable", _about(inputs, n)) for n in inputs]
        return offset - len(match.group(1)), match.group(1), found
    if not is_script and (match := _OPEN_PLACEHOLDER.search(before)):
        names = _bound(analysis, context, node)
        close = "" if analysis.page.body[context.end :].lstrip(" ").startswith("}}") else " }}"
        gap = " " if close and before.endswith("{{") else ""
        found = [_Candidate(n, "variable", d, new_text=f"{gap}{n}{close}") for n, d in names.items()]
        return offset - len(match.group(1)), match.group(1), found
    return None


def _bound(analysis: Analysis, context: Context, node: Outcome) -> dict[str, str]:
    """Every name that a prompt of this node may use, and what it is."""
    inputs = inputs_of(analysis.tree)
    mapped = _mapped(node.entries)
    names: dict[str, str] = {}
    for name in mapped or _needed(analysis, context):
        names[name] = t("mapped in input_mapping") if mapped else t("the output of {slug}", slug=name)
    for name in template_input(node.entries):
        names[name] = t("a value of this prompt")
    each = node.entries.get("for_each")
    item = long_entries(schema.FOR_EACH, each[1]).get("as") if each else None
    if item is not None and isinstance(item[1], YamlScalar):
        names |= {item[1].text: t("the item"), "index": t("the place of the item")}
    return names | {f"inputs.{name}": _about(inputs, name) for name in inputs}


def _about(inputs: Entries, name: str) -> str:
    described = long_entries(schema.INPUT, inputs[name][1]).get("description")
    return described[1].text if described and isinstance(described[1], YamlScalar) else t("an input of the workflow")


def _mapped(entries: Entries) -> list[str]:
    held = entries["input_mapping"][1] if "input_mapping" in entries else None
    return list(held.entries) if isinstance(held, YamlMap) else []


def _condition(analysis: Analysis, context: Context, offset: int) -> tuple[int, str, list[_Candidate]]:
    """In a condition: needs, their parts, operators, states and verdicts."""
    before = context.before[-400:]
    if match := _COMPARED.search(before):
        words = NODE_STATES if match.group(1) == "state" else VERDICTS
        mark = match.group(2) or ('"' if context.quote != '"' else "'")
        start = offset - len(match.group(3)) - len(match.group(2))
        shut = "" if analysis.page.body[context.end : context.end + 1] == mark else mark
        found = [_Candidate(word, "value", new_text=f"{mark}{word}{shut}") for word in words]
        return start, match.group(3), found
    if match := _AFTER_DOT.search(before):
        return offset - len(match.group(2)), match.group(2), [_Candidate(part, "reference") for part in PARTS]
    if match := _AFTER_PART.search(before):
        return offset - len(match.group(1)), match.group(1), [_Candidate(sign, "value") for sign in _OPERATORS]
    if match := _AFTER_VALUE.search(before):
        return offset - len(match.group(1)), match.group(1), [_Candidate("and", "value"), _Candidate("or", "value")]
    if match := _OPERAND.search(before):
        found = [_Candidate(slug, "reference", new_text=f"{slug}.") for slug in _needed(analysis, context)]
        return offset - len(match.group(1)), match.group(1), [*found, _Candidate("not", "value", new_text="not ")]
    return offset, "", []
