"""Facts that the supervisor reports: how attempts live and end, and that a daemon started (model.md, Node and
Attempt).
"""

from dataclasses import asdict
from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import (
    AttemptEnded,
    AttemptIdentified,
    AttemptStuck,
    DaemonStarted,
    DeadlineReached,
    Release,
)
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, AdoptAttempt, CollectAttempt, StopAttempt
from graphd.core.model import Attempt, Graph, Node, Output, Spent, State
from graphd.core.settle import conclude, ripple, skip
from graphd.core.tape import Tape
from graphd.core.verbs import find_node, stop_attempt
from graphd_protocol.states import AttemptOutcome, FailureClass

LOST_IN_ROW_LIMIT = 3
STARTS_LIMIT = 5
BACKOFF_LIMIT_MS = 3_600_000

AttemptFact = AttemptIdentified | AttemptEnded | AttemptStuck | DeadlineReached


def attempt_fact(state: State, tape: Tape, fact: AttemptFact, *, now: int) -> list[Draft]:
    """Apply a fact. One about an attempt that is settled or unknown is late or foreign: dropped (execution.md,
    One attempt, 6).
    """
    graph = state.graphs.get(fact.graph)
    attempt = graph.attempts.get(fact.attempt) if graph else None
    if attempt is None or attempt.state == "settled":
        return []
    draft = Draft(state, tape, fact.graph, now=now, actor=DAEMON, operation="checkpoint")
    match fact:
        case AttemptIdentified():
            if attempt.identity is None:
                _emit(draft, "attempt_identified", attempt, identity=asdict(fact.identity))
        case AttemptStuck():
            _stuck(draft, attempt, fact)
        case DeadlineReached():
            if attempt.state in ("starting", "live"):
                stop_attempt(draft, attempt.key, "timeout")
        case _:
            settle_attempt(draft, attempt, fact)
    return [draft]


def _emit(draft: Draft, kind: str, attempt: Attempt, /, **payload: object) -> None:
    draft.emit(kind, draft.graph.nodes[attempt.node], role=attempt.role, number=attempt.number, **payload)


def _stuck(draft: Draft, attempt: Attempt, fact: AttemptStuck) -> None:
    if attempt.state == "stuck" and attempt.stuck_pids == fact.pids:
        return
    _emit(draft, "attempt_stuck", attempt, pids=list(fact.pids), reason=fact.reason)
    conclude(draft)


def settle_attempt(draft: Draft, attempt: Attempt, fact: AttemptEnded) -> None:
    """Settle an attempt whose tree is proven empty, move its node, and carry on from there."""
    graph, node = draft.graph, draft.graph.nodes[attempt.node]
    was_stuck = attempt.state == "stuck"
    outcome, failure_class = _verdict(graph, attempt, fact)
    is_counted = outcome not in ("put_back", "paused") and fact.outcome != "put_back"
    reason = fact.reason or (t("it ran out of time") if failure_class == "timeout" else None)
    _emit(
        draft, "attempt_settled", attempt, outcome=outcome, failure_class=failure_class, reason=reason,
        exit_code=fact.exit_code, signal=fact.signal, spent=_spent_row(fact.spent), is_counted=is_counted,
    )  # fmt: skip
    draft.then(CollectAttempt(graph.id, attempt.key))
    if was_stuck and graph.pause_cause == "stuck" and graph.stopping is None and not _has_stuck(graph):
        draft.emit("resumed")
    _move_node(draft, node, attempt, outcome, failure_class, reason, fact.output)
    if node.state != "ready":
        _report(draft, node)
    ripple(draft, [node])
    conclude(draft)


def _output_row(output: Output | None) -> dict[str, Any] | None:
    """As `asdict`, which copies deeply and was a fifth of a settlement's cost."""
    if output is None:
        return None
    return {
        "text": output.text,
        "total_bytes": output.total_bytes,
        "media_type": output.media_type,
        "is_cut": output.is_cut,
    }


def _spent_row(spent: Spent) -> dict[str, Any]:
    return {"tokens": spent.tokens, "cost_usd": spent.cost_usd, "wall_ms": spent.wall_ms}


def _has_stuck(graph: Graph) -> bool:
    return any(graph.attempts[key].state == "stuck" for key in graph.live)


def _verdict(graph: Graph, attempt: Attempt, fact: AttemptEnded) -> tuple[AttemptOutcome, FailureClass | None]:
    """What the end means, given the wish or the stop that stands.

    A result counts for pause and time-out, never for cancel.
    """
    if graph.stopping is not None and graph.stopping.verb in ("cancel", "clear"):
        return "cancelled", None
    if fact.outcome == "achieved":
        return "achieved", None
    if attempt.stop_reason == "timeout" and fact.outcome != "put_back":
        return "failed", "timeout"
    if attempt.stop_reason == "pause":
        return "paused", None
    return fact.outcome, fact.failure_class


def _move_node(
    draft: Draft, node: Node, attempt: Attempt, outcome: AttemptOutcome, failure_class: FailureClass | None,
    reason: str | None, output: Output | None,
) -> None:  # fmt: skip
    kept = _output_row(output)
    if outcome == "achieved":
        draft.emit("node_achieved", node, output=kept)
    elif outcome == "cancelled":
        wish = draft.graph.stopping
        draft.emit("node_cancelled", node, reason=(wish.reason if wish else None) or t("cancelled"), output=kept)
    elif outcome in ("put_back", "paused"):
        _put_back(draft, node, outcome)
    elif outcome == "lost":
        _lost(draft, node, attempt, reason or t("its processes ended without a record"))
    else:
        _failed(draft, node, attempt, failure_class or "exec_failed", reason or t("it failed"), output=output)


