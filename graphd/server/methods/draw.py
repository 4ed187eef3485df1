"""`tree` and `picture`: what clients draw, computed here, so that all of them show the same.

Source: spec protocol.md, Methods; product.md, In an editor.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphd.core.model import Graph, Node, State
from graphd.server.project import Wire
from graphd.server.references import find_graph, find_node, newest_first
from graphd.server.routes import Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import PictureParams, TreeParams

table: Final = Table()
BOX_COLUMNS: Final = 120
BOXES_LIMIT: Final = 40
LABEL_LIMIT: Final = 30
_FOCUS: Final = {"running": 0, "failed": 1, "blocked": 2, "ready": 3}


@table.route("workgraph/tree", "TreeParams", "TreeRow")
async def tree(call: Call, params: "TreeParams") -> list[Wire]:
    """The graphs, newest first; with a graph its nodes, each after what it needs; with a node its attempts."""
    from graphd.server import rows
    from graphd.server.layout import ranks

    if params.graph is None and params.node is None:
        return await call.daemon.view(lambda state: [rows.graph_row(graph) for graph in newest_first(state)])

    def needs_of(state: State) -> tuple[str, dict[str, tuple[str, ...]]]:
        graph = find_graph(state, params.graph)
        needs = {node.id: node.needs for node in graph.nodes.values()} if params.node is None else {}
        return graph.id, needs

    name, needs = await call.daemon.view(needs_of)
    layer_of = await asyncio.to_thread(ranks, needs)  # of 10,000 nodes: too long for the loop

    def read(state: State) -> list[Wire]:
        graph = find_graph(state, name)
        if params.node is None:
            return rows.node_rows(graph, layer_of, call.hub.feeds.phase_of)
        return rows.attempt_rows(graph, find_node(graph, params.node))

    return await call.daemon.view(read)


@dataclass(slots=True, frozen=True)
class _Known:
    """What of a node a picture shows."""

    slug: str
    title: str
    state: str
    needs: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class _Graph:
    """What of a graph a picture shows, copied from committed state. Nodes by id."""

    id: str
    title: str
    rev: int
    nodes: dict[str, _Known]


@table.route("workgraph/picture", "PictureParams", "Picture")
async def picture(call: Call, params: "PictureParams") -> Wire:
    """A layered drawing; of a graph that is too big what lies around its running and failed nodes."""
    graph = await call.daemon.view(lambda state: _copied(find_graph(state, params.graph)))
    return await asyncio.to_thread(_picture, graph, params.max_nodes)


def _copied(graph: Graph) -> _Graph:
    nodes = {
        node.id: _Known(node.slug, node.definition.title, node.state, node.needs)
        for node in graph.nodes.values()
        if not _is_removed(node)
    }
    return _Graph(graph.id, graph.title, graph.rev, nodes)


def _is_removed(node: Node) -> bool:
    return node.removed_in is not None


def _chosen(graph: _Graph, limit: int) -> dict[str, _Known]:
    """The nodes that are drawn, by slug: all, or those around what runs and what failed."""
    from graphd.server.layout import nearby

    nodes = graph.nodes
    if len(nodes) > limit:
        telling = sorted(
            (_FOCUS[node.state], at, name) for at, (name, node) in enumerate(nodes.items()) if node.state in _FOCUS
        )
        needs = {name: node.needs for name, node in nodes.items()}
        nodes = {name: nodes[name] for name in nearby(needs, [name for _, _, name in telling], limit)}
    return {node.slug: node for node in nodes.values()}


def _picture(graph: _Graph, limit: int) -> Wire:
    """In a thread: hundreds of nodes take a while, and so does choosing among thousands."""
    from graphd.server import boxes, words
    from graphd.server.layout import BOX_HEIGHT, lay_out

    chosen = _chosen(graph, limit)
    states = {slug: node.state for slug, node in chosen.items()}
    slug_of = {name: node.slug for name, node in graph.nodes.items()}
    needs = {slug: [slug_of[need] for need in node.needs if need in slug_of] for slug, node in chosen.items()}
    labels = {slug: words.shortened(node.title or slug, LABEL_LIMIT) for slug, node in chosen.items()}
    layout = lay_out(needs, {slug: 48 + 8 * words.columns(label) for slug, label in labels.items()})
    layers = [[layout.spots[i].source for i in layer if layout.spots[i].is_node] for layer in layout.layers]
    hidden = len(graph.nodes) - len(chosen)
    wire: dict[str, Any] = {
        "graph": graph.id,
        "rev": graph.rev,
        "width": layout.width,
        "height": layout.height,
        "layers": layers,
        "nodes": [
            {
                "id": spot.source,
                "x": spot.x,
                "y": layout.top(spot.layer),
                "w": spot.width,
                "h": BOX_HEIGHT,
                "label": labels[spot.source],
                "state": states[spot.source],
            }
            for spot in layout.spots
            if spot.is_node
        ],
        "edges": [{"from": a, "to": b, "points": layout.points(way)} for a, b, way in layout.edges],
        "hidden": hidden,
        "text": words.twin(graph.title, layers, needs, states, hidden=hidden),
    }
    if len(needs) <= BOXES_LIMIT:
        marked = {slug: f"{words.MARKS[states[slug]]} {slug}" for slug in needs}
        art = boxes.draw(needs, marked, columns=BOX_COLUMNS)
        if art is not None:
            wire["drawing"] = art
    return wire
