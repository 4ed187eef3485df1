"""`rerun`, `save`: the plan of a graph, used again. Source: spec product.md, Command line; workflow.md."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from graphd.base.ids import uuid7
from graphd.core.commands import Request, Set
from graphd.core.compare import plan_of
from graphd.core.model import Graph, State
from graphd.server import plans
from graphd.server.commits import commit, find, fingerprint
from graphd.server.environments import kept_environment
from graphd.server.project import Wire
from graphd.server.references import find_graph
from graphd.server.routes import PEOPLE, Call, Table
from graphd.server.saving import write_workflow

if TYPE_CHECKING:
    from graphd_protocol.model import RerunParams, SaveParams

table: Final = Table()


@table.route("workgraph/rerun", "RerunParams", "MutationResult", is_cancellable=False)
async def rerun(call: Call, params: "RerunParams") -> Wire:
    """The plan of a graph, as it is now, as a new graph."""
    graph = await find(call, params)
    identity = uuid7(call.daemon.clock.now_ms())
    environment = await kept_environment(call, params, is_new=True)
    command = await call.daemon.view(lambda state: _set_again(call, find_graph(state, graph), identity))
    service = await plans.service_of(call, command.definitions)
    command = command._replace(
        environment=environment, start=params.start, missing=service.missing, reports=service.reports
    )
    request = Request(
        command, call.caller.actor, request_id=params.request_id, fingerprint=fingerprint("rerun", params)
    )
    return await commit(call, request, params)


@table.route("workgraph/save", "SaveParams", "SaveResult", allowed=PEOPLE, is_cancellable=False)
async def save(call: Call, params: "SaveParams") -> Wire:
    """Write the plan of a graph as a workflow file."""

    def read(state: State) -> Callable[[], str]:
        from graphd.workflows.writing import to_yaml

        graph = find_graph(state, params.graph)
        return partial(
            to_yaml, graph.title, graph.objective, plan_of(graph), limits=graph.limits, budget=graph.budget,
            terms=graph.terms, delivery_node=graph.nodes[graph.delivery_node].slug if graph.delivery_node else None,
            variables=dict(graph.variables),
        )  # fmt: skip

    write = await call.daemon.view(read)
    text = await asyncio.to_thread(write)  # of 10,000 nodes: too long for the loop
    workspace = call.daemon.workspace
    path = workspace / ".agents" / "workflows" / f"{params.name}.yaml"
    if not params.dry_run:
        path = await asyncio.to_thread(write_workflow, workspace, params.name, text, force=params.force)
    return {"path": str(path), "text": text}


def _set_again(call: Call, graph: Graph, identity: str) -> Set:
    return Set(
        graph=identity,
        title=graph.title,
        objective=graph.objective,
        source=graph.source,
        workspace=str(call.daemon.workspace),
        definitions=plan_of(graph),
        owner=call.caller.owner,
        limits=graph.limits,
        budget=graph.budget,
        terms=graph.terms,
        delivery_node=graph.nodes[graph.delivery_node].slug if graph.delivery_node else None,
        variables=tuple(sorted(graph.variables.items())),
    )
