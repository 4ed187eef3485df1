"""Fold a sequence of changes: the last one wins, and what comes later never contradicts what came before."""

from collections.abc import Iterable

from graphd.base.text import t
from graphd.core.change.decode import decode
from graphd.core.change.reading import MalformedChange
from graphd.core.change.rules import check_continuity
from graphd.core.change.values import Folded, GraphValue, Tombstone


def fold(values: Iterable[object]) -> Folded:
    """Fold changes in their order, passing over what is none of ours. Raises MalformedChange."""
    folded = Folded()
    for index, value in enumerate(values):
        try:
            folded = _follow(folded, decode(value))
        except MalformedChange as trouble:
            inner = trouble.index
            trouble = trouble.below(index).below("changes")
            trouble.index = index if inner is None else inner
            raise trouble from None
    return folded


def _follow(folded: Folded, change: GraphValue | Tombstone | None) -> Folded:
    if change is None:
        return folded
    current = folded.graph
    if isinstance(change, Tombstone):
        if current is not None and change.cleared != current.id:
            raise MalformedChange(
                t("clears {cleared}, but the graph is {current}", cleared=change.cleared, current=current.id), "cleared"
            )
        return Folded(None, change.cleared, change.cleared_at)
    if current is not None:
        check_continuity(current, change)
    return Folded(change, folded.cleared, folded.cleared_at)
