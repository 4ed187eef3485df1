"""What nodes printed and what came of them: logs, output."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.closing import final_output
from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, graph_option, json_option, print_json
from graphd.cli.talk import call, graph_named, open_session, split_attempt, talk
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_POLL_S = 0.25


@command("logs")
@click.argument("node")
@graph_option
@click.option("--follow", "-f", is_flag=True, help="Go on until the attempt ends.")
@json_option("ObservedItem, one a line,")
def logs_command(*, node: str, graph: str | None, follow: bool, as_json: bool, workspace: Path | None) -> None:
    """Show what NODE printed, stdout and stderr together; NODE@2 is its second attempt.

    Examples:
      graphd logs tests -f
      graphd logs tests@1 --graph checkup
    """
    slug, attempt = split_attempt(node)

    async def work() -> None:
        async for item in observed(workspace, graph, slug, attempt=attempt, follow=follow):
            if as_json:
                print_json(item)
            else:
                _write(item.get("text") or "")

    asyncio.run(work())


async def observed(
    workspace: Path | None, graph: str | None, node: str, *, attempt: int | None, follow: bool
) -> AsyncIterator[Wire]:
    """Items of an attempt in order, each once; over restarts of the daemon too, by cursor."""
    session = await open_session(workspace)
    try:
        params: Wire = {"graph": await graph_named(session, graph), "node": node, "attempt": attempt}
        while True:
            try:
                answer = await call(session, "workgraph/observe", {k: v for k, v in params.items() if v is not None})
            except CommandRefused as refusal:
                if not follow or refusal.code != "unreachable":
                    raise
                await session.close()
                session = await open_session(workspace)
                continue
            for item in answer["items"]:
                yield item
            params |= {"cursor": answer["cursor"], "attempt": answer["attempt"]}
            if answer["items"]:
                continue
            if not follow or not answer["live"]:
                return
            await asyncio.sleep(_POLL_S)
    finally:
        await session.close()


@command("output")
@click.argument("node", required=False)
@graph_option
@json_option("OutputResult")
def output_command(*, node: str | None, graph: str | None, as_json: bool, workspace: Path | None) -> None:
    """Print the result of NODE as it is; without NODE, the graph's own result.

    Examples:
      graphd output
      graphd output lint --graph checkup > lint.txt
    """

    async def work(session: "Session") -> Wire:
        named = await graph_named(session, graph)
        slug = node
        if slug is None:
            snapshot = await call(session, "workgraph/status", {"graph": named})
            slug = final_output(snapshot or {"nodes": []})
        if slug is None:
            raise CommandRefused("usage", "this graph has no single result", "graphd output NODE")
        return await whole_output(session, named, slug)

    value = talk(workspace, work)
    if as_json:
        print_json(value)
    else:
        _write(value["text"])


async def whole_output(session: "Session", graph: str, node: str) -> Wire:
    """All of a node's output, read piece by piece."""
    slug, attempt = split_attempt(node)
    params: Wire = {"graph": graph, "node": slug, "limit": 1_048_576}
    if attempt is not None:
        params["attempt"] = attempt
    pieces: list[str] = []
    offset = 0
    while True:
        answer = await call(session, "workgraph/output", {**params, "offset": offset})
        pieces.append(answer["text"])
        offset += len(answer["text"].encode())
        if not answer["text"] or offset >= answer["total"]:
            return {**answer, "text": "".join(pieces), "offset": 0}


def _write(text: str) -> None:
    """Text of a child on stdout: untouched into a pipe, harmless on a terminal."""
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown if shown.endswith("\n") or not sys.stdout.isatty() or not shown else shown + "\n")
    sys.stdout.flush()
