"""Facts that the supervisor reports: how attempts live and end, and that a daemon started (model.md, Node and
Attempt).
"""

from dataclasses import asdict
from typing import Any, NamedTuple

from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.core import asks, rounds
from graphd.core.commands import (
    AttemptEnded,
    AttemptIdentified,
    AttemptSaid,
    AttemptStuck,
    AttemptUsed,
    ChildAsk,
    DaemonStarted,
    DeadlineReached,
    MachineSlept,
    ProfileCooling,
    Release,
)
from graphd.core.derive import is_judged
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, AdoptAttempt, CollectAttempt, StopAttempt
from graphd.core.gates import VerdictMissing, verdict_of
from graphd.core.model import Attempt, Graph, Node, Output, Spent, State
from graphd.core.settle import achieve, conclude, output_row, report, ripple, skip
from graphd.core.tape import Tape
from graphd.core.verbs import find_node, stop_attempt
from graphd_protocol.states import AttemptOutcome, FailureClass

LOST_IN_ROW_LIMIT = 3
STARTS_LIMIT = 5
CHECKS_LIMIT = 3  # checks of an attempt that end without a word, on average
BACKOFF_LIMIT_MS = 3_600_000

AttemptFact = (
    AttemptIdentified | AttemptSaid | AttemptUsed | AttemptEnded | AttemptStuck | ChildAsk | DeadlineReached
    | ProfileCooling
)  # fmt: skip


def attempt_fact(state: State, tape: Tape, fact: AttemptFact, *, now: int) -> list[Draft]:
    """Apply a fact. One about an attempt that is settled or unknown is late or foreign: dropped (execution.md,
    One attempt, 6).
    """
    graph = state.graphs.get(fact.graph)
    attempt = graph.attempts.get(fact.attempt) if graph else None
    if isinstance(fact, ProfileCooling):
        return _cool_down(state, tape, fact, attempt, now=now)
    if attempt is None or attempt.state == "settled":
        return []
    draft = Draft(state, tape, fact.graph, now=now, actor=DAEMON, operation="checkpoint")
    match fact:
        case AttemptIdentified():
            if attempt.identity is None:
                _emit(draft, "attempt_identified", attempt, identity=asdict(fact.identity))
        case AttemptSaid():
            from graphd.core.turns import said  # what agents say is imported with the first one that talks

            said(draft, attempt, fact)
        case ChildAsk():
            from graphd.core.turns import child_asked

            child_asked(draft, attempt, fact)
        case AttemptStuck():
            _stuck(draft, attempt, fact)
        case DeadlineReached():
            from graphd.core.deadlines import deadline_reached  # as in `decide`: with the first one

            deadline_reached(draft, attempt, fact)
        case AttemptUsed():
            from graphd.core.budget import note_use

            note_use(draft, attempt, fact.spent)
        case _:
            settle_attempt(draft, attempt, fact)
    return [draft]


def _cool_down(
    state: State, tape: Tape, fact: ProfileCooling, attempt: Attempt | None, *, now: int
) -> list[Draft]:  # fmt: skip
    """Also of an attempt that is settled: the provider rests all the same."""
    if attempt is None:
        return []
    from graphd.core.weather import cool_down

    draft = Draft(state, tape, fact.graph, now=now, actor=DAEMON, operation="checkpoint")
    cool_down(draft, fact, attempt)
    return [draft]


def machine_slept(state: State, tape: Tape, fact: MachineSlept, *, now: int) -> list[Draft]:
    """Wall clocks ran on while the machine slept: take that out of what live attempts are measured by."""
    drafts = []
    for graph in state.graphs.values():
        if graph.live:
            draft = Draft(state, tape, graph.id, now=now, actor=DAEMON, operation="checkpoint")
            draft.emit("machine_slept", ms=fact.ms)
            drafts.append(draft)
    return drafts


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
    outcome, failure_class, trouble = _verdict(graph, attempt, fact)
    is_counted = outcome not in ("put_back", "paused") and fact.outcome != "put_back"
    reason = attempt.failing.reason if attempt.failing else fact.reason
    reason = reason or trouble
    _close_asks(draft, node, attempt, fact)
    _emit(
        draft, "attempt_settled", attempt, outcome=outcome, failure_class=failure_class, reason=reason,
        exit_code=fact.exit_code, signal=fact.signal, spent=_spent_row(_spent(draft, attempt, fact)),
        is_counted=is_counted,
    )  # fmt: skip
    draft.then(CollectAttempt(graph.id, attempt.key))
    if was_stuck and graph.pause_cause == "stuck" and graph.stopping is None and not _has_stuck(graph):
        draft.emit("resumed")
    if attempt.role == "verifier":
        _verified(draft, node, attempt, fact.output)
    else:
        _worked(draft, node, attempt, Ended(outcome, failure_class, reason, fact.output))
    if graph.budget is not None and graph.id in draft.state.graphs:
        _keep_budget(draft, graph, attempt)


class Ended(NamedTuple):
    """How a worker's attempt ended, for its node."""

    outcome: AttemptOutcome
    failure_class: FailureClass | None
    reason: str | None
    output: Output | None


