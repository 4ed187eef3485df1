"""Gates, lists of items, waits and approvals: what their events do to the state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from graphd.core import derive
from graphd.core.definition import Definition, Item
from graphd.core.events import Event
from graphd.core.model import Graph, Node, State
from graphd.core.moving import freshen, move
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id


def _gate_decided(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    node = graph.nodes[event.node or ""]
    tape.set(node, "verdict", event.payload["verdict"])
    if event.payload["verdict"] == "REPLAN":
        tape.set(graph, "holding", (*graph.holding, node.id))


def _revision_started(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph, node = move(state, tape, event, "waiting")
    freshen(tape, node)
    tape.set(node, "findings", p["findings"])
    if node.slug == p["gate"]:
        tape.set(node, "revisions", p["number"])


def _hold_released(state: State, tape: Tape, event: Event) -> None:
    tape.set(state.graphs[event.graph], "holding", ())


def item_definition(maker: Definition, slug: str, index: int, value: str) -> Definition:
    """What one item of a `for_each` node does: the node's own work, once. Its failure is for that node to judge."""
    return replace(
        maker, slug=slug, title=f"{maker.title or maker.slug} {index}", item=Item(maker.slug, index, value),
        for_each=None, gate=None, approval=None, condition=None, required=False, report_to_parent=False,
        discovered_from=(),
    )  # fmt: skip


def _items_made(state: State, tape: Tape, event: Event) -> None:
    """Rows are (slug, place, JSON of the item); a slug that is there is the item of that place, with a new value."""
    rows = event.payload["items"]
    graph, maker = move(state, tape, event, "running")
    tape.set(maker, "started_at", event.at)
    tape.set(maker, "width", event.payload["width"])
    made: list[Node] = []
    for slug, index, value in rows:
        definition = item_definition(maker.definition, slug, index, value)
        known = graph.nodes.get(node_id(slug))
        if known is not None:
            tape.set(known, "definition", definition)
        else:
            made.append(_made(graph, tape, maker, definition, changed_at=event.rev))
    tape.put(graph.counts, "waiting", graph.counts["waiting"] + len(made))
    fresh = [node.id for node in made]
    for need in maker.needs:
        tape.set(graph.nodes[need], "dependants", [*graph.nodes[need].dependants, *fresh])
    tape.set(maker, "items", derive.in_order([*(graph.nodes[i] for i in maker.items), *made]))


def _made(graph: Graph, tape: Tape, maker: Node, definition: Definition, *, changed_at: int) -> Node:
    item = Node(
        id=node_id(definition.slug), definition=definition, index=len(graph.nodes), needs=maker.needs, required=False,
        changed_at=changed_at,
    )  # fmt: skip
    item.unsettled = derive.count_unsettled(graph, item)
    item.rank = derive.item_rank(maker, item)
    tape.put(graph.nodes, item.id, item)
    return item


def _wait_started(state: State, tape: Tape, event: Event) -> None:
    graph, node = move(state, tape, event, "running")
    tape.set(node, "started_at", event.at)
    tape.set(node, "wake_at", event.payload["wake_at"])
    derive.set_timer(state, graph, node.wake_at, node.id)


def _signal_kept(state: State, tape: Tape, event: Event) -> None:
    node = state.graphs[event.graph].nodes[event.node or ""]
    tape.set(node, "signal", event.payload["payload"])


def _node_approved(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    node = graph.nodes[event.node or ""]
    tape.set(node, "is_approved", True)
    tape.drop(graph.early, node.id)
    derive.enqueue(state, graph, node)


def _failure_stopped(state: State, tape: Tape, event: Event) -> None:
    tape.set(state.graphs[event.graph], "failed_by", event.node)


EVOLVERS: Final[dict[str, Callable[[State, Tape, Event], Any]]] = {
    "gate_decided": _gate_decided,
    "revision_started": _revision_started,
    "hold_released": _hold_released,
    "items_made": _items_made,
    "wait_started": _wait_started,
    "signal_kept": _signal_kept,
    "node_approved": _node_approved,
    "failure_stopped": _failure_stopped,
}
