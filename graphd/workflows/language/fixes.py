"""Code actions on a workflow's text: mends of diagnostics, and the other spelling of a key."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from graphd.base.text import Text, t
from graphd.workflows import schema
from graphd.workflows.diagnostics import Diagnostic
from graphd.workflows.language import mends_clauses as clauses
from graphd.workflows.language import mends_plan as plan
from graphd.workflows.language import mends_schema as keys
from graphd.workflows.language import mends_yaml as yaml
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.case import Case, Mend, Mends
from graphd.workflows.language.context import kind_at
from graphd.workflows.language.names import end_of
from graphd.workflows.language.places import Span
from graphd.workflows.language.trail import Step, trail
from graphd.workflows.language.writing import Edit, is_flow
from graphd.workflows.source import YamlMap, YamlScalar

MENDS: Final[dict[str, Callable[[Case], Mends]]] = {
    "condition.malformed": plan.condition, "condition.notANeed": plan.not_a_need, "delivery.unknown": plan.delivery,
    "edge.redundant": plan.no_need, "edge.unused": plan.no_need, "file.empty": yaml.empty, "input.enum": keys.enum,
    "forEach.notANeed": plan.not_a_need, "gate.notAnAncestor": clauses.not_an_ancestor,
    "gate.unguarded": clauses.unguarded, "review.notAnAncestor": clauses.not_an_ancestor, "reviseLeaks": clauses.leak,
    "review.evidence": clauses.evidence, "wait.worker": clauses.waiting, "writes.overlap": clauses.overlapping,
    "key.missing": keys.missing_key, "key.twice": keys.twice, "key.unknown": keys.unknown_key,
    "mapping.notANeed": plan.not_a_need, "name.mismatch": keys.name, "need.self": plan.no_need,
    "need.unknown": plan.unknown_need, "notSupported": keys.not_supported, "plan.cycle": plan.cycle,
    "plan.empty": plan.no_nodes, "plan.tooLarge": plan.too_large, "range": keys.value,
    "required.none": plan.none_required, "slug.collision": plan.slug, "slug.duplicate": plan.slug,
    "slug.invalid": plan.slug, "template.inShell": plan.in_shell, "template.unbound": plan.unbound,
    "type": keys.value, "value": keys.value, "worker.unknown": plan.worker, "yaml.alias": yaml.alias,
    "yaml.anchor": yaml.mark, "yaml.character": yaml.character, "yaml.directive": yaml.line,
    "yaml.documents": yaml.line, "yaml.duplicateKey": yaml.duplicate, "yaml.key": yaml.key,
    "yaml.syntax": yaml.syntax, "yaml.tag": yaml.mark,
}  # fmt: skip
_MENDED: Final = 50
_SPELLINGS: Final = {"needs": "depends_on", "worker": "worker_type"}


@dataclass(slots=True, frozen=True)
class Fix:
    """One code action. `diagnostic_code` empty: it mends nothing, it only writes the same otherwise."""

    title: Text
    edits: tuple[tuple[Span, str], ...]
    diagnostic_code: str
    is_preferred: bool
    diagnostic: Diagnostic | None = None


def fixes(analysis: Analysis, span: Span, codes: Collection[str] | None = None) -> list[Fix]:
    """What can be done about the diagnostics that touch a span (of these codes, if any are given), and at its start."""
    found: list[Fix] = []
    asked = [d for d in analysis.diagnostics if not codes or d.code in codes]
    for diagnostic in [d for d in asked if _touch(analysis.span_of(d), span)][:_MENDED]:
        mend = MENDS.get(diagnostic.code)
        if mend is None:
            continue
        found += [_fix(analysis, made, diagnostic) for made in mend(Case(analysis, diagnostic))]
    if analysis.is_parsed:
        found += [_fix(analysis, made, None) for made in _respelt(analysis, analysis.page.offset(span[0]))]
    return found


def related(analysis: Analysis, diagnostic: Diagnostic) -> list[tuple[Span, Text]]:
    """Other places that a diagnostic is about: every edge of a cycle, the first node of a duplicate id."""
    case = Case(analysis, diagnostic)
    page = analysis.page
    if diagnostic.code == "plan.cycle":
        edges = [(n, need, next(s for s in n.needs if s[0] == need)) for n, need in plan.cycle_edges(case)]
        return [
            (page.span(place[1], place[2]), t("{node} needs {need}", node=node.slug, need=need))
            for node, need, place in edges
        ]
    if diagnostic.code == "slug.duplicate" and case.scalar is not None:
        first = analysis.slugs.get(case.scalar.text)
        if first is not None:
            return [(page.span(first.id_start, first.id_end), t("{name} is here first", name=first.slug))]
    return []


def _touch(one: Span, other: Span) -> bool:
    start, end = other
    return one.start <= tuple(end) and tuple(start) <= one.end


def _fix(analysis: Analysis, mend: Mend, diagnostic: Diagnostic | None) -> Fix:
    edits = tuple((analysis.page.span(edit[0], edit[1]), _spaced(analysis, edit)) for edit in sorted(mend.edits))
    return Fix(mend.title, edits, diagnostic.code if diagnostic is not None else "", mend.is_preferred, diagnostic)


def _spaced(analysis: Analysis, edit: Edit) -> str:
    """The new text; with a space where it is the first value right behind a colon or a dash."""
    start, end, new = edit
    is_first = start == end and analysis.page.body[max(0, start - 1) : start] in (":", "-")
    return f" {new}" if is_first and new[:1] not in ("", " ", "\n", "\r", ":") else new


def _respelt(analysis: Analysis, offset: int) -> Iterator[Mend]:
    """The other spelling of the key at an offset."""
    steps = trail(analysis.tree, offset)
    step = steps[-1] if steps else None
    if step is None or step.key is None or not step.key.start <= offset <= step.key.end or step.name is None:
        return
    table, _ = kind_at(tuple(s.name for s in steps[:-1]))
    if table not in (schema.NODE, schema.BLOCK, schema.NODE_DEFAULTS):
        return
    for short, long in _SPELLINGS.items():
        if step.name in (short, long):
            other = long if step.name == short else short
            yield Mend(
                t("write {key} for {written}", key=other, written=step.name), ((step.key.start, step.key.end, other),)
            )
    if step.name == "prompt_template" and table is schema.NODE:
        yield from _shorter(analysis, step)
    if step.name == "prompt" and table is schema.NODE:
        yield from _longer(analysis, step)


def _shorter(analysis: Analysis, step: Step) -> Iterator[Mend]:
    held = step.value
    if not isinstance(held, YamlMap) or list(held.entries) != ["inline"] or step.key is None:
        return
    value = held.entries["inline"][1]
    if not isinstance(value, YamlScalar) or value.end <= value.start:
        return
    edits = [(step.key.start, value.start, "prompt: ")]
    if is_flow(analysis.page.body, held):
        edits.append((value.end, held.end, ""))
    yield Mend(t("write {key} for {written}", key="prompt", written="prompt_template"), tuple(edits))


def _longer(analysis: Analysis, step: Step) -> Iterator[Mend]:
    value, body = step.value, analysis.page.body
    if not isinstance(value, YamlScalar) or step.key is None or value.end <= value.start:
        return
    raw = body[value.start : value.end]
    if raw[0] in "|>" or "\n" in raw or (value.is_plain and set(raw) & set(",[]{}#")):
        return
    end = max(value.start, end_of(body, value))
    edits = ((step.key.start, value.start, "prompt_template: { inline: "), (end, end, " }"))
    yield Mend(t("write {key} for {written}", key="prompt_template", written="prompt"), edits)
