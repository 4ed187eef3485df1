"""The verb `set`: a checked plan is frozen as plan version 1 and started (model.md, Verbs)."""

from dataclasses import asdict

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.budget import check_amounts, check_reports
from graphd.core.codec import dump_budget, dump_definition, dump_terms
from graphd.core.commands import Request, Set
from graphd.core.definition import Definition
from graphd.core.draft import Draft
from graphd.core.final import with_final
from graphd.core.model import State
from graphd.core.plan import check_plan, collapse, effective_required
from graphd.core.settle import ripple
from graphd.core.tape import Tape
from graphd.core.verbs import clear
from graphd_protocol.ids import node_id


def set_graph(state: State, tape: Tape, request: Request, command: Set, *, now: int) -> list[Draft]:
    """A checked plan, frozen as plan version 1 and started; with `replace`, the wish to clear the old one in the
    same commit.
    """
    _check_set(state, command)
    definitions = _planned(command)
    if command.budget is not None:
        check_amounts(command.budget)
        check_reports(command.budget, definitions, dict(command.reports))
    drafts = []
    if command.replace is not None:
        old = Draft(state, tape, command.replace, now=now, actor=request.actor, operation="clear")
        clear(old)
        drafts.append(old)
    draft = Draft(state, tape, command.graph, now=now, actor=request.actor, operation="set")
    draft.emit(
        "graph_set", title=command.title, objective=command.objective, source=asdict(command.source),
        workspace=command.workspace, owner=command.owner, limits=asdict(command.limits),
        variables=dict(command.variables), environment=command.environment, replaces=command.replace,
        delivery_node=node_id(command.delivery_node) if command.delivery_node else None,
        budget=dump_budget(command.budget), terms=dump_terms(command.terms),
    )  # fmt: skip
    required = effective_required(definitions, command.delivery_node)
    draft.emit(
        "plan_installed", version=1, definitions=[dump_definition(d) for d in definitions],
        required=[d.slug in required for d in definitions],
    )  # fmt: skip
    if not command.start:
        draft.emit("paused", status="user_paused", reason=t("set without starting"), cause=None)
    ripple(draft, [node for node in draft.graph.nodes.values() if not node.needs])
    return [*drafts, draft]


def _planned(command: Set) -> tuple[Definition, ...]:
    """The plan with every need once, and with the last check where it is asked for."""
    definitions = collapse(command.definitions)
    return with_final(definitions) if command.terms.final_check else definitions


def _check_set(state: State, command: Set) -> None:
    if command.graph in state.graphs or command.graph in state.tombstones:
        raise Refused(
            "alreadyExists",
            t("graph {graph} exists", graph=command.graph),
            t("leave the id to the daemon"),
            graph=command.graph,
        )
    if not command.objective.strip():
        raise Refused("invalidObjective", t("the objective is blank"), t("say in a line what the graph is for"))
    if command.replace is not None and command.replace not in state.graphs:
        raise Refused(
            "notFound",
            t("no graph {graph} to replace", graph=command.replace),
            t("graphd status lists the graphs"),
            graph=command.replace,
        )
    for graph in state.graphs.values():
        if command.owner and graph.owner == command.owner and graph.is_live and graph.id != command.replace:
            raise Refused(
                "alreadyExists", t("{owner} has a live graph: {graph}", owner=command.owner, graph=graph.title),
                t("name it in replace, or cancel it first"), graph=graph.id,
            )  # fmt: skip
    troubles = check_plan(command.definitions, limits=command.limits, delivery_node=command.delivery_node)
    if troubles:
        rows = [{"code": x.code, "slug": x.slug, "message": x.message, "hint": x.hint} for x in troubles]
        raise Refused("invalidPlan", troubles[0].message, troubles[0].hint, diagnostics=rows)
    missing = dict(command.missing)
    definitions = _planned(command)
    required = effective_required(definitions, command.delivery_node)
    for definition in definitions:
        why = next((missing[worker] for worker in definition.workers if worker in missing), None)
        if definition.slug in required and why is not None:
            raise Refused(
                "agentMissing",
                t("node {node}: {why}", node=definition.slug, why=why),
                t("graphd agents shows what is installed"),
                node=definition.slug,
            )
