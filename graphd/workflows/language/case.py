"""One diagnostic with all that a mend of it may want to look at."""

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from graphd.base.text import Text
from graphd.workflows import schema
from graphd.workflows.diagnostics import Diagnostic
from graphd.workflows.language.analysis import Analysis
from graphd.workflows.language.context import kind_at
from graphd.workflows.language.names import Outcome
from graphd.workflows.language.places import Page
from graphd.workflows.language.trail import Step, trail
from graphd.workflows.language.writing import Edit
from graphd.workflows.source import YamlList, YamlScalar


@dataclass(slots=True, frozen=True)
class Mend:
    """One way out: what it is called, and its edits. `is_preferred`: the one that is most likely meant."""

    title: Text
    edits: tuple[Edit, ...]
    is_preferred: bool = False


Mends: TypeAlias = Iterator[Mend]


@dataclass(frozen=True)
class Case:
    """A diagnostic of an analysis."""

    analysis: Analysis
    diagnostic: Diagnostic
    start: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", self.diagnostic.place.start)
        object.__setattr__(self, "end", self.diagnostic.place.end)

    @property
    def page(self) -> Page:
        """The text with its lines."""
        return self.analysis.page

    @property
    def body(self) -> str:
        """The text."""
        return self.analysis.page.body

    @property
    def shown(self) -> str:
        """What stands where the diagnostic is."""
        return self.body[self.start : self.end]

    @cached_property
    def steps(self) -> list[Step]:
        """The way to the diagnostic's place."""
        return trail(self.analysis.tree, self.start)

    @cached_property
    def node(self) -> Outcome | None:
        """The workflow's node that the diagnostic is in."""
        for outcome in self.analysis.outcomes:
            if outcome.start <= self.start <= max(outcome.end, outcome.start):
                return outcome
        return None

    @property
    def kind(self) -> schema.Kind | None:
        """What the schema wants at the place."""
        return kind_at(tuple(step.name for step in self.steps))[0]

    @property
    def scalar(self) -> YamlScalar | None:
        """The scalar that the diagnostic points at."""
        value = self.steps[-1].value if self.steps else None
        return value if isinstance(value, YamlScalar) and value.start <= self.start <= value.end else None

    @property
    def table(self) -> schema.Table | None:
        """The table that holds the innermost key."""
        kind = kind_at(tuple(step.name for step in self.steps[:-1]))[0]
        return next((k for k in getattr(kind, "kinds", (kind,)) if isinstance(k, schema.Table)), None)

    @property
    def listed(self) -> tuple[YamlList, YamlScalar] | None:
        """The list and its entry that the diagnostic points at."""
        if not self.steps or not isinstance(self.steps[-1].held, YamlList):
            return None
        item = self.steps[-1].value
        return (self.steps[-1].held, item) if isinstance(item, YamlScalar) else None


def closest(word: str, known: Collection[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that is most like this one."""
    by_lower = {k.lower(): k for k in sorted(known, reverse=True)[:2_000]}
    found = difflib.get_close_matches(word.lower()[:80], by_lower, 1, cutoff)
    return by_lower[found[0]] if found else None
