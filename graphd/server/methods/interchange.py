"""`export`, `import`, `purge`, `deliveries`, `acknowledge`: what leaves the workspace, enters it, or is let go.

Source: spec protocol.md, Methods; model.md, Log, snapshot, interchange; Child runs, messages, deliveries.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import orjson

from graphd.base.ids import uuid7
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.change import GraphValue, MalformedChange, encode_v1, encode_v2, fold
from graphd.core.change.incoming import command_of
from graphd.core.commands import Acknowledge, Clear, Request
from graphd.core.model import Delivery, Graph, State
from graphd.server import project
from graphd.server.commits import commit, fingerprint
from graphd.server.environments import kept_environment
from graphd.server.errors import ParamsRefused, field
from graphd.server.project import Wire
from graphd.server.references import find_graph, newest_first
from graphd.server.routes import PEOPLE, Call, Table
from graphd.server.sweeping import SettledFolders, remove_folders, remove_unused_environments

if TYPE_CHECKING:
    from graphd_protocol.model import (
        AcknowledgeParams,
        DeliveriesParams,
        ExportParams,
        ImportParams,
        PurgeParams,
    )

table: Final = Table()
DAY_MS: Final = 86_400_000
INLINE_LIMIT_BYTES: Final = 64 * 1024  # what the database keeps of a result (model.md, Node)


@table.route("workgraph/export", "ExportParams", "ExportResult")
async def export(call: Call, params: "ExportParams") -> Wire:
    """One `workgraph/change` line that holds the whole graph."""

    def read(state: State) -> Wire:
        graph = find_graph(state, params.graph)
        if params.version == 1:
            return encode_v1(graph)
        return encode_v2(project.snapshot(graph, limit_bytes=INLINE_LIMIT_BYTES))

    change = await call.daemon.view(read)
    return {"lines": [orjson.dumps(change).decode()]}


@table.route("workgraph/import", "ImportParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def import_graph(call: Call, params: "ImportParams") -> Wire:
    """Fold the lines and make the graph that they come to; it keeps its id where that is free."""
    value = await asyncio.to_thread(_folded, params.lines)
    command = command_of(
        value,
        graph=uuid7(call.daemon.clock.now_ms()) if params.new_id else value.id,
        workspace=str(call.daemon.workspace),
        owner=params.owner or value.graph.get("owner"),
        environment=await kept_environment(call, params, is_new=True),
    )
    print_ = fingerprint("import", params)
    return await commit(
        call, Request(command, call.caller.actor, request_id=params.request_id, fingerprint=print_), params
    )


def _folded(lines: list[str]) -> GraphValue:
    """The graph that the lines come to. Raises Refused `malformedLog`, which names line and field."""
    values: list[Any] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as trouble:
            message = t("line {number} is no JSON: {trouble}", number=number, trouble=str(trouble))
            raise Refused("malformedLog", message, t("graphd export writes such lines"), line=number) from None
    try:
        found = fold(values).graph
    except MalformedChange as trouble:
        message = t("{field}: {trouble}", field=trouble.field, trouble=trouble.message)
        hint = t("nothing was imported")
        raise Refused("malformedLog", message, hint, field=trouble.field, index=trouble.index) from None
    if found is None:
        message = t("there is no graph in these lines: none at all, or its last line clears it")
        raise Refused("malformedLog", message, t("graphd export writes such lines"))
    return found


# ---- purge --------------------------------------------------------------------------------------------------------


@table.route("workgraph/purge", "PurgeParams", "PurgeResult", allowed=PEOPLE, is_cancellable=False)
async def purge(call: Call, params: "PurgeParams") -> Wire:
    """Clear ended graphs, with their files; with `transcripts` only the files go. What is live is never touched."""
    if (params.graph is None) == (params.older_than_days is None):
        expected = "graph or olderThanDays"
        raise ParamsRefused([field("", t("give exactly one of graph and olderThanDays"), expected=expected, got="")])
    found = await call.daemon.view(lambda state: _purgeable(state, params, call.daemon.clock.now_ms()))
    removed_bytes = await remove_folders(call.daemon, found)
    graphs = [item.graph for item in found]
    if not params.transcripts:
        graphs = [graph for graph in graphs if await _cleared(call, graph)]
    await remove_unused_environments(call.daemon)
    return {"graphs": graphs, "bytes": removed_bytes}


def _purgeable(state: State, params: "PurgeParams", now_ms: int) -> list[SettledFolders]:
    """The ended graphs that are meant, with what their attempts left on the disk. Raises Refused for a live one."""
    if params.graph is not None:
        graph = find_graph(state, params.graph)
        if not graph.is_ended:
            raise Refused(
                "invalidTransition",
                t("{graph} has not ended", graph=graph.title),
                t("graphd cancel ends it; graphd clear removes it at once"),
                **{"from": graph.status, "to": "purge"},
                graph=graph.id,
                rev=graph.rev,
            )
        meant = [graph]
    else:
        before = now_ms - (params.older_than_days or 0) * DAY_MS
        meant = [graph for graph in newest_first(state) if graph.is_ended and graph.updated_at <= before]
    return [SettledFolders(graph.id, _settled(graph)) for graph in meant]


def _settled(graph: Graph) -> tuple[str, ...]:
    return tuple(attempt.folder for attempt in graph.attempts.values() if attempt.state == "settled")


async def _cleared(call: Call, graph: str) -> bool:
    """Whether it is gone; one that was tried again meanwhile, or is gone already, is left as it is."""

    def ended_at(state: State) -> int | None:
        found = state.graphs.get(graph)
        return found.rev if found is not None and found.is_ended else None

    rev = await call.daemon.view(ended_at)
    if rev is None:
        return False
    try:
        await call.daemon.execute(Request(Clear(graph), call.caller.actor, expected_rev=rev))
    except Refused as refusal:
        if refusal.code not in ("notFound", "invalidTransition", "conflict"):
            raise
        return False
    return True


# ---- deliveries ---------------------------------------------------------------------------------------------------


@table.route("workgraph/deliveries", "DeliveriesParams", "DeliveriesResult")
async def deliveries(call: Call, params: "DeliveriesParams") -> Wire:
    """What an owner has not acknowledged, oldest first; an agent reads its own."""
    owner = _own(call, params.owner)

    def waiting(state: State) -> list[Wire]:
        found = [
            (delivery, graph)
            for graph in state.graphs.values()
            for delivery in graph.deliveries.values()
            if not delivery.is_acknowledged and owner in (None, delivery.owner) and _cursor(delivery) > after
        ]
        found.sort(key=lambda pair: _cursor(pair[0]))
        return [project.delivery(graph, delivery) for delivery, graph in found]

    after = _read_cursor(params.after)
    rows = await call.daemon.view(waiting)
    if not rows and params.wait_ms:
        await call.hub.until(lambda state: bool(waiting(state)), params.wait_ms / 1000)
        rows = await call.daemon.view(waiting)
    last = f"{rows[-1]['createdAt']}:{rows[-1]['id']}" if rows else params.after
    return {"deliveries": rows} if last is None else {"deliveries": rows, "next": last}


def _own(call: Call, asked: str | None) -> str | None:
    """Whose deliveries: an agent's own ones alone, for a person anybody's."""
    if call.caller.principal != "agent":
        return asked
    if asked not in (None, call.caller.owner):
        message = t("an agent reads its own deliveries alone")
        raise Refused("unauthorised", message, t("leave owner out"))
    return call.caller.owner


def _cursor(delivery: Delivery) -> tuple[int, str]:
    return delivery.created_at, delivery.id


def _read_cursor(text: str | None) -> tuple[int, str]:
    at, mark, name = (text or "0:").partition(":")
    if not mark or not at.isdecimal() or len(at) > 18:
        raise Refused("cursorInvalid", t("this is no cursor of deliveries"), t("begin without one"))
    return int(at), name


@table.route("workgraph/acknowledge", "AcknowledgeParams", "AcknowledgeResult", is_cancellable=False)
async def acknowledge(call: Call, params: "AcknowledgeParams") -> Wire:
    """These deliveries are not sent again. One that is unknown refuses the call; repeats are harmless."""
    owner = _own(call, None)

    def read(state: State) -> dict[str, list[str]]:
        known = {delivery.id: delivery for graph in state.graphs.values() for delivery in graph.deliveries.values()}
        by_graph: dict[str, list[str]] = {}
        for name in params.deliveries:
            delivery = known.get(name)
            if delivery is None or owner not in (None, delivery.owner):
                message = t("no delivery {delivery}", delivery=name[:200])
                raise Refused("notFound", message, t("workgraph/deliveries lists those that wait"))
            by_graph.setdefault(delivery.graph, []).append(name)
        return by_graph

    for graph, names in (await call.daemon.view(read)).items():
        await call.daemon.execute(Request(Acknowledge(graph, tuple(names)), call.caller.actor))
    return {"deliveries": list(dict.fromkeys(params.deliveries))}
