"""Why things are as they are, and how they came about: why, history."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.closing import closing
from graphd.cli.options import command, completes_node, graph_argument, graph_option, json_option, print_json, table
from graphd.cli.talk import call, graph_named, split_attempt, talk
from graphd.cli.words import clock, duration, harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_UNTOLD = frozenset({
    "environment", "workspace", "objective", "role", "worker", "profile", "deadline_at", "not_before", "is_counted",
    "attempt",
})  # fmt: skip


@command("why")
@click.argument("node", required=False, shell_complete=completes_node)
@graph_option
@json_option("[Why]")
def why_command(*, node: str | None, graph: str | None, as_json: bool, workspace: Path | None) -> None:
    """Say why NODE is where it is, and what to type next; without NODE, the nodes that hold the graph up.

    Examples:
      graphd why report
      graphd why --graph @last
    """

    async def work(session: "Session") -> tuple[Wire | None, list[tuple[str, Wire]]]:
        named = await graph_named(session, graph)
        if node is not None:
            slug = split_attempt(node)[0]
            return None, [(slug, w) for w in await call(session, "workgraph/why", {"graph": named, "node": slug})]
        snapshot = await call(session, "workgraph/status", {"graph": named})
        found: list[tuple[str, Wire]] = []
        for slug in _holding(snapshot):
            found.extend((slug, w) for w in await call(session, "workgraph/why", {"graph": named, "node": slug}))
        return snapshot, found

    snapshot, reasons = talk(workspace, work)
    if as_json:
        print_json([why for _, why in reasons])
        return
    if snapshot is not None:
        click.echo(closing(snapshot)[0])
        if not reasons:
            click.echo(f"  {closing(snapshot)[1]}")
    for slug, why in reasons:
        click.echo("\n".join(why_lines(slug, why)))


def why_lines(slug: str, why: Wire) -> list[str]:
    """A reason, and what to type next."""
    since = f" ({duration(int(time.time() * 1000) - why['since'])} ago)" if why.get("since") else ""
    lines = [f"{slug}: {harmless(why['detail'])}{since}"]
    return [*lines, f"  {harmless(why['next'])}"] if why.get("next") else lines


def _holding(snapshot: Wire) -> list[str]:
    """Nodes to ask about first: what failed, else what runs or is ready, else what waits; ten at most."""
    for states in (("failed",), ("running", "ready"), ("waiting", "blocked")):
        found = [n["slug"] for n in snapshot["nodes"] if n["state"] in states]
        if found:
            return found[:10]
    return []


@command("history")
@graph_argument
@click.option("--after", type=int, default=0, metavar="REV", help="Only what came after this rev.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only events of this kind; may be repeated.")
@json_option("Event, one a line,")
def history_command(
    *, graph: str | None, after: int, kinds: tuple[str, ...], as_json: bool, workspace: Path | None
) -> None:
    """List what happened to a graph, oldest first.

    Examples:
      graphd history
      graphd history checkup --kind attempt_settled --json
    """

    async def work(session: "Session") -> list[Wire]:
        named = await graph_named(session, graph)
        events: list[Wire] = []
        position: int | None = after
        while position is not None:
            params: Wire = {"graph": named, "after": position, "limit": 1000}
            if kinds:
                params["kinds"] = list(kinds)
            answer = await call(session, "workgraph/history", params)
            events.extend(answer["events"])
            position = answer.get("next")
        return events

    events = talk(workspace, work)
    if as_json:
        for event in events:
            print_json(event)
        return
    rows = [[str(e["rev"]), clock(e["at"]), e["kind"], e.get("node") or "", _event_detail(e)] for e in events]
    table(rows, ["REV", "AT", "KIND", "NODE", "DETAIL"])


def _event_detail(event: Wire) -> str:
    """The few facts of an event that fit on a line and that a person can use."""
    told = []
    for key, value in event["payload"].items():
        if key in _UNTOLD:
            continue
        if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 80):
            told.append(f"{key}={value}")
    who = event["actor"]["kind"]
    return " ".join([*([who] if who != "daemon" else []), *told[:6]])
