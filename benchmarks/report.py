"""A measurement as a row, and rows as a table for people or as JSON for machines."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

HEAD = ("what", "graphd", "floor", "ratio", "goal", "met, or why not")


@dataclass(slots=True, frozen=True)
class Goal:
    """What performance.md asks for. `check` gets the median of the ratios, or of graphd's own values if none."""

    text: str
    check: Callable[[float], bool]


def at_most(limit: float, *, is_ratio: bool = True, note: str = "") -> Goal:
    """A goal with an upper bound."""
    return Goal(f"≤ {limit:g}{'×' if is_ratio else ''}{note}", lambda value: value <= limit)


@dataclass(slots=True)
class Row:
    """One line. `ours` and `theirs` hold a value a round, in the same order; `other` names a floor that is not ours."""

    what: str
    unit: str
    ours: Sequence[float]
    theirs: Sequence[float] = ()
    other: str = ""
    goal: Goal | None = None
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """One a round."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=False) if theirs]

    @property
    def is_met(self) -> bool | None:
        """None where there is no goal, or nothing was measured."""
        values = self.ratios or list(self.ours)
        if self.goal is None or not values:
            return None
        return self.goal.check(statistics.median(values))

    def verdict(self) -> str:
        """`met`, or why not; without a goal what there is to say."""
        if self.is_met is None or self.goal is None:
            return self.why
        values = self.ratios or list(self.ours)
        met = sum(self.goal.check(value) for value in values)
        rounds = "" if met in (0, len(values)) else f" ({met} of {len(values)} rounds within it)"
        return f"met{rounds}" if self.is_met else f"not met{rounds}: {self.why or 'no reason known'}"

    def cells(self) -> tuple[str, ...]:
        """For the table."""
        theirs = spread(self.theirs, self.unit) + (f" ({self.other})" if self.other and self.theirs else "")
        return (
            self.what, spread(self.ours, self.unit), theirs or self.other or "–", spread(self.ratios, "×") or "–",
            self.goal.text if self.goal else "–", self.verdict() or "–",
        )  # fmt: skip

    def wire(self) -> dict[str, Any]:
        """For machines: every value of every round."""
        return {
            "what": self.what, "unit": self.unit, "graphd": list(self.ours), "floor": list(self.theirs),
            "floorName": self.other or "floor", "ratios": self.ratios, "goal": self.goal.text if self.goal else None,
            "isMet": self.is_met, "why": self.why, **self.facts,
        }  # fmt: skip


def spread(values: Sequence[float], unit: str) -> str:
    """Median, and lowest to highest where there are several."""
    if not values:
        return ""
    text = f"{short(statistics.median(values))}{'' if unit == '×' else ' '}{unit}".strip()
    if len(values) > 1 and min(values) != max(values):
        text += f" [{short(min(values))}–{short(max(values))}]"
    return text


def short(value: float) -> str:
    """Three digits that mean something."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
