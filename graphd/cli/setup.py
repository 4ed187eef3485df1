"""Commands that set up: agents, doctor, daemon, stop, connect."""

import fcntl
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.exits import FAILED, OK, CommandEnded, CommandRefused
from graphd.cli.options import colour, command, json_option, print_json, table
from graphd.cli.talk import ask_daemon, call, is_daemon_absent, root_of, talk
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_STOP_S = 10.0
_NETWORK_DISKS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"})


@command("agents")
@click.option("--probe", is_flag=True, help="Start each that is installed, and say its version. Takes seconds each.")
@json_option("[AgentEntry]")
def agents_command(probe: bool, as_json: bool, workspace: Path | None) -> None:
    """List the agents that can do work here, which workers each serves, and which PATH was searched for the others.

    Examples:
      graphd agents
      graphd agents --probe
    """
    entries = ask_daemon(workspace, "workgraph/agents", {"probe": probe})
    if as_json:
        print_json(entries)
        return
    rows = []
    for entry in entries:
        where = entry.get("path") or ("built in" if entry["installed"] else "not found")
        workers = ", ".join(entry.get("workers", []))
        version = [entry.get("version", "")] if probe else []
        rows.append([entry["name"], entry["driver"], where, *version, workers, "; ".join(entry["problems"])])
    table(rows, ["NAME", "DRIVER", "PROGRAM", *(["VERSION"] if probe else []), "SERVES", "PROBLEMS"])
    searched = next((e["searched"] for e in entries if not e["installed"] and e["searched"]), None)
    if searched:
        click.echo("searched: " + ":".join(searched))


# ---- doctor -------------------------------------------------------------------------------------------------------


@command("doctor")
@json_option("[Check]")
def doctor_command(as_json: bool, workspace: Path | None) -> None:
    """Check this installation, the state folder and the daemon; say how to fix what is wrong. Exit code 1 then.

    Examples:
      graphd doctor
    """
    checks = _own_checks(workspace)
    try:
        checks.extend(talk(workspace, lambda session: call(session, "graphd/doctor")))
        checks.insert(len(_OWN), _check("daemon", "it answers", ok=True))
    except CommandRefused as refusal:
        checks.append(_check("daemon", refusal.message, ok=False, fix=refusal.hint))
    if as_json:
        print_json(checks)
    else:
        for check in checks:
            mark = click.style("✓", fg="green") if check["ok"] else click.style("✗", fg="red")
            click.echo(f"{mark} {check['id']:<20} {harmless(check['detail'])}", color=colour())
            if not check["ok"] and check["fix"]:
                click.echo("    " + harmless(check["fix"]))
    raise CommandEnded(OK if all(check["ok"] for check in checks) else FAILED)


def _check(name: str, detail: str, *, ok: bool, fix: str = "") -> Wire:
    return {"id": name, "ok": ok, "detail": detail, "fix": "" if ok else fix}


def _own_checks(workspace: Path | None) -> list[Wire]:
    return [check(workspace) for check in _OWN]


def _python_check(_: Path | None) -> Wire:
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return _check("python", f"{version} at {sys.executable}", ok=ok, fix="install Python 3.11 or newer")


def _state_check(workspace: Path | None) -> Wire:
    from graphd.client.paths import AttachFailure, make_state_folder

    try:
        folder = Path(make_state_folder(root_of(workspace)))
        probe = folder / f"doctor.{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except AttachFailure as failure:
        return _check("state folder", failure.message, ok=False, fix=failure.hint)
    except OSError as trouble:
        fix = "make it writable, or set GRAPHD_STATE_DIR to a folder on a local disk"
        return _check("state folder", f"{trouble.filename}: {trouble.strerror}", ok=False, fix=fix)
    kind = _disk_of(folder)
    if kind in _NETWORK_DISKS:
        fix = "set GRAPHD_STATE_DIR to a folder on a local disk"
        return _check("state folder", f"{folder} is on {kind}", ok=False, fix=fix)
    return _check("state folder", f"{folder}" + (f" ({kind})" if kind else ""), ok=True)


