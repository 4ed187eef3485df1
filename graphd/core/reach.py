"""Which node of a plan waits for which, through however many others. For plans whose needs are known and acyclic."""

from collections.abc import Sequence
from functools import cached_property

from graphd.core.definition import Definition


class Reach:
    """Ancestors of every node as bits by plan order, made at the first question: 10,000 nodes are 12 MB at most."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._place = {definition.slug: place for place, definition in enumerate(definitions)}

    @property
    def is_acyclic(self) -> bool:
        """Whether no node waits for itself. The other questions may only be asked where it is so."""
        return len(self._ancestors) == len(self._place)

    def waits_for(self, slug: str, other: str) -> bool:
        """Whether `slug` starts only after `other` has settled."""
        return bool(self._ancestors[slug] >> self._place[other] & 1)

    def can_meet(self, slug: str, other: str) -> bool:
        """Whether the two may run at the same time."""
        return slug != other and not self.waits_for(slug, other) and not self.waits_for(other, slug)

    def path(self, first: str, last: str) -> list[str]:
        """Nodes on any way from `first` to `last`, both included, in plan order; empty where there is no way."""
        if not self.waits_for(last, first):
            return []
        bits = self._ancestors[last] | 1 << self._place[last]
        return [
            d.slug
            for place, d in enumerate(self._definitions)
            if bits >> place & 1 and (d.slug == first or self.waits_for(d.slug, first))
        ]

    @cached_property
    def _ancestors(self) -> dict[str, int]:
        found: dict[str, int] = {}
        pending = {d.slug: len(d.needs) for d in self._definitions}
        dependants: dict[str, list[str]] = {slug: [] for slug in self._place}
        for definition in self._definitions:
            for need in definition.needs:
                dependants[need].append(definition.slug)
        order = [slug for slug, count in pending.items() if count == 0]
        for slug in order:  # grows while we walk it
            bits = 0
            for need in self._definitions[self._place[slug]].needs:
                bits |= found[need] | 1 << self._place[need]
            found[slug] = bits
            for dependant in dependants[slug]:
                pending[dependant] -= 1
                if pending[dependant] == 0:
                    order.append(dependant)
        return found
