"""The graphs that every contestant runs: `{node: [the nodes it needs]}`, integers in a valid order.

chain    n nodes, each needs the one before
fan      1 → n → 1
layered  layers of 100 nodes, each with 3 random needs in the layer before (fixed seed)
wide     n nodes that need nothing
"""

import random
from collections.abc import Sequence

from graphd.core.commands import Set
from graphd.core.model import Definition, Limits, Source

Graph = dict[int, list[int]]
GRAPH_ID = "benchmark"
LAYER = 100


def graph(name: str, size: int) -> Graph:
    """The workload `name` of about `size` nodes (a fan has two more)."""
    if name == "chain":
        return {i: [i - 1] if i else [] for i in range(size)}
    if name == "fan":
        return {0: [], **{i: [0] for i in range(1, size + 1)}, size + 1: list(range(1, size + 1))}
    if name == "layered":
        return _layered(size)
    if name == "wide":
        return {i: [] for i in range(size)}
    raise SystemExit(f"no workload {name}")


def _layered(size: int) -> Graph:
    source = random.Random(7)
    layers = max(1, size // LAYER)
    nodes: Graph = {}
    for layer in range(layers):
        before = range((layer - 1) * LAYER, layer * LAYER)
        for place in range(LAYER):
            nodes[layer * LAYER + place] = sorted(source.sample(before, 3)) if layer else []
    return nodes


def slug(node: int) -> str:
    """What graphd calls the node."""
    return f"n{node}"


def plan(name: str, size: int, *, spec: str, workspace: str, concurrency: int) -> Set:
    """The command that sets the workload in graphd."""
    nodes = graph(name, size)
    return Set(
        graph=GRAPH_ID, title=f"{name} {size}", objective=f"benchmark {name}", source=Source("nodes"),
        workspace=workspace, definitions=_definitions(nodes, spec),
        limits=Limits(concurrency=concurrency, max_nodes=10_000),
    )  # fmt: skip


def _definitions(nodes: Graph, spec: str) -> tuple[Definition, ...]:
    def needs(of: Sequence[int]) -> tuple[str, ...]:
        return tuple(slug(node) for node in of)

    return tuple(Definition(slug(node), spec, "shell", needs=needs(of)) for node, of in nodes.items())
