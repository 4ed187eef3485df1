"""From a name to what it means, and to every place that uses it, in one file."""

from dataclasses import dataclass

from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.names import Mention
from graphd.workflows.language.places import Span


@dataclass(slots=True, frozen=True)
class Highlight:
    """One place of the name under the cursor; `is_definition` where it gets its meaning."""

    span: Span
    is_definition: bool


def definition(analysis: Analysis, at: tuple[int, int]) -> list[Span]:
    """Where what stands at a point is defined: the id of a node, an input's name, a mapped variable."""
    return [_span(analysis, m) for m in _same(analysis, at) if m.role == "definition"]


def references(analysis: Analysis, at: tuple[int, int], *, include_definition: bool = True) -> list[Span]:
    """Every place that names what stands at a point, in the order of the text."""
    found = _same(analysis, at)
    return [_span(analysis, m) for m in found if include_definition or m.role != "definition"]


def highlights(analysis: Analysis, at: tuple[int, int]) -> list[Highlight]:
    """The same places, for marking them while the cursor rests."""
    return [Highlight(_span(analysis, m), m.role == "definition") for m in _same(analysis, at)]


def subject_at(analysis: Analysis, at: tuple[int, int]) -> Mention | None:
    """The mention at a point."""
    return analysis.mentions.at(analysis.page.offset(at))


def _same(analysis: Analysis, at: tuple[int, int]) -> list[Mention]:
    mention = subject_at(analysis, at)
    return analysis.mentions.of(mention.subject) if mention is not None else []


def _span(analysis: Analysis, mention: Mention) -> Span:
    return analysis.page.span(mention.start, mention.end)
