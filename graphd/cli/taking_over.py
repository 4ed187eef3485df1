"""`graphd attach --take-over`: the agent's own program on a node's session, at this terminal."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from graphd.base.failpoints import failpoint
from graphd.cli.exits import CommandRefused
from graphd.cli.talk import call, open_session
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

GOES_ON_S: Final = 10.0
POLL_S: Final = 0.1


async def take_over(workspace: Path | None, graph: str, node: str) -> int | None:
    """Hold the node, run the program to its end, let the node go on: the attempt that does. Raises CommandRefused."""
    session = await open_session(workspace)
    try:
        held = await call(session, "workgraph/hold", {"graph": graph, "node": node})
        click.echo(f"{harmless(node)} is paused; it goes on when {harmless(held['argv'][0])} ends", err=True)
        before = await _last_attempt(session, graph, node)
        await _run(held["argv"], held["cwd"])
    finally:
        await session.close()
    return await _gone_on(workspace, graph, node, after=before)


async def _last_attempt(session: "Session", graph: str, node: str) -> int:
    observed = await call(session, "workgraph/observe", {"graph": graph, "node": node, "limit": 1})
    return int(observed["attempt"])


async def _gone_on(workspace: Path | None, graph: str, node: str, *, after: int) -> int | None:
    """The attempt that goes on; None where none does soon: its graph is paused, or other work has the slots."""
    session = await open_session(workspace)
    try:
        for _ in range(int(GOES_ON_S / POLL_S)):
            number = await _last_attempt(session, graph, node)
            if number > after:
                return number
            await asyncio.sleep(POLL_S)
    finally:
        await session.close()
    return None


async def _run(argv: list[str], cwd: str) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is the program's
    try:
        failpoint("takeover.spawn.before")
        program = await asyncio.create_subprocess_exec(*argv, cwd=cwd)
        failpoint("takeover.spawn.after")
    except OSError as trouble:
        raise CommandRefused("agentMissing", f"{argv[0]}: {trouble.strerror}", "is it on your PATH?") from None
    await program.wait()
