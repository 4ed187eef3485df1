"""From a turn's result to a result that counts: rounds of worker and check (spec model.md, Planner, rounds, verifier).

A candidate that breaks its contract goes back before anything else looks at it. One without a check is accepted.
With one, a verifier of its own (a command, or a fresh child that fails closed) says achieved or names gaps; gaps go
back into the same session while rounds last. The node stays running throughout: an attempt of it, the worker's or the
verifier's, is not settled.
"""

import json
from collections.abc import Mapping

from graphd.base.text import t
from graphd.core.deadlines import first_timeout_ms
from graphd.core.draft import Draft
from graphd.core.events import PromptAttempt, StartAttempt
from graphd.core.model import Attempt, Graph, Node, Output
from graphd.core.settle import output_row
from graphd.core.verbs import stop_attempt

GAPS_LIMIT = 4096
UNCHECKED_ROUNDS = 2
"""Of a node without a check: a contract that is broken is asked for once more (execution.md, How a turn ends)."""


def is_checked(node: Node) -> bool:
    """Its results are looked at before they count."""
    return node.definition.verify is not None


def candidate(draft: Draft, node: Node, attempt: Attempt, output: Output, *, broken: str | None = None) -> None:
    """A talking attempt gave a result, and lives: have it checked, or accept it and end the attempt.

    `broken`: why it is not what its contract asks for; then it goes back to the attempt, and no check looks at it.
    """
    if attempt.role == "worker" and (is_checked(node) or broken is not None):
        if is_being_checked(draft, node):
            return  # only one that was prompted anew has another result
        end_round(draft, node, output if broken is None else None)
        if broken is not None:
            _send_back(draft, node, attempt, broken)
        return
    stop_attempt(draft, attempt.key, "end_of_turn")


def _send_back(draft: Draft, node: Node, worker: Attempt, broken: str) -> None:
    gaps = str(broken)[:GAPS_LIMIT]
    draft.emit(
        "node_verified", node, round=node.rounds, is_achieved=False, gaps=gaps, by="contract", command=None,
        exit_code=None,
    )  # fmt: skip
    mend(draft, node, worker, gaps)


def is_being_checked(draft: Draft, node: Node) -> bool:
    """Its last result waits for its check, or the check runs."""
    graph = draft.graph
    return (graph.id, node.id) in draft.state.checks or any(key[:2] == (node.id, "verifier") for key in graph.live)


def end_round(draft: Draft, node: Node, output: Output | None) -> None:
    """The worker's turn is over; what it made waits for the check, which the scheduler starts in the same commit."""
    draft.emit("round_ended", node, round=node.rounds + 1, output=output_row(output))


def start_check(draft: Draft, node: Node, profiles: Mapping[str, str]) -> bool:
    """Start the check of a result as an attempt of its own, in the slot that the node holds.

    False where no agent is there to make it: what can't be checked fails closed.
    """
    check = node.definition.verify
    worker = draft.graph.attempts[(node.id, "worker", node.last_number)]
    if check is None or worker.failing is not None or worker.state in ("stopping", "stuck"):
        return True
    wanted = "shell" if check.run is not None else check.worker or ""
    profile = profiles.get(wanted)
    if profile is None:
        return False
    allowed_ms = first_timeout_ms(node)
    number = 1 + (node.role_numbers or {}).get("verifier", 0)
    draft.emit(
        "attempt_started", node, role="verifier", number=number, worker=wanted, profile=profile,
        environment=draft.graph.environment, deadline_at=draft.now + allowed_ms, allowed_ms=allowed_ms, resumes=None,
    )  # fmt: skip
    draft.then(StartAttempt(draft.graph.id, (node.id, "verifier", number)))
    return True


def judged(draft: Draft, node: Node, verifier: Attempt, output: Output | None) -> tuple[bool, str]:
    """Read the verifier's word and keep it as evidence: (achieved, gaps). Missing or malformed is not achieved."""
    check = node.definition.verify
    if check is not None and check.run is not None:
        is_achieved = verifier.outcome == "achieved"
        gaps = "" if is_achieved else verifier.reason or t("the check failed")
    elif verifier.outcome != "achieved":
        is_achieved, gaps = False, t("the check gave no verdict: {reason}", reason=verifier.reason or verifier.outcome)
    else:
        is_achieved, gaps = _word_of(output)
    draft.emit(
        "node_verified", node, round=node.rounds, is_achieved=is_achieved, gaps=str(gaps)[:GAPS_LIMIT],
        by=f"{node.slug}.verifier@{verifier.number}", command=check.run if check else None,
        exit_code=verifier.exit_code,
    )  # fmt: skip
    return is_achieved, str(gaps)[:GAPS_LIMIT]


def _word_of(output: Output | None) -> tuple[bool, str]:
    try:
        said = json.loads(output.text) if output is not None and not output.is_cut else None
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("verdict") not in ("achieved", "not_achieved"):
        return False, t("the check's answer is no verdict")
    gaps = said.get("gaps", [])
    named = [str(gap) for gap in gaps] if isinstance(gaps, list) else [str(gaps)]
    if said["verdict"] == "achieved":
        return (True, "") if not named else (False, "\n".join(named))
    return False, "\n".join(named) or t("the check named no gaps")


def mend(draft: Draft, node: Node, worker: Attempt, gaps: str) -> None:
    """Tell a live worker the gaps, in its session; where it has no round left, or is gone, they are why it failed."""
    graph: Graph = draft.graph
    rounds = graph.limits.rounds_per_attempt
    if not is_checked(node):
        rounds = min(rounds, UNCHECKED_ROUNDS)
    if worker.state == "live" and node.rounds < rounds:
        draft.then(PromptAttempt(graph.id, worker.key))
        return
    draft.emit(
        "attempt_failing", node, role=worker.role, number=worker.number, **{"class": "verdict_fail"}, reason=gaps
    )
    stop_attempt(draft, worker.key, "end_of_turn")
