"""How a plan changes under a graph that lives: nodes defined anew, removed, recalled; proposals (model.md, Verbs).

`node_defined` comes before the `graph_extended` or `graph_replanned` that closes the plan version: only that one links
the nodes again.
"""

from collections.abc import Callable
from typing import Final

from graphd.core import derive
from graphd.core.codec import load_definition
from graphd.core.events import Event
from graphd.core.model import Node, Source, State
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id


def _node_defined(state: State, tape: Tape, event: Event) -> None:
    """A new node, or a new definition of one; `definition` None: only whether it is required changed."""
    graph, row = state.graphs[event.graph], event.payload["definition"]
    identity = event.node or ""
    if row is None:
        tape.set(graph.nodes[identity], "required", event.payload["required"])
        return
    definition = load_definition(row)
    needs = tuple(node_id(slug) for slug in definition.needs)
    node = graph.nodes.get(identity)
    if node is None:
        node = Node(id=identity, definition=definition, index=len(graph.nodes), needs=needs, required=False)
        tape.put(graph.nodes, identity, node)
        tape.put(graph.counts, "waiting", graph.counts["waiting"] + 1)
    tape.set(node, "definition", definition)
    tape.set(node, "needs", needs)
    tape.set(node, "required", event.payload["required"])
    tape.set(node, "defined_in", graph.plan_version + 1)


def _plan_changed(state: State, tape: Tape, event: Event) -> None:
    graph, p = state.graphs[event.graph], event.payload
    tape.set(graph, "plan_version", p["version"])
    for slug in p["removed"]:
        node = graph.nodes[node_id(slug)]
        tape.set(node, "removed_in", p["version"])
        tape.put(graph.removed, node.id, None)
    if p["source"] is not None:
        tape.set(graph, "source", Source(**p["source"]))
    if p["is_automatic"]:
        tape.set(graph, "replans", graph.replans + 1)
    derive.link(graph, tape)
    state.are_queues_stale = True  # ready nodes may have another rank


def _node_recalled(state: State, tape: Tape, event: Event) -> None:
    """A replan wants it back or gone; that comes true when its tree is proven empty."""
    node = state.graphs[event.graph].nodes[event.node or ""]
    tape.set(node, "after_stop", event.payload["then"])
    tape.set(node, "cancel_reason", event.payload["reason"])


def _noted(state: State, tape: Tape, event: Event) -> None:
    """For the history alone: the ask holds the edits and how they were answered."""


PLAN_EVOLVERS: Final[dict[str, Callable[[State, Tape, Event], None]]] = {
    "node_defined": _node_defined,
    "node_recalled": _node_recalled,
    "graph_extended": _plan_changed,
    "graph_replanned": _plan_changed,
    "proposal_made": _noted,
    "proposal_settled": _noted,
}
