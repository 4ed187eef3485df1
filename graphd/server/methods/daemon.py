"""`graphd/health`, `capacity`, `stop`, `handover` and `doctor`: the daemon itself.

Source: spec protocol.md, Methods.
"""

import asyncio
import os
import platform
import shutil
import time
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphd import __version__
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Cancel, Request
from graphd.core.model import State
from graphd.server import budgets
from graphd.server.environments import caller_environment
from graphd.server.handover import handed_over
from graphd.server.listen import SOCKET_NAME
from graphd.server.project import Wire
from graphd.server.routes import PEOPLE, Call, Reply, Table
from graphd_protocol import PROTOCOL_MAX, PROTOCOL_MIN

if TYPE_CHECKING:
    from graphd_protocol.model import DoctorParams, Empty, HandoverParams, StopParams

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


@table.route("graphd/capacity", "Empty", "Capacity")
async def capacity(call: Call, params: "Empty") -> Wire:
    """Whether more would start now, and why not."""

    def read(state: State) -> Wire:
        limit = call.daemon.settings.concurrency
        queued = sum(graph.counts.get("ready", 0) for graph in state.graphs.values() if graph.status == "active")
        reasons = []
        if state.running >= limit:
            reasons.append(t("all {limit} slots are taken", limit=limit))
        if call.daemon.store_health != "ok":
            reasons.append(t("the store is {health}", health=call.daemon.store_health))
        return {
            "available": not reasons,
            "reasons": reasons,
            "concurrency": {"limit": limit, "running": state.running, "queued": queued},
            "limits": {"concurrency": limit},
            "budgets": budgets.rows(state, call.daemon.capacity, call.daemon.clock.now_ms()),
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
    return Reply({}, then=lambda: call.hub.request_stop(t("stopped by a client")))


async def _cancel_all(call: Call) -> None:
    live = await call.daemon.view(lambda state: [graph.id for graph in state.graphs.values() if not graph.is_ended])
    for graph in live:
        try:
            await call.daemon.execute(Request(Cancel(graph, t("the daemon was stopped")), call.caller.actor))
        except Refused as refusal:
            if refusal.code not in ("invalidTransition", "notFound"):  # it ended, or a stronger wish stands
                raise
    await call.hub.until(
        lambda state: not any(state.graphs[graph].live for graph in live if graph in state.graphs),
        call.daemon.settings.settle_s,
    )


@table.route("graphd/handover", "HandoverParams", "Empty", is_cancellable=False)
async def handover(call: Call, params: "HandoverParams") -> Reply:
    """Stop for a newer version once this is answered; children stay with their keepers, clients come back."""
    reason = handed_over(params, call.caller.name)
    return Reply({}, then=lambda: call.hub.request_stop(reason, reconnect=True))


@table.route("graphd/doctor", "DoctorParams", "Check")
async def doctor(call: Call, params: "DoctorParams") -> list[Wire]:
    """What can be checked from inside: the store, its tables against its log, the lock, the disk, stuck trees.

    With `report` also what a bug report needs: versions, sizes and counts, and nothing that a user wrote.
    """
    daemon = call.daemon
    differences = await daemon.doctor()
    stuck = await daemon.view(_stuck)
    free = await asyncio.to_thread(shutil.disk_usage, daemon.folder)
    report = await _report(call) if params.report else []
    return [
        _check(
            "store",
            daemon.store_health == "ok",
            t("the store is {health}", health=daemon.store_health),
            t("free some disk space"),
        ),
        _check(
            "tables",
            not differences,
            "; ".join(differences[:5]) or t("the tables agree with the log"),
            t("the log is the truth: stop the daemon, the next start rebuilds the tables"),
        ),
        _check("lock", daemon.is_lock_ours(), t("the lock on disk is ours"), t("graphd stop, then any command")),
        _check(
            "disk",
            free.free > SPACE_LOW_BYTES,
            t("{count} MiB free", count=free.free // 1024**2),
            t("free some disk space"),
        ),
        _settings_check(call),
        await _agents_check(call),
        await asyncio.to_thread(_shell_check, call.caller.env),
        await _keepers_check(call),
        _check("stuck", not stuck, _listed(stuck) or t("no process is stuck"), t("graphd why NODE names the pids")),
        _check(
            "starts",
            daemon.starts < 5,
            t("{count} daemon starts in ten minutes", count=daemon.starts),
            t("daemon.log in the state folder says why it ended"),
        ),
        *report,
    ]


def _settings_check(call: Call) -> Wire:
    trouble = call.daemon.settings_trouble
    if trouble is None:
        return _check("settings", True, t("the settings are in order"), "")
    detail = t("{path}:{line}: {message}", path=str(trouble.path), line=trouble.line, message=trouble.message)
    return _check("settings", False, detail, trouble.hint)


async def _agents_check(call: Call) -> Wire:
    """Agents are not needed for scripts; a graph that waits for one is what is wrong."""
    from graphd.children.profiles.choosing import found

    environment = await caller_environment(call)
    profiles = [p for p in call.daemon.settings.agents.profiles.values() if p.driver != "shell"]
    path = environment.get("PATH", os.defpath)
    present = await asyncio.to_thread(lambda: [p.name for p in profiles if found(p, path) is not None])
    waiting = await call.daemon.view(
        lambda state: [
            g.title for g in state.graphs.values() if g.status == "infra_paused" and g.pause_cause == "agent"
        ]
    )
    detail = (
        t("installed: {names}", names=", ".join(present))
        if present
        else t("none is installed; scripts run all the same")
    )
    if waiting:
        detail = t("{graphs} wait for an agent; {rest}", graphs=", ".join(waiting[:5]), rest=detail)
    return _check("agents", not waiting, detail, t("graphd agents says what to install"))


def _shell_check(given: dict[str, str] | None) -> Wire:
    """Where no shell started the client, PATH comes from the login shell."""
    from graphd.children.login_shell import login_path

    environment = given or dict(os.environ)
    shell = environment.get("SHELL") or ""
    path = login_path(environment)
    if path is not None:
        return _check("login shell", True, t("{count} folders on its PATH", count=len(path.split(os.pathsep))), "")
    fix = t("its start-up files must print PATH within 3 s: try {shell} -l -c env", shell=shell)
    return _check("login shell", not os.access(shell, os.X_OK), t("it does not say its PATH"), fix)


async def _keepers_check(call: Call) -> Wire:
    """Keepers that hold the lock of an attempt that the database does not know."""
    known = await call.daemon.view(_attempt_folders)
    held = await asyncio.to_thread(_held_folders, call.daemon.folder / "attempts")
    unknown = sorted(held - known)
    detail = t("{count} run", count=len(held))
    if unknown:
        detail = t(
            "{count} run, {odd} of them for no attempt: {names}",
            count=len(held),
            odd=len(unknown),
            names=", ".join(unknown[:5]),
        )
    return _check("keepers", not unknown, detail, t("graphd stop, then any command: the next start ends them"))


def _attempt_folders(state: State) -> set[str]:
    return {f"{graph.id}/{attempt.folder}" for graph in state.graphs.values() for attempt in graph.attempts.values()}


def _held_folders(attempts: Path) -> set[str]:
    from graphd.children.identity import is_locked

    found = [path.parent for path in attempts.glob("*/*/lock")]
    return {f"{path.parent.name}/{path.name}" for path in found if is_locked(path)}


async def _report(call: Call) -> list[Wire]:
    def read(state: State) -> dict[str, int]:
        return Counter(graph.status for graph in state.graphs.values())

    graphs = await call.daemon.view(read)
    sizes = await asyncio.to_thread(_sizes, call.daemon.folder)
    versions = f"graphd {__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    rows = {
        "versions": versions,
        "protocol": f"{PROTOCOL_MIN} to {PROTOCOL_MAX}",
        "graphs": ", ".join(f"{count} {status}" for status, count in sorted(graphs.items())) or "0",
        "connections": str(len(call.hub.connections())),
        "sizes": ", ".join(f"{name} {size}" for name, size in sizes),
    }
    return [_check(name, ok=True, detail=detail, fix="") for name, detail in rows.items()]


def _sizes(folder: Path) -> list[tuple[str, int]]:
    """The files of the state folder, in bytes."""
    return sorted((path.name, path.stat().st_size) for path in folder.iterdir() if path.is_file())


def _stuck(state: State) -> list[str]:
    return [
        t("{graph}: {node} is stuck", graph=graph.title, node=graph.nodes[key[0]].slug)
        for graph in state.graphs.values()
        for key in graph.live
        if graph.attempts[key].state == "stuck"
    ]


def _listed(lines: list[str]) -> str:
    return reduce(lambda left, right: t("{left}; {right}", left=left, right=right), lines) if lines else ""


def _check(name: str, ok: bool, detail: str, fix: str) -> dict[str, Any]:
    return {"id": name, "ok": ok, "detail": detail, "fix": "" if ok else fix}
