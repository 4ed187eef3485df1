"""Apply one event to the state. The only code that writes core state; the same for live runs and for replay.

`EVOLVERS` maps every event kind to its function: a kind that is not there is a malformed log, never skipped.
"""

from collections.abc import Callable

from graphd.core import derive
from graphd.core.codec import load_budget, load_definition, load_terms
from graphd.core.events import Event
from graphd.core.evolving import bounds, gates, turns
from graphd.core.evolving.plan import PLAN_EVOLVERS
from graphd.core.model import (
    HISTORY_CAP,
    Attempt,
    Clock,
    Delivery,
    Failure,
    Graph,
    HistoryEntry,
    Identity,
    Limits,
    Node,
    Output,
    Source,
    Spent,
    State,
    Stopping,
)
from graphd.core.moving import freshen, move
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from graphd_protocol.states import NODE_STATES, AttemptState, NodeState


class MalformedLog(Exception):
    """The log holds an event that this version can't apply."""


def evolve(state: State, tape: Tape, event: Event) -> None:
    """Apply `event`. Raises MalformedLog for an unknown kind, or a graph that is not there."""
    apply = EVOLVERS.get(event.kind)
    if apply is None:
        raise MalformedLog(f"event {event.graph}/{event.rev}.{event.index}: unknown kind {event.kind!r}")
    if event.kind == "graph_set":
        apply(state, tape, event)
        graph = state.graphs[event.graph]
    else:
        known = state.graphs.get(event.graph)
        if known is None:
            raise MalformedLog(f"event {event.graph}/{event.rev}.{event.index}: no such graph")
        graph = known
        apply(state, tape, event)
    tape.set(graph, "rev", event.rev)
    tape.set(graph, "updated_at", event.at)
    if event.node is not None:
        tape.set(graph.nodes[event.node], "changed_at", event.rev)
    _remember(graph, tape, event)


_QUIET = frozenset(
    {
        "attempt_identified", "attempt_session", "attempt_waited", "ask_spent", "delivery_created", "environment_set",
        "machine_slept", "node_defined",
    }
)  # fmt: skip


def _remember(graph: Graph, tape: Tape, event: Event) -> None:
    if event.kind in _QUIET:
        return
    slug = graph.nodes[event.node].slug if event.node is not None else None
    detail = next((event.payload[key] for key in _DETAILS if event.payload.get(key)), None)
    entry = HistoryEntry(event.at, event.rev, event.kind, slug, str(detail) if detail else None)
    tape.set(graph, "history", [*graph.history[-(HISTORY_CAP - 1) :], entry])


_DETAILS = ("verdict", "reason", "class", "outcome", "findings")


# ---- graph --------------------------------------------------------------------------------------------------------