def _worked(draft: Draft, node: Node, attempt: Attempt, ended: Ended) -> None:
    """A worker's attempt is settled: its node moves, unless a check has to speak first."""
    if _live_check(draft.graph, node) is not None:
        if ended.outcome != "achieved":
            _stop_check(draft, node)
        conclude(draft)  # the node moves when the check is settled too; a stuck check may be all that is left
        return
    if ended.outcome == "achieved" and rounds.is_checked(node) and not _is_verified(node):
        if not rounds.is_being_checked(draft, node):  # else the round is over already, and its check was stopped
            rounds.end_round(draft, node, ended.output)
        return
    if ended.outcome == "achieved" and node.candidate is not None:
        ended = ended._replace(output=node.candidate)
    _move_on(draft, node, attempt, ended)


def _is_verified(node: Node) -> bool:
    return is_judged(node) and node.gaps is None and node.rounds > 0


def _live_check(graph: Graph, node: Node) -> Attempt | None:
    key = (node.id, "verifier", (node.role_numbers or {}).get("verifier", 0))
    return graph.attempts[key] if key in graph.live else None


def _stop_check(draft: Draft, node: Node) -> None:
    check = _live_check(draft.graph, node)
    if check is not None and check.state in ("starting", "live"):
        stop_attempt(draft, check.key, "end_of_turn")


def _verified(draft: Draft, node: Node, check: Attempt, output: Output | None) -> None:
    """A check is settled: its word decides about the worker, which may still live, or be settled already."""
    worker = draft.graph.attempts[(node.id, "worker", node.last_number)]
    is_moot = worker.state == "settled" and worker.outcome != "achieved"
    if is_moot or check.outcome in ("cancelled", "paused", "put_back", "lost"):
        _check_without_word(draft, node, worker, check)
        return
    is_achieved, gaps = rounds.judged(draft, node, check, output)
    if worker.state == "settled":
        verdict: AttemptOutcome = "achieved" if is_achieved else "failed"
        failure_class: FailureClass | None = None if is_achieved else "verdict_fail"
        _move_on(draft, node, worker, Ended(verdict, failure_class, gaps or None, node.candidate))
    elif is_achieved:
        stop_attempt(draft, worker.key, "end_of_turn")
    else:
        rounds.mend(draft, node, worker, gaps)


def _check_without_word(draft: Draft, node: Node, worker: Attempt, check: Attempt) -> None:
    """It was stopped, lost or never began: nobody's verdict. Where the result still counts it is checked again."""
    graph = draft.graph
    if worker.state == "settled" and worker.outcome != "achieved":
        ended = Ended(worker.outcome or "lost", worker.failure_class, worker.reason, node.candidate)
        _move_on(draft, node, worker, ended)
        return
    is_wished_away = graph.stopping is not None or node.after_stop is not None
    may_again = not is_wished_away and check.number < CHECKS_LIMIT * graph.limits.attempts_per_node
    if worker.state not in ("stopping", "stuck") and may_again:
        return  # the scheduler starts another one in the same commit
    if worker.state == "settled":
        _move_on(draft, node, worker, Ended(check.outcome or "lost", None, check.reason, node.candidate))
    elif worker.state == "live":
        reason = t("its check never gave a verdict: {reason}", reason=check.reason or check.outcome)
        _emit(draft, "attempt_failing", worker, **{"class": "verdict_fail"}, reason=reason)
        stop_attempt(draft, worker.key, "end_of_turn")
    else:
        conclude(draft)  # a stuck worker may be all that is left


def put_back_unchecked(draft: Draft, node: Node) -> None:
    """Its result can't be checked now: nobody's verdict. The node is ready again, and goes on with the check. A worker
    that lives is stopped by whoever stops the graph.
    """
    worker = draft.graph.attempts[(node.id, "worker", node.last_number)]
    if worker.state == "settled":
        _move_on(draft, node, worker, Ended("paused", None, None, None))


def refuse_check(draft: Draft, node: Node) -> None:
    """Nothing here can make the check: the result does not count."""
    worker = draft.graph.attempts[(node.id, "worker", node.last_number)]
    check = node.definition.verify
    reason = t("no installed agent serves worker {worker}; graphd agents shows what was searched",
               worker=check.worker if check else None)  # fmt: skip
    if worker.state == "settled":
        _move_on(draft, node, worker, Ended("failed", "verdict_fail", reason, node.candidate))
    else:
        _emit(draft, "attempt_failing", worker, **{"class": "verdict_fail"}, reason=reason)
        stop_attempt(draft, worker.key, "end_of_turn")


def _move_on(draft: Draft, node: Node, attempt: Attempt, ended: Ended) -> None:
    ripple(draft, _move_node(draft, node, attempt, ended.outcome, ended.failure_class, ended.reason, ended.output))
    conclude(draft)


def _spent(draft: Draft, attempt: Attempt, fact: AttemptEnded) -> Spent:
    """What the run says, and what the attempt said while it ran."""
    if (attempt.graph, attempt.key) not in draft.state.used:
        return fact.spent
    from graphd.core.budget import settled_spent

    return settled_spent(draft.state, attempt, fact.spent)


