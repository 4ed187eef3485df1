"""What comes before a slot: waits begin and end, lists become items, approvals are asked for (workflow.md, Node).

Called by the scheduler once after each batch. Nothing here takes a slot or makes an attempt.
"""

import heapq
from collections.abc import Callable
from typing import Final

from graphd.base.text import Text, t
from graphd.core.asks import Options, answer, open_ask
from graphd.core.definition import Approval, Wait
from graphd.core.draft import Draft
from graphd.core.durations import duration_ms, moment_ms
from graphd.core.items import expand
from graphd.core.model import Ask, Graph, Node, Output, State
from graphd.core.settle import achieve, conclude, report, ripple

APPROVE: Final = "allow"
REFUSE: Final = "deny"
OPTIONS: Final[Options] = (
    {"id": APPROVE, "kind": "allow_once", "label": t("Approve")},
    {"id": REFUSE, "kind": "reject_once", "label": t("Refuse")},
)
DEFAULT_AFTER_MS: Final = 120_000
"""How long a person has, where nobody is attached, before the default answers."""

DraftOf = Callable[[Graph], Draft]


def fire(state: State, draft_of: DraftOf, now: int) -> list[Graph]:
    """Take what is due off the timers: a wait ends, also of a graph that is paused; a retry may start.

    Gives the graphs whose wall time may be used up.
    """
    spent = []
    while state.timers and state.timers[0][0] <= now:
        at, graph_id, node_id = heapq.heappop(state.timers)
        graph = state.graphs.get(graph_id)
        node = graph.nodes.get(node_id) if graph else None
        if graph is not None and not node_id:
            spent.append(graph)
        if graph is None or node is None:
            continue
        if node.state == "ready" and node.not_before == at:
            heapq.heappush(graph.queue, (node.rank, node.id))
        elif node.state == "running" and node.wake_at == at:
            _end_wait(draft_of(graph), node)
    return spent


def _end_wait(draft: Draft, node: Node) -> None:
    wait = node.definition.wait
    if wait is not None and wait.signal is not None:
        reason = t("no signal {name} came in {seconds:g} s", name=wait.signal, seconds=wait.timeout_s or 0)
        _fail(draft, node, "timeout", reason)
    else:
        _settle(draft, achieve(draft, node, Output("", 0, "text/plain")))


def _fail(draft: Draft, node: Node, failure_class: str, reason: Text) -> None:
    draft.emit("node_failed", node, **{"class": failure_class}, reason=reason)
    report(draft, node)
    _settle(draft, [node])


def _settle(draft: Draft, nodes: list[Node]) -> None:
    ripple(draft, nodes)
    conclude(draft)


def begin(state: State, draft_of: DraftOf, may_start: Callable[[Graph], bool]) -> None:
    """Begin what needs no slot, until nothing new comes of it."""
    todo = [graph_id for graph_id in state.with_ready if state.graphs[graph_id].early]
    while todo:
        graph = state.graphs[todo.pop()]
        if not may_start(graph):
            continue
        asked = {graph.asks[ask].node for ask in graph.open_asks if graph.asks[ask].kind == "approval"}
        fresh = [graph.nodes[i] for i in graph.early if i not in asked and graph.stepping in (None, i)]
        for node in fresh:
            if node.state == "ready" and may_start(graph):  # one before it may have failed, or paused the graph
                _begin_one(draft_of(graph), node)
        if fresh and graph.early:
            todo.append(graph.id)


def _begin_one(draft: Draft, node: Node) -> None:
    definition = node.definition
    if definition.approval is not None and not node.is_approved:
        _ask(draft, node, definition.approval)
    elif definition.wait is not None:
        _begin_wait(draft, node, definition.wait)
    else:
        assert definition.for_each is not None  # noqa: S101  # nothing else comes early
        _settle(draft, expand(draft, node, definition.for_each))


def _begin_wait(draft: Draft, node: Node, wait: Wait) -> None:
    """A signal that came before is taken at once. A time that has passed is due now."""
    wake_at: int | None = None
    if wait.until is not None:
        duration = duration_ms(wait.until)
        wake_at = draft.now + duration if duration is not None else moment_ms(wait.until)
        if wake_at is None:
            _fail(draft, node, "verdict_fail", t("{text!r} is neither a duration nor a time", text=wait.until[:40]))
            return
    elif wait.timeout_s is not None:
        wake_at = draft.now + round(wait.timeout_s * 1000)
    draft.emit("wait_started", node, wake_at=wake_at)
    if node.signal is not None:
        _settle(draft, achieve(draft, node, signal_output(node.signal)))


def signal_output(payload: str) -> Output:
    """What a wait for a signal puts out: the payload, null where none was sent."""
    return Output(payload, len(payload.encode()), "application/json")


# ---- approvals ------------------------------------------------------------------------------------------------------


def _ask(draft: Draft, node: Node, approval: Approval) -> None:
    is_given = approval.default in (APPROVE, REFUSE)
    title = approval.prompt.strip() or t("Start {node}?", node=node.slug)
    open_ask(
        draft, kind="approval", title=title, options=OPTIONS, node=node,
        action={"node": node.slug, "title": node.definition.title, "worker": node.definition.worker,
                "spec": node.definition.spec},
        default=approval.default if is_given else None,
        deadline_at=draft.now + DEFAULT_AFTER_MS if is_given else None,
    )  # fmt: skip


def settle_approval(draft: Draft, ask: Ask) -> None:
    """The effect of an answer: the node may take a slot, or has failed as `refused`."""
    node = draft.graph.nodes[ask.node or ""]
    if node.state != "ready":
        return
    if ask.option == APPROVE:
        draft.emit("node_approved", node, by=ask.answered_by)
        return
    by = ask.answered_by or ask.state
    reason = t("{by} refused it: {said}", by=by, said=ask.comment) if ask.comment else t("{by} refused it", by=by)
    _fail(draft, node, "refused", reason)


def answer_for_nobody(state: State, draft_of: DraftOf, now: int) -> None:
    """Nobody is attached, and an approval with a default has waited long enough: the policy answers."""
    for graph in [graph for graph in state.graphs.values() if graph.open_asks]:
        for ask in [graph.asks[ask_id] for ask_id in graph.open_asks]:
            if ask.kind == "approval" and ask.deadline_at is not None and ask.deadline_at <= now:
                answer(draft_of(graph), ask, by="policy", option=ask.default)
