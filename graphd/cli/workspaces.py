"""`graphd workspace list | move | forget`: which folders have graphs here, and what becomes of those that moved."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.base.text import t
from graphd.cli.exits import CommandRefused
from graphd.cli.options import Command, Group, json_option, print_json, table
from graphd.cli.talk import is_at_terminal
from graphd.cli.words import clock, counted, harmless

if TYPE_CHECKING:
    from graphd.store.place import Place

Wire = dict[str, Any]


@click.group("workspace", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def workspace_command() -> None:
    """Say which folders have graphs here, and move or forget those of a folder.

    A folder is known by its path, device and inode. After it was moved, or another one took its place, its graphs
    wait for a person to say where they belong.

    Examples:
      graphd workspace list
      graphd workspace move ~/old-name ~/new-name
    """


@workspace_command.command("list", cls=Command)
@json_option("[{workspace, state, graphs, live, daemon, standing}]")
def list_command(as_json: bool) -> None:
    """List the folders that have graphs, and whether each is still there.

    Examples:
      graphd workspace list
    """
    from graphd.store.place import places

    found = places(_state_root())
    if as_json:
        print_json([_wire(place) for place in found])
        return
    if not found:
        click.echo(t("no folder has graphs yet"))
        return
    rows = [
        [place.workspace, str(place.graphs), str(place.live), "yes" if place.has_daemon else "", place.standing,
         clock(place.last_start_ms) if place.last_start_ms else ""]
        for place in found
    ]  # fmt: skip
    table(rows, ["WORKSPACE", "GRAPHS", "LIVE", "DAEMON", "FOLDER", "LAST START"])
    here = Path.cwd()
    for place in found:
        if place.standing == "gone" and place.is_at(here):
            click.echo(f"  graphd workspace move {harmless(place.workspace)} {harmless(str(here))}")


def _wire(place: "Place") -> Wire:
    return {
        "workspace": place.workspace, "state": str(place.folder), "graphs": place.graphs, "live": place.live,
        "daemon": place.has_daemon, "standing": place.standing,
    }  # fmt: skip


@workspace_command.command("move", cls=Command)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
def move_command(old: Path, new: Path) -> None:
    """Give the graphs of OLD to the folder NEW. The same path twice accepts the folder that is there now.

    Examples:
      graphd workspace move ~/old-name ~/new-name
      graphd workspace move ~/project ~/project
    """
    from graphd.base.refusal import Refused
    from graphd.store.place import move

    try:
        place = move(_state_root(), old, new)
    except Refused as refusal:
        raise CommandRefused(refusal.code, refusal.message, refusal.hint) from None
    click.echo(f"{harmless(place.workspace)}: {counted(place.graphs, 'graph')}")
    click.echo("  graphd status")


@workspace_command.command("forget", cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def forget_command(folder: Path, yes: bool) -> None:
    """Remove everything that is kept for FOLDER: its graphs, results and transcripts. The folder itself stays.

    Examples:
      graphd workspace forget ~/gone-project
    """
    from graphd.base.refusal import Refused
    from graphd.store.place import folder_of, forget, place_of

    place = place_of(folder_of(_state_root(), folder))
    if place is not None and not yes:
        what = t("forget {graphs} of {workspace}", graphs=counted(place.graphs, "graph"), workspace=place.workspace)
        if not is_at_terminal():
            raise CommandRefused("usage", t("nobody is here to ask"), "graphd workspace forget --yes FOLDER")
        click.confirm(harmless(what), abort=True, err=True)
    try:
        place = forget(_state_root(), folder)
    except Refused as refusal:
        raise CommandRefused(refusal.code, refusal.message, refusal.hint) from None
    click.echo(
        t(
            "forgotten: {graphs} of {workspace}",
            graphs=counted(place.graphs, "graph"),
            workspace=harmless(place.workspace),
        )
    )


def _state_root() -> Path:
    from graphd.client.paths import state_root

    return Path(state_root())


def keep_place(workspace: str) -> bool:
    """The folder is the same project at the same path, say: its graphs stay. Raises CommandRefused."""
    from graphd.base.refusal import Refused
    from graphd.store.place import move

    try:
        move(_state_root(), Path(workspace), Path(workspace))
    except Refused as refusal:
        raise CommandRefused(refusal.code, refusal.message, refusal.hint) from None
    return True


def settle_place(workspace: str, was: str, is_now: str) -> bool:
    """Ask a person whose graphs these are; True where that is settled and the start may be tried again."""
    click.echo(
        t("the graphs kept for this path belong to {was}; the folder is now {now}", was=was, now=is_now), err=True
    )
    choices = {
        "k": t("keep them: it is the same project"),
        "f": t("forget them: it is another one"),
        "q": t("leave all as it is"),
    }
    for key, text in choices.items():
        click.echo(f"  {key}  {text}", err=True)
    answer = click.prompt(t("which"), type=click.Choice(list(choices)), default="q", err=True, show_choices=False)
    if answer == "k":
        return keep_place(workspace)
    from graphd.base.refusal import Refused
    from graphd.store.place import forget

    try:
        if answer == "f":
            forget(_state_root(), Path(workspace))
    except Refused as refusal:
        raise CommandRefused(refusal.code, refusal.message, refusal.hint) from None
    return bool(answer != "q")
