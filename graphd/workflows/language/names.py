"""What a workflow names, and every place that speaks of it: nodes, inputs, and variables of one node.

Works on any tree, the parser's or the line scan's. Offsets are code points of the text without a BOM.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from graphd.core.conditions import MAX_CHARACTERS, ConditionMalformed, comparisons, parse
from graphd.core.plan import PLACEHOLDER, SOURCE
from graphd.workflows import schema
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar

Role: TypeAlias = Literal[
    "definition", "need", "condition", "source", "prompt", "script", "delivery", "gate", "review", "items"
]
Subject: TypeAlias = tuple[Literal["node", "input", "variable"], str, int]
"""Kind, name, and the index of the node that a variable belongs to (-1 else)."""
Entries: TypeAlias = dict[str, tuple[YamlScalar, YamlNode]]

_READ: Final = re.compile(r"(?<![\w.-])([A-Za-z0-9][A-Za-z0-9_-]*)(?=\.(?:state|verdict|output)\b)")
_INPUT_FILE: Final = re.compile(r"GRAPHD_INPUT_DIR\}?[\"']?/([A-Za-z0-9_][A-Za-z0-9_-]*)")
_INPUT_VARIABLE: Final = re.compile(r"GRAPHD_VAR_([A-Za-z_][A-Za-z0-9_]*)")
_ESCAPE: Final = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


@dataclass(slots=True, frozen=True)
class Mention:
    """One place that speaks of a subject. `owner` is the index of the node it stands in, -1 outside of nodes.

    `is_whole`: the span is a whole scalar, so that YAML decides whether another name needs quotes there.
    """

    subject: Subject
    start: int
    end: int
    role: Role
    owner: int
    is_whole: bool


@dataclass(slots=True, frozen=True)
class Outcome:
    """One node or block of the file with an id, as it is written."""

    index: int
    slug: str
    id_start: int
    id_end: int
    start: int
    end: int
    needs: tuple[tuple[str, int, int], ...]
    tree: YamlMap
    entries: Entries = field(repr=False)
    """By the long name of each key, whatever its spelling."""
    is_block: bool


def inside(text: str, scalar: YamlScalar) -> tuple[int, int]:
    """Where the text of a scalar stands, its quotes not counted."""
    if scalar.end - scalar.start >= 2 and text[scalar.start] in "\"'" and text[scalar.end - 1] == text[scalar.start]:
        return scalar.start + 1, scalar.end - 1
    return scalar.start, scalar.end


def end_of(text: str, node: YamlNode) -> int:
    """Where a node ends that people see: a block's end mark is where the next thing starts."""
    while not isinstance(node, YamlScalar) and text[node.start : node.start + 1] not in ("[", "{"):
        inner = node.items if isinstance(node, YamlList) else [e for pair in node.entries.values() for e in pair]
        if not inner:
            break
        node = max(inner, key=lambda n: n.start)
    if isinstance(node, YamlScalar):
        return node.start + len(text[node.start : node.end].rstrip())
    return max(node.start, node.end) if text[node.start : node.start + 1] in ("[", "{") else node.start


def long_entries(table: schema.Table, node: YamlNode | None) -> Entries:
    """Entries of a map that are keys of this table, by long name; the first of two spellings wins."""
    found: Entries = {}
    if isinstance(node, YamlMap):
        for written, pair in node.entries.items():
            key = table.key(written)
            if key is not None:
                found.setdefault(key.name, pair)
    return found


def inputs_of(tree: YamlNode | None) -> Entries:
    """Declared inputs by name."""
    declared = long_entries(schema.ROOT, tree).get("inputs")
    return dict(declared[1].entries) if declared and isinstance(declared[1], YamlMap) else {}


def config_of(tree: YamlNode | None) -> Entries:
    """Entries of `config`, with `nodes` of the root where they stand there."""
    root = long_entries(schema.ROOT, tree)
    config = long_entries(schema.CONFIG, root["config"][1]) if "config" in root else {}
    if "nodes" in root:
        config.setdefault("nodes", root["nodes"])
    return config