def _put_back(draft: Draft, node: Node, why: str, not_before: int | None = None) -> None:
    if why == "put_back" and node.put_back_in_row:
        not_before = draft.now + min(60_000, 1000 * 2 ** min(node.put_back_in_row, 16))
    draft.emit("node_put_back", node, why=why, not_before=not_before)
    if draft.graph.is_finishing:
        skip(draft, node, "finished_early")


def _lost(draft: Draft, node: Node, attempt: Attempt, reason: str) -> None:
    policy = node.definition.on_lost
    if policy == "fail" or node.attempts >= draft.graph.limits.attempts_per_node:
        _fail(draft, node, attempt, "lost", reason, None)
        return
    _put_back(draft, node, "lost")
    if draft.graph.status != "active" or draft.graph.stopping is not None:
        return
    if policy == "pause":
        _pause_infra(
            draft,
            t("attempt {node}@{number} was lost: {reason}", node=node.slug, number=attempt.number, reason=reason),
            "lost",
        )
    elif node.lost_in_row >= LOST_IN_ROW_LIMIT:
        _pause_infra(
            draft,
            t(
                "{node} was lost {count} times in a row: {reason}",
                node=node.slug,
                count=node.lost_in_row,
                reason=reason,
            ),
            "lost",
        )


def _pause_infra(draft: Draft, reason: str, cause: str) -> None:
    draft.emit("paused", status="infra_paused", reason=reason, cause=cause)


def _failed(
    draft: Draft,
    node: Node,
    attempt: Attempt,
    failure_class: FailureClass,
    reason: str,
    *,
    output: Output | None,
) -> None:
    retry = node.definition.retry
    may_retry = (
        failure_class in retry.on
        and node.retries < retry.max
        and node.attempts < draft.graph.limits.attempts_per_node
        and not draft.graph.is_finishing
    )
    if may_retry:
        wait_ms = min(BACKOFF_LIMIT_MS, int(retry.backoff_s * 1000 * 2 ** min(node.retries, 20)))
        _put_back(draft, node, "retry", draft.now + wait_ms if wait_ms else None)
    else:
        _fail(draft, node, attempt, failure_class, reason, output)


def _fail(
    draft: Draft,
    node: Node,
    attempt: Attempt,
    failure_class: FailureClass,
    reason: str,
    output: Output | None,
) -> None:
    draft.emit(
        "node_failed", node, **{"class": failure_class}, reason=reason, attempt=f"{node.slug}@{attempt.number}",
        output=_output_row(output),
    )  # fmt: skip


def _report(draft: Draft, node: Node) -> None:
    """Deliver a node's result to the owner where the plan asks for it."""
    graph = draft.graph
    if graph.owner is None or not node.definition.report_to_parent or node.state not in ("achieved", "failed"):
        return
    is_failure = node.state == "failed"
    text = node.failure.reason if node.failure else (node.output.text if node.output else "")
    draft.emit(
        "delivery_created", node, id=f"{graph.id}/{draft.change.rev}/{node.id}", owner=graph.owner,
        kind="failure" if is_failure else "result", text=text,
    )  # fmt: skip


# ---- a person's word, a daemon's start ----------------------------------------------------------------------------


def release(draft: Draft, command: Release) -> None:
    """A stuck tree declared dead by naming exactly its pids: the attempt is lost, or what the wish says
    (model.md, Verbs).
    """
    graph = draft.graph
    node = find_node(graph, command.node)
    stuck = [graph.attempts[key] for key in graph.live if key[0] == node.id and graph.attempts[key].state == "stuck"]
    if not stuck:
        raise Refused(
            "invalidTransition",
            t("{node} is not stuck", node=node.slug),
            t("graphd processes shows what runs"),
            graph=graph.id,
            node=node.slug,
            **{"from": node.state, "to": "released"},
            rev=graph.rev,
        )
    attempt = stuck[0]
    if set(command.pids) != set(attempt.stuck_pids):
        named = " ".join(map(str, attempt.stuck_pids)) or "none"
        raise Refused(
            "stuck", t("{node} is stuck on pids {named}; name exactly these", node=node.slug, named=named),
            t("graphd release {node} --pids {named}", node=node.slug, named=named),
            graph=graph.id, node=node.slug, pids=list(attempt.stuck_pids),
        )  # fmt: skip
    ended = AttemptEnded(graph.id, attempt.key, "lost", reason=t("released by a person"), spent=Spent())
    settle_attempt(draft, attempt, ended)


def daemon_started(state: State, tape: Tape, command: DaemonStarted, *, now: int) -> list[Draft]:
    """Note the epoch in every live graph, look at every unsettled attempt, and pause what a crash loop would wear
    out.
    """
    drafts = []
    for graph in list(state.graphs.values()):
        is_elsewhere = command.workspace is not None and graph.workspace != command.workspace
        is_at_rest = graph.is_ended and not graph.live
        if is_at_rest and not is_elsewhere:
            continue
        draft = Draft(state, tape, graph.id, now=now, actor=DAEMON, operation="checkpoint")
        drafts.append(draft)
        if is_elsewhere:
            draft.emit("workspace_moved", workspace=command.workspace)
        if is_at_rest:
            continue
        draft.emit("epoch_started", epoch=command.epoch, version=command.version)
        if command.recent_starts >= STARTS_LIMIT and graph.status == "active" and graph.stopping is None:
            reason = t(
                "the daemon started {count} times in ten minutes; graphd resume goes on", count=command.recent_starts
            )
            draft.emit("paused", status="infra_paused", reason=reason, cause="starts")
        for key in graph.live:
            draft.then(AdoptAttempt(graph.id, key))
            if graph.attempts[key].state == "stopping" or graph.stopping is not None:
                draft.then(StopAttempt(graph.id, key))
    return drafts
