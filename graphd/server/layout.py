"""A layered layout of a directed acyclic graph: layers by longest path, order by barycentres, boxes by alignment. Pure.

Deterministic and without recursion. Edges always go down; boxes of one layer never overlap. The long edges of one node
share a chain of waypoints, one a layer; where that would be too many, long edges have none and are straight. Sizes
are in units of about a pixel. Source: spec protocol.md (`picture`); research editors.md §4.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SWEEPS: Final = 12
WAYPOINTS_LIMIT: Final = 4000
GAP: Final = 24
LAYER_GAP: Final = 56
BOX_HEIGHT: Final = 40
WAYPOINT_WIDTH: Final = 4

Needs = Mapping[str, Sequence[str]]
"""Each node with what it needs; what is not a key is not drawn."""


@dataclass(slots=True)
class Spot:
    """A place in a layer: a node's, or where a long edge of `source` passes."""

    source: str
    layer: int
    is_node: bool
    width: int
    x: int = 0  # left border
    above: list[int] = field(default_factory=list)  # places, by index
    below: list[int] = field(default_factory=list)

    @property
    def middle(self) -> int:
        """The x of its middle."""
        return self.x + self.width // 2


@dataclass(slots=True, frozen=True)
class Layout:
    """Where everything lies. `layers` holds indices of `spots`, from left to right, waypoints among them."""

    spots: list[Spot]
    layers: list[list[int]]
    edges: list[tuple[str, str, list[int]]]
    """(from, to, spots on the way, both ends included)."""
    width: int
    height: int

    def top(self, layer: int) -> int:
        """The y of a layer's upper edge."""
        return layer * (BOX_HEIGHT + LAYER_GAP)

    def points(self, way: Sequence[int]) -> list[tuple[int, int]]:
        """The line of an edge: lower edge of its first box, middle of the layers between, upper edge of its last."""
        first, last = self.spots[way[0]], self.spots[way[-1]]
        line = [(first.middle, self.top(first.layer) + BOX_HEIGHT)]
        line += [(self.spots[i].middle, self.top(self.spots[i].layer) + BOX_HEIGHT // 2) for i in way[1:-1]]
        return [*line, (last.middle, self.top(last.layer))]


def ranks(needs: Needs) -> dict[str, int]:
    """The layer of each node: the longest way from a node that needs nothing drawn. Raises ValueError at a cycle."""
    left = {node: sum(need in needs for need in set(wanted)) for node, wanted in needs.items()}
    dependants: dict[str, list[str]] = {node: [] for node in needs}
    for node, wanted in needs.items():
        for need in dict.fromkeys(wanted):
            if need in needs:
                dependants[need].append(node)
    layer = {node: 0 for node, count in left.items() if count == 0}
    ready = list(layer)
    for node in ready:  # grows while it is walked
        for dependant in dependants[node]:
            layer[dependant] = max(layer.get(dependant, 0), layer[node] + 1)
            left[dependant] -= 1
            if left[dependant] == 0:
                ready.append(dependant)
    if len(ready) < len(needs):
        raise ValueError("a cycle can't be laid out")
    return {node: layer[node] for node in needs}


def lay_out(needs: Needs, widths: Mapping[str, int], *, gap: int = GAP, waypoint: int = WAYPOINT_WIDTH) -> Layout:
    """Lay out the graph, each box `widths[node]` wide, with a `gap` between. Raises ValueError at a cycle."""
    spots, layers, edges = _spots(needs, ranks(needs), widths, waypoint)
    layers = _ordered(spots, layers)
    _align(spots, layers, gap)
    width = max((spot.x + spot.width for spot in spots), default=0)
    height = len(layers) * (BOX_HEIGHT + LAYER_GAP) - LAYER_GAP if layers else 0
    return Layout(spots, layers, edges, width, height)


def _spots(
    needs: Needs, layer_of: Mapping[str, int], widths: Mapping[str, int], waypoint: int
) -> tuple[list[Spot], list[list[int]], list[tuple[str, str, list[int]]]]:
    spots: list[Spot] = []
    layers: list[list[int]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    ways: dict[str, list[int]] = {}  # a node's own spot, and its waypoints below

    def add(source: str, layer: int, *, is_node: bool) -> int:
        spots.append(Spot(source, layer, is_node, widths[source] if is_node else waypoint))
        layers[layer].append(len(spots) - 1)
        return len(spots) - 1

    for node, layer in layer_of.items():
        ways[node] = [add(node, layer, is_node=True)]
    is_dense = _waypoints(needs, layer_of) > WAYPOINTS_LIMIT
    edges = []
    for node, wanted in needs.items():
        for need in dict.fromkeys(wanted):
            if need not in needs:
                continue
            way, gap = ways[need], layer_of[node] - layer_of[need]
            if is_dense and gap > 1:
                edges.append((need, node, [way[0], ways[node][0]]))
                continue
            for layer in range(layer_of[need] + len(way), layer_of[node]):
                way.append(add(need, layer, is_node=False))
                _join(spots, way[-2], way[-1])
            _join(spots, way[gap - 1], ways[node][0])
            edges.append((need, node, [*way[:gap], ways[node][0]]))
    return spots, layers, edges


def _waypoints(needs: Needs, layer_of: Mapping[str, int]) -> int:
    """How many the long edges would take: for each node as many as its longest edge passes layers."""
    longest: dict[str, int] = {}
    for node, wanted in needs.items():
        for need in wanted:
            if need in needs:
                longest[need] = max(longest.get(need, 0), layer_of[node] - layer_of[need] - 1)
    return sum(longest.values())


def _join(spots: list[Spot], upper: int, lower: int) -> None:
    spots[upper].below.append(lower)
    spots[lower].above.append(upper)


# ---- order within layers ------------------------------------------------------------------------------------------


def _ordered(spots: list[Spot], layers: list[list[int]]) -> list[list[int]]:
    """Sweep down and up, each layer sorted by the mean place of its neighbours; the best order seen is kept."""
    best = layers = [list(layer) for layer in layers]
    fewest = crossings(spots, layers)
    stale = 0
    for sweep in range(SWEEPS):
        if fewest == 0 or stale >= 4:
            break
        is_down = sweep % 2 == 0
        layers = [list(layer) for layer in layers]
        order = range(1, len(layers)) if is_down else range(len(layers) - 2, -1, -1)
        for index in order:
            _sort_layer(spots, layers[index], layers[index - 1 if is_down else index + 1], is_down=is_down)
        count = crossings(spots, layers)
        stale = 0 if count < fewest else stale + 1
        if count < fewest:
            best, fewest = layers, count
    return best


def _sort_layer(spots: list[Spot], layer: list[int], fixed: list[int], *, is_down: bool) -> None:
    place = {index: at for at, index in enumerate(fixed)}
    keys = {}
    for at, index in enumerate(layer):
        neighbours = spots[index].above if is_down else spots[index].below
        # a spot without neighbours there keeps its place among the others
        mean = sum(place[n] for n in neighbours) / len(neighbours) if neighbours else at * len(fixed) / len(layer)
        keys[index] = (mean, at)
    layer.sort(key=keys.__getitem__)


def crossings(spots: list[Spot], layers: list[list[int]]) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    total = 0
    for upper, lower in zip(layers, layers[1:], strict=False):
        place = {index: at for at, index in enumerate(lower)}
        seen: list[int] = []
        for index in upper:
            ends = [place[n] for n in spots[index].below]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


# ---- places -------------------------------------------------------------------------------------------------------


def _align(spots: list[Spot], layers: list[list[int]], gap: int) -> None:
    """Give every spot its x: near the middle of its neighbours, order and gaps kept, the leftmost at 0."""
    middles = [0.0] * len(spots)
    for layer in layers:
        at = 0.0
        for index in layer:
            middles[index] = at + spots[index].width / 2
            at += spots[index].width + gap
    for sweep in range(6):
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            wanted = [_wish(spots[index], middles, index, is_down=is_down) for index in layer]
            for index, middle in zip(layer, _kept_apart(spots, layer, wanted, gap), strict=True):
                middles[index] = middle
    for layer in layers:
        least = -(10**9)
        for index in layer:
            spots[index].x = max(round(middles[index] - spots[index].width / 2), least)
            least = spots[index].x + spots[index].width + gap
    leftmost = min((spot.x for spot in spots), default=0)
    for spot in spots:
        spot.x -= leftmost


def _wish(spot: Spot, middles: list[float], index: int, *, is_down: bool) -> float:
    neighbours = spot.above if is_down else spot.below
    return sum(middles[n] for n in neighbours) / len(neighbours) if neighbours else middles[index]


def _kept_apart(spots: list[Spot], layer: list[int], wanted: list[float], gap: int) -> list[float]:
    """The middles nearest to the wanted ones (least squares) that keep order and gaps: neighbours pool their wishes."""
    offsets, at = [], 0.0
    for place, index in enumerate(layer):
        if place:
            at += (spots[layer[place - 1]].width + spots[index].width) / 2 + gap
        offsets.append(at)
    pools: list[tuple[float, int]] = []  # (sum of wishes less offsets, how many)
    for wish, offset in zip(wanted, offsets, strict=True):
        total, count = wish - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, many = pools.pop()
            total, count = total + before, count + many
        pools.append((total, count))
    bases = [total / count for total, count in pools for _ in range(count)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]


def nearby(needs: Needs, focus: Sequence[str], limit: int) -> list[str]:
    """At most `limit` nodes: `focus` first, then ring by ring what they need and what needs them; in the graph's order.

    Where nothing is reachable any more, the rest comes in the graph's order.
    """
    dependants: dict[str, list[str]] = {}
    for node, wanted in needs.items():
        for need in wanted:
            dependants.setdefault(need, []).append(node)
    chosen = dict.fromkeys(node for node in focus if node in needs)
    ring = list(chosen)
    while ring and len(chosen) < limit:
        step = [n for node in ring for n in (*needs[node], *dependants.get(node, ())) if n in needs]
        ring = [node for node in dict.fromkeys(step) if node not in chosen]
        chosen |= dict.fromkeys(ring)
    for node in needs:
        if len(chosen) >= limit:
            break
        chosen[node] = None
    kept = dict.fromkeys(list(chosen)[:limit])
    return [node for node in needs if node in kept]