def outcomes(text: str, tree: YamlNode | None) -> tuple[Outcome, ...]:
    """Every node, then every block, that has an id, in the order of the text."""
    config = config_of(tree)
    found: list[Outcome] = []
    for part, table in (("nodes", schema.NODE), ("blocks", schema.BLOCK)):
        held = config[part][1] if part in config else None
        for item in held.items if isinstance(held, YamlList) else []:
            if not isinstance(item, YamlMap):
                continue
            entries = long_entries(table, item)
            named = entries["id"][1] if "id" in entries else None
            if isinstance(named, YamlScalar) and named.text:
                start, end = inside(text, named)
                needs = tuple(_needs(text, entries))
                found.append(
                    Outcome(
                        len(found), named.text, start, end, item.start, end_of(text, item), needs, item, entries,
                        part == "blocks",
                    )
                )  # fmt: skip
    return tuple(found)


def _needs(text: str, entries: Entries) -> Iterator[tuple[str, int, int]]:
    listed = entries["depends_on"][1] if "depends_on" in entries else None
    for item in listed.items if isinstance(listed, YamlList) else []:
        if isinstance(item, YamlScalar) and item.text:
            yield (item.text, *inside(text, item))


class Mentions:
    """All mentions of a file, in the order of the text."""

    def __init__(self, text: str, tree: YamlNode | None, nodes: tuple[Outcome, ...]) -> None:
        self._text = text
        self._nodes = nodes
        self._slugs = {node.slug for node in nodes}
        self._inputs = inputs_of(tree)
        config = config_of(tree)
        defaults = long_entries(schema.NODE_DEFAULTS, config["node_defaults"][1]) if "node_defaults" in config else {}
        self._usual_worker = _scalar_text(defaults.get("worker_type"))
        found: list[Mention] = []
        for name, (key, _) in self._inputs.items():
            found.append(self._whole(("input", name, -1), key, "definition", -1))
        if "delivery_node" in config:
            found += self._named(config["delivery_node"][1], "delivery", -1)
        for node in nodes:
            found += self._of_node(node)
        self.all = sorted(found, key=lambda m: (m.start, m.end))
        self._starts = [m.start for m in self.all]

    def at(self, offset: int) -> Mention | None:
        """The mention that covers an offset, its end included."""
        for index in range(bisect_right(self._starts, offset) - 1, -1, -1):
            mention = self.all[index]
            if mention.end >= offset:
                return mention
            if offset - mention.start > 400:
                break
        return None

    def of(self, subject: Subject) -> list[Mention]:
        """Every mention of a subject, in the order of the text."""
        return [m for m in self.all if m.subject == subject]

    # ---- one node --------------------------------------------------------------------------------------------------

    def _of_node(self, node: Outcome) -> Iterator[Mention]:
        whole = node.entries["id"][1]
        if isinstance(whole, YamlScalar):
            yield self._whole(("node", node.slug, -1), whole, "definition", node.index)
        for slug, start, end in node.needs:
            yield Mention(("node", slug, -1), start, end, "need", node.index, is_whole=True)
        if "condition" in node.entries:
            yield from self._condition(node.entries["condition"][1], node.index)
        variables = self._variables(node)
        for name, keys in variables.items():
            for key in keys:
                yield self._whole(("variable", name, node.index), key, "definition", node.index)
        mapping = node.entries["input_mapping"][1] if "input_mapping" in node.entries else None
        for _, source in mapping.entries.values() if isinstance(mapping, YamlMap) else []:
            yield from self._source(source, "source", node.index)
        gate = long_entries(schema.GATE, node.entries["gate"][1]) if "gate" in node.entries else {}
        if "revise" in gate:
            yield from self._named(gate["revise"][1], "gate", node.index)
        review = long_entries(schema.REVIEW, node.entries["review"][1]) if "review" in node.entries else {}
        for key_name in ("implementation_node_id", "verification_node_id"):
            if key_name in review:
                yield from self._named(review[key_name][1], "review", node.index)
        each = long_entries(schema.FOR_EACH, node.entries["for_each"][1]) if "for_each" in node.entries else {}
        if "in" in each:
            yield from self._source(each["in"][1], "items", node.index)
        for scalar in prompts_of(node):
            yield from self._prompt(scalar, node, variables)

    def _variables(self, node: Outcome) -> dict[str, list[YamlScalar]]:
        """Names that only this node binds, with the keys that bind them."""
        found: dict[str, list[YamlScalar]] = {}
        mapping = node.entries["input_mapping"][1] if "input_mapping" in node.entries else None
        own = long_entries(schema.PROMPT_TEMPLATE, node.entries.get("prompt_template", (None, None))[1]).get("input")
        for held in (mapping, own[1] if own else None):
            for name, (key, _) in held.entries.items() if isinstance(held, YamlMap) else ():
                found.setdefault(name, []).append(key)
        each = long_entries(schema.FOR_EACH, node.entries["for_each"][1]) if "for_each" in node.entries else {}
        if "as" in each and isinstance(each["as"][1], YamlScalar):
            found.setdefault(each["as"][1].text, []).append(each["as"][1])
        return found

    def _whole(self, subject: Subject, scalar: YamlScalar, role: Role, owner: int) -> Mention:
        return Mention(subject, *inside(self._text, scalar), role, owner, is_whole=True)

    def _named(self, node: YamlNode, role: Role, owner: int) -> Iterator[Mention]:
        if isinstance(node, YamlScalar) and node.text:
            yield self._whole(("node", node.text, -1), node, role, owner)

    def _source(self, node: YamlNode, role: Role, owner: int) -> Iterator[Mention]:
        if not isinstance(node, YamlScalar):
            return
        match = SOURCE.match(node.text)
        slug = match.group(1) if match else node.text.partition(".")[0]
        start, end = inside(self._text, node)
        if slug and self._text.startswith(slug, start):
            is_whole = start + len(slug) == end
            yield Mention(("node", slug, -1), start, start + len(slug), role, owner, is_whole)

    def _condition(self, node: YamlNode, owner: int) -> Iterator[Mention]:
        if not isinstance(node, YamlScalar) or len(node.text) > MAX_CHARACTERS:
            return
        try:
            found = [(leaf.reference.slug, leaf.reference.offset) for leaf in comparisons(parse(node.text))]
        except ConditionMalformed:
            found = [(m.group(1), m.start(1)) for m in _READ.finditer(node.text)]
        for slug, offset in found:
            start = locate(self._text, node, slug, offset)
            if start >= 0:
                yield Mention(("node", slug, -1), start, start + len(slug), "condition", owner, is_whole=False)

    def _prompt(self, scalar: YamlScalar, node: Outcome, variables: dict[str, list[YamlScalar]]) -> Iterator[Mention]:
        is_script = self.worker_of(node) == "shell"
        patterns = (_INPUT_FILE, _INPUT_VARIABLE) if is_script else (PLACEHOLDER,)
        for pattern in patterns:
            for match in pattern.finditer(self._text, scalar.start, scalar.end):
                name, start = match.group(1), match.start(1)
                if pattern is _INPUT_VARIABLE:
                    subject: Subject = ("input", name, -1)
                elif name.startswith("inputs.") and not is_script:
                    start, subject = start + len("inputs."), ("input", name.removeprefix("inputs."), -1)
                elif name in variables:
                    subject = ("variable", name, node.index)
                elif "input_mapping" not in node.entries and name in self._slugs:
                    subject = ("node", name, -1)
                else:
                    continue
                role: Role = "script" if is_script else "prompt"
                yield Mention(subject, start, match.end(1), role, node.index, is_whole=False)

    def worker_of(self, node: Outcome) -> str:
        """Who does this node, as it is written; empty where nobody does."""
        if "run" in node.entries:
            return "shell"
        return _scalar_text(node.entries.get("worker_type")) or self._usual_worker


