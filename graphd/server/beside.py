"""Who else worked in the same tree while an attempt ran: their changes may stand in its patch. Pure."""

from graphd.core.model import Attempt, Graph, State
from graphd.server.project import Wire


def ran_beside(state: State, graph: Graph, attempt: Attempt) -> list[Wire]:
    """One row per attempt of another node, of whichever graph, whose time overlaps; as they were started."""
    found = [
        (other.started_at, other_graph.id, other_graph.nodes[other.node].slug, other.number)
        for other_graph in state.graphs.values()
        if other_graph.workspace == graph.workspace
        for other in other_graph.attempts.values()
        if (other_graph.id, other.node) != (graph.id, attempt.node) and _overlap(other, attempt)
    ]
    return [{"graph": id_, "node": slug, "attempt": number} for _, id_, slug, number in sorted(set(found))]


def _overlap(one: Attempt, other: Attempt) -> bool:
    return _begins_before_end(one, other) and _begins_before_end(other, one)


def _begins_before_end(one: Attempt, other: Attempt) -> bool:
    return other.ended_at is None or one.started_at < other.ended_at