def _graph_set(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph = Graph(
        id=event.graph, title=p["title"], objective=p["objective"], source=Source(**p["source"]),
        workspace=p["workspace"], created_at=p.get("created_at", event.at), updated_at=event.at, owner=p["owner"],
        environment=p["environment"], delivery_node=p["delivery_node"], variables=p["variables"],
        replaces=p["replaces"],
        limits=Limits(**p["limits"]), budget=load_budget(p.get("budget")), terms=load_terms(p.get("terms")),
        counts=dict.fromkeys(NODE_STATES, 0),
    )  # fmt: skip
    tape.put(state.graphs, event.graph, graph)


def _plan_installed(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    for index, (row, required) in enumerate(zip(event.payload["definitions"], event.payload["required"], strict=True)):
        definition = load_definition(row)
        node = Node(
            id=node_id(definition.slug), definition=definition, index=index, required=required,
            needs=tuple(node_id(slug) for slug in definition.needs), changed_at=event.rev,
        )  # fmt: skip
        tape.put(graph.nodes, node.id, node)
        tape.put(graph.counts, "waiting", graph.counts["waiting"] + 1)
    tape.set(graph, "plan_version", event.payload["version"])
    derive.link(graph)


def _states_imported(state: State, tape: Tape, event: Event) -> None:
    """Follows `plan_installed` in the change that makes the graph: nobody has seen its nodes waiting."""
    graph = state.graphs[event.graph]
    tape.set(graph, "spent", Spent(**event.payload["spent"]))
    for slug, row in event.payload["nodes"].items():
        node = graph.nodes[node_id(slug)]
        to: NodeState = row["state"]
        tape.put(graph.counts, node.state, graph.counts[node.state] - 1)
        tape.put(graph.counts, to, graph.counts[to] + 1)
        for name in ("state", "rounds", "skip", "cancel_reason", "started_at", "ended_at"):
            tape.set(node, name, row[name])
        if row.get("removed_in") is not None:
            tape.set(node, "removed_in", row["removed_in"])
            tape.put(graph.removed, node.id, None)
        tape.set(node, "spent", Spent(**row["spent"]))
        tape.set(node, "output", Output(**row["output"]) if row["output"] else None)
        tape.set(node, "failure", Failure(**row["failure"]) if row["failure"] else None)
        tape.set(node, "verdict", row.get("verdict"))
    tape.set(graph, "holding", tuple(node_id(slug) for slug in event.payload.get("holding", ())))
    derive.link(graph)


def _workspace_moved(state: State, tape: Tape, event: Event) -> None:
    tape.set(state.graphs[event.graph], "workspace", event.payload["workspace"])


def _epoch_started(state: State, tape: Tape, event: Event) -> None:
    """A fact for the history alone: a restart changes no status."""


def _environment_set(state: State, tape: Tape, event: Event) -> None:
    tape.set(state.graphs[event.graph], "environment", event.payload["environment"])


def _paused(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "status", event.payload["status"])
    tape.set(graph, "pause_reason", event.payload["reason"])
    tape.set(graph, "pause_cause", event.payload.get("cause"))
    tape.set(graph, "paused_by", event.payload.get("by"))
    if event.payload["status"] != "infra_paused":
        tape.set(graph, "stepping", None)
    wish = graph.stopping
    if wish is not None and event.payload["status"] == _FULFILS.get(wish.verb):
        tape.set(graph, "stopping", None)


_FULFILS = {"pause": "user_paused", "budget": "budget_limited"}  # the status that a wish is after


def _activated(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "status", "active")
    tape.set(graph, "pause_reason", None)
    tape.set(graph, "pause_cause", None)
    tape.set(graph, "paused_by", None)
    tape.set(graph, "outcome", None)


def _resumed(state: State, tape: Tape, event: Event) -> None:
    _activated(state, tape, event)
    bounds.go_on(state, tape, event)


def _reopened(state: State, tape: Tape, event: Event) -> None:
    _activated(state, tape, event)
    tape.set(state.graphs[event.graph], "is_finishing", False)


def _stop_requested(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    tape.set(state.graphs[event.graph], "stopping", Stopping(p["verb"], p["by"], event.at, p["reason"]))


def _finish_requested(state: State, tape: Tape, event: Event) -> None:
    tape.set(state.graphs[event.graph], "is_finishing", True)


def _blocked(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "status", "blocked")
    tape.set(graph, "failed_by", None)
    tape.set(graph, "pause_reason", event.payload["reason"])
    tape.set(graph, "pause_cause", None)
    tape.set(graph, "stepping", None)


def _completed(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "status", "complete")
    tape.set(graph, "outcome", event.payload["outcome"])
    tape.set(graph, "pause_reason", None)
    tape.set(graph, "pause_cause", None)
    tape.set(graph, "stopping", None)
    tape.set(graph, "stepping", None)


def _cancelled(state: State, tape: Tape, event: Event) -> None:
    graph = state.graphs[event.graph]
    tape.set(graph, "status", "cancelled")
    tape.set(graph, "holding", ())
    tape.set(graph, "pause_reason", None)
    tape.set(graph, "pause_cause", None)
    tape.set(graph, "stopping", None)
    tape.set(graph, "stepping", None)


def _cleared(state: State, tape: Tape, event: Event) -> None:
    tape.drop(state.graphs, event.graph)
    tape.put(state.tombstones, event.graph, event.rev)
    tape.drop(state.with_ready, event.graph)


# ---- node ---------------------------------------------------------------------------------------------------------


def _node_ready(state: State, tape: Tape, event: Event) -> None:
    graph, node = move(state, tape, event, "ready")
    derive.enqueue(state, graph, node)


def _node_put_back(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    node = state.graphs[event.graph].nodes[event.node or ""]
    tape.set(node, "not_before", p.get("not_before"))
    tape.set(node, "retries", node.retries + (1 if p["why"] == "retry" else 0))
    tape.set(node, "lost_in_row", node.lost_in_row + 1 if p["why"] == "lost" else 0)
    tape.set(node, "put_back_in_row", node.put_back_in_row + 1 if p["why"] == "put_back" else 0)
    tape.set(node, "started_at", None)
    _node_ready(state, tape, event)


def _node_skipped(state: State, tape: Tape, event: Event) -> None:
    _, node = move(state, tape, event, "skipped")
    tape.set(node, "skip", event.payload["reason"])
    tape.set(node, "blocked_by", None)
    tape.set(node, "ended_at", event.at)


def _node_blocked(state: State, tape: Tape, event: Event) -> None:
    _, node = move(state, tape, event, "blocked")
    tape.set(node, "blocked_by", event.payload["by"])


def _node_achieved(state: State, tape: Tape, event: Event) -> None:
    _, node = move(state, tape, event, "achieved")
    output = event.payload["output"]
    tape.set(node, "output", Output(**output) if output else None)
    tape.set(node, "failure", None)
    tape.set(node, "lost_in_row", 0)
    tape.set(node, "candidate", None)
    tape.set(node, "ended_at", event.at)


def _node_failed(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    _, node = move(state, tape, event, "failed")
    tape.set(node, "failure", Failure(p["class"], p["reason"], p.get("attempt")))
    output = p.get("output")
    tape.set(node, "output", Output(**output) if output else None)
    tape.set(node, "candidate", None)
    tape.set(node, "ended_at", event.at)


def _node_retried(state: State, tape: Tape, event: Event) -> None:
    _, node = move(state, tape, event, "waiting")
    freshen(tape, node)


def _node_cancelled(state: State, tape: Tape, event: Event) -> None:
    _, node = move(state, tape, event, "cancelled")
    tape.set(node, "cancel_reason", event.payload["reason"])
    output = event.payload.get("output")
    tape.set(node, "output", Output(**output) if output else None)
    tape.set(node, "blocked_by", None)
    tape.set(node, "after_stop", None)
    tape.set(node, "candidate", None)
    tape.set(node, "ended_at", event.at)


# ---- attempt ------------------------------------------------------------------------------------------------------


def _attempt(state: State, event: Event) -> Attempt:
    p = event.payload
    return state.graphs[event.graph].attempts[(event.node or "", p["role"], p["number"])]


def _attempt_started(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph = state.graphs[event.graph]
    node = graph.nodes[event.node or ""]
    if p["role"] == "worker":
        move(state, tape, event, "running")
        tape.set(node, "last_number", p["number"])
        tape.set(node, "attempts", node.attempts + 1)
        tape.set(node, "started_at", event.at)
        tape.set(node, "not_before", None)
        tape.set(node, "candidate", None)
        tape.set(node, "rounds", 0)
    else:
        if node.state == "ready":  # its result waited for the check
            move(state, tape, event, "running")
            tape.set(node, "started_at", event.at)
        tape.set(node, "role_numbers", {**(node.role_numbers or {}), p["role"]: p["number"]})
        tape.drop(state.checks, (graph.id, node.id))
    attempt = Attempt(
        graph=event.graph, node=node.id, role=p["role"], number=p["number"], worker=p["worker"],
        profile=p["profile"], environment=p["environment"], started_at=event.at, deadline_at=p["deadline_at"],
        resumes=p.get("resumes"), limit=load_budget(p.get("limit")),
        clock=Clock(p["allowed_ms"]) if p.get("allowed_ms") is not None else None,
    )  # fmt: skip
    tape.put(graph.attempts, attempt.key, attempt)
    tape.put(graph.live, attempt.key, None)
    tape.set(graph, "last_start_at", event.at)
    count = state.running_by_profile.get(attempt.profile, 0)
    tape.put(state.running_by_profile, attempt.profile, count + 1)
    tape.put(state.started_by_profile, attempt.profile, event.at)
    bounds.set_going(state, tape, graph, event)


def _attempt_identified(state: State, tape: Tape, event: Event) -> None:
    attempt = _attempt(state, event)
    tape.set(attempt, "identity", Identity(**event.payload["identity"]))
    if attempt.state == "starting":
        _attempt_moved(tape, attempt, "live")


def _attempt_moved(tape: Tape, attempt: Attempt, to: AttemptState) -> None:
    tape.set(attempt, "state", to)


def _attempt_stopping(state: State, tape: Tape, event: Event) -> None:
    attempt = _attempt(state, event)
    tape.set(attempt, "stop_reason", event.payload["why"])
    if attempt.state in ("starting", "live"):
        _attempt_moved(tape, attempt, "stopping")


def _attempt_stuck(state: State, tape: Tape, event: Event) -> None:
    attempt = _attempt(state, event)
    tape.set(attempt, "stuck_pids", tuple(event.payload["pids"]))
    tape.set(attempt, "reason", event.payload["reason"])
    _attempt_moved(tape, attempt, "stuck")


def _attempt_settled(state: State, tape: Tape, event: Event) -> None:
    p = event.payload
    graph = state.graphs[event.graph]
    attempt = _attempt(state, event)
    node = graph.nodes[attempt.node]
    for name in ("outcome", "failure_class", "reason", "exit_code", "signal", "is_counted"):
        tape.set(attempt, name, p[name])
    spent = Spent(**p["spent"])
    tape.set(attempt, "spent", spent)
    tape.set(node, "spent", bounds.summed(node.spent, spent))
    tape.set(attempt, "ended_at", event.at)
    tape.set(attempt, "stuck_pids", ())
    if not attempt.is_counted and attempt.role == "worker":
        tape.set(node, "attempts", node.attempts - 1)
    _attempt_moved(tape, attempt, "settled")
    tape.drop(graph.live, attempt.key)
    tape.drop(state.talks, (graph.id, attempt.key))
    if attempt.role == "verifier":  # until its word is read
        tape.put(state.checks, (graph.id, node.id), None)
    tape.put(state.running_by_profile, attempt.profile, state.running_by_profile[attempt.profile] - 1)
    bounds.settle_spent(state, tape, graph, attempt, at=event.at)


# ---- deliveries -----------------------------------------------------------------------------------------------------


def _delivery_created(state: State, tape: Tape, event: Event) -> None:
    delivery = Delivery(**event.payload, graph=event.graph, node=event.node, created_at=event.at)
    tape.put(state.graphs[event.graph].deliveries, delivery.id, delivery)


def _delivery_acknowledged(state: State, tape: Tape, event: Event) -> None:
    for delivery in event.payload["deliveries"]:
        tape.set(state.graphs[event.graph].deliveries[delivery], "is_acknowledged", True)


EVOLVERS: dict[str, Callable[[State, Tape, Event], None]] = {
    "graph_set": _graph_set,
    "plan_installed": _plan_installed,
    "states_imported": _states_imported,
    "workspace_moved": _workspace_moved,
    "epoch_started": _epoch_started,
    "environment_set": _environment_set,
    "paused": _paused,
    "resumed": _resumed,
    "reopened": _reopened,
    "stop_requested": _stop_requested,
    "finish_requested": _finish_requested,
    "blocked": _blocked,
    "completed": _completed,
    "cancelled": _cancelled,
    "cleared": _cleared,
    "node_ready": _node_ready,
    "node_put_back": _node_put_back,
    "node_skipped": _node_skipped,
    "node_blocked": _node_blocked,
    "node_achieved": _node_achieved,
    "node_failed": _node_failed,
    "node_retried": _node_retried,
    "node_cancelled": _node_cancelled,
    "attempt_started": _attempt_started,
    "attempt_identified": _attempt_identified,
    "attempt_stopping": _attempt_stopping,
    "attempt_stuck": _attempt_stuck,
    "attempt_settled": _attempt_settled,
    "delivery_created": _delivery_created,
    "delivery_acknowledged": _delivery_acknowledged,
    **turns.EVOLVERS,
    **gates.EVOLVERS,
    **bounds.EVOLVERS,
    **PLAN_EVOLVERS,
}