def prompts_of(node: Outcome) -> Iterator[YamlScalar]:
    """The texts that a worker is told or runs, where they stand in the file."""
    for key in ("prompt", "run", "instruction"):
        if key in node.entries and isinstance(node.entries[key][1], YamlScalar):
            yield node.entries[key][1]  # type: ignore[misc]  # narrowed one line above
    template = long_entries(schema.PROMPT_TEMPLATE, node.entries.get("prompt_template", (None, None))[1])
    if "inline" in template and isinstance(template["inline"][1], YamlScalar):
        yield template["inline"][1]


def _scalar_text(pair: tuple[YamlScalar, YamlNode] | None) -> str:
    return pair[1].text if pair is not None and isinstance(pair[1], YamlScalar) else ""


def locate(text: str, scalar: YamlScalar, word: str, offset: int) -> int:
    """Where the word at an offset of a scalar's value stands in the file; -1 where escapes hide it."""
    raw, value = text[scalar.start : scalar.end], scalar.text
    if (at := raw.find(value)) >= 0:
        return scalar.start + at + offset
    if raw.startswith('"'):
        raw = _ESCAPE.sub(lambda m: "\0" * len(m.group()), raw)
    pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    before = [m.start() for m in pattern.finditer(value)]
    written = [m.start() for m in pattern.finditer(raw)]
    if offset not in before or len(before) != len(written):
        return -1
    return scalar.start + written[before.index(offset)]
