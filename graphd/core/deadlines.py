"""Deadlines that people can move, and clocks that stand still (spec execution.md, Time).

A clock counts work: it stops while its attempt waits for a person or for a provider's rest, and in a machine's sleep.
The deadline of an agent is soft: at it a person is asked, and meanwhile the attempt goes on for one more interval; with
nobody there that happens so often as the node says. The deadline of a shell, and a hard one, asks nobody.
"""

from typing import Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.asks import Options, open_ask, open_asks, withdraw
from graphd.core.commands import DeadlineReached, ExtendTimeout
from graphd.core.derive import waits_since
from graphd.core.draft import Draft
from graphd.core.events import MoveDeadline
from graphd.core.model import Ask, Attempt, Clock, Graph, Node
from graphd.core.verbs import admit, find_node, stop_attempt

UNATTENDED_EXTENSIONS: Final = 2
HARD_PROFILES: Final = frozenset({"shell"})
"""Profiles whose every deadline is hard."""

_CHOICE: Final[Options] = (
    {"id": "extend", "kind": "extend", "label": t("Extend")},
    {"id": "stop", "kind": "stop", "label": t("Stop")},
)


def first_timeout_ms(node: Node) -> int:
    """How long an attempt of the node may work at first."""
    definition = node.definition
    return min(definition.timeout_ms, definition.hard_timeout_ms or definition.timeout_ms)


def deadline_reached(draft: Draft, attempt: Attempt, fact: DeadlineReached) -> None:
    """Ask and go on, or stop. One that waits, or whose deadline was moved meanwhile, is not late."""
    graph = draft.graph
    node = graph.nodes[attempt.node]
    if attempt.state not in ("starting", "live") or waits_since(graph, attempt) is not None:
        return
    if _is_final(graph, node, attempt, is_attended=fact.is_attended):
        stop_attempt(draft, attempt.key, "timeout")
        return
    clock = _clock(attempt)
    draft.emit("timeout_escalated", node, role=attempt.role, number=attempt.number, count=clock.extensions + 1)
    if not _escalations(draft, node, attempt):
        action = {"timeoutMs": node.definition.timeout_ms, "extensions": clock.extensions}
        worked_s = round(clock.allowed_ms / 1000)
        title = t("{node} has worked for {time} s; extend its time, or stop it?", node=node.slug, time=worked_s)
        # It has no deadline of its own: the extensions run out by themselves.
        open_ask(
            draft, kind="escalation", title=title, action=action, options=_CHOICE, node=node, attempt=attempt.number,
            role=attempt.role,
        )  # fmt: skip
    unattended = 0 if fact.is_attended else clock.unattended + 1
    _extend(draft, node, attempt, by_ms=_interval(node, clock), extensions=clock.extensions + 1, unattended=unattended)


def _is_final(graph: Graph, node: Node, attempt: Attempt, *, is_attended: bool) -> bool:
    clock = _clock(attempt)
    if attempt.profile in HARD_PROFILES or _interval(node, clock) <= 0:
        return True
    if clock.extensions >= graph.limits.timeout_extensions:
        return True
    most = node.definition.unattended_extensions
    return not is_attended and clock.unattended >= (UNATTENDED_EXTENSIONS if most is None else most)


def _clock(attempt: Attempt) -> Clock:
    """Of an attempt from before there were clocks: what its deadline says."""
    if attempt.clock is not None:
        return attempt.clock
    return Clock((attempt.deadline_at or attempt.started_at) - attempt.started_at)


def _interval(node: Node, clock: Clock) -> int:
    """One more timeout, as far as a hard one allows, in ms."""
    hard_ms = node.definition.hard_timeout_ms
    interval = node.definition.timeout_ms
    return interval if hard_ms is None else min(interval, hard_ms - clock.allowed_ms)


def _extend(draft: Draft, node: Node, attempt: Attempt, *, by_ms: int, extensions: int, unattended: int) -> None:
    draft.emit(
        "deadline_extended", node, role=attempt.role, number=attempt.number, by_ms=by_ms, extensions=extensions,
        unattended=unattended,
    )  # fmt: skip
    _tell(draft, attempt)


