"""`set`, `list`, `status`, `node`: a graph is made, and graphs are shown.

Source: spec protocol.md, Methods; model.md, Verbs (set); execution.md, Trust 1.
"""

from typing import TYPE_CHECKING, Any, Final

from graphd.base.ids import uuid7
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Request, Set
from graphd.core.model import Graph, State
from graphd.server import project, stored
from graphd.server.commits import commit, fingerprint
from graphd.server.environments import kept_environment
from graphd.server.errors import ParamsRefused, field
from graphd.server.project import Wire
from graphd.server.references import find_graph, find_own, newest_first
from graphd.server.routes import EVERYBODY, Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import GraphParams, ListParams, NodeRef, SetParams

table: Final = Table()
_PLANS: Final = ("workflow", "file", "text", "nodes")


@table.route("workgraph/set", "SetParams", "MutationResult", is_cancellable=False)
async def set_graph(call: Call, params: "SetParams") -> Wire:
    """Check a plan, freeze it, start it."""
    from graphd.server.plans import plan_of

    _check_one_plan(params)
    owner = params.owner or call.caller.owner
    _check_owner(call, owner)
    plan = await plan_of(call, params)
    replace = None
    if params.replace is not None:
        wanted = params.replace
        replace = await call.daemon.view(lambda state: find_graph(state, wanted).id)
    command = Set(
        graph=uuid7(call.daemon.clock.now_ms()),
        title=plan.title,
        objective=plan.objective,
        source=plan.source,
        workspace=str(call.daemon.workspace),
        definitions=plan.definitions,
        owner=owner,
        limits=plan.limits,
        budget=plan.budget,
        terms=plan.terms,
        environment=await kept_environment(call, params, is_new=True),
        delivery_node=plan.delivery_node,
        start=params.start,
        replace=replace,
        variables=plan.variables,
        missing=plan.missing,
        reports=plan.reports,
    )
    request = Request(command, call.caller.actor, request_id=params.request_id, fingerprint=fingerprint("set", params))
    return await commit(call, request, params)


def _check_one_plan(params: "SetParams") -> None:
    given = [name for name in _PLANS if getattr(params, name) is not None]
    if given == ["file", "text"]:
        return
    if not given and params.objective is not None:
        raise Refused(
            "notSupported",
            t("an objective alone needs a planner, which is not in this version"),
            t("give workflow or nodes"),
        )
    if len(given) != 1:
        expected = t("exactly one of workflow, file, text and nodes")
        message = t("give {expected}", expected=expected)
        raise ParamsRefused([field("", message, expected=expected, got=", ".join(given) or t("none"))])


def _check_owner(call: Call, owner: str | None) -> None:
    mode = call.caller.owner_mode
    if owner is None or mode in (None, "auto"):
        return
    if mode == "off":
        raise Refused(
            "unauthorised",
            t("graphs of {owner} are switched off", owner=owner),
            t("a person can start it with graphd run"),
        )
    raise Refused("notSupported", t("owner mode ask is not in this version"), t("use mode auto or off"))


@table.route("workgraph/list", "ListParams", "ListResult")
async def list_graphs(call: Call, params: "ListParams") -> Wire:
    """Headers, newest first; `next` is the id to ask after."""

    def read(state: State) -> Wire:
        graphs = [graph for graph in newest_first(state) if _is_listed(graph, params)]
        if params.after is not None:
            known = [graph.id for graph in graphs]
            if params.after not in known:
                raise Refused("cursorInvalid", t("after names no graph of this list"), t("begin without after"))
            graphs = graphs[known.index(params.after) + 1 :]
        page: Wire = {"graphs": [stored.header(project.header(g), call.language) for g in graphs[: params.limit]]}
        if len(graphs) > params.limit:
            page["next"] = graphs[params.limit - 1].id
        return page

    return await call.daemon.view(read)


def _is_listed(graph: Graph, params: "ListParams") -> bool:
    if params.owner is not None and graph.owner != params.owner:
        return False
    if params.status is None:
        return True
    return graph.is_live if params.status == "live" else graph.status == params.status


@table.route("workgraph/status", "GraphParams", "Snapshot")
async def status(call: Call, params: "GraphParams") -> Any:
    """The whole graph; null for one that was cleared, or where there is none at all and none was named."""

    def read(state: State) -> Any:
        if params.graph in state.tombstones or (params.graph is None and not state.graphs):
            return None
        graph = find_graph(state, params.graph)
        return call.hub.feeds.of(graph).snapshot(graph, call.hub.feeds.phase_of, call.language)

    return await call.daemon.view(read)


@table.route("workgraph/node", "NodeRef", "NodeResult", allowed=EVERYBODY)
async def node(call: Call, params: "NodeRef") -> Wire:
    """One node with its attempts, oldest first, and the deliveries about it."""

    def read(state: State) -> Wire:
        graph, found = find_own(state, call.caller, params.graph, params.node)
        return {
            "node": stored.node(project.node(graph, found, call.hub.feeds.phase_of), call.language),
            "attempts": [
                stored.attempt(project.attempt(graph, a), call.language)
                for a in graph.attempts.values()
                if a.node == found.id
            ],
            "deliveries": [
                project.delivery(graph, delivery)
                for delivery in graph.deliveries.values()
                if delivery.node == found.id and not delivery.is_acknowledged
            ],
        }

    return await call.daemon.view(read)
