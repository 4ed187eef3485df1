"""Hover: what a key is for, and what a node is, as Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass

from graphd.base.text import t
from graphd.workflows import schema
from graphd.workflows.explanations import WORKER_DOCS, doc_of
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.context import kind_at
from graphd.workflows.language.names import Mention, Outcome
from graphd.workflows.language.places import Span
from graphd.workflows.language.trail import Step, trail
from graphd.workflows.source import YamlScalar

_SHOWN_DEPENDANTS = 12


@dataclass(slots=True, frozen=True)
class Hover:
    """What to show at a span. `parts` are paragraphs, each still translatable; `markdown` is all of them in English.

    `slug` is the node that is meant, so that a server can add how it runs.
    """

    span: Span
    parts: tuple[str, ...]
    slug: str | None = None

    @property
    def markdown(self) -> str:
        """All paragraphs."""
        return "\n\n".join(self.parts)


def hover(analysis: Analysis, at: tuple[int, int]) -> Hover | None:
    """What is known of the name, key or worker at a point."""
    offset = analysis.page.offset(at)
    mention = analysis.mentions.at(offset)
    if mention is not None:
        found = _mentioned(analysis, mention)
        if found is not None:
            return found
    steps = trail(analysis.tree, offset)
    return _written(analysis, steps, offset) if steps else None


def _mentioned(analysis: Analysis, mention: Mention) -> Hover | None:
    span = analysis.page.span(mention.start, mention.end)
    kind, name, _ = mention.subject
    if kind == "node":
        node = analysis.slugs.get(name)
        return Hover(span, tuple(_node(analysis, node)), name) if node is not None else None
    if kind == "input":
        declared = next((d for d in analysis.declared if d.name == name), None)
        if declared is None:
            return None
        parts: list[str] = [t("input **{name}**: {type}", name=name, type=declared.type)]
        parts += [declared.description] if declared.description else []
        parts += [t("one of {choices}", choices=", ".join(declared.choices))] if declared.choices else []
        if declared.default is not None:
            parts.append(t("default: {value}", value=f"`{declared.default}`"))
        return Hover(span, tuple(parts))
    return Hover(span, (t("**{name}**, a name that this node binds for its prompt", name=name),))


def _node(analysis: Analysis, node: Outcome) -> Iterator[str]:
    named = node.entries.get("name")
    title = named[1].text if named is not None and isinstance(named[1], YamlScalar) else ""
    yield f"**{node.slug}**" + (f": {title}" if title and title != node.slug else "")
    worker = analysis.mentions.worker_of(node)
    if worker:
        about = WORKER_DOCS.get(worker, "")
        yield (
            t("worker: {worker} ({about})", worker=worker, about=about)
            if about
            else t("worker: {worker}", worker=worker)
        )
    if node.needs:
        yield t("needs {needs}", needs=", ".join(dict.fromkeys(slug for slug, _, _ in node.needs)))
    dependants = list(dict.fromkeys(o.slug for o in analysis.outcomes if any(n[0] == node.slug for n in o.needs)))
    if len(dependants) > _SHOWN_DEPENDANTS:
        shown = ", ".join(dependants[:_SHOWN_DEPENDANTS])
        yield t("read by {nodes} and {count} more", nodes=shown, count=len(dependants) - _SHOWN_DEPENDANTS)
    elif dependants:
        yield t("read by {nodes}", nodes=", ".join(dependants))
    definition = analysis.nodes[node.index].definition
    if definition is None:
        return
    if definition.condition is not None:
        yield t("runs if {condition}", condition=f"`{' '.join(definition.condition.split())[:200]}`")
    if definition.required:
        yield t("required: the graph is blocked if it fails")
    yield t("at most {seconds} s an attempt", seconds=f"{definition.timeout_ms / 1000:g}")
    if definition.retry.max:
        yield t(
            "retried up to {count} times after {classes}",
            count=definition.retry.max,
            classes=", ".join(definition.retry.on),
        )


def _written(analysis: Analysis, steps: list[Step], offset: int) -> Hover | None:
    step = steps[-1]
    path = tuple(s.name for s in steps)
    kind, key = kind_at(path)
    on_key = step.key is not None and step.key.start <= offset <= step.key.end
    if on_key and step.key is not None and step.name is not None:
        above, _ = kind_at(path[:-1])
        table = next((k for k in getattr(above, "kinds", (above,)) if isinstance(k, schema.Table)), None)
        key = table.key(step.name) if table is not None else None
        if table is None or key is None:
            return None
        return Hover(analysis.page.span(step.key.start, step.key.end), tuple(_key(table, key)))
    if key is not None and key.name == "worker_type" and isinstance(step.value, YamlScalar) and kind is not None:
        about = WORKER_DOCS.get(step.value.text)
        if about:
            span = analysis.page.span(step.value.start, step.value.end)
            return Hover(span, (f"**{step.value.text}**", about))
    return None


def _key(table: schema.Table, key: schema.Key) -> Iterator[str]:
    spellings = f"**{key.name}**" + "".join(f", **{short}**" for short in key.short)
    yield t("{key}: {meaning}", key=spellings, meaning=key.kind.meaning)
    if doc := doc_of(table, key):
        yield doc
    if isinstance(key.kind, schema.Text) and key.kind.choices:
        yield t("one of {choices}", choices=", ".join(key.kind.choices))
    if isinstance(key.kind, schema.Int | schema.Number) and key.kind.low is not None and key.kind.high is not None:
        yield t("from {low} to {high}", low=key.kind.low, high=key.kind.high)
    if key.default not in (None, ()):
        shown = ", ".join(key.default) if isinstance(key.default, tuple) else str(key.default)
        yield t("default: {value}", value=f"`{shown.lower() if isinstance(key.default, bool) else shown}`")
    if key.is_required:
        yield t("has to be there")
    if key.later:
        yield t("This version does not carry it out: {why}", why=key.later)
