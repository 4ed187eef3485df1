"""`history`, `why`, `output`, `observe`, `diff`, `processes`: what happened, what is going on, and why.

Source: spec protocol.md, Methods.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.model import Attempt, Graph, Node, Output, State
from graphd.server import project, stored
from graphd.server.project import Wire
from graphd.server.reason import Surroundings
from graphd.server.reasons import reasons
from graphd.server.references import find_graph, find_own
from graphd.server.routes import EVERYBODY, Call, Table
from graphd.server.slices import read_slice, slice_of

if TYPE_CHECKING:
    from graphd_protocol.model import DiffParams, Empty, HistoryParams, NodeRef, ObserveParams, OutputParams

table: Final = Table()


@table.route("workgraph/history", "HistoryParams", "HistoryResult")
async def history(call: Call, params: "HistoryParams") -> Wire:
    """Events of whole revs after `after`, oldest first; `next` is the rev to ask after where there may be more."""
    graph = await call.daemon.view(lambda state: find_graph(state, params.graph).id)
    events = await call.daemon.history(graph, params.after, params.limit, params.kinds)

    def read(state: State) -> Wire:
        found = state.graphs.get(graph)
        page: Wire = {"events": [stored.event(project.event(found, event), call.language) for event in events]}
        if events and found is not None and events[-1].rev < found.rev:
            page["next"] = events[-1].rev
        return page

    return await call.daemon.view(read)


@table.route("workgraph/why", "NodeRef", "Why", allowed=EVERYBODY)
async def why(call: Call, params: "NodeRef") -> list[Wire]:
    """Why a node is where it is, and what to type next."""

    def read(state: State) -> list[Wire]:
        graph, node = find_own(state, call.caller, params.graph, params.node)
        phase, since = call.daemon.phases.get((graph.id, node.id), (None, None))
        around = Surroundings(
            state=state,
            capacity=call.daemon.capacity,
            now=call.daemon.clock.now_ms(),
            store_health=call.daemon.store_health,
            phase=phase,
            phase_since=since,
        )
        return reasons(graph, node, around)

    return await call.daemon.view(read)


def _attempt(graph: Graph, node: Node, number: int | None) -> Attempt | None:
    """The worker attempt of this number, or the last one; None where there is none yet. Raises Refused."""
    found = graph.attempts.get((node.id, "worker", node.last_number if number is None else number))
    if found is None and number is not None:
        hint = (
            t("it had attempts 1 to {last}", last=node.last_number) if node.last_number else t("it has not started yet")
        )
        raise Refused(
            "notFound",
            t("{node} has no attempt {number}", node=node.slug, number=number),
            hint,
            graph=graph.id,
            node=node.slug,
        )
    return found


def _begun(graph: Graph, node: Node, number: int | None) -> Attempt:
    """As `_attempt`, but there has to be one. Raises Refused."""
    attempt = _attempt(graph, node, number)
    if attempt is None:
        hint = t("graphd why {node} says what it waits for", node=node.slug)
        raise Refused("notFound", t("{node} has not started yet", node=node.slug), hint, graph=graph.id, node=node.slug)
    return attempt


def _folder(call: Call, attempt: Attempt) -> Path:
    return call.daemon.folder / "attempts" / attempt.graph / attempt.folder


@table.route("workgraph/output", "OutputParams", "OutputResult", allowed=EVERYBODY)
async def output(call: Call, params: "OutputParams") -> Wire:
    """A slice of a captured result, cut at character borders."""

    def read(state: State) -> tuple[Output | None, Path | None, str]:
        graph, node = find_own(state, call.caller, params.graph, params.node)
        attempt = _attempt(graph, node, params.attempt)
        is_current = params.attempt is None or params.attempt == node.last_number
        kept = _folder(call, attempt) / "output" if attempt is not None else None
        return node.output if is_current else None, kept, node.slug

    inline, kept, slug = await call.daemon.view(read)
    # The file first: it is the result as it was printed, the database's text is without secrets.
    found = await asyncio.to_thread(read_slice, kept, params.offset, params.limit) if kept is not None else None
    if found is not None:
        media_type = inline.media_type if inline is not None else "text/plain"
        return _slice(found[0], params, found[1], media_type)
    if inline is None:
        hint = t("graphd logs {slug} shows what it printed", slug=slug)
        raise Refused("notFound", t("{slug} has no result", slug=slug), hint, node=slug)
    raw = inline.text.encode()  # the file is gone: what the database kept of it
    return _slice(raw[params.offset : params.offset + params.limit + 4], params, len(raw), inline.media_type)


def _slice(raw: bytes, params: "OutputParams", total: int, media_type: str) -> Wire:
    return {**slice_of(raw, offset=params.offset, limit=params.limit, total=total), "mediaType": media_type}


def _talks(call: Call, attempt: Attempt) -> bool:
    """Its agent is one whose words are shown as items."""
    profile = call.daemon.settings.agents.profiles.get(attempt.profile)
    return profile is not None and profile.driver != "shell"


@table.route("workgraph/observe", "ObserveParams", "ObserveResult", allowed=EVERYBODY)
async def observe(call: Call, params: "ObserveParams") -> Wire:
    """What an attempt printed after a cursor; `live` says that more can come."""
    from graphd.server.sayings import BEGIN, has_items, read_sayings
    from graphd.server.transcript import read_printed

    def read(state: State) -> tuple[Path, int, int, bool, bool]:
        graph, node = find_own(state, call.caller, params.graph, params.node)
        attempt = _begun(graph, node, params.attempt)
        is_live = attempt.state != "settled"
        return _folder(call, attempt), attempt.number, attempt.started_at, is_live, _talks(call, attempt)

    folder, number, started_at, is_live, talks = await call.daemon.view(read)
    has_begun = await asyncio.to_thread(has_items, folder)
    if is_live and not has_begun and talks:  # what is between us and it is not for people
        return {"items": [], "cursor": BEGIN, "live": True, "attempt": number}
    if has_begun:
        printed = await asyncio.to_thread(read_sayings, folder, params.cursor, limit=params.limit)
    else:
        cursor = params.cursor if params.cursor != BEGIN else None
        printed = await asyncio.to_thread(
            read_printed, folder, cursor, limit=params.limit, started_at=started_at, is_live=is_live
        )
    return {"items": printed.items, "cursor": printed.cursor, "live": is_live, "attempt": number}


@table.route("workgraph/diff", "DiffParams", "DiffResult")
async def diff(call: Call, params: "DiffParams") -> Wire:
    """What an attempt changed in its git work tree, until now while it runs."""
    from graphd.children.trees import NoPatch, patch
    from graphd.server.beside import ran_beside

    def read(state: State) -> tuple[Path, bool, list[Wire]]:
        graph, node = find_own(state, call.caller, params.graph, params.node)
        attempt = _begun(graph, node, params.attempt)
        return _folder(call, attempt), attempt.state != "settled", ran_beside(state, graph, attempt)

    folder, is_live, shared = await call.daemon.view(read)
    try:
        found = await asyncio.to_thread(patch, folder, is_live=is_live)
    except NoPatch as trouble:
        hint = t(
            "trees are taken where an agent works in a git work tree; graphd logs {node} shows what it did",
            node=params.node,
        )
        raise Refused(trouble.code, trouble.message, hint, node=params.node) from None
    return {"patch": found, "shared": shared}


@table.route("workgraph/processes", "Empty", "ProcessEntry")
async def processes(call: Call, params: "Empty") -> list[Wire]:
    """One row per process tree that we keep."""
    from graphd.server.trees import usage_of

    def read(state: State) -> list[tuple[str, Attempt]]:
        return [
            (graph.nodes[key[0]].slug, graph.attempts[key]) for graph in state.graphs.values() for key in graph.live
        ]

    rows = await call.daemon.view(read)
    pids = [attempt.identity.pid for _, attempt in rows if attempt.identity is not None]
    usage = await asyncio.to_thread(usage_of, pids) if pids else {}
    found = []
    for slug, attempt in rows:
        identity = attempt.identity
        cost = usage.get(identity.pid) if identity is not None else None
        found.append(
            {
                "graph": attempt.graph,
                "node": slug,
                "attempt": attempt.number,
                "role": attempt.role,
                "pid": identity.pid if identity is not None else None,
                "keeperPid": (identity.keeper_pid or None) if identity is not None else None,
                "startedAt": attempt.started_at,
                "rssBytes": cost.rss_bytes if cost is not None else 0,
                "cpuS": round(cost.cpu_s, 3) if cost is not None else 0.0,
                "state": attempt.state,
            }
        )
    return found
