"""What all mutations share: expectations, request ids, dry runs, and waiting until the last tree is empty.

Source: spec protocol.md, Methods; model.md, Verbs.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from graphd.base.catalogue import Language
from graphd.core.commands import Done, Request, Verb
from graphd.core.model import State
from graphd.server import project, stored
from graphd.server.project import Wire
from graphd.server.routes import Call

if TYPE_CHECKING:
    from graphd_protocol.model import Mutation

SETTLE_LIMIT_S: Final = 3600.0


class Params(Protocol):
    """What `set` and the other mutations have in common."""

    @property
    def request_id(self) -> str | None:
        """Applied once."""

    @property
    def dry_run(self) -> bool:
        """Only show what would be."""

    @property
    def settle(self) -> bool:
        """Answer when the last tree is empty."""

    def model_dump_json(self) -> str:
        """The params as JSON."""


async def find(call: Call, params: "Mutation") -> str:
    """The id of the graph that the params name; where they name none, a request that comes again keeps its graph."""
    from graphd.server.references import find_graph

    if params.graph is None and params.request_id is not None:
        known = call.daemon.graph_of(params.request_id)
        if known is not None:
            return known
    return await call.daemon.view(lambda state: find_graph(state, params.graph).id)


async def mutate(call: Call, method: str, params: "Mutation", command: Verb) -> Wire:
    """Commit a verb on an existing graph, with what its params expect of it."""
    settle_s = getattr(params, "settle_seconds", None)
    return await commit(call, request_of(call, method, params, command), params, settle_s=settle_s)


def request_of(call: Call, method: str, params: "Mutation", command: Verb) -> Request:
    """A verb with who asks and what the params expect of the graph."""
    return Request(
        command,
        call.caller.actor,
        expected_rev=params.expected_rev,
        expected_plan=params.expected_plan,
        request_id=params.request_id,
        fingerprint=fingerprint(method, params),
    )


async def commit(call: Call, request: Request, params: Params, *, settle_s: float | None = None) -> Wire:
    """Commit a request and answer as every mutation does. Raises Refused."""
    graph: str = getattr(request.command, "graph", "")
    if params.dry_run:
        return await call.daemon.rehearse(request, lambda state: preview(state, graph, call.language))
    done = await call.daemon.execute(request)
    graph = done.graph or graph
    if not params.settle:
        return _result(graph, done.rev, done.stopping)
    limit_s = call.daemon.settings.settle_s if settle_s is None else settle_s
    await call.hub.until(lambda state: not _left(state, graph, done), min(max(limit_s, 0.0), SETTLE_LIMIT_S))
    return await call.daemon.view(lambda state: _settled(state, graph, done))


def fingerprint(method: str, params: Params) -> str | None:
    """The hash of the params behind a request id."""
    if params.request_id is None:
        return None
    return hashlib.sha256(method.encode() + b"\0" + params.model_dump_json().encode()).hexdigest()


def _left(state: State, graph: str, done: Done) -> list[str]:
    """Nodes whose trees have still to end: those that were asked to, or all of a graph that only drains."""
    found = state.graphs.get(graph)
    if found is None:
        return []
    if done.stopping and found.stopping is None:  # a replan's: what it ended may run again by now
        nodes = (found.nodes[key[0]] for key in found.live)
        return [node.slug for node in nodes if node.after_stop is not None and node.slug in done.stopping]
    if done.stopping:
        return [slug for slug in project.left(found) if slug in done.stopping]
    return [] if found.status == "active" and not found.is_finishing else project.left(found)


def _settled(state: State, graph: str, done: Done) -> Wire:
    found = state.graphs.get(graph)
    rev = found.rev if found is not None else state.tombstones.get(graph, done.rev)
    return _result(graph, rev, _left(state, graph, done))


def _result(graph: str, rev: int, stopping: Iterable[str]) -> Wire:
    left = list(dict.fromkeys(stopping))
    return {"graph": graph, "rev": rev, "stopping": left} if left else {"graph": graph, "rev": rev}


def preview(state: State, graph: str, language: Language) -> Wire:
    """What a dry run answers: the graph as the command would leave it."""
    found = state.graphs.get(graph)
    if found is None:
        return {"graph": graph, "rev": state.tombstones.get(graph, 0)}
    body: Any = orjson.Fragment(orjson.dumps(stored.snapshot(project.snapshot(found), language)))
    return {"graph": graph, "rev": found.rev, "preview": body}
