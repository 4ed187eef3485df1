"""`extend` and `replan`: edits of a plan, checked as a whole (`revision`), carried out as one plan version.

What runs and is touched ends first: its node keeps a wish (`after_stop`) that comes true when its tree is proven empty,
over any crash. Source: spec model.md, Verbs and Node.
"""

from dataclasses import asdict
from typing import Any

from graphd.base.text import t
from graphd.core.asks import withdraw_of
from graphd.core.codec import dump_definition
from graphd.core.commands import Extend, Replan
from graphd.core.definition import Definition
from graphd.core.draft import Draft
from graphd.core.edits import Edits
from graphd.core.events import RecheckAttempt
from graphd.core.gates import release_holds
from graphd.core.model import Graph, Node, Source
from graphd.core.revision import Missing, Reporting, Revision, revise
from graphd.core.settle import conclude, ripple, skip
from graphd.core.verbs import admit, refuse_transition, stop_attempt, take_environment
from graphd_protocol.ids import node_id
from graphd_protocol.states import NodeState


def extend(draft: Draft, command: Extend) -> None:
    """Add nodes."""
    take_environment(draft, command.environment)
    edits = Edits(add=command.definitions)
    carry_out(draft, edits, verb="extend", missing=command.missing, reports=command.reports)


def replan(draft: Draft, command: Replan) -> None:
    """Add, change, remove, restart and cancel nodes."""
    take_environment(draft, command.environment)
    carry_out(
        draft, command.edits, verb="replan", missing=command.missing, reports=command.reports, reason=command.reason
    )


def carry_out(
    draft: Draft, edits: Edits, *, verb: str, missing: Missing = (), reports: Reporting = (), reason: str | None = None,
    source: Source | None = None, is_automatic: bool = False,
) -> None:  # fmt: skip
    """Make the edits, or raise Refused with all that is wrong with them."""
    graph = draft.graph
    word = admit(graph, "extend" if edits.is_extension else verb)
    if graph.is_finishing and word != "reopens":
        raise refuse_transition(graph, verb, t("it is finishing"), t("let it end; graphd rerun runs its plan again"))
    revision = revise(graph, edits, missing=missing, reports=reports)
    if revision.is_change:
        _define(draft, revision)
        payload = _payload(graph, revision, reason=reason, is_automatic=is_automatic, source=source)
        if edits.is_extension:
            draft.emit("graph_extended", **payload)
        else:
            draft.emit("graph_replanned", **payload)
        if word == "reopens":
            draft.emit("reopened")
        moved = _move(draft, revision)
        ripple(draft, [*release_holds(draft), *moved])
    elif edits.resume:
        ripple(draft, release_holds(draft))
    _go_on(draft, word, wants_resume=edits.resume)
    conclude(draft)


def _payload(
    graph: Graph, revision: Revision, *, reason: str | None, is_automatic: bool, source: Source | None
) -> dict[str, Any]:
    """What the event says: slugs alone, the definitions stand in the events before it."""
    return {
        "version": graph.plan_version + 1,
        "added": [definition.slug for definition in revision.added],
        "changed": [node.slug for node, _ in revision.changed],
        "removed": [node.slug for node, _ in revision.removed],
        "cancelled": [node.slug for node in revision.cancelled],
        "restarted": [node.slug for node in revision.restarted],
        "reason": reason,
        "is_automatic": is_automatic,
        "source": asdict(source) if source else None,
    }


def _define(draft: Draft, revision: Revision) -> None:
    required = revision.required
    for definition in revision.added:
        node = Node(id=node_id(definition.slug), definition=definition, index=-1, needs=(), required=False)
        _emit_definition(draft, node, definition, is_required=definition.slug in required)
    for node, definition in revision.changed:
        _emit_definition(draft, node, definition, is_required=definition.slug in required)
    defined = {node.id for node, _ in revision.changed}
    for node in draft.graph.nodes.values():
        is_same = node.required == (node.slug in required)
        if not is_same and node.id not in defined and node.slug in revision.plan:
            draft.emit("node_defined", node, definition=None, required=node.slug in required)


def _emit_definition(draft: Draft, node: Node, definition: Definition, *, is_required: bool) -> None:
    draft.emit("node_defined", node, definition=dump_definition(definition), required=is_required)


# ---- moves --------------------------------------------------------------------------------------------------------


def _move(draft: Draft, revision: Revision) -> list[Node]:
    """End, restart and free nodes; returns those that wait now, to be looked at."""
    graph = draft.graph
    for node, reason in revision.removed:
        _end(draft, node, f"removed: {reason}")
    for node in revision.cancelled:
        _end(draft, node, t("cancelled by a replan"))
    for node in revision.restarted:
        if node.state == "running":
            _recall(draft, node, "waiting", None)
        else:
            draft.emit("node_retried", node)
            withdraw_of(draft, node, reason=t("the node starts anew"))
    for node, _ in revision.changed:
        if node.state in ("ready", "blocked"):
            draft.emit("node_retried", node)
    freed = _freed(graph)
    for node in freed:
        draft.emit("node_retried", node)
    added = [graph.nodes[node_id(definition.slug)] for definition in revision.added]
    touched = [*added, *(node for node, _ in revision.changed), *revision.restarted, *freed]
    return [node for node in touched if node.state == "waiting"]


def _end(draft: Draft, node: Node, reason: str) -> None:
    if node.state == "running":
        _recall(draft, node, "cancelled", reason)
    else:
        draft.emit("node_cancelled", node, reason=reason)
        withdraw_of(draft, node, reason=t("the node was cancelled"))


def _recall(draft: Draft, node: Node, then: NodeState, reason: str | None) -> None:
    draft.emit("node_recalled", node, then=then, reason=reason)
    keys = [key for key in draft.graph.live if key[0] == node.id]
    for key in keys:
        stop_attempt(draft, key, "replan")
    if not keys:  # it only waits: nothing has to end first
        recalled(draft, node, None)


def _freed(graph: Graph) -> list[Node]:
    """Blocked nodes that nothing blocks any more."""
    if not graph.counts["blocked"]:
        return []
    todo = [node for node in graph.nodes.values() if node.state == "failed" and node.required]
    held: set[str] = set()
    while todo:
        for dependant_id in todo.pop().dependants:
            dependant = graph.nodes[dependant_id]
            if dependant.state == "blocked" and dependant_id not in held:
                held.add(dependant_id)
                todo.append(dependant)
    return [node for node in graph.nodes.values() if node.state == "blocked" and node.id not in held]


def recalled(draft: Draft, node: Node, output: dict[str, Any] | None) -> None:
    """The tree of a node that a replan recalled is proven empty: what was wished comes true."""
    if node.after_stop == "waiting":
        draft.emit("node_retried", node)
        if draft.graph.is_finishing:
            skip(draft, node, "finished_early")
    else:
        draft.emit("node_cancelled", node, reason=node.cancel_reason or t("cancelled by a replan"), output=output)


# ---- the graph ----------------------------------------------------------------------------------------------------


def _go_on(draft: Draft, word: str, *, wants_resume: bool) -> None:
    """Active again where the cause of a block went, or where the replan says so."""
    graph = draft.graph
    has_work = any(graph.counts[state] for state in ("ready", "running", "waiting"))
    is_held = word == "stays" and wants_resume
    if is_held and graph.status == "budget_limited":
        raise refuse_transition(graph, "resume", t("its budget is spent"), t("graphd resume --top-up goes on"))
    if has_work and (is_held or word == "then_active"):
        draft.emit("resumed")
        for key in graph.live:
            if graph.attempts[key].state == "stuck":
                draft.then(RecheckAttempt(graph.id, key))
