"""`graphd export`, `import`, `purge`: graphs leave as JSON lines, come back, or are let go."""

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.base.text import t
from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, graph_argument, json_option, print_json
from graphd.cli.talk import call, call_once, graph_named, talk
from graphd.cli.words import counted, short_id, size

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("export")
@graph_argument
@click.option(
    "--version", type=click.Choice(["1", "2"]),
    help="The interchange version, by default 2; 1 refuses what it has no words for.",
)  # fmt: skip
@click.option(
    "--html", "page", is_flag=False, flag_value="-", metavar="[FILE]",
    help="A page for people instead: one file that fetches nothing. Without FILE, or with -, to stdout.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Put the page in the place of a file that is there.")
def export_command(
    *, graph: str | None, version: str | None, page: str | None, force: bool, workspace: Path | None
) -> None:
    """Write GRAPH to stdout as `workgraph/change`, one JSON object a line; with --html as a page to read and share.

    Examples:
      graphd export checkup > checkup.jsonl
      graphd export @last --version 1
      graphd export @last --html run.html
    """
    if page is not None:
        if version is not None:
            raise CommandRefused("usage", t("a page has no interchange version"), "graphd export GRAPH --html FILE")
        from graphd.cli.page.writing import write_page

        write_page(workspace, graph, page, force=force)
        return
    if force:
        raise CommandRefused("usage", t("--force goes with --html FILE"), "graphd export GRAPH --html FILE --force")

    async def work(session: "Session") -> list[str]:
        named = await graph_named(session, graph)
        found: Wire = await call(session, "workgraph/export", {"graph": named, "version": int(version or "2")})
        return list(found["lines"])

    for line in talk(workspace, work):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


@command("import")
@click.argument("source", metavar="FILE|-")
@click.option("--owner", metavar="OWNER", help="The agent that it reports to. Default: as the file says.")
@click.option("--new-id", is_flag=True, help="Make another graph of it, where its own id is taken.")
@json_option("MutationResult")
def import_command(*, source: str, owner: str | None, new_id: bool, as_json: bool, workspace: Path | None) -> None:
    """Read a graph that `graphd export` wrote. One that was at work is paused, and `graphd resume` goes on.

    What was achieved stays achieved. Attempts, transcripts and the inputs of a workflow are not in the file.

    Examples:
      graphd import checkup.jsonl
      graphd export checkup | graphd import - --new-id --workspace ~/elsewhere
    """
    params: Wire = {"lines": _lines(source), "newId": new_id, "requestId": str(uuid.uuid4())}
    if owner is not None:
        params["owner"] = owner

    async def work(session: "Session") -> tuple[Wire, Wire]:
        done: Wire = await call_once(session, "workgraph/import", params)
        return done, await call(session, "workgraph/status", {"graph": done["graph"]})

    done, snapshot = talk(workspace, work)
    if as_json:
        print_json(done)
        return
    graph = short_id(done["graph"])
    click.echo(t("imported {graph}: {nodes}", graph=graph, nodes=counted(len(snapshot["nodes"]), "node")))
    click.echo(f"  graphd {'resume' if snapshot['status'] == 'user_paused' else 'status'} {graph}")


def _lines(source: str) -> list[str]:
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        lines = [line for line in raw.decode().splitlines() if line.strip()]
    except OSError as trouble:
        raise CommandRefused("usage", f"{source}: {trouble.strerror}", "graphd export GRAPH > FILE") from None
    except UnicodeDecodeError:
        raise CommandRefused("usage", t("{source} is no UTF-8 text", source=source), "graphd export GRAPH") from None
    if not lines:
        raise CommandRefused("usage", t("{source} is empty", source=source), "graphd export GRAPH > FILE")
    return lines


@command("purge")
@click.option("--graph", "-g", metavar="GRAPH", help="This one, which must have ended.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="All that ended so many days ago.")
@click.option("--transcripts", is_flag=True, help="Remove only what attempts left on the disk; the graphs stay.")
@json_option("PurgeResult")
def purge_command(
    *, graph: str | None, older_than: float | None, transcripts: bool, as_json: bool, workspace: Path | None
) -> None:
    """Remove ended graphs with their results and transcripts. What is live is never touched.

    Examples:
      graphd purge --older-than 30
      graphd purge --graph checkup --transcripts
    """
    if (graph is None) == (older_than is None):
        raise CommandRefused("usage", t("purge what?"), "graphd purge --older-than DAYS, or graphd purge --graph GRAPH")
    params: Wire = {"transcripts": transcripts}
    params |= {"graph": graph} if graph is not None else {"olderThanDays": older_than}

    async def work(session: "Session") -> Wire:
        done: Wire = await call(session, "workgraph/purge", params)
        return done

    done = talk(workspace, work)
    if as_json:
        print_json(done)
        return
    what = (
        t("transcripts of {graphs}", graphs=counted(len(done["graphs"]), "graph"))
        if transcripts
        else counted(len(done["graphs"]), "graph")
    )
    click.echo(t("removed {what}, {size}", what=what, size=size(done["bytes"])))
