"""What nodes printed and what came of them: logs, output."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.closing import final_output
from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, completes_node, graph_option, json_option, print_json
from graphd.cli.talk import call, graph_named, open_session, split_attempt, talk
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("logs")
@click.argument("node", shell_complete=completes_node)
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
                write(item.get("text") or "")

    asyncio.run(work())


async def observed(
    workspace: Path | None, graph: str | None, node: str, *, attempt: int | None, follow: bool
) -> AsyncIterator[Wire]:
    """Items of an attempt in order, each once; over restarts of the daemon too, by cursor.

    A follower is woken by what the daemon sends when the attempt prints or the graph changes.
    """
    session = await open_session(workspace)
    listening: asyncio.Task[None] | None = None
    try:
        named = await graph_named(session, graph)
        params: Wire = {"graph": named, "node": node} | ({} if attempt is None else {"attempt": attempt})
        stirred = asyncio.Event()
        while True:
            try:
                if follow and listening is None:
                    listening = await _listening(session, named, node, stirred)
                stirred.clear()
                answer = await call(session, "workgraph/observe", params)
            except CommandRefused as refusal:
                if not follow or refusal.code != "unreachable":
                    raise
                await _end(session, listening)
                session, listening = await open_session(workspace), None
                continue
            for item in answer["items"]:
                yield item
            params |= {"cursor": answer["cursor"], "attempt": answer["attempt"]}
            if answer["items"]:
                continue
            if not follow or not answer["live"]:
                return
            await stirred.wait()
    finally:
        await _end(session, listening)


async def _listening(session: "Session", graph: str, node: str, stirred: asyncio.Event) -> "asyncio.Task[None]":
    """Subscribe to one node; the task sets `stirred` for each notification, and at the end of the connection."""
    await call(session, "workgraph/subscribe", {"graphs": [graph], "output": [{"graph": graph, "node": node}]})

    async def listen() -> None:
        async for _ in session.notifications():
            stirred.set()
        stirred.set()

    return asyncio.create_task(listen())


async def _end(session: "Session", listening: "asyncio.Task[None] | None") -> None:
    await session.close()
    if listening is not None:
        await listening


@command("output")
@click.argument("node", required=False, shell_complete=completes_node)
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
        write(value["text"])


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
        offset = answer.get("next", offset + len(answer["text"].encode()))  # an older daemon does not say it
        if not answer["text"] or offset >= answer["total"]:
            return {**answer, "text": "".join(pieces), "offset": 0}


def write(text: str) -> None:
    """Text of a child on stdout: untouched into a pipe, harmless on a terminal."""
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown if shown.endswith("\n") or not sys.stdout.isatty() or not shown else shown + "\n")
    sys.stdout.flush()
