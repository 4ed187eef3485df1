"""Which node of a plan waits for which, through however many others. For plans whose needs are known and acyclic."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from graphd.core.definition import Definition


class Reach:
    """Ancestors of every node as bits by plan order, made at the first question: 10,000 nodes are 12 MB at most."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._place = {definition.slug: place for place, definition in enumerate(definitions)}
        self._needs = {definition.slug: list(dict.fromkeys(definition.needs)) for definition in definitions}

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
        """Nodes on any way from `first` to `last`, both included, in plan order; empty where there is no way.

        As cheap as the way is long: a plan may have a gate for every other node.
        """
        if not self.waits_for(last, first):
            return []
        ends = 1 << self._place[first] | 1 << self._place[last]
        return [self._definitions[place].slug for place in _places(self._ancestors[last] & self._after[first] | ends)]

    def place(self, slug: str) -> int:
        """Where it stands in the plan."""
        return self._place[slug]

    def readers(self, slug: str) -> list[str]:
        """Nodes that need this one directly, in plan order."""
        return self._dependants[slug]

    @cached_property
    def _dependants(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {slug: [] for slug in self._place}
        for slug, needs in self._needs.items():
            for need in needs:
                found[need].append(slug)
        return found

    @cached_property
    def _ancestors(self) -> dict[str, int]:
        return self._gathered(self._needs, self._dependants)

    @cached_property
    def _after(self) -> dict[str, int]:
        """As `_ancestors`, the other way round."""
        return self._gathered(self._dependants, self._needs)

    def _gathered(self, before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> dict[str, int]:
        """All that comes before each node, as bits; without the nodes on a cycle, and behind one."""
        found: dict[str, int] = {}
        pending = {slug: len(others) for slug, others in before.items()}
        order = [slug for slug, count in pending.items() if count == 0]
        for slug in order:  # grows while we walk it
            bits = 0
            for other in before[slug]:
                bits |= found[other] | 1 << self._place[other]
            found[slug] = bits
            for other in after[slug]:
                pending[other] -= 1
                if pending[other] == 0:
                    order.append(other)
        return found


def _places(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
