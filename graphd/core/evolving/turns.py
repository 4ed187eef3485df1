"""What agents say, ask and get, and what their checks find, applied to the state."""

from collections.abc import Callable
from dataclasses import replace

from graphd.core import derive
from graphd.core.events import Event
from graphd.core.model import Ask, Attempt, Failure, Output, State
from graphd.core.tape import Tape


def _ask_opened(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph = state.graphs[event.graph]
    ask = Ask(**{**p, "options": tuple(p["options"]), "scopes": tuple(p["scopes"])})
    tape.put(graph.asks, ask.id, ask)
    tape.put(graph.open_asks, ask.id, None)
    if ask.kind == "approval":
        derive.set_timer(state, graph, ask.deadline_at, ask.node or "")


def _ask_answered(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph = state.graphs[event.graph]
    ask = graph.asks[p["ask"]]
    answered = replace(
        ask, state="answered", answered_by=p["by"], option=p["option"], text=p["text"],
        scope=p.get("scope"), comment=p.get("comment"), spent_by=p.get("spent_by"),
    )  # fmt: skip
    tape.put(graph.asks, ask.id, answered)
    tape.drop(graph.open_asks, ask.id)


def _ask_withdrawn(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    ask = graph.asks[event.payload["ask"]]
    tape.put(graph.asks, ask.id, replace(ask, state="withdrawn"))
    tape.drop(graph.open_asks, ask.id)


def _ask_spent(state: State, tape: Tape, event: Event) -> None:
    asks = state.graphs[event.graph].asks
    tape.put(asks, event.payload["ask"], replace(asks[event.payload["ask"]], spent_by=event.payload["attempt"]))


def _scope_revoked(state: State, tape: Tape, event: Event) -> None:
    asks = state.graphs[event.graph].asks
    tape.put(asks, event.payload["ask"], replace(asks[event.payload["ask"]], is_revoked=True))


def _attempt(state: State, event: Event) -> Attempt:
    p = event.payload
    return state.graphs[event.graph].attempts[(event.node or "", p["role"], p["number"])]


def _attempt_session(state: State, tape: Tape, event: Event) -> None:
    attempt = _attempt(state, event)
    tape.set(attempt, "child_session", event.payload["session"])
    if attempt.role == "worker":
        tape.set(state.graphs[event.graph].nodes[attempt.node], "child_session", event.payload["session"])


def _attempt_failing(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    tape.set(_attempt(state, event), "failing", Failure(p["class"], p["reason"]))


def _round_ended(state: State, tape: Tape, event: Event) -> None:
    node = state.graphs[event.graph].nodes[event.node or ""]
    output = event.payload["output"]
    tape.set(node, "rounds", event.payload["round"])
    tape.set(node, "candidate", Output(**output) if output else None)
    tape.put(state.checks, (event.graph, node.id), None)


def _node_verified(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    node = state.graphs[event.graph].nodes[event.node or ""]
    kept = {key: p[key] for key in ("round", "is_achieved", "gaps", "by", "command", "exit_code")}
    tape.set(node, "evidence", (*node.evidence, {**kept, "at": event.at}))
    tape.set(node, "gaps", None if p["is_achieved"] else p["gaps"])
    tape.drop(state.checks, (event.graph, node.id))


EVOLVERS: dict[str, Callable[[State, Tape, Event], None]] = {
    "ask_opened": _ask_opened,
    "ask_answered": _ask_answered,
    "ask_withdrawn": _ask_withdrawn,
    "ask_spent": _ask_spent,
    "scope_revoked": _scope_revoked,
    "attempt_session": _attempt_session,
    "attempt_failing": _attempt_failing,
    "round_ended": _round_ended,
    "node_verified": _node_verified,
}
