"""Core state → wire values, as plain dicts that orjson writes at once. The only place that knows both shapes.

Fields that say nothing (null, empty) are left out; node references become slugs. Every value is built anew, so it
stays true after the state moves on. Source: spec protocol.md and model.md; `graphd_protocol.model` holds it to
account in tests.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from graphd.core.change.clauses import budget_row, clauses_row, terms_row
from graphd.core.compare import PlanDiff
from graphd.core.definition import Terms
from graphd.core.events import Event
from graphd.core.model import (
    Ask,
    Attempt,
    Delivery,
    Failure,
    Graph,
    HistoryEntry,
    Node,
    Output,
    Spent,
    Stopping,
)
from graphd.core.policy import glob_of

Wire = dict[str, Any]
PhaseOf = Callable[[str, str], str | None]
"""(graph, node id) → the volatile phase, if any."""

TEXT_LIMIT_BYTES: Final = 4096
_USUAL: Final = Terms()


def no_phase(graph: str, node: str) -> str | None:
    """Nobody knows a phase."""
    return None


def cut(text: str, limit_bytes: int) -> str:
    """The beginning of a text, at most this many bytes of UTF-8, cut at a character."""
    if len(text) * 4 <= limit_bytes:
        return text
    raw = text.encode()
    return text if len(raw) <= limit_bytes else raw[:limit_bytes].decode(errors="ignore")


def spent(value: Spent) -> Wire:
    """What was used; an unknown cost stays null."""
    return {"tokens": value.tokens, "costUsd": value.cost_usd, "wallMs": value.wall_ms}


def spending(graph: Graph) -> Wire:
    """What a graph used, by unit and role."""
    wire = spent(graph.spent)
    wire["costIsPartial"] = graph.cost_is_partial
    wire["roles"] = {role: spent(value) for role, value in graph.spent_by_role.items()}
    return wire


def output(value: Output, limit_bytes: int = TEXT_LIMIT_BYTES) -> Wire:
    """A result, its text cut for a snapshot."""
    text = cut(value.text, limit_bytes)
    return {
        "text": text,
        "total": value.total_bytes,
        "mediaType": value.media_type,
        "isCut": value.is_cut or len(text) < len(value.text),
    }


def failure(value: Failure) -> Wire:
    """Why a node failed."""
    wire: Wire = {"class": value.failure_class, "reason": value.reason}
    if value.attempt is not None:
        wire["attempt"] = value.attempt
    return wire


def node(graph: Graph, value: Node, phase_of: PhaseOf = no_phase, *, limit_bytes: int = TEXT_LIMIT_BYTES) -> Wire:
    """One node whole, as the snapshot and `workgraph/changed` show it."""
    plan = value.definition
    wire: Wire = {
        "id": value.id,
        "slug": plan.slug,
        "title": plan.title or plan.slug,
        "spec": plan.spec,
        "worker": plan.worker,
        "needs": [_slug(graph, need) for need in value.needs],
        "required": value.required,
        "state": value.state,
        "attempts": value.attempts,
        "rounds": value.rounds,
        "timeoutMs": plan.timeout_ms,
        "retry": {"max": plan.retry.max, "backoffS": plan.retry.backoff_s, "on": plan.retry.on},
        "reportToParent": plan.report_to_parent,
        "priority": plan.priority,
        "changedAt": value.changed_at,
        "spent": spent(value.spent),
        **clauses_row(plan),
    }
    if value.findings is not None:
        wire["findings"] = cut(value.findings, limit_bytes)
    if value.state != "waiting" or value.last_number:
        _add_course(wire, graph, value, phase_of, limit_bytes)
    if plan.condition is not None:
        wire["condition"] = plan.condition
    if plan.discovered_from:
        wire["discoveredFrom"] = [_slug(graph, source) for source in plan.discovered_from]
    return wire


def _add_course(wire: Wire, graph: Graph, value: Node, phase_of: PhaseOf, limit_bytes: int) -> None:
    """What a node that never left `waiting` does not have."""
    if value.state == "running" or value.state == "ready":
        phase = _phase_without_slot(graph, value) or phase_of(graph.id, value.id)
        if phase is not None:
            wire["phase"] = phase
    if value.output is not None:
        wire["output"] = output(value.output, limit_bytes)
    if value.failure is not None:
        wire["failure"] = failure(value.failure)
    if value.blocked_by is not None:
        wire["blockedBy"] = _slug(graph, value.blocked_by)
    for name, item in (
        ("skip", value.skip),
        ("cancelReason", value.cancel_reason),
        ("removedIn", value.removed_in),
        ("childSession", value.child_session),
        ("verdict", value.verdict),
        ("wakeAt", value.wake_at),
        ("notBefore", value.not_before),
        ("startedAt", value.started_at),
        ("endedAt", value.ended_at),
    ):
        if item is not None:
            wire[name] = item


def _phase_without_slot(graph: Graph, value: Node) -> str | None:
    """Nothing runs for it yet: it joins its items, or a person has to approve its start."""
    if value.id in graph.early and any(ask.node == value.id for ask in map(graph.asks.__getitem__, graph.open_asks)):
        return "awaiting_permission"
    return "joining" if value.definition.for_each is not None and value.id in graph.slotless else None


def _slug(graph: Graph, reference: str) -> str:
    found = graph.nodes.get(reference)
    return reference if found is None else found.definition.slug


def left(graph: Graph) -> list[str]:
    """Slugs of the nodes whose trees are not proven empty, each once."""
    return list(dict.fromkeys(_slug(graph, key[0]) for key in graph.live))


def stopping(graph: Graph, value: Stopping) -> Wire:
    """The wish to stop."""
    return {"verb": value.verb, "by": value.by, "at": value.at, "left": left(graph)}


def header(graph: Graph) -> Wire:
    """A graph without its nodes."""
    limits = graph.limits
    wire: Wire = {
        "id": graph.id,
        "title": graph.title,
        "objective": graph.objective,
        "status": graph.status,
        "planVersion": graph.plan_version,
        "rev": graph.rev,
        "counts": planned_counts(graph),
        "spent": spending(graph),
        "limits": {
            "concurrency": limits.concurrency,
            "maxNodes": limits.max_nodes,
            "attemptsPerNode": limits.attempts_per_node,
            "roundsPerAttempt": limits.rounds_per_attempt,
            "replans": limits.replans,
            "timeoutExtensions": limits.timeout_extensions,
        },
        "workspace": graph.workspace,
        "source": _source(graph),
        "createdAt": graph.created_at,
        "updatedAt": graph.updated_at,
    }
    if graph.owner is not None:
        wire["owner"] = graph.owner
    if graph.pause_reason is not None:
        wire["pauseReason"] = graph.pause_reason
    if graph.outcome is not None:
        wire["outcome"] = graph.outcome
    if graph.budget is not None:
        wire["budget"] = budget_row(graph.budget)
    if graph.terms != _USUAL:
        wire["terms"] = terms_row(graph.terms)
    if graph.stopping is not None:
        wire["stopping"] = stopping(graph, graph.stopping)
    if graph.stepping is not None:
        wire["stepping"] = _slug(graph, graph.stepping)
    if graph.delivery_node is not None:
        wire["deliveryNode"] = _slug(graph, graph.delivery_node)
    return wire


def planned_counts(graph: Graph) -> dict[str, int]:
    """How many nodes of the plan are in each state; what was removed from it is not counted."""
    counts = graph.counts
    if graph.removed:
        counts = dict(counts)
        for identity in graph.removed:
            counts[graph.nodes[identity].state] -= 1
    return {state: count for state, count in counts.items() if count}


def _source(graph: Graph) -> Wire:
    source = graph.source
    wire: Wire = {"kind": source.kind}
    if source.name is not None:
        wire["name"] = source.name
    if source.path is not None:
        wire["path"] = source.path
    if source.sha256 is not None:
        wire["sha256"] = source.sha256
    return wire


def ask(graph: Graph, value: Ask) -> Wire:
    """A question, as `asks` returns it."""
    wire: Wire = {
        "id": value.id,
        "kind": value.kind,
        "graph": graph.id,
        "title": value.title,
        "action": dict(value.action),
        "actionHash": value.action_hash,
        "options": [dict(option) for option in value.options],
        "scopes": value.scopes,
        "openedAt": value.opened_at,
        "state": value.state,
    }
    if value.node is not None:
        wire["node"] = _slug(graph, value.node)
    for name, item in (
        ("attempt", value.attempt),
        ("deadlineAt", value.deadline_at),
        ("default", value.default),
        ("answeredBy", value.answered_by),
        ("option", value.option),
        ("text", value.text),
        ("scope", value.scope),
        ("comment", value.comment),
    ):
        if item is not None:
            wire[name] = item
    if len(value.scopes) > 1:
        wire["rule"] = f"{value.action.get('toolKind')} {glob_of(value.action)}"
    return wire


def open_asks(graph: Graph) -> list[Wire]:
    """The asks that wait."""
    return [ask(graph, graph.asks[ask_id]) for ask_id in graph.open_asks]


def open_proposals(graph: Graph) -> list[Wire]:
    """The proposals that wait, in short; their asks hold them whole."""
    return [
        {
            "id": item.id,
            "author": item.action["author"],
            "reason": item.action["reason"],
            "planVersion": item.action["planVersion"],
            "madeAt": item.opened_at,
            **plan_edits(item.action["edits"]),
        }
        for item in (graph.asks[ask_id] for ask_id in graph.open_asks)
        if item.kind == "proposal"
    ]


def plan_edits(edits: Wire) -> Wire:
    """What a proposal would edit, by slug; what is empty is left out."""
    wire = {
        "add": [row["slug"] for row in edits.get("add", ())],
        "change": [{"node": row["slug"], "fields": sorted(row["row"])} for row in edits.get("change", ())],
        "remove": list(edits.get("remove", ())),
        "restart": list(edits.get("restart", ())),
        "cancelNodes": list(edits.get("cancel", ())),
    }
    return {name: value for name, value in wire.items() if value}


def plan_diff(diff: PlanDiff, kept: Iterable[str] = ()) -> Wire:
    """What becomes of a plan; what is empty is left out."""
    wire: Wire = {
        "added": list(diff.added),
        "changed": [{"node": node, "fields": list(fields)} for node, fields in diff.changed],
        "removed": [{"node": node, "reason": reason} for node, reason in diff.removed],
        "stopped": [{"node": node, "then": then} for node, then in diff.stopped],
        "moved": [{"node": node, "origin": origin, "state": state} for node, origin, state in diff.moved],
        "kept": list(kept),
    }
    return {name: value for name, value in wire.items() if value}


def history_entry(graph: Graph, value: HistoryEntry) -> Wire:
    """One line of the last 64."""
    wire: Wire = {"at": value.at, "rev": value.rev, "kind": value.kind}
    if value.node is not None:
        wire["node"] = _slug(graph, value.node)
    if value.detail is not None:
        wire["detail"] = value.detail
    return wire


def snapshot(graph: Graph, phase_of: PhaseOf = no_phase, *, limit_bytes: int = TEXT_LIMIT_BYTES) -> Wire:
    """The whole value of a graph."""
    wire = header(graph)
    wire["nodes"] = [node(graph, item, phase_of, limit_bytes=limit_bytes) for item in graph.nodes.values()]
    wire["asks"] = open_asks(graph)
    if proposals := open_proposals(graph):
        wire["proposals"] = proposals
    wire["history"] = [history_entry(graph, item) for item in graph.history]
    return wire


def attempt_name(slug: str, value: Attempt) -> str:
    """How an attempt of this node is named: `slug@2`, `slug.verifier@1`. Numbers run per node and role."""
    return f"{slug}@{value.number}" if value.role == "worker" else f"{slug}.{value.role}@{value.number}"


def attempt(graph: Graph, value: Attempt) -> Wire:
    """One try of a node."""
    slug = _slug(graph, value.node)
    wire: Wire = {
        "id": attempt_name(slug, value),
        "graph": value.graph,
        "node": slug,
        "role": value.role,
        "number": value.number,
        "state": value.state,
        "worker": value.worker,
        "profile": value.profile,
        "startedAt": value.started_at,
        "spent": spent(value.spent),
        "isCounted": value.is_counted,
    }
    if value.identity is not None:
        wire["pid"] = value.identity.pid
        wire["keeperPid"] = value.identity.keeper_pid or None
    if value.stuck_pids:
        wire["stuckPids"] = list(value.stuck_pids)
    if value.clock is not None and (value.clock.person_ms or value.clock.provider_ms):
        clock = value.clock
        wire["waitedS"] = {"person": clock.person_ms / 1000, "provider": clock.provider_ms / 1000}
    if value.limit is not None:
        wire["limit"] = budget_row(value.limit)
    for name, item in (
        ("outcome", value.outcome),
        ("failureClass", value.failure_class),
        ("reason", value.reason),
        ("exitCode", value.exit_code),
        ("signal", value.signal),
        ("endedAt", value.ended_at),
        ("deadlineAt", value.deadline_at),
    ):
        if item is not None:
            wire[name] = item
    return wire


def delivery(graph: Graph, value: Delivery) -> Wire:
    """A result that waits for its owner."""
    wire: Wire = {
        "id": value.id,
        "owner": value.owner,
        "graph": value.graph,
        "kind": value.kind,
        "text": value.text,
        "createdAt": value.created_at,
    }
    if value.node is not None:
        wire["node"] = _slug(graph, value.node)
    return wire


def event(graph: Graph | None, value: Event) -> Wire:
    """One entry of the log. `graph` gives slugs; None leaves ids as they are."""
    actor: Wire = {"kind": value.actor.kind}
    if value.actor.client is not None:
        actor["client"] = value.actor.client
    if value.actor.attempt is not None:
        actor["attempt"] = value.actor.attempt
    wire: Wire = {
        "graph": value.graph,
        "rev": value.rev,
        "index": value.index,
        "at": value.at,
        "kind": value.kind,
        "payload": value.payload,
        "actor": actor,
    }
    if value.node is not None:
        wire["node"] = value.node if graph is None else _slug(graph, value.node)
    return wire
