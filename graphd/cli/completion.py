"""`graphd completion bash | zsh | fish`, and what completes graphs, nodes and workflows.

Names come from the daemon where one runs; none is ever started for a key press, and a slow one is not waited for.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from graphd.cli.options import command

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
PATIENCE_S: Final = 0.5
PROGRAM: Final = "graphd"
VARIABLE: Final = "_GRAPHD_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str, workspace: Path | None) -> None:
    """Print the completion script of SHELL. Names of graphs, nodes and workflows come from a running daemon.

    Examples:
      eval "$(graphd completion bash)"
      graphd completion fish | source
    """
    from graphd.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has these three
    click.echo(ShellComplete.source(found(cli, {}, PROGRAM, VARIABLE)))


# ---- what can stand at a place ------------------------------------------------------------------------------------

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_graph(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Ids and workflows' names of graphs, newest first."""

    async def ask(session: "Session") -> list[CompletionItem]:
        headers = (await session.call("workgraph/list", {"limit": 50}))["graphs"]
        names = dict.fromkeys((h["source"].get("name"), h["title"]) for h in headers if h["source"].get("name"))
        items = [CompletionItem(str(name), help=title) for name, title in names]
        return [*items, CompletionItem("@last"), *(CompletionItem(h["id"], help=h["title"]) for h in headers)]

    return _matching(begun, _asked(ctx, ask))


def complete_node(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Slugs of the graph that was named, else of the only live one."""
    graph = ctx.params.get("graph")

    async def ask(session: "Session") -> list[CompletionItem]:
        snapshot = await session.call("workgraph/status", {"graph": graph} if graph else {})
        return [CompletionItem(node["slug"], help=node["state"]) for node in (snapshot or {"nodes": []})["nodes"]]

    return _matching(begun, _asked(ctx, ask))


def complete_source(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of workflows, and files."""

    async def ask(session: "Session") -> list[CompletionItem]:
        entries = await session.call("workgraph/workflows")
        return [CompletionItem(entry["name"], help=entry["title"]) for entry in entries]

    named = [] if "/" in begun else _matching(begun, _asked(ctx, ask))
    return [*named, CompletionItem(begun, type="file")]


def _asked(ctx: click.Context, ask: Callable[["Session"], Any]) -> list[CompletionItem]:
    """What a running daemon says, in time; nothing else, whatever goes wrong: the shell waits for a key."""
    from graphd.cli.talk import is_daemon_absent

    workspace = ctx.params.get("workspace")
    workspace = Path(workspace) if workspace else None
    try:
        if is_daemon_absent(workspace):
            return []
        found: list[CompletionItem] = asyncio.run(_in_time(workspace, ask))
    except Exception:  # noqa: BLE001 - a traceback in the middle of a command line helps nobody
        return []
    return found


async def _in_time(workspace: Path | None, ask: Callable[["Session"], Any]) -> Any:
    from graphd.client.session import Session

    async with asyncio.timeout(2 * PATIENCE_S):
        session = await Session.open(
            workspace=workspace, start=False, client="graphd-completion", patience_s=PATIENCE_S
        )
        async with session:
            return await ask(session)


def _matching(begun: str, items: list[CompletionItem]) -> list[CompletionItem]:
    return [item for item in items if str(item.value).startswith(begun)]
