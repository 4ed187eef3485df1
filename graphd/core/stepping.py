"""The verb `step`: one node, then `user_paused` in the change that settles it (spec model.md, Verbs)."""

from graphd.base.text import t
from graphd.core.commands import Step
from graphd.core.draft import Draft
from graphd.core.gates import release_holds
from graphd.core.model import Graph, Node
from graphd.core.settle import conclude, ripple
from graphd.core.verbs import admit, find_node, refuse_transition


def step(draft: Draft, command: Step) -> None:
    """Let one node start, the named one or the next in order; a gate that asked for a new plan is answered by that.

    Refused while anything runs, and where none is ready.
    """
    graph = draft.graph
    admit(graph, "step")
    if graph.live:
        running = ", ".join(dict.fromkeys(graph.nodes[key[0]].slug for key in graph.live))
        raise refuse_transition(
            graph, "step", t("{names} runs", names=running), t("graphd pause, and step when it has ended")
        )
    ripple(draft, release_holds(draft))
    node = _next(graph) if command.node is None else _named(graph, command.node)
    draft.emit("stepped", node)
    conclude(draft)  # a budget that is spent, or a tree that is stuck, holds this one too


def _next(graph: Graph) -> Node:
    """Priority, longest remaining path, plan order; what has to wait for its retry comes last."""
    ready = [graph.nodes[node_id] for node_id in graph.ready]
    if not ready:
        raise refuse_transition(graph, "step", t("no node is ready"), t("graphd why names what each waits for"))
    return min(ready, key=lambda node: (node.not_before or 0, node.rank))


def _named(graph: Graph, name: str) -> Node:
    node = find_node(graph, name)
    if node.state != "ready":
        raise refuse_transition(
            graph, "step", t("{node} is {state}, not ready", node=node.slug, state=node.state),
            t("graphd why {node} says what it waits for", node=node.slug),
        )  # fmt: skip
    return node


def end_step(draft: Draft) -> None:
    """Pause where the node that was stepped is settled, or can't start any more. Called while there is one."""
    graph = draft.graph
    node = graph.nodes[graph.stepping or ""]
    if graph.status == "active" and node.state not in ("ready", "running"):
        draft.emit("paused", status="user_paused", reason=t("stepped {node}", node=node.slug), cause=None)
