"""`graphd export --html`: the page goes to stdout, or to a file that is not there yet."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.cli.exits import CommandRefused
from graphd.cli.speech import say
from graphd.cli.talk import graph_named, talk
from graphd.cli.words import size

if TYPE_CHECKING:
    from graphd.cli.page.taking import Taken
    from graphd.client.session import Session


def write_page(workspace: Path | None, graph: str | None, target: str, *, force: bool) -> None:
    """Write the page of `graph` to the file `target`, or to stdout for `-`. Raises CommandRefused."""
    file = None if target == "-" else Path(target)
    if file is not None:
        _check(file, graph, force=force)
    from graphd.cli.page.document import document
    from graphd.cli.page.taking import take

    async def work(session: "Session") -> "Taken":
        return await take(session, await graph_named(session, graph))

    content = document(talk(workspace, work)).encode("utf-8", "replace")
    if file is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    _put(file, content, force=force)
    click.echo(say(t("wrote {file}, {size}", file=file, size=size(len(content)))))


def _check(file: Path, graph: str | None, *, force: bool) -> None:
    """What can be known before anything is read."""
    if graph is None and not file.suffix and file.name == str(file):
        raise CommandRefused(
            "usage", say(t("is {name} the graph, or the file?", name=file.name)),
            f"graphd export {file} --html, or graphd export --html {file}.html",
        )  # fmt: skip
    if file.is_file() and not force:
        raise _taken(file)
    if not file.parent.is_dir():
        raise CommandRefused("usage", say(t("there is no folder {folder}", folder=file.parent)), f"mkdir {file.parent}")


def _taken(file: Path) -> CommandRefused:
    hint = t("--force puts the page in its place")
    return CommandRefused("alreadyExists", say(t("{file} is there already", file=file)), say(hint))


def _put(file: Path, content: bytes, *, force: bool) -> None:
    """Whole or not at all; without `force` never over another file, not even one that came meanwhile."""
    if file.exists() and not file.is_file():  # a device or a pipe: there is nothing to keep
        file.write_bytes(content)
        return
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(name).chmod(0o666 & ~_umask())
        if force:
            failpoint("page.rename.before")
            Path(name).replace(file)
            failpoint("page.rename.after")
            return
        os.link(name, file)
    except FileExistsError:
        raise _taken(file) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
