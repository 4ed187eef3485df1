"""The verb `hold`: one node pauses, and a person opens its agent's session (spec execution.md, Drivers).

That it is not started meanwhile is `Capacity.held`: volatile, for as long as the person's connection lives.
"""

from graphd.base.text import t
from graphd.core.commands import Hold
from graphd.core.derive import goes_on, last_begun
from graphd.core.draft import Draft
from graphd.core.model import Attempt, Graph, Node
from graphd.core.settle import conclude
from graphd.core.verbs import admit, find_node, refuse_transition, stop_attempt


def hold(draft: Draft, command: Hold) -> None:
    """End the tree of its attempt, which is `paused` then; one that is paused already is let be. Refused where its
    next attempt would not go on in a session.
    """
    graph = draft.graph
    admit(graph, "hold")
    node = find_node(graph, command.node)
    attempt = last_begun(graph, node)
    live = [key for key in graph.live if key[0] == node.id]
    if attempt is None or attempt.child_session is None or not _can_pause(node, attempt, live):
        raise refuse_transition(
            graph, "hold",
            t("{node} is {state}, and no session of it waits or works", node=node.slug, state=node.state),
            t("graphd why {node} says what it waits for", node=node.slug),
        )  # fmt: skip
    if live:
        stop_attempt(draft, attempt.key, "hold")
        conclude(draft)


def _can_pause(node: Node, attempt: Attempt, live: list[tuple[str, str, int]]) -> bool:
    if node.state == "ready":
        return goes_on(attempt)
    return node.state == "running" and live == [attempt.key] and attempt.stop_reason is None


def is_at_work(graph: Graph, node: str) -> bool:
    """Something of it still runs."""
    return any(key[0] == node for key in graph.live)
