"""What follows from a plan and its states: dependants, ranks, counts, queues.

Recomputed after a load, kept by `evolve`.
"""

import heapq

from graphd.core.model import Attempt, Graph, Node, State
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id as slug_id
from graphd_protocol.states import NODE_STATES


def rebuild(graph: Graph) -> None:
    """Recompute every derived field of a graph from its nodes and attempts."""
    link(graph)
    graph.counts = dict.fromkeys(NODE_STATES, 0)
    graph.ready = {}
    graph.slotless = {}
    for node in graph.nodes.values():
        graph.counts[node.state] += 1
        if node.state == "ready":
            graph.ready[node.id] = None
        if node.state == "running" and node.definition.takes_no_slot:
            graph.slotless[node.id] = None
    graph.live = {key: None for key, attempt in graph.attempts.items() if attempt.state != "settled"}
    graph.removed = {node.id: None for node in graph.nodes.values() if node.removed_in is not None}
    graph.open_asks = {ask.id: None for ask in graph.asks.values() if ask.state == "open"}
    graph.early = {i: None for i in graph.ready if comes_early(graph.nodes[i])}
    graph.queue = [(graph.nodes[i].rank, i) for i in graph.ready if i not in graph.early]
    heapq.heapify(graph.queue)


def link(graph: Graph, tape: Tape | None = None) -> None:
    """Set dependants, unsettled counts and ranks of all nodes from their needs and states.

    With a tape, what stays the same is not written. A removed node depends on nothing any more.
    """
    tape = tape or Tape.unwound()
    dependants: dict[str, list[str]] = {node_id: [] for node_id in graph.nodes}
    for node in graph.nodes.values():
        for need in _needs(node):
            dependants[need].append(node.id)
    lengths = _longest_paths(graph.nodes, dependants)
    ranks = {node.id: rank_of(node, lengths[node.id]) for node in graph.nodes.values()}
    items = _items_of(graph)
    for maker, made in items.items():
        ranks |= {item: rank_of(graph.nodes[item], 1 - ranks[maker][1]) for item in made}
    for node in graph.nodes.values():
        found = (dependants[node.id], count_unsettled(graph, node), ranks[node.id], items.get(node.id, []))
        for name, value in zip(_LINKED, found, strict=True):
            if getattr(node, name) != value:
                tape.set(node, name, value)


_LINKED = ("dependants", "unsettled", "rank", "items")


def _needs(node: Node) -> tuple[str, ...]:
    return node.needs if node.removed_in is None else ()


def rank_of(node: Node, length: int) -> tuple[int, int, int]:
    """Order among ready nodes: priority, longest remaining path, plan order."""
    return (-node.definition.priority, -length, node.index)


def _items_of(graph: Graph) -> dict[str, list[str]]:
    """The items of every `for_each` node, which come before it on every path."""
    made: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        if node.definition.item is not None and maker_id(node) in graph.nodes:
            made.setdefault(maker_id(node), []).append(node)
    return {maker: in_order(items) for maker, items in made.items()}


def maker_id(item: Node) -> str:
    """The id of the `for_each` node that made this item."""
    assert item.definition.item is not None  # noqa: S101  # asked by the caller
    return slug_id(item.definition.item.of)


def in_order(items: list[Node]) -> list[str]:
    """Their ids by place in the list; of two with one place, which the list had at different times, the later last."""
    return [node.id for node in sorted(items, key=_place)]


def item_rank(maker: Node, item: Node) -> tuple[int, int, int]:
    """As if the node that made it needed it."""
    return rank_of(item, 1 - maker.rank[1])


def _place(item: Node) -> int:
    return item.definition.item.index if item.definition.item is not None else 0


def comes_early(node: Node) -> bool:
    """A ready node that does something before, or instead of, taking a slot: it waits, makes items, or asks."""
    return node.definition.takes_no_slot or (node.definition.approval is not None and not node.is_approved)


def count_unsettled(graph: Graph, node: Node) -> int:
    """How many of its needs are not settled."""
    return sum(not graph.nodes[need].is_settled for need in _needs(node))


def _longest_paths(nodes: dict[str, Node], dependants: dict[str, list[str]]) -> dict[str, int]:
    """Nodes on the longest path from each node to a sink, that node included. Iterative: plans may be 10,000 deep."""
    lengths: dict[str, int] = {}
    open_dependants = {node_id: len(found) for node_id, found in dependants.items()}
    todo = [node_id for node_id, count in open_dependants.items() if count == 0]
    while todo:
        node_id = todo.pop()
        lengths[node_id] = 1 + max((lengths[d] for d in dependants[node_id]), default=0)
        for need in _needs(nodes[node_id]):
            open_dependants[need] -= 1
            if open_dependants[need] == 0:
                todo.append(need)
    return lengths


