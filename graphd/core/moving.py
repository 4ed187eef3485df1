"""Move a node from one state to another, with all that is counted by state. For the functions of `evolve`."""

from typing import Any, Final

from graphd.core.events import Event
from graphd.core.model import Graph, Node, State
from graphd.core.tape import Tape
from graphd_protocol.states import NodeState


def move(state: State, tape: Tape, event: Event, to: NodeState) -> tuple[Graph, Node]:
    """Move the event's node."""
    graph = state.graphs[event.graph]
    node = graph.nodes[event.node or ""]
    origin, was_settled = node.state, node.is_settled
    tape.put(graph.counts, origin, graph.counts[origin] - 1)
    tape.put(graph.counts, to, graph.counts[to] + 1)
    tape.set(node, "state", to)
    if origin == "running":
        tape.drop(state.checks, (graph.id, node.id))
    if graph.failed_by == node.id:  # it is tried again, or out of the plan: its failure stops nothing any more
        tape.set(graph, "failed_by", None)
    takes_slot = not node.definition.takes_no_slot
    if takes_slot and (origin == "running" or to == "running"):
        tape.set(state, "running", state.running + (to == "running") - (origin == "running"))
    if origin == "ready":
        tape.drop(graph.ready, node.id)
        tape.drop(graph.early, node.id)
        if not graph.ready:
            tape.drop(state.with_ready, graph.id)
    if to == "ready":
        tape.put(graph.ready, node.id, None)
        tape.put(state.with_ready, graph.id, None)
    if not takes_slot:
        _keep_slotless(tape, graph, node)
    if node.is_settled != was_settled:
        step = -1 if node.is_settled else 1
        for dependant in node.dependants:
            other = graph.nodes[dependant]
            tape.set(other, "unsettled", other.unsettled + step)
    return graph, node


def _keep_slotless(tape: Tape, graph: Graph, node: Node) -> None:
    if node.state == "running":
        tape.put(graph.slotless, node.id, None)
    else:
        tape.drop(graph.slotless, node.id)


_FRESH: Final[dict[str, Any]] = {
    "output": None, "failure": None, "candidate": None, "gaps": None, "evidence": (), "skip": None,
    "cancel_reason": None, "blocked_by": None, "not_before": None,
    "started_at": None, "ended_at": None, "retries": 0, "lost_in_row": 0, "put_back_in_row": 0, "verdict": None,
    "wake_at": None, "signal": None, "is_approved": False, "after_stop": None,
}  # fmt: skip


def freshen(tape: Tape, node: Node) -> None:
    """Forget how the last go ended. Counts of attempts and revisions stay: they bound the node's whole life."""
    for name, value in _FRESH.items():
        if getattr(node, name) != value:
            tape.set(node, name, value)
