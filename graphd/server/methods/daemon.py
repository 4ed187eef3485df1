"""`graphd/health`, `capacity`, `stop` and `doctor`: the daemon itself.

Source: spec protocol.md, Methods.
"""

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphd import __version__
from graphd.core.commands import Cancel, Request
from graphd.core.events import Refused
from graphd.core.model import State
from graphd.server.listen import SOCKET_NAME
from graphd.server.project import Wire
from graphd.server.routes import PEOPLE, Call, Reply, Table

if TYPE_CHECKING:
    from graphd_protocol.model import Empty, StopParams

table: Final = Table()
SPACE_LOW_BYTES: Final = 64 * 1024 * 1024
_STATM: Final = Path("/proc/self/statm")


@table.route("graphd/health", "Empty", "Health")
async def health(call: Call, params: "Empty") -> Wire:
    """How the daemon does: store, loop, connections and what it holds for each."""
    daemon = call.daemon
    before = time.monotonic()
    await asyncio.sleep(0)
    return {
        "store": daemon.store_health,
        "loopLagMs": round((time.monotonic() - before) * 1000, 3),
        "connections": call.hub.connections(),
        "epoch": daemon.epoch,
        "starts": daemon.starts,
        "pid": os.getpid(),
        "version": __version__,
        "socket": str(daemon.folder / SOCKET_NAME),
        "workspace": str(daemon.workspace),
        "rssBytes": _rss_bytes(),
    }


def _rss_bytes() -> int:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@table.route("graphd/capacity", "Empty", None)
async def capacity(call: Call, params: "Empty") -> Wire:
    """Whether more would start now, and why not."""

    def read(state: State) -> Wire:
        limit = call.daemon.settings.concurrency
        queued = sum(graph.counts.get("ready", 0) for graph in state.graphs.values() if graph.status == "active")
        reasons = []
        if state.running >= limit:
            reasons.append(f"all {limit} slots are taken")
        if call.daemon.store_health != "ok":
            reasons.append(f"the store is {call.daemon.store_health}")
        return {
            "available": not reasons,
            "reasons": reasons,
            "concurrency": {"limit": limit, "running": state.running, "queued": queued},
            "limits": {"concurrency": limit},
            "budgets": [],
            "agents": {name: count for name, count in state.running_by_profile.items() if count},
        }

    return await call.daemon.view(read)


@table.route("graphd/stop", "StopParams", "Empty", allowed=PEOPLE, is_cancellable=False)
async def stop(call: Call, params: "StopParams") -> Reply:
    """End the daemon once this is answered.

    `leave`: children stay with their keepers; `cancel`: all graphs end first.
    """
    if params.mode == "cancel":
        await _cancel_all(call)
    return Reply({}, then=lambda: call.hub.request_stop("stopped by a client"))


async def _cancel_all(call: Call) -> None:
    live = await call.daemon.view(lambda state: [graph.id for graph in state.graphs.values() if not graph.is_ended])
    for graph in live:
        try:
            await call.daemon.execute(Request(Cancel(graph, "the daemon was stopped"), call.caller.actor))
        except Refused as refusal:
            if refusal.code not in ("invalidTransition", "notFound"):  # it ended, or a stronger wish stands
                raise
    await call.hub.until(
        lambda state: not any(state.graphs[graph].live for graph in live if graph in state.graphs),
        call.daemon.settings.settle_s,
    )


@table.route("graphd/doctor", "Empty", "Check")
async def doctor(call: Call, params: "Empty") -> list[Wire]:
    """What can be checked from inside: the store, its tables against its log, the lock, the disk, stuck trees."""
    daemon = call.daemon
    differences = await daemon.doctor()
    stuck = await daemon.view(_stuck)
    free = await asyncio.to_thread(shutil.disk_usage, daemon.folder)
    return [
        _check("store", daemon.store_health == "ok", f"the store is {daemon.store_health}", "free some disk space"),
        _check(
            "tables",
            not differences,
            "; ".join(differences[:5]) or "the tables agree with the log",
            "the log is the truth: stop the daemon, the next start rebuilds the tables",
        ),
        _check("lock", daemon.is_lock_ours(), "the lock on disk is ours", "graphd stop, then any command"),
        _check("disk", free.free > SPACE_LOW_BYTES, f"{free.free // 1024**2} MiB free", "free some disk space"),
        _check("stuck", not stuck, "; ".join(stuck) or "no process is stuck", "graphd why NODE names the pids"),
        _check(
            "starts",
            daemon.starts < 5,
            f"{daemon.starts} daemon starts in ten minutes",
            "daemon.log in the state folder says why it ended",
        ),
    ]


def _stuck(state: State) -> list[str]:
    return [
        f"{graph.title}: {graph.nodes[key[0]].slug} is stuck"
        for graph in state.graphs.values()
        for key in graph.live
        if graph.attempts[key].state == "stuck"
    ]


def _check(name: str, ok: bool, detail: str, fix: str) -> dict[str, Any]:
    return {"id": name, "ok": ok, "detail": detail, "fix": "" if ok else fix}
