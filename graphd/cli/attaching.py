"""`graphd attach`: read along with one node, live, and answer what it asks. Leaving stops nothing."""

import asyncio
import contextlib
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.asking import Asking
from graphd.cli.exits import DETACHED, CommandEnded, CommandRefused
from graphd.cli.keyboard import single_keys
from graphd.cli.options import command, completes_node, graph_option
from graphd.cli.people import response
from graphd.cli.printed import observed, write
from graphd.cli.talk import call, call_once, graph_named, is_at_terminal, open_session, split_attempt, talk
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("attach")
@click.argument("node", shell_complete=completes_node)
@graph_option
@click.option("--take-over", is_flag=True, help="Pause NODE and open its session in the agent's own program first.")
def attach_command(*, node: str, graph: str | None, take_over: bool, workspace: Path | None) -> None:
    """Read along with NODE and answer what it asks, each with a key; Ctrl-C leaves, and it goes on.

    It ends with the attempt. Without a terminal it reads along alone.

    Examples:
      graphd attach build
      graphd attach build --graph @last
      graphd attach build --take-over
    """
    slug, attempt = split_attempt(node)

    async def find(session: "Session") -> str:
        named = await graph_named(session, graph)
        snapshot: Wire | None = await call(session, "workgraph/status", {"graph": named})
        if snapshot is None:
            raise CommandRefused("notFound", "this graph was cleared", "graphd status")
        return str(snapshot["id"])

    found = talk(workspace, find)
    if take_over:
        from graphd.cli.taking_over import take_over as open_session_of

        attempt = asyncio.run(open_session_of(workspace, found, slug))
        if attempt is None:
            click.echo(f"{harmless(slug)} waits to go on\n  graphd why {harmless(slug)}", err=True)
            return
    try:
        asyncio.run(Reader(workspace, found, slug).read(attempt))
    except KeyboardInterrupt:
        click.echo(f"\ndetached; {harmless(slug)} goes on\n  graphd attach {harmless(slug)}", err=True)
        raise CommandEnded(DETACHED) from None


class Reader:
    """One reader of one node."""

    def __init__(self, workspace: Path | None, graph: str, node: str) -> None:
        self._workspace = workspace
        self._graph = graph
        self._node = node
        self._asking = Asking(show=self._show, answer=self._answer)
        self._keys = contextlib.ExitStack()
        self._answers: set[asyncio.Task[None]] = set()

    async def read(self, attempt: int | None) -> None:
        """To the end of the attempt. Raises CommandRefused."""
        can_answer = is_at_terminal() and sys.stdout.isatty()
        asking = asyncio.create_task(self._follow_asks()) if can_answer else None
        try:
            async for item in observed(self._workspace, self._graph, self._node, attempt=attempt, follow=True):
                write(item.get("text") or "")
        finally:
            self._keys.close()
            for task in (*self._answers, *([asking] if asking is not None else [])):
                task.cancel()
            await asyncio.gather(*self._answers, *([asking] if asking is not None else []), return_exceptions=True)

    async def _follow_asks(self) -> None:
        from graphd.client.follow import follow
        from graphd.client.session import Session

        async def open_one(may_start: bool) -> Session:
            return await Session.open(workspace=self._workspace, start=may_start, client="graphd-cli", interactive=True)

        self._keys.enter_context(single_keys(self._asking.press))
        async with aclosing(follow(open_one, self._graph, activity=False)) as updates:
            async for update in updates:
                asks = (update.snapshot or {}).get("asks", [])
                self._asking.take([ask for ask in asks if ask.get("node") == self._node])

    def _show(self, text: str) -> None:
        click.echo(f"\n{text}\a" if text else "(it needs no answer any more)", err=True)

    def _answer(self, ask: Wire, option: str, scope: str) -> None:
        task = asyncio.get_running_loop().create_task(self._respond(ask, option, scope))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _respond(self, ask: Wire, option: str, scope: str) -> None:
        try:
            session = await open_session(self._workspace)
            try:
                await call_once(session, "workgraph/respond", response(ask, option=option, scope=scope))
            finally:
                await session.close()
        except CommandRefused as refusal:
            click.echo(f"{ask['id']}: {harmless(refusal.message)}", err=True)
            if refusal.code != "askGone":
                self._asking.again(ask)
