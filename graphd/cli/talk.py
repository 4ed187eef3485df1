"""How a command reaches the daemon: open a session, call, name a graph, and turn refusals into exit codes."""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphd.cli.exits import CommandRefused
from graphd.cli.words import STATUS_WORDS, clock, counted, harmless, short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
T = TypeVar("T")
_RECENT = 9
_DIGITS = 9
_KEEPERS_MOMENT_S = 0.2
_LEAVING_S = 1.0


async def open_session(workspace: Path | None, *, start: bool = True, keeps_place: bool = False) -> "Session":
    """A session with the workspace's daemon, started if need be. Raises CommandRefused where there is none.

    `keeps_place`: where the folder took the place of another one, its graphs are kept without asking.
    """
    from graphd.client.paths import AttachFailure
    from graphd.client.session import RemoteRefused, Session
    from graphd.client.starting import WorkspaceTaken

    try:
        session = await Session.open(
            workspace=workspace, start=start, client="graphd-cli", interactive=is_at_terminal()
        )
        _say_once(session.note)
        return session
    except RemoteRefused as refusal:
        raise refused(refusal) from None
    except AttachFailure as failure:
        if isinstance(failure, WorkspaceTaken) and (keeps_place or is_at_terminal()):
            from graphd.cli.workspaces import keep_place, settle_place

            root = root_of(workspace)
            if keep_place(root) if keeps_place else settle_place(root, failure.was, failure.is_now):
                return await open_session(workspace, start=start)
        hint = failure.hint or "graphd doctor"
        raise CommandRefused(failure.code, failure.message, hint, exit_code=failure.exit_code) from None
    except OSError as trouble:
        raise CommandRefused("unreachable", str(trouble) or type(trouble).__name__, "graphd doctor") from None


_said: set[str] = set()


def _say_once(note: str) -> None:
    """On stderr: which workspace was taken, where it is another one than was named."""
    if note and note not in _said:
        _said.add(note)
        print(f"graphd: {harmless(note)}", file=sys.stderr)


def refused(refusal: Any) -> CommandRefused:
    """The daemon's refusal as the command's own."""
    facts = {key: value for key, value in refusal.data.items() if key not in ("code", "hint")}
    return CommandRefused(refusal.code, refusal.message, refusal.hint, **facts)


async def call(session: "Session", method: str, params: Wire | None = None) -> Any:
    """One request. Raises CommandRefused for a refusal, and where the connection ends before the answer."""
    from graphd.client.session import ConnectionLost, RemoteRefused

    try:
        return await session.call(method, params or {})
    except RemoteRefused as refusal:
        raise refused(refusal) from None
    except ConnectionLost as trouble:
        text = f"the daemon went away before it answered {method} ({trouble})"
        raise CommandRefused("unreachable", text, "type the command again: it starts another daemon") from None


async def call_once(session: "Session", method: str, params: Wire, *, key: str = "requestId") -> Any:
    """A mutation that is applied once, whatever happens to the daemon: its request id goes again to the next one,
    also where this one refuses it because it is stopping.

    `key` is what the method calls that id.

    Raises CommandRefused.
    """
    from graphd.client.session import ConnectionLost, RemoteRefused

    params = params if params.get("dryRun") else {key: str(uuid.uuid4()), **params}
    try:
        return await session.call(method, params)
    except RemoteRefused as refusal:
        if refusal.code != "storeUnavailable" or not await session.ends(within_s=_LEAVING_S):
            raise refused(refusal) from None
    except ConnectionLost:
        await asyncio.sleep(_KEEPERS_MOMENT_S)
    again = await open_session(Path(session.hello["workspace"]))
    try:
        return await call(again, method, params)
    finally:
        await again.close()


def talk(workspace: Path | None, work: Callable[["Session"], Awaitable[T]], *, start: bool = True) -> T:
    """Run `work` with a session that is closed afterwards, on a loop of its own."""

    async def conversation() -> T:
        session = await open_session(workspace, start=start)
        try:
            return await work(session)
        finally:
            await session.close()

    return asyncio.run(conversation())


def ask_daemon(workspace: Path | None, method: str, params: Wire | None = None) -> Any:
    """One request on a session of its own."""
    return talk(workspace, lambda session: call(session, method, params))


async def graph_named(session: "Session", given: str | None) -> str:
    """What to send as `graph`: what was typed, else the only live one or the only one at all, else a choice.

    Raises CommandRefused `ambiguous` with the list where nobody can choose, `notFound` where there is no graph.
    """
    if given is not None:
        return given
    live = (await call(session, "workgraph/list", {"status": "live"}))["graphs"]
    offered = live or (await call(session, "workgraph/list", {"limit": _RECENT}))["graphs"]
    if len(offered) == 1:
        return str(offered[0]["id"])
    if not offered:
        raise CommandRefused("notFound", "there is no graph in this workspace yet", "graphd run checkup")
    if is_at_terminal():
        return _chosen(offered[:_RECENT])
    listed = "\n".join(f"  {_offer(header)}" for header in offered)
    why = f"{counted(len(live), 'graph')} are live" if live else "no graph is live"
    raise CommandRefused(
        "ambiguous", f"{why}; name one of these:\n{listed}", "put its id, its workflow's name or @last behind it",
        graphs=[header["id"] for header in offered],
    )  # fmt: skip


def _offer(header: Wire) -> str:
    status = STATUS_WORDS[header["status"]]
    return f"{short_id(header['id'])}  {harmless(header['title'])}  {status}  {clock(header['createdAt'])}"


def _chosen(offered: list[Wire]) -> str:
    import click

    for number, header in enumerate(offered, 1):
        click.echo(f"  {number}  {_offer(header)}", err=True)
    number = click.prompt("which graph", type=click.IntRange(1, len(offered)), default=1, err=True)
    return str(offered[number - 1]["id"])


def split_attempt(node: str) -> tuple[str, int | None]:
    """`NODE@2` as the node and the attempt's number."""
    slug, mark, number = node.partition("@")
    if mark and not (number.isdecimal() and len(number) <= _DIGITS):
        raise CommandRefused("usage", f"{node!r} names no attempt", "NODE@2 is the second attempt of NODE")
    return slug, int(number) if mark else None


def is_at_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def root_of(workspace: Path | None) -> str:
    """The real path of the workspace. Raises CommandRefused where there can be none."""
    from graphd.client.paths import AttachFailure, find_workspace

    try:
        return find_workspace(workspace).root
    except AttachFailure as failure:
        raise CommandRefused(failure.code, failure.message, failure.hint, exit_code=failure.exit_code) from None


def is_daemon_absent(workspace: Path | None) -> bool:
    """Whether nobody listens. A daemon that listens and does not answer is there."""
    from graphd.client.paths import connect_beside, state_folder

    try:
        connect_beside(state_folder(root_of(workspace)), timeout_s=2).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return True
    except OSError:
        return False
    return False
