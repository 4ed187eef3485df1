"""`on_required_failure: stop`: the first failure of a required node ends what else runs (workflow.md, Graph).

What is stopped, waits too, goes back to ready: nothing is its fault. The graph is `blocked` when the last tree is
proven empty; until the failed node is tried again nothing is admitted.
"""

from graphd.base.text import Text, t
from graphd.core.draft import Draft
from graphd.core.model import Graph, Node
from graphd.core.settle import block, pause_for_stuck
from graphd.core.verbs import stop_attempt


def required_failure(graph: Graph) -> Node | None:
    """The first required node that failed, in plan order."""
    return next((node for node in graph.nodes.values() if node.state == "failed" and node.required), None)


def failure_text(node: Node) -> Text:
    """What people are told."""
    reason = node.failure.reason if node.failure is not None else ""
    return t("required node {node} failed: {reason}", node=node.slug, reason=reason)


def stop_for_failure(draft: Draft) -> bool:
    """Stop what runs, or say `blocked` where nothing does any more; False where this is no such graph."""
    graph = draft.graph
    failed = required_failure(graph)
    if failed is None or graph.is_finishing or graph.status != "active":
        return False
    if graph.failed_by is None:
        draft.emit("failure_stopped", failed)
    for node in [graph.nodes[i] for i in graph.slotless]:
        if node.definition.wait is not None:
            draft.emit("node_put_back", node, why="paused", not_before=None)
    for key in list(graph.live):
        if graph.attempts[key].state in ("starting", "live"):
            stop_attempt(draft, key, "required_failure")
    if graph.live:
        pause_for_stuck(draft, graph)
    else:
        block(draft, failure_text(failed))
    return True