def _keep_budget(draft: Draft, graph: Graph, attempt: Attempt) -> None:
    """A budget that can't be kept holds the graph: usage that is not said must not look like none."""
    from graphd.core.budget import is_unreported, trip_if_reached

    trip_if_reached(draft)
    if graph.status == "active" and graph.stopping is None and is_unreported(graph, attempt):
        name = f"{graph.nodes[attempt.node].slug}@{attempt.number}"
        _pause_infra(draft, t("{attempt} did not say what it used, and the graph has a budget", attempt=name), "usage")


def _close_asks(draft: Draft, node: Node, attempt: Attempt, fact: AttemptEnded) -> None:
    """What it asked needs no answer any more; an answer that did not reach it is free for the next attempt."""
    graph = draft.graph
    for ask in [graph.asks[ask_id] for ask_id in graph.open_asks]:
        if (ask.node, ask.role, ask.attempt) == attempt.key:
            asks.withdraw(draft, ask, t("its attempt ended"))
    if fact.unheard:
        for ask in list(graph.asks.values()):
            is_its = (ask.node, ask.role, ask.attempt) == attempt.key and ask.spent_by == attempt.number
            if is_its and ask.key in fact.unheard and ask.option is not None:
                draft.emit("ask_spent", node, ask=ask.id, attempt=None)


def _spent_row(spent: Spent) -> dict[str, Any]:
    return {"tokens": spent.tokens, "cost_usd": spent.cost_usd, "wall_ms": spent.wall_ms}


def _has_stuck(graph: Graph) -> bool:
    return any(graph.attempts[key].state == "stuck" for key in graph.live)


def _verdict(
    graph: Graph, attempt: Attempt, fact: AttemptEnded
) -> tuple[AttemptOutcome, FailureClass | None, Text | None]:
    """What the end means, given the wish or the stop that stands; with a reason that is ours.

    A result counts for pause, budget and time-out, never for cancel, nor where a replan recalled the node. That of a
    gate is none without a verdict.
    """
    if graph.stopping is not None and graph.stopping.verb in ("cancel", "clear"):
        return "cancelled", None, None
    if graph.nodes[attempt.node].after_stop is not None:
        return "cancelled", None, None
    if attempt.failing is not None:
        if attempt.failing.failure_class == "lost":
            return "lost", None, None
        return "failed", attempt.failing.failure_class, None
    if fact.outcome == "achieved":
        node = graph.nodes[attempt.node]
        trouble = _gate_trouble(node, node.candidate or fact.output) if attempt.role == "worker" else None
        return ("achieved", None, None) if trouble is None else ("failed", "verdict_fail", trouble)
    if attempt.stop_reason == "timeout" and fact.outcome != "put_back":
        return "failed", "timeout", t("it ran out of time")
    if attempt.stop_reason in ("pause", "budget", "required_failure", "hold"):
        return "paused", None, None
    if attempt.stop_reason == "weather":
        return "put_back", None, None
    if fact.outcome == "failed" and fact.signal is not None and attempt.child_session is not None:
        return "lost", None, None  # killed in mid-turn by nobody of ours: no verdict, and its session can go on
    return fact.outcome, fact.failure_class, t("it ran out of time") if fact.failure_class == "timeout" else None


def _gate_trouble(node: Node, output: Output | None) -> Text | None:
    if node.definition.gate is None:
        return None
    try:
        verdict_of(output)
    except VerdictMissing as trouble:
        return trouble.reason
    return None


def _move_node(
    draft: Draft, node: Node, attempt: Attempt, outcome: AttemptOutcome, failure_class: FailureClass | None,
    reason: str | None, output: Output | None,
) -> list[Node]:  # fmt: skip
    """Give the node the state that the end of its attempt means; the nodes to look at next."""
    if outcome == "achieved":
        return achieve(draft, node, output)
    if outcome == "cancelled":
        _cancelled(draft, node, output_row(output))
    elif outcome in ("put_back", "paused"):
        _put_back(draft, node, outcome)
    elif outcome == "lost":
        _lost(draft, node, attempt, reason or t("its processes ended without a record"))
    else:
        _failed(draft, node, attempt, failure_class or "exec_failed", reason or t("it failed"), output=output)
    if node.state == "failed":
        report(draft, node)
    return [node]


def _cancelled(draft: Draft, node: Node, output: dict[str, Any] | None) -> None:
    wish = draft.graph.stopping
    is_whole = wish is not None and wish.verb in ("cancel", "clear")
    if node.after_stop is None or (is_whole and node.after_stop == "waiting"):
        draft.emit("node_cancelled", node, reason=(wish.reason if wish else None) or t("cancelled"), output=output)
        return
    from graphd.core.replan import recalled  # with the first one, as in `decide`

    recalled(draft, node, output)


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
        output=output_row(output),
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
                draft.then(StopAttempt(graph.id, key, is_repeat=True))
    return drafts
