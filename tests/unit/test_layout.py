"""The layered layout: boxes apart, edges down, the same every time; the drawing in characters tells the same graph."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.server import boxes, words
from graphd.server.layout import BOX_HEIGHT, Layout, crossings, lay_out, nearby, ranks

Graph = dict[str, list[str]]


@st.composite
def graphs(draw: st.DrawFn, *, most: int = 24) -> Graph:
    """An acyclic graph, in an order that need not be one of its own."""
    count = draw(st.integers(0, most))
    chance = draw(st.sampled_from([0.05, 0.15, 0.4, 0.9]))
    rng = random.Random(draw(st.integers(0, 2**32)))
    names = [f"n{index}" for index in range(count)]
    needs = {name: [other for other in names[:at] if rng.random() < chance] for at, name in enumerate(names)}
    order = names[:]
    rng.shuffle(order)
    return {name: needs[name] for name in order}


def laid_out(graph: Graph) -> Layout:
    return lay_out(graph, {name: 40 + 30 * (len(name) % 3) for name in graph})


@given(graphs())
def test_boxes_and_waypoints_of_a_layer_never_overlap(graph: Graph) -> None:
    layout = laid_out(graph)
    for layer in layout.layers:
        spots = [layout.spots[index] for index in layer]
        assert all(left.x + left.width < right.x for left, right in zip(spots, spots[1:], strict=False))
    assert all(spot.x >= 0 and spot.x + spot.width <= layout.width for spot in layout.spots)
    assert not graph or min(spot.x for spot in layout.spots) == 0


@given(graphs())
def test_every_node_is_placed_once_and_every_edge_goes_down(graph: Graph) -> None:
    layout = laid_out(graph)
    placed = [spot.source for spot in layout.spots if spot.is_node]
    assert sorted(placed) == sorted(graph)
    assert sorted((a, b) for a, b, _ in layout.edges) == sorted((need, node) for node in graph for need in graph[node])
    layer_of = {spot.source: spot.layer for spot in layout.spots if spot.is_node}
    for upper, lower, way in layout.edges:
        assert layer_of[upper] < layer_of[lower]
        points = layout.points(way)
        assert all(above[1] < below[1] for above, below in zip(points, points[1:], strict=False))
        assert points[0][1] == layout.top(layer_of[upper]) + BOX_HEIGHT
        assert points[-1][1] == layout.top(layer_of[lower])


@given(graphs())
def test_a_layer_is_the_longest_way_down(graph: Graph) -> None:
    layer = ranks(graph)
    for node, needs in graph.items():
        assert layer[node] == max((layer[need] + 1 for need in needs), default=0)


@given(graphs())
def test_the_same_graph_has_the_same_layout(graph: Graph) -> None:
    assert laid_out(graph) == laid_out({name: list(needs) for name, needs in graph.items()})


@given(graphs())
def test_ordering_makes_no_more_crossings_than_there_were(graph: Graph) -> None:
    layout = laid_out(graph)
    as_given: list[list[int]] = [[] for _ in layout.layers]
    for index, spot in enumerate(layout.spots):
        as_given[spot.layer].append(index)
    assert crossings(layout.spots, layout.layers) <= crossings(layout.spots, as_given)


def test_a_tree_has_no_crossing() -> None:
    rng = random.Random(7)
    graph: Graph = {"n0": []}
    for index in range(1, 60):
        graph[f"n{index}"] = [f"n{rng.randrange(index)}"]
    layout = laid_out(graph)
    assert crossings(layout.spots, layout.layers) == 0


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        lay_out({"a": ["b"], "b": ["a"]}, {"a": 10, "b": 10})


def test_a_long_chain_needs_no_stack() -> None:
    chain = {f"n{index}": [f"n{index - 1}"] if index else [] for index in range(5000)}
    assert ranks(chain)["n4999"] == 4999
    assert len(lay_out(chain, dict.fromkeys(chain, 10)).layers) == 5000


def test_dense_and_large_graphs_are_laid_out_soon() -> None:
    dense = {f"n{index}": [f"n{other}" for other in range(index)] for index in range(300)}
    rng = random.Random(1)
    large = {f"n{i}": [f"n{rng.randrange(i)}" for _ in range(3)] if i else [] for i in range(500)}
    begun = time.process_time()
    for graph in (dense, large):
        laid_out(graph)
    assert time.process_time() - begun < 5


# ---- what is drawn ------------------------------------------------------------------------------------------------


@given(graphs(), st.integers(1, 12), st.integers(0, 2**32))
def test_what_is_drawn_is_around_the_focus(graph: Graph, limit: int, seed: int) -> None:
    focus = random.Random(seed).sample(sorted(graph), min(3, len(graph)))
    kept = nearby(graph, focus, limit)
    assert len(kept) == min(limit, len(graph))
    assert kept == [node for node in graph if node in set(kept)]
    assert set(focus[:limit]) <= set(kept)


def test_rings_come_before_what_is_far() -> None:
    chain = {f"n{index}": [f"n{index - 1}"] if index else [] for index in range(10)}
    assert nearby(chain, ["n5"], 3) == ["n4", "n5", "n6"]


# ---- in characters ------------------------------------------------------------------------------------------------

SIDES = {
    "│": "ud", "─": "lr", "┌": "rd", "┐": "ld", "└": "ur", "┘": "ul",
    "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru", "┼": "udlr",
}  # fmt: skip
STEP = {"d": (1, 0), "l": (0, -1), "r": (0, 1)}
BACK = {"d": "u", "l": "r", "r": "l"}


def box_tops(rows: list[str], labels: dict[str, str]) -> dict[tuple[int, int], str]:
    """Every cell of the upper edge of a box → the node. Labels are unique words."""
    found = {}
    for node, label in labels.items():
        row = next(index for index, line in enumerate(rows) if f" {label} " in line)
        middle = rows[row].index(f" {label} ") + 1
        left = rows[row].rindex("│", 0, middle)
        right = rows[row].index("│", middle)
        found.update({(row - 1, column): node for column in range(left, right + 1)})
    return found


def traced(text: str, labels: dict[str, str]) -> set[tuple[str, str]]:
    """The edges that a reader sees: from each lower edge of a box along its lines, never up, straight over others."""
    rows = text.split("\n")
    rows = [line.ljust(max(map(len, rows))) for line in rows]
    tops = box_tops(rows, labels)
    edges = set()
    for (row, column), node in tops.items():
        if rows[row + 2][column] == "┬":
            edges |= {(node, end) for end in followed(rows, tops, (row + 3, column))}
    return edges


def followed(rows: list[str], tops: dict[tuple[int, int], str], start: tuple[int, int]) -> set[str]:
    ends, seen, todo = set(), set(), [(*start, "d")]
    while todo:
        row, column, way = todo.pop()
        if (row, column, way) in seen:
            continue
        seen.add((row, column, way))
        if (row, column) in tops:
            ends.add(tops[row, column])
            continue
        glyph = rows[row][column]
        sides = SIDES[glyph]
        is_over = BACK[way] not in sides  # another line passes here
        outs = way if is_over else [side for side in sides if side not in ("u", BACK[way])]
        todo += [(row + STEP[out][0], column + STEP[out][1], out) for out in outs]
    return ends


@given(graphs(most=14))
@settings(max_examples=300)
def test_the_drawing_tells_the_very_edges(graph: Graph) -> None:
    labels = {node: f"{node}x" for node in graph}
    text = boxes.draw(graph, labels, columns=10_000)
    if text is not None:
        assert traced(text, labels) == {(need, node) for node in graph for need in graph[node]}


def test_most_graphs_can_be_drawn() -> None:
    rng = random.Random(3)
    refused = 0
    for _ in range(200):
        count = rng.randrange(2, 16)
        graph = {
            f"n{i}": sorted({f"n{rng.randrange(i)}" for _ in range(rng.choice([1, 1, 2]))}) for i in range(1, count)
        }
        refused += boxes.draw({"n0": [], **graph}, {f"n{i}": f"n{i}" for i in range(count)}, columns=500) is None
    assert refused < 10


def test_a_diamond_in_characters() -> None:
    graph = {"scan": [], "lint": ["scan"], "types": ["scan"], "report": ["lint", "types"]}
    assert boxes.draw(graph, {node: f"✓ {node}" for node in graph}, columns=80) == (
        "      ┌────────┐\n"
        "      │ ✓ scan │\n"
        "      └────┬───┘\n"
        "     ┌─────┴─────┐\n"
        "┌────┴───┐  ┌────┴────┐\n"
        "│ ✓ lint │  │ ✓ types │\n"
        "└────┬───┘  └────┬────┘\n"
        "     └────┐ ┌────┘\n"
        "     ┌────┴─┴───┐\n"
        "     │ ✓ report │\n"
        "     └──────────┘\n"
    )


def test_what_is_too_wide_is_not_drawn() -> None:
    assert boxes.draw({f"n{i}": [] for i in range(40)}, {f"n{i}": f"n{i}" for i in range(40)}, columns=120) is None


# ---- in words -----------------------------------------------------------------------------------------------------


@given(graphs())
def test_the_twin_has_a_line_for_every_node_with_all_it_needs(graph: Graph) -> None:
    layout = laid_out(graph)
    layers = [[layout.spots[i].source for i in layer if layout.spots[i].is_node] for layer in layout.layers]
    text = words.twin("A title", layers, graph, dict.fromkeys(graph, "waiting"), hidden=0)
    lines = {line.split()[2]: line for line in text.splitlines()[1:] if "layer" not in line}
    assert set(lines) == set(graph)
    assert all(len(line) <= 120 for line in text.splitlines())
    for node, needs in graph.items():
        assert ("needs" in lines[node]) == bool(needs)
        if 0 < len(needs) <= 8:
            assert lines[node].endswith("needs " + ", ".join(needs))


def test_wide_and_odd_titles_are_cut_by_columns() -> None:
    assert words.columns("检查") == 4
    assert words.shortened("检查" * 10, 9) == "检查检查…"
    assert words.shortened("a\nb\x1b[0m  c", 30) == "a b [0m c"
    assert words.named(["a", "b", "c"], limit=2) == "a, b and 1 more"
