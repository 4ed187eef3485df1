"""`graphd show`: a graph in layers, as text. The daemon lays it out; here it is printed and coloured."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.options import command, graph_argument, json_option, print_json
from graphd.cli.talk import call, graph_named, talk
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("show")
@graph_argument
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a bigger graph, draw what lies around its running and failed nodes.",
)
@json_option("Picture")
def show_command(*, graph: str | None, max_nodes: int | None, as_json: bool, workspace: Path | None) -> None:
    """Draw GRAPH in layers: a node stands below everything that it needs.

    Examples:
      graphd show
      graphd show checkup --max-nodes 40
    """

    async def work(session: "Session") -> Wire:
        params: Wire = {"graph": await graph_named(session, graph)}
        if max_nodes is not None:
            params["maxNodes"] = max_nodes
        found: Wire = await call(session, "workgraph/picture", params)
        return found

    picture = talk(workspace, work)
    if as_json:
        print_json(picture)
    else:
        click.echo(harmless(picture["text"]).rstrip("\n"))
