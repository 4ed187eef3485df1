"""A graph that was exported comes back: its plan and what is settled are taken, nothing of it runs by itself.

What no state of another daemon can vouch for is decided anew: a node that was running, ready or blocked is waiting
again, and what is settled moves it on. Source: model.md, Log, snapshot, interchange; protocol.md, `import`.
"""

from dataclasses import asdict

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.codec import dump_budget, dump_definition, dump_terms
from graphd.core.commands import Import, ImportedNode, Request
from graphd.core.draft import Draft
from graphd.core.model import State
from graphd.core.plan import check_plan
from graphd.core.settle import conclude, ripple
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from graphd_protocol.states import NodeState

RESTING = ("achieved", "failed", "skipped", "cancelled")


def import_graph(state: State, tape: Tape, request: Request, command: Import, *, now: int) -> list[Draft]:
    """Make the graph: ended as it was, else `user_paused`. Raises Refused, `malformedLog` for one that can't be."""
    _check(state, command)
    draft = Draft(state, tape, command.graph, now=now, actor=request.actor, operation="import")
    draft.emit(
        "graph_set", title=command.title, objective=command.objective, source=asdict(command.source),
        workspace=command.workspace, owner=command.owner, limits=asdict(command.limits), variables={},
        environment=command.environment, replaces=None, created_at=min(command.created_at, now),
        delivery_node=node_id(command.delivery_node) if command.delivery_node else None,
        budget=dump_budget(command.budget), terms=dump_terms(command.terms),
    )  # fmt: skip
    draft.emit(
        "plan_installed", version=command.plan_version, definitions=[dump_definition(d) for d in command.definitions],
        required=[d.required for d in command.definitions],
    )  # fmt: skip
    draft.emit(
        "states_imported", nodes={node.slug: _row(node) for node in command.nodes}, spent=asdict(command.spent),
        holding=_holding(command),
    )  # fmt: skip
    if command.status == "complete":
        draft.emit("completed", outcome=command.outcome or _outcome(command))
    elif command.status == "cancelled":
        draft.emit("cancelled", reason="imported")
    else:
        was = f": it was {command.status}" + (f" ({command.pause_reason})" if command.pause_reason else "")
        draft.emit("paused", status="user_paused", reason=f"imported{was}", cause=None)
        ripple(draft, list(draft.graph.nodes.values()))
        conclude(draft)
    return [draft]


def _row(node: ImportedNode) -> dict[str, object]:
    """A node's state as the log keeps it; what was not at rest waits, and keeps only what it used."""
    kept = node
    if node.state not in RESTING:  # one that was removed while it ran has no process here that is to be waited for
        state: NodeState = "waiting" if node.removed_in is None else "cancelled"
        kept = ImportedNode(
            node.slug, state, rounds=node.rounds, spent=node.spent, removed_in=node.removed_in,
            cancel_reason=node.cancel_reason if state == "cancelled" else None,
        )  # fmt: skip
    row = asdict(kept)
    del row["slug"]
    return row


def _holding(command: Import) -> list[str]:
    """Gates that asked for a new plan, of a graph that lives, where what needs them still waits, or nothing does.

    Whether they were answered was not exported; one that was is answered once more by the resume that has to come.
    """
    if command.status in ("complete", "cancelled"):
        return []
    asking = {node.slug for node in command.nodes if node.state == "achieved" and node.verdict == "REPLAN"}
    states = {node.slug: node.state for node in command.nodes}
    readers = {gate: [d.slug for d in command.definitions if gate in d.needs] for gate in asking}
    return [gate for gate in sorted(asking) if not readers[gate] or any(states[r] == "waiting" for r in readers[gate])]


def _outcome(command: Import) -> str:
    return "withFailures" if any(node.state == "failed" for node in command.nodes) else "ok"


def _check(state: State, command: Import) -> None:
    if command.graph in state.graphs or command.graph in state.tombstones:
        raise Refused(
            "alreadyExists", t("graph {graph} is here, or was and is cleared", graph=command.graph),
            t("graphd import --new-id makes another graph of it"), graph=command.graph,
        )  # fmt: skip
    is_ended = command.status in ("complete", "cancelled")
    for graph in state.graphs.values():
        if command.owner and graph.owner == command.owner and graph.is_live and not is_ended:
            raise Refused(
                "alreadyExists", t("{owner} has a live graph: {title}", owner=command.owner, title=graph.title),
                t("name another owner, or cancel it first"), graph=graph.id,
            )  # fmt: skip
    troubles = check_plan(
        command.definitions, limits=command.limits, delivery_node=command.delivery_node, may_have_final=True
    )
    if troubles:
        rows = [{"code": x.code, "slug": x.slug, "message": x.message, "hint": x.hint} for x in troubles]
        raise Refused("invalidPlan", troubles[0].message, troubles[0].hint, diagnostics=rows)
    makers = {definition.slug for definition in command.definitions if definition.for_each is not None}
    for definition in command.definitions:
        if definition.item is not None and definition.item.of not in makers:
            raise Refused(
                "malformedLog",
                t("{node} is an item of {maker}, which makes none", node=definition.slug, maker=definition.item.of),
                t("export it again"), graph=command.graph, node=definition.slug,
            )  # fmt: skip
    at_work = [node.slug for node in command.nodes if node.state not in RESTING]
    if is_ended and at_work:
        raise Refused(
            "malformedLog",
            t("the graph is {status}, but node {node} is not at rest", status=command.status, node=at_work[0]),
            t("export it again; a hand-written one says user_paused"), graph=command.graph, node=at_work[0],
        )  # fmt: skip