def rebuild_queues(state: State) -> None:
    """Make the scheduler's heaps afresh: after a load, and after a rollback."""
    state.timers = []
    for graph in state.graphs.values():
        graph.queue = []
        graph.early = {}
        for node_id in graph.ready:
            enqueue(state, graph, graph.nodes[node_id])
        for node_id in graph.slotless:
            set_timer(state, graph, graph.nodes[node_id].wake_at, node_id)
        for ask_id in graph.open_asks:
            if graph.asks[ask_id].kind == "approval":
                set_timer(state, graph, graph.asks[ask_id].deadline_at, graph.asks[ask_id].node or "")
        enqueue_budget(state, graph)
    state.are_queues_stale = False


def enqueue(state: State, graph: Graph, node: Node) -> None:
    """Put a ready node where the scheduler finds it: the graph's heap, or the timers where it may not start yet."""
    if comes_early(node):
        graph.early[node.id] = None
    elif node.not_before is not None:
        heapq.heappush(state.timers, (node.not_before, graph.id, node.id))
    else:
        heapq.heappush(graph.queue, (node.rank, node.id))


def set_timer(state: State, graph: Graph, at: int | None, node_id: str) -> None:
    """Have the scheduler look at a node at a time (ms since the epoch); None is never."""
    if at is not None:
        heapq.heappush(state.timers, (at, graph.id, node_id))


def enqueue_budget(state: State, graph: Graph) -> None:
    """Put the moment when the wall time of a busy graph is used up among the timers, under the node ""."""
    if graph.budget is not None and graph.budget.wall_ms is not None and graph.busy_since is not None:
        due = graph.busy_since + graph.budget.wall_ms - graph.spent.wall_ms
        heapq.heappush(state.timers, (due, graph.id, ""))


def waits_since(graph: Graph, attempt: Attempt) -> int | None:
    """Since when an attempt waits for a person, as far as that is not counted yet; None where it does not wait.

    An escalation is a question about the attempt, not one that it waits for.
    """
    asks = [graph.asks[ask_id] for ask_id in graph.open_asks]
    opened = [
        ask.opened_at for ask in asks if ask.kind != "escalation" and (ask.node, ask.role, ask.attempt) == attempt.key
    ]
    if not opened:
        return None
    counted = attempt.clock.counted_until if attempt.clock is not None else None
    return max(min(opened), counted or 0)


def rebuild_state(state: State) -> None:
    """Recompute what the state counts over all graphs."""
    state.running = sum(graph.slots_taken for graph in state.graphs.values())
    state.running_by_profile = {}
    state.checks = {(graph.id, node.id): None for graph in state.graphs.values() for node in _awaiting_check(graph)}
    state.with_ready = {graph.id: None for graph in state.graphs.values() if graph.ready}
    for graph in state.graphs.values():
        for key in graph.live:
            profile = graph.attempts[key].profile
            state.running_by_profile[profile] = state.running_by_profile.get(profile, 0) + 1
    for graph in state.graphs.values():
        for profile, rest in graph.cooling.items():
            known = state.cooling.get(profile)
            if known is None or known.until < rest.until:
                state.cooling[profile] = rest
    rebuild_queues(state)


def _awaiting_check(graph: Graph) -> list[Node]:
    """Running nodes whose last round was not judged, and whose check does not run."""
    checked = {key[0] for key in graph.live if key[1] == "verifier"}
    return [
        node
        for node in graph.nodes.values()
        if node.state == "running" and node.rounds and node.id not in checked and not is_judged(node)
    ]


def is_judged(node: Node) -> bool:
    """The check of the last round gave its word."""
    return bool(node.evidence) and node.evidence[-1]["round"] == node.rounds


def goes_on(attempt: Attempt) -> bool:
    """The next attempt goes on in its session: it was interrupted, its result was never judged."""
    return attempt.child_session is not None and attempt.outcome in ("lost", "paused")


def is_unchecked(graph: Graph, node: Node) -> bool:
    """Its worker's result is there, and goes on with the check of it: no worker starts anew."""
    worker = graph.attempts.get((node.id, "worker", node.last_number))
    return worker is not None and worker.outcome == "achieved" and node.candidate is not None and not is_judged(node)


def last_begun(graph: Graph, node: Node) -> Attempt | None:
    """The last attempt of its worker that came to something: as if later ones had never been, its session can go on."""
    for number in range(node.last_number, 0, -1):
        attempt = graph.attempts.get((node.id, "worker", number))
        if attempt is None or not _came_to_nothing(attempt):
            return attempt
    return None


def _came_to_nothing(attempt: Attempt) -> bool:
    """It left the session that it was to go on with as it was."""
    if attempt.outcome == "paused":
        return attempt.resumes is not None and attempt.child_session is None
    return attempt.outcome == "put_back"
