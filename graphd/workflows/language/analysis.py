"""One text of a workflow, understood as far as it goes: diagnostics, nodes, names. Pure; each text makes a new value.

A text that is no YAML at this moment is read by the line scan, and takes from the last text that was what only a
compiler knows: the definitions of nodes that were not touched since. Source: spec protocol.md, Language features.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from graphd.core.model import Definition
from graphd.core.plan import PLACEHOLDER
from graphd.workflows import schema
from graphd.workflows.compile import compile_source
from graphd.workflows.diagnostics import Diagnostic
from graphd.workflows.inputs import Declared
from graphd.workflows.language.names import Mentions, Outcome, long_entries, outcomes
from graphd.workflows.language.outline import Outline
from graphd.workflows.language.places import Page, Span
from graphd.workflows.schema import BUILT_IN_WORKERS
from graphd.workflows.source import MAX_BYTES, YamlNode
from graphd.workflows.templates import PromptReader


@dataclass(slots=True, frozen=True, eq=False)
class NodeSpan:
    """One node of the file; its places are worked out when they are asked for. `index` counts nodes, then blocks.

    `definition` None: the node has an error, or was touched since the text was last YAML.
    """

    outcome: Outcome
    page: Page = field(repr=False)
    definition: Definition | None

    @property
    def slug(self) -> str:
        """Its id."""
        return self.outcome.slug

    @property
    def index(self) -> int:
        """Its place among the nodes of the file."""
        return self.outcome.index

    @property
    def is_block(self) -> bool:
        """Whether it is a block, which is compiled to several nodes."""
        return self.outcome.is_block

    @property
    def id_span(self) -> Span:
        """Its id, without quotes."""
        return self.page.span(self.outcome.id_start, self.outcome.id_end)

    @property
    def span(self) -> Span:
        """All of it."""
        return self.page.span(self.outcome.start, self.outcome.end)

    @property
    def needs(self) -> tuple[tuple[str, Span], ...]:
        """Its needs as they are written, each with its place."""
        return tuple((slug, self.page.span(start, end)) for slug, start, end in self.outcome.needs)


@dataclass(frozen=True, eq=False)
class Analysis:
    """What one text says. `is_parsed` False: it is no YAML now, and everything comes from the line scan."""

    text: str
    name: str | None
    diagnostics: list[Diagnostic]
    is_parsed: bool
    title: str
    workers: tuple[str, ...]
    page: Page = field(repr=False)
    declared: tuple[Declared, ...] = field(repr=False)
    read_prompt: PromptReader | None = field(repr=False)
    parsed_tree: YamlNode | None = field(repr=False)
    compiled: dict[int, Definition] = field(repr=False)
    good: "Analysis | None" = field(repr=False)

    @cached_property
    def tree(self) -> YamlNode | None:
        """The parser's tree, else the line scan's."""
        if self.is_parsed:
            return self.parsed_tree
        return Outline(self.page.body).root if len(self.page.body) <= MAX_BYTES else None

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Nodes and blocks with offsets."""
        return outcomes(self.page.body, self.tree)

    @cached_property
    def mentions(self) -> Mentions:
        """Every place that names a node, an input or a variable."""
        return Mentions(self.page.body, self.tree, self.outcomes)

    @cached_property
    def nodes(self) -> tuple[NodeSpan, ...]:
        """Every node with an id, in the order of the text, then every block."""
        return tuple(NodeSpan(node, self.page, self._definition(node)) for node in self.outcomes)

    @cached_property
    def slugs(self) -> dict[str, Outcome]:
        """The first node of each slug."""
        return {node.slug: node for node in reversed(self.outcomes)}

    def before(self, slug: str) -> set[str]:
        """All that a node waits for, through however many others, as it is written."""
        found: set[str] = set()
        todo = [slug]
        while todo:
            outcome = self.slugs.get(todo.pop())
            needs = {need for need, _, _ in outcome.needs} - found if outcome is not None else set()
            found |= needs
            todo += needs
        return found - {slug}

    def span_of(self, diagnostic: Diagnostic) -> Span:
        """Where a diagnostic of this text stands, in code points; cut at the end of its first line."""
        page, place = self.page, diagnostic.place
        start, end = page.at(place.start), page.at(place.end)
        if end.line > start.line:
            end = page.at(page.starts[start.line] + len(page.line(start.line)))
        return Span(start, max(start, end))

    def _definition(self, node: Outcome) -> Definition | None:
        if self.is_parsed:
            place = bisect_left(self._error_starts, node.start)
            has_error = place < len(self._error_starts) and self._error_starts[place] < max(node.end, node.start + 1)
            return None if has_error else self.compiled.get(node.start)
        before = self.good.slugs.get(node.slug) if self.good is not None else None
        if before is None or self.good is None:
            return None
        theirs = self.good.page.body[before.start : before.end]
        return self.good._definition(before) if self.page.body[node.start : node.end] == theirs else None

    @cached_property
    def _error_starts(self) -> list[int]:
        return sorted(d.place.start for d in self.diagnostics if d.severity == "error")


