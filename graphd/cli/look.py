"""Commands that show where things stand: status, watch, processes."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.closing import closing
from graphd.cli.exits import CommandEnded, CommandRefused
from graphd.cli.options import colour, command, graph_argument, json_option, print_json, table
from graphd.cli.talk import ask_daemon, call, graph_named, is_daemon_absent, open_session, talk
from graphd.cli.tree import counts_text, done_of_all, lines_of
from graphd.cli.words import STATUS_WORDS, clock, duration, harmless, seconds_of, short_id, size

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_ENDED_SHOWN = 5
_AT_ONCE = 32  # requests in flight; the daemon takes 64 a connection
_POLL_S = 0.25
_COLOURS = {"achieved": "green", "failed": "red", "running": "cyan", "stuck": "yellow", "blocked": "yellow"}
_STATUS_COLOURS = {"active": "cyan", "complete": "green", "blocked": "red"}
_MARKS = {
    "achieved": "✓", "failed": "✗", "blocked": "■", "skipped": "–", "cancelled": "✕", "waiting": "○",
    "ready": "◌", "running": "●", "stuck": "!",
}  # fmt: skip


# ---- status -------------------------------------------------------------------------------------------------------


@command("status")
@graph_argument
@json_option("{daemon: Daemon with its socket or null, graphs: [Snapshot]}")
def status_command(graph: str | None, as_json: bool, workspace: Path | None) -> None:
    """Show the daemon and the graphs of this workspace, or one GRAPH with its nodes. It starts no daemon.

    Examples:
      graphd status
      graphd status @last
      graphd status --json
    """
    if is_daemon_absent(workspace):
        value: Wire = {"daemon": None, "graphs": []}
    else:
        value = talk(workspace, lambda session: _status(session, graph), start=False)
    if as_json:
        print_json(value)
    elif value["daemon"] is None:
        click.echo("no daemon is running for this workspace\n  graphd daemon --start")
    else:
        _show_status(value, is_one=graph is not None)


async def _status(session: "Session", graph: str | None) -> Wire:
    health = await call(session, "graphd/health")
    daemon = {key: health[key] for key in ("pid", "version", "epoch", "socket")}
    if graph is not None:
        names = [graph]
    else:
        names = [h["id"] for h in (await call(session, "workgraph/list", {"limit": 1000}))["graphs"]]
    graphs: list[Wire] = []
    for start in range(0, len(names), _AT_ONCE):
        asked = [call(session, "workgraph/status", {"graph": name}) for name in names[start : start + _AT_ONCE]]
        graphs.extend(value for value in await asyncio.gather(*asked) if value is not None)
    return {"daemon": daemon, "graphs": graphs}


def _show_status(value: Wire, *, is_one: bool) -> None:
    if is_one:
        for snapshot in value["graphs"]:
            show_graph(snapshot)
        return
    daemon = value["daemon"]
    click.echo(f"daemon {daemon['version']}, pid {daemon['pid']}, epoch {daemon['epoch']}")
    live = [g for g in value["graphs"] if g["status"] not in ("complete", "cancelled")]
    ended = [g for g in value["graphs"] if g["status"] in ("complete", "cancelled")]
    for snapshot in live:
        click.echo()
        show_graph(snapshot)
    if not value["graphs"]:
        click.echo("no graph yet\n  graphd run checkup")
    if ended:
        click.echo()
        rows = [[short_id(g["id"]), g["title"], _ended_word(g), clock(g["updatedAt"])] for g in ended[:_ENDED_SHOWN]]
        table(rows, ["ENDED", "TITLE", "STATUS", "AT"])
        if len(ended) > _ENDED_SHOWN:
            click.echo(f"and {len(ended) - _ENDED_SHOWN} more: graphd status --json")


def _ended_word(snapshot: Wire) -> str:
    outcome = snapshot.get("outcome")
    return STATUS_WORDS[snapshot["status"]] + (f" ({outcome})" if outcome and outcome != "ok" else "")


def show_graph(snapshot: Wire, *, is_preview: bool = False) -> None:
    """One graph as plain lines on stdout, with the command that goes on; a preview has none."""
    done, total = done_of_all(snapshot)
    status = click.style(STATUS_WORDS[snapshot["status"]], fg=_STATUS_COLOURS.get(snapshot["status"], "yellow"))
    title = click.style(harmless(snapshot["title"]), bold=True)
    end = snapshot["updatedAt"] if snapshot["status"] in ("complete", "cancelled") else _now_ms()
    head = f"{title}  {status}  {done} of {total}  {duration(end - snapshot['createdAt'])}  {short_id(snapshot['id'])}"
    click.echo(head, color=colour())
    if snapshot.get("pauseReason"):
        click.echo("  " + harmless(snapshot["pauseReason"]))
    lines = lines_of(snapshot, {}, _now_ms())
    width = max((len(line.stem + line.slug) for line in lines), default=0)
    for line in lines:
        mark = click.style(_MARKS[line.state], fg=_COLOURS.get(line.state, "bright_black"))
        name = line.slug.ljust(width - len(line.stem))
        attempt = f"{line.attempt:>4}"
        click.echo(f"  {line.stem}{mark} {name} {line.time:>8} {attempt} {line.note}".rstrip(), color=colour())
    for proposal in snapshot.get("proposals") or []:
        click.echo(harmless(f"  proposed by {proposal['author']}: {proposal['reason']}"))
        click.echo(f"  graphd accept {proposal['id']}")
    if is_preview:
        click.echo("nothing was started")
    elif snapshot["status"] == "active":
        click.echo(f"  {counts_text(snapshot['counts'])}\n  graphd watch {short_id(snapshot['id'])}")
    else:
        click.echo(f"  {closing(snapshot)[1]}")


def _now_ms() -> int:
    return int(time.time() * 1000)


# ---- watch --------------------------------------------------------------------------------------------------------


@command("watch")
@graph_argument
@click.option("--timeout", metavar="D", help="Stop watching after 30s, 5m, 2h (exit code 124); the graph goes on.")
@click.option("--allow-failures", is_flag=True, help="Exit code 0 also when optional nodes failed.")
@json_option("one object a line with `type`: Changed …, the Snapshot last,")
def watch_command(
    *, graph: str | None, timeout: str | None, allow_failures: bool, as_json: bool, workspace: Path | None
) -> None:
    """Follow a graph until it ends or waits for a person. Ctrl-C asks; leaving stops nothing.

    At a terminal keys steer it (? lists them), and it stays with a graph that is paused or blocked until you leave.

    Examples:
      graphd watch
      graphd watch checkup --json
    """
    from graphd.cli.following import Wishes, follow_to_the_end

    wishes = Wishes(
        as_json=as_json, timeout_s=timeout_of(timeout), allow_failures=allow_failures, steers=True, stays=True
    )

    async def work() -> int:
        session = await open_session(workspace)
        try:
            named = await graph_named(session, graph)
            found = await call(session, "workgraph/status", {"graph": named})
        finally:
            await session.close()
        if found is None:
            raise CommandRefused("notFound", f"there is no graph {named!r}", "graphd status")
        return await follow_to_the_end(workspace, found["id"], wishes)

    raise CommandEnded(asyncio.run(work()))


def timeout_of(text: str | None) -> float | None:
    """`--timeout` in seconds. Raises a usage refusal for what is no duration."""
    try:
        return seconds_of(text) if text is not None else None
    except ValueError as trouble:
        raise CommandRefused("usage", str(trouble), "say 30s, 5m or 2h") from None


# ---- processes ----------------------------------------------------------------------------------------------------


@command("processes")
@json_option("[ProcessEntry]")
def processes_command(as_json: bool, workspace: Path | None) -> None:
    """List the process trees that are kept for this workspace.

    Examples:
      graphd processes
    """
    entries = ask_daemon(workspace, "workgraph/processes")
    if as_json:
        print_json(entries)
        return
    if not entries:
        click.echo("no process is running")
        return
    rows = [
        [
            str(e.get("pid") or "-"), str(e.get("keeperPid") or "-"), f"{e.get('node') or e['role']}@{e['attempt']}",
            e["state"], duration(_now_ms() - e["startedAt"]), size(e["rssBytes"]), f"{e['cpuS']:.1f}s",
            short_id(e["graph"]),
        ]
        for e in entries
    ]  # fmt: skip
    table(rows, ["PID", "KEEPER", "NODE", "STATE", "AGE", "MEMORY", "CPU", "GRAPH"])
