"""`extend`, `replan`, `apply`, `accept`, `dismiss`: the plan of a graph that exists.

A dry run of each answers with the diff too: what is added, changed, removed, stopped, moved. Source: spec model.md,
Verbs; workflow.md (`graphd apply`).
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Accept, Dismiss, Extend, Propose, Replan, Request, Verb
from graphd.core.compare import Comparison, PlanDiff, Stand, compare, diff_since
from graphd.core.definition import Definition
from graphd.core.edits import Edits, Patch, dump_edits
from graphd.core.model import Graph, State
from graphd.core.proposals import edits_of, open_proposals
from graphd.core.trouble import PlanTrouble
from graphd.server import plans, project
from graphd.server.commits import find, mutate, preview, request_of
from graphd.server.environments import kept_environment
from graphd.server.errors import shown
from graphd.server.inline import changed_part, check_served, definitions_of, patch_of, refused_plan, unbound
from graphd.server.lsp.live import newest_from
from graphd.server.project import Wire
from graphd.server.references import find_graph, find_node
from graphd.server.routes import PEOPLE, Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import (
        AcceptParams,
        ApplyParams,
        DismissParams,
        ExtendParams,
        Mutation,
        ReplanParams,
    )

table: Final = Table()


@table.route("workgraph/extend", "ExtendParams", "MutationResult", is_cancellable=False)
async def extend(call: Call, params: "ExtendParams") -> Wire:
    """Add nodes."""
    definitions = definitions_of(params.nodes)
    _check_workers(definitions)
    check_served(definitions, isolation="none", on_shared_tree="notice")
    environment = await kept_environment(call, params)
    command = Extend(await find(call, params), definitions, environment, *await plans.service_of(call, definitions))
    return await _revise(call, "extend", params, command)


@table.route("workgraph/replan", "ReplanParams", "MutationResult", is_cancellable=False)
async def replan(call: Call, params: "ReplanParams") -> Wire:
    """Add, change, remove, restart and cancel nodes."""
    added = definitions_of(params.add)
    changed = [changed_part(node) for node in params.change]
    check_served([*added, *changed], isolation="none", on_shared_tree="notice")
    edits = Edits(
        add=added,
        change=tuple(patch_of(node) for node in params.change),
        remove=tuple((item.node, item.reason) for item in params.remove),
        restart=tuple(params.restart),
        cancel=tuple(params.cancel_nodes),
        resume=params.resume,
    )
    asking = _asking(edits)
    _check_workers(asking)
    graph = await find(call, params)
    await call.daemon.view(lambda state: _check_bound(find_graph(state, graph), edits.change))
    environment = await kept_environment(call, params)
    service = await plans.service_of(call, asking)
    return await _revise(call, "replan", params, Replan(graph, edits, params.reason, environment, *service))


def _check_bound(graph: Graph, patches: Iterable[Patch]) -> None:
    """Refuse placeholders that nothing fills in any more. What else is wrong with a change, the core finds."""
    troubles: list[PlanTrouble] = []
    for patch in patches:
        with contextlib.suppress(TypeError, KeyError, ValueError):
            troubles += unbound(patch.applied(find_node(graph, patch.slug).definition))
    if troubles:
        raise refused_plan(troubles)


def _asking(edits: Edits) -> list[Definition]:
    """What of the edits may ask for another worker: added nodes whole, of changed ones who works and who checks."""
    found = list(edits.add)
    for patch in edits.change:
        row = {key: patch.row[key] for key in ("worker", "verify") if patch.row.get(key)}
        found.append(Patch(patch.slug, row).applied(Definition(patch.slug, "", "")))
    return found


def _check_workers(definitions: Iterable[Definition]) -> None:
    from graphd.workflows import BUILT_IN_WORKERS

    for definition, worker in ((d, worker) for d in definitions for worker in d.workers):
        if worker and worker not in BUILT_IN_WORKERS:
            message = t("{node}: no worker is called {worker}", node=definition.slug, worker=worker)
            hint = t("known: {known}", known=", ".join(sorted(BUILT_IN_WORKERS)))
            raise refused_plan([PlanTrouble("worker.unknown", definition.slug, message, hint)])


async def _revise(call: Call, method: str, params: "Mutation", command: Verb) -> Wire:
    if not params.dry_run:
        return await mutate(call, method, params, command)
    return await _rehearsed(call, request_of(call, method, params, command))


async def _rehearsed(call: Call, request: Request, kept: Iterable[str] = ()) -> Wire:
    """A dry run with its diff."""
    name: str = getattr(request.command, "graph", "")
    stand = await call.daemon.view(lambda state: Stand.of(find_graph(state, name)))

    def read(state: State) -> Wire:
        diff = project.plan_diff(diff_since(stand, state.graphs[name]), kept)
        return {**preview(state, name, call.language), "diff": diff}

    return await call.daemon.rehearse(request, read)


# ---- proposals ----------------------------------------------------------------------------------------------------


@table.route("workgraph/accept", "AcceptParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def accept(call: Call, params: "AcceptParams") -> Wire:
    """Carry a proposal out."""
    graph = await _find(call, params)
    asking = await call.daemon.view(lambda state: _asked_by(find_graph(state, graph), params.proposal))
    service = await plans.service_of(call, asking)
    command = Accept(graph, params.proposal, await kept_environment(call, params), *service)
    return await _revise(call, "accept", params, command)


@table.route("workgraph/dismiss", "DismissParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def dismiss(call: Call, params: "DismissParams") -> Wire:
    """A proposal is not wanted."""
    return await mutate(call, "dismiss", params, Dismiss(await _find(call, params), params.proposal, params.reason))


async def _find(call: Call, params: "AcceptParams | DismissParams") -> str:
    """The graph of a proposal: a proposal names its graph by itself. Raises Refused."""
    if params.graph is not None:
        return await find(call, params)

    def read(state: State) -> str | None:
        return next((graph.id for graph in state.graphs.values() if params.proposal in graph.asks), None)

    graph = await call.daemon.view(read)
    if graph is None:
        message = t("no graph has proposal {proposal}", proposal=shown(params.proposal))
        raise Refused("notFound", message, t("graphd status lists what is proposed"))
    return graph


def _asked_by(graph: Graph, proposal: str) -> list[Definition]:
    """What a proposal asks for. Whether it waits is for the core to say: the request may have come before."""
    ask = graph.asks.get(proposal)
    return _asking(edits_of(ask)) if ask is not None and ask.kind == "proposal" else []


# ---- files --------------------------------------------------------------------------------------------------------


@table.route("workgraph/apply", "ApplyParams", "MutationResult", is_cancellable=False)
async def apply(call: Call, params: "ApplyParams") -> Wire:
    """What changed in a file since its graph was started, as a proposal; without one where nothing did."""
    located = await asyncio.to_thread(plans.located_workflow, call, None, params.file)
    path = str(located.path) if located is not None else params.file
    graph, variables = await call.daemon.view(lambda state: _started_from(state, params.graph, path))
    plan = await plans.plan_of_file(call, params.file, params.text, variables)

    def read(state: State) -> tuple[Comparison, int]:
        found = find_graph(state, graph)
        return compare(found, plan.definitions), found.rev

    comparison, rev = await call.daemon.view(read)
    if comparison.edits.is_empty:
        diff = project.plan_diff(PlanDiff((), (), (), (), ()), comparison.kept)
        return {"graph": graph, "rev": rev, "diff": diff}
    rehearsed = await _rehearsed(
        call,
        request_of(call, "apply", params, Replan(graph, comparison.edits, missing=plan.missing, reports=plan.reports)),
        comparison.kept,
    )
    if params.dry_run:
        return rehearsed
    proposal = await call.daemon.view(lambda state: _proposal_of(find_graph(state, graph), comparison.edits))
    result: Wire = {"graph": graph, "rev": rev}
    if proposal is None:
        reason = str(t("{file} was changed", file=plan.source.name or params.file))
        command = Propose(graph, comparison.edits, call.caller.actor.client or "user", reason, plan.source)
        result = await mutate(call, "apply", params, command)
        proposal = await call.daemon.view(lambda state: _proposal_of(find_graph(state, graph), comparison.edits))
    return {**result, "diff": rehearsed["diff"], **({"proposal": proposal} if proposal else {})}


def _started_from(state: State, name: str | None, path: str) -> tuple[str, dict[str, str]]:
    graph = find_graph(state, name) if name is not None else newest_from(state, path)
    if graph is None:
        raise Refused(
            "notFound", t("no graph was started from {file}", file=path),
            t("graphd run {file} starts one; --graph names another", file=path),
        )  # fmt: skip
    return graph.id, dict(graph.variables)


def _proposal_of(graph: Graph, edits: Edits) -> str | None:
    """The one that waits with these edits of this plan: a file that is applied again is proposed once."""
    row = dump_edits(edits)
    found = [ask for ask in open_proposals(graph) if ask.action["edits"] == row]
    return next((ask.id for ask in found if ask.action["planVersion"] == graph.plan_version), None)