def analyse(
    text: str,
    *,
    name: str | None,
    previous: Analysis | None = None,
    read_prompt: PromptReader | None = None,
    workers: Collection[str] = BUILT_IN_WORKERS,
) -> Analysis:
    """Understand a text. `previous` is the analysis of the text before the last edit, if there was one.

    `name` is the file's stem, None for text without a file. Without `read_prompt` prompt files are not looked at, and
    nodes that use one have no definition. Never raises for what the text says.
    """
    result = compile_source(text, name=name, inputs=None, read_prompt=read_prompt, workers=workers)
    is_parsed = result.tree is not None
    last = previous if previous is None or previous.is_parsed else previous.good
    title = result.title or (last.title if last is not None and not is_parsed else "") or name or ""
    made = zip(result.nodes, result.definitions, strict=True)
    return Analysis(
        text=text,
        name=name,
        diagnostics=result.diagnostics,
        is_parsed=is_parsed,
        title=title,
        workers=tuple(workers),
        page=Page(text),
        declared=result.declared or (last.declared if last is not None and not is_parsed else ()),
        read_prompt=read_prompt,
        parsed_tree=result.tree,
        compiled={node.node.start: definition for node, definition in made},
        good=None if is_parsed else last,
    )


def same_definition(analysis: Analysis, slug: str, running: Definition) -> bool:
    """Whether the node of this slug says what a running one was started with.

    Values that a start filled in are not known here, so a placeholder that needs no other node matches any text.
    """
    node = analysis.slugs.get(slug)
    definition = analysis.nodes[node.index].definition if node is not None else None
    if node is None or definition is None:
        return False
    ours = replace(definition, needs=tuple(dict.fromkeys(definition.needs)), spec="", discovered_from=())
    theirs = replace(running, needs=tuple(dict.fromkeys(running.needs)), spec="", discovered_from=())
    if ours != theirs:
        return False
    if definition.worker == "shell" or definition.spec == running.spec:
        return definition.spec == running.spec
    return _could_become(definition.spec, running.spec, _later_bound(node, definition))


def _later_bound(node: Outcome, definition: Definition) -> set[str]:
    """Names that stay in a prompt until the attempt starts."""
    own = long_entries(schema.PROMPT_TEMPLATE, node.entries.get("prompt_template", (None, None))[1]).get("input")
    known = set(getattr(own[1], "entries", {})) if own else set()
    mapped = [name for name, _ in definition.input_mapping]
    return set(mapped or definition.needs) - known


def _could_become(template: str, filled: str, later: set[str]) -> bool:
    """Whether filling in the other placeholders of a template may give this text."""
    parts: list[str] = [""]
    at = 0
    for match in PLACEHOLDER.finditer(template):
        parts[-1] += template[at : match.start()]
        if match.group(1) in later:
            parts[-1] += match.group()
        else:
            parts.append("")
        at = match.end()
    parts[-1] += template[at:]
    if len(parts) == 1:
        return template == filled
    if not filled.startswith(parts[0]) or len(filled) < len(parts[0]) + len(parts[-1]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = filled.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return filled.endswith(parts[-1]) and len(filled) - len(parts[-1]) >= at
