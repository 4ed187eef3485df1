"""What people call graphs and nodes, resolved: id, unique prefix, workflow name, `@last`; slug or id.

Source: spec protocol.md, Methods; product.md, Command line.
"""

from typing import Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.model import Graph, Node, State
from graphd.server.errors import nearest, shown
from graphd.server.hello import Caller
from graphd.server.project import Wire
from graphd_protocol.ids import node_id

PREFIX_AT_LEAST: Final = 4
_LISTED: Final = 20


def newest_first(state: State) -> list[Graph]:
    """All graphs, the latest made first."""
    return sorted(state.graphs.values(), key=lambda graph: (graph.created_at, graph.id), reverse=True)


def find_graph(state: State, reference: str | None) -> Graph:
    """The graph that is meant; raises Refused `notFound` or `ambiguous` (with the list)."""
    if reference is None:
        return _only_live(state)
    exact = state.graphs.get(reference)
    if exact is not None:
        return exact
    ordered = newest_first(state)
    if reference == "@last" and ordered:
        return ordered[0]
    named = [graph for graph in ordered if graph.source.name == reference]
    if named:
        return named[0]
    begun = [graph for graph in ordered if graph.id.startswith(reference)] if len(reference) >= PREFIX_AT_LEAST else []
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise Refused(
            "ambiguous",
            t("{count} graphs begin with {reference}", count=len(begun), reference=reference),
            t("use more of the id"),
            graphs=_rows(begun),
        )
    raise _unknown(state, reference)


def _only_live(state: State) -> Graph:
    live = [graph for graph in newest_first(state) if graph.is_live]
    if len(live) == 1:
        return live[0]
    if not state.graphs:
        raise Refused("notFound", t("there is no graph in this workspace"), t("graphd run WORKFLOW starts one"))
    rows = _rows(live or newest_first(state))
    said = t("{count} graphs are live", count=len(live)) if live else t("no graph is live")
    raise Refused("ambiguous", said, t("name one by its id, its workflow, or @last"), graphs=rows)


def _unknown(state: State, reference: str) -> Refused:
    if reference in state.tombstones:
        return Refused(
            "notFound",
            t("graph {reference} was cleared", reference=reference),
            t("graphd status lists the graphs"),
            graph=reference,
        )
    names = {graph.source.name for graph in state.graphs.values() if graph.source.name} | {"@last"}
    near = nearest(reference, names)
    hint = t("did you mean {name}?", name=near[0]) if near else t("graphd status lists the graphs")
    return Refused(
        "notFound",
        t("no graph {reference}", reference=shown(reference)),
        hint,
        graph=shown(reference),
        suggestions=near,
    )


def _rows(graphs: list[Graph]) -> list[Wire]:
    return [{"id": graph.id, "title": graph.title, "status": graph.status} for graph in graphs[:_LISTED]]


def find_node(graph: Graph, reference: str) -> Node:
    """The node of this slug or id; raises Refused `notFound` with the nearest slugs."""
    node = graph.nodes.get(reference) or graph.nodes.get(node_id(reference))
    if node is not None and reference in (node.id, node.slug):
        return node
    slugs = [item.slug for item in graph.nodes.values()] if len(graph.nodes) <= 2000 else []
    near = nearest(reference, slugs)
    hint = t("did you mean {name}?", name=near[0]) if near else t("graphd status names its nodes")
    raise Refused(
        "notFound",
        t("{graph} has no node {reference}", graph=graph.title, reference=shown(reference)),
        hint,
        graph=graph.id,
        node=shown(reference),
        suggestions=near,
    )


def find_own(state: State, caller: Caller, graph: str | None, node: str) -> tuple[Graph, Node]:
    """A node that the caller may read: an attempt's own one, for anybody else any. Raises Refused."""
    if caller.attempt is not None and graph is None:
        graph = caller.attempt[0]
    found = find_graph(state, graph)
    wanted = find_node(found, node)
    if caller.attempt is not None and caller.attempt[:2] != (found.id, wanted.id):
        raise Refused(
            "unauthorised", t("an attempt reads its own node alone"), t("leave graph out and name your own node")
        )
    return found, wanted
