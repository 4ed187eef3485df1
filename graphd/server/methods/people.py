"""`asks`, `respond`, `revoke`: what waits for a person, and what people say. Source: spec execution.md, People."""

from typing import TYPE_CHECKING, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Request, Respond, Revoke
from graphd.core.model import Ask, Graph, State
from graphd.server import project, stored
from graphd.server.commits import commit, fingerprint
from graphd.server.errors import shown
from graphd.server.project import Wire
from graphd.server.references import find_graph
from graphd.server.routes import PEOPLE, Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import AsksParams, RespondParams, RevokeParams

table: Final = Table()
PREFIX_AT_LEAST: Final = 3


@table.route("workgraph/asks", "AsksParams", "Ask")
async def asks(call: Call, params: "AsksParams") -> list[Wire]:
    """Asks of one graph or of all, oldest first."""

    def read(state: State) -> list[Wire]:
        graphs = [find_graph(state, params.graph)] if params.graph is not None else list(state.graphs.values())
        found = [
            (graph, ask) for graph in graphs for ask in graph.asks.values() if _is_wanted(graph, ask, params.state)
        ]
        found.sort(key=lambda item: item[1].opened_at)  # stable: as they were opened
        return [stored.ask(project.ask(graph, ask), call.language) for graph, ask in found]

    return await call.daemon.view(read)


def _is_wanted(graph: Graph, ask: Ask, state: str) -> bool:
    if state != "standing":
        return ask.state == state
    lives = ask.scope == "graph" or (ask.node, ask.role, ask.attempt) in graph.live
    return ask.scope in ("attempt", "graph") and not ask.is_revoked and lives and not graph.is_ended


@table.route("workgraph/respond", "RespondParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def respond(call: Call, params: "RespondParams") -> Wire:
    """Answer an ask. Whoever comes second is told who was first."""
    graph, ask = await call.daemon.view(lambda state: find_ask(state, params.ask))
    command = Respond(
        graph, ask, params.action_hash, option=params.option, text=params.text, scope=params.scope,
        comment=params.comment,
    )  # fmt: skip
    request = Request(
        command, call.caller.actor, request_id=params.request_id, fingerprint=fingerprint("respond", params)
    )
    return await commit(call, request, params)


@table.route("workgraph/revoke", "RevokeParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def revoke(call: Call, params: "RevokeParams") -> Wire:
    """A standing answer covers nothing more."""
    graph, ask = await call.daemon.view(lambda state: find_ask(state, params.ask))
    request = Request(
        Revoke(graph, ask), call.caller.actor, request_id=params.request_id, fingerprint=fingerprint("revoke", params)
    )
    return await commit(call, request, params)


def find_ask(state: State, reference: str) -> tuple[str, str]:
    """(graph id, ask id) of an ask's id or the unique beginning of one, with or without `ask-`. Raises Refused."""
    exact = [(graph.id, reference) for graph in state.graphs.values() if reference in graph.asks]
    if exact:
        return exact[0]
    wanted = reference.removeprefix("ask-")
    begun = [
        (graph.id, ask)
        for graph in state.graphs.values()
        for ask in graph.asks
        if len(wanted) >= PREFIX_AT_LEAST and ask.removeprefix("ask-").startswith(wanted)
    ]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise Refused(
            "ambiguous", t("{count} asks begin with {reference}", count=len(begun), reference=reference),
            t("use more of the id"), asks=[ask for _, ask in begun],
        )  # fmt: skip
    raise Refused("notFound", t("no ask {ask}", ask=shown(reference)), t("graphd ask lists what waits"))