def _tell(draft: Draft, attempt: Attempt) -> None:
    draft.then(MoveDeadline(draft.graph.id, attempt.key, _clock(attempt).total_ms))


def _escalations(draft: Draft, node: Node, attempt: Attempt) -> list[Ask]:
    return [ask for ask in open_asks(draft, node, "escalation") if ask.attempt == attempt.number]


def answer_escalation(draft: Draft, ask: Ask) -> None:
    """What an answer causes: one whole timeout from now, or the end of the attempt."""
    graph = draft.graph
    node = graph.nodes[ask.node or ""]
    attempt = graph.attempts.get((node.id, ask.role or "worker", ask.attempt or 0))
    if attempt is None or attempt.state not in ("starting", "live"):
        return
    if ask.option == "stop":
        stop_attempt(draft, attempt.key, "timeout")
        return
    clock = _clock(attempt)
    left_ms = (attempt.deadline_at or draft.now) - draft.now
    by_ms = max(0, min(node.definition.timeout_ms - left_ms, _interval(node, clock)))
    _extend(draft, node, attempt, by_ms=by_ms, extensions=clock.extensions, unattended=0)


# ---- the verb -------------------------------------------------------------------------------------------------------


def extend_timeout(draft: Draft, command: ExtendTimeout) -> None:
    """Move a running deadline on. Its open escalation needs no answer any more."""
    graph = draft.graph
    admit(graph, "extendTimeout")
    node = find_node(graph, command.node)
    attempt = next((graph.attempts[key] for key in graph.live if key[0] == node.id), None)
    if attempt is None or attempt.state not in ("starting", "live"):
        raise _refused(graph, node, attempt)
    clock = _clock(attempt)
    _check_bounds(graph, node, clock, command.by_ms)
    _extend(draft, node, attempt, by_ms=command.by_ms, extensions=clock.extensions + 1, unattended=0)
    for ask in _escalations(draft, node, attempt):
        withdraw(draft, ask, str(t("its deadline was moved")))


def _refused(graph: Graph, node: Node, attempt: Attempt | None) -> Refused:
    state = node.state if attempt is None else attempt.state
    return Refused(
        "invalidTransition", t("can't extend the time of {node}: it is {state}", node=node.slug, state=state),
        t("only a node that works has a deadline to move; graphd why {node} says where it is", node=node.slug),
        graph=graph.id, node=node.slug, **{"from": state, "to": "running"}, rev=graph.rev,
    )  # fmt: skip


def _check_bounds(graph: Graph, node: Node, clock: Clock, by_ms: int) -> None:
    hard_ms = node.definition.hard_timeout_ms
    if hard_ms is not None and clock.allowed_ms + by_ms > hard_ms:
        raise Refused(
            "capacity", t("{node} may work for {limit} s at most", node=node.slug, limit=round(hard_ms / 1000)),
            t("its hard_timeout_ms says so; a retry begins anew"), graph=graph.id, node=node.slug,
        )  # fmt: skip
    if clock.extensions >= graph.limits.timeout_extensions:
        raise Refused(
            "capacity",
            t(
                "the time of {node} was extended {count} times, which is the most",
                node=node.slug, count=clock.extensions,
            ),
            t("max_timeout_extensions says so; a retry begins anew"), graph=graph.id, node=node.slug,
        )  # fmt: skip


# ---- clocks that stand still ----------------------------------------------------------------------------------------


def wait_ended(draft: Draft, ask: Ask) -> None:
    """An ask is about to close: what its attempt waited for it is no work. Called while it is open still."""
    attempt = draft.graph.attempts.get((ask.node or "", ask.role or "worker", ask.attempt or 0))
    if attempt is None or attempt.state == "settled" or ask.kind == "escalation":
        return
    waited(draft, attempt, "person", draft.now - (waits_since(draft.graph, attempt) or draft.now))


def waited(draft: Draft, attempt: Attempt, why: str, ms: int) -> None:
    """Its clock stood still for `ms`, for a `person` or the `provider`. The run is told: it may think it late."""
    if ms <= 0:
        return
    node = draft.graph.nodes[attempt.node]
    draft.emit("attempt_waited", node, role=attempt.role, number=attempt.number, why=why, ms=ms)
    _tell(draft, attempt)
