"""`hold`: a node pauses while a person has its agent's session. Source: spec execution.md, Drivers."""

from typing import TYPE_CHECKING, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Hold, Request
from graphd.core.derive import goes_on, last_begun
from graphd.core.holding import is_at_work
from graphd.core.model import Graph, Node, State
from graphd.server.project import Wire
from graphd.server.references import find_graph, find_node
from graphd.server.routes import PEOPLE, Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import NodeRef

table: Final = Table()
SETTLE_S: Final = 60.0


@table.route("workgraph/hold", "NodeRef", "HoldResult", allowed=PEOPLE, is_cancellable=False)
async def hold(call: Call, params: "NodeRef") -> Wire:
    """Pause a node until this connection ends; answered when its processes have."""

    def read(state: State) -> tuple[str, str, tuple[str, ...]]:
        graph = find_graph(state, params.graph)
        node = find_node(graph, params.node)
        return graph.id, node.id, _opens(call, graph, node)

    graph, node, opens = await call.daemon.view(read)
    if not call.daemon.hold(graph, node):
        raise Refused(
            "conflict", t("somebody has the session of {node} already", node=params.node),
            t("it is free when their program ends"), graph=graph, node=params.node,
        )  # fmt: skip
    try:
        await call.daemon.execute(Request(Hold(graph, node), call.caller.actor))
        await call.hub.until(lambda state: not _is_at_work(state, graph, node), SETTLE_S)
        answer = await call.daemon.view(lambda state: _held(call, state, graph, node, opens))
    except BaseException:
        call.daemon.let_go(graph, node)
        raise
    call.at_end.append(lambda: call.daemon.let_go(graph, node))
    return answer


def _opens(call: Call, graph: Graph, node: Node) -> tuple[str, ...]:
    """How its agent's own program opens a session. Raises Refused."""
    attempt = last_begun(graph, node)
    profile = call.daemon.settings.agents.profiles.get(attempt.profile) if attempt is not None else None
    if attempt is None or profile is None or not profile.opens:
        name = attempt.profile if attempt is not None else node.definition.worker
        raise Refused(
            "notSupported", t("no program is known that opens a session of {agent}", agent=name),
            t("name it in the settings, as opens of that agent"), graph=graph.id, node=node.slug,
        )  # fmt: skip
    return profile.opens


def _is_at_work(state: State, graph: str, node: str) -> bool:
    found = state.graphs.get(graph)
    return found is not None and is_at_work(found, node)


def _held(call: Call, state: State, graph_id: str, node_id: str, opens: tuple[str, ...]) -> Wire:
    graph = find_graph(state, graph_id)
    node = find_node(graph, node_id)
    attempt = last_begun(graph, node)
    if node.state == "running":
        raise Refused(
            "conflict", t("{node} has not stopped in {count} s", node=node.slug, count=round(SETTLE_S)),
            t("try again; graphd why {node} says what holds it up", node=node.slug), graph=graph.id, node=node.slug,
            rev=graph.rev,
        )  # fmt: skip
    if attempt is None or node.state != "ready" or not goes_on(attempt):
        raise Refused(
            "invalidTransition",
            t("{node} is {state}: it ended before it could pause", node=node.slug, state=node.state),
            t("graphd why {node} says more", node=node.slug), graph=graph.id, node=node.slug, rev=graph.rev,
            **{"from": node.state, "to": "hold"},
        )  # fmt: skip
    session = attempt.child_session or ""
    return {
        "childSession": session, "cwd": graph.workspace, "argv": [word.replace("{session}", session) for word in opens],
        "sessionLock": str(call.daemon.session_lock(attempt)),
    }  # fmt: skip