def _disk_of(folder: Path) -> str:
    """The type of the file system that `folder` is on, where the system says it; else the empty text."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for fields in (line.split() for line in mounts):
        point = fields[1].replace("\\040", " ") if len(fields) > 2 else ""
        if point and folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


_OWN = (_python_check, _state_check)


# ---- daemon, stop, connect ----------------------------------------------------------------------------------------


@command("daemon")
@click.option("--start", is_flag=True, help="Start it in the background if none runs; print its socket and return.")
def daemon_command(start: bool, workspace: Path | None) -> None:
    """Run the daemon of this workspace in the foreground. Every other command starts one by itself.

    Examples:
      graphd daemon --start
      graphd daemon
    """
    if start:
        click.echo(talk(workspace, lambda session: call(session, "graphd/health"))["socket"])
        return
    from graphd.client.starting import daemon_argv

    if not is_daemon_absent(workspace):
        raise CommandRefused("locked", "a daemon is running for this workspace already", "graphd stop")
    argv = daemon_argv(root_of(workspace))
    os.execvp(argv[0], argv)  # noqa: S606 - our own interpreter and module


@command("stop")
@click.option("--cancel", is_flag=True, help="Cancel every graph first, and end all that runs.")
def stop_command(cancel: bool, workspace: Path | None) -> None:
    """Stop the daemon. What runs goes on under its keepers, and the next command starts a daemon that adopts it.

    Examples:
      graphd stop
      graphd stop --cancel
    """
    if is_daemon_absent(workspace):
        click.echo("no daemon is running for this workspace")
        return

    async def work(session: "Session") -> Wire:
        health: Wire = await call(session, "graphd/health")
        await call(session, "graphd/stop", {"mode": "cancel" if cancel else "leave"})
        async for _ in session.notifications():
            pass  # the connection ends when the daemon does
        return health

    health = talk(workspace, work, start=False)
    _wait_for_lock(health["socket"])
    click.echo(f"stopped (pid {health['pid']})")


def _wait_for_lock(socket_path: str) -> None:
    """Until the daemon let go of its lock, which is its last act: whoever says `stopped` can move the folder."""
    deadline = time.monotonic() + _STOP_S
    try:
        with (Path(socket_path).parent / "lock").open("rb") as lock:
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.01)
                else:
                    return
    except OSError:
        return  # the folder went with it


@command("connect")
@click.option("--no-start", is_flag=True, help="Fail where no daemon runs, instead of starting one.")
def connect_command(no_start: bool, workspace: Path | None) -> None:
    """A byte pipe between stdin, stdout and the daemon, started if need be: what an editor or a script runs.

    Frames are those of LSP (Content-Length), messages are JSON-RPC: graphd/hello first, then workgraph/….
    It is also called stdio. When it ends, one connection ends and nothing else.

    Examples:
      graphd connect
      graphd connect --workspace ~/project
    """
    from graphd.client.attach import connect_main

    words = ["--workspace", str(workspace)] if workspace else []
    raise CommandEnded(connect_main([*words, "--no-start"] if no_start else words))


@command("mcp")
@click.option("--attempt", is_flag=True, help="Serve the tools of the attempt that this process belongs to.")
def mcp_command(attempt: bool, workspace: Path | None) -> None:
    """An MCP server over stdin and stdout, for agents; it ends with stdin.

    With --attempt, inside an attempt: submit_result, report_progress, report_discovery, ask_parent, read_input. It
    finds its attempt by $GRAPHD_TOKEN_FILE, and a daemon that its keepers start again.

    Examples:
      graphd mcp --attempt
    """
    from graphd.mcp.attempt import main as serve

    raise CommandEnded(serve(["--attempt"] if attempt else []))
