"""`graphd diff`: what an agent changed in the git work tree."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.options import colour, command, completes_node, graph_option, json_option, print_json
from graphd.cli.talk import call, graph_named, split_attempt, talk
from graphd.cli.words import harmless, short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode", "Binary files")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@command("diff")
@click.argument("node", shell_complete=completes_node)
@graph_option
@json_option("DiffResult")
def diff_command(*, node: str, graph: str | None, as_json: bool, workspace: Path | None) -> None:
    """Show what NODE changed in the git work tree, until now while it runs; NODE@2 is its second attempt.

    Who else worked there at the same time is said on stderr: the patch may hold their changes too.

    Examples:
      graphd diff build
      graphd diff build@1 --graph @last | git apply --reverse
    """
    slug, attempt = split_attempt(node)

    async def work(session: "Session") -> Wire:
        named = await graph_named(session, graph)
        params: Wire = {"graph": named, "node": slug} | ({} if attempt is None else {"attempt": attempt})
        answer: Wire = await call(session, "workgraph/diff", params)
        return answer

    found = talk(workspace, work)
    if as_json:
        print_json(found)
        return
    for line in beside(found):
        click.echo(line, err=True)
    if found["patch"] and not sys.stdout.isatty():
        sys.stdout.write(found["patch"])
    elif found["patch"]:
        click.echo("\n".join(patch_lines(found)), color=colour())


def beside(found: Wire) -> list[str]:
    """What has to be known of a patch."""
    others = ", ".join(f"{one['node']}@{one['attempt']} of {short_id(one['graph'])}" for one in found["shared"])
    lines = [harmless(f"these ran in the same tree meanwhile: {others}")] if others else []
    return lines if found["patch"] else [*lines, "it changed nothing"]


def patch_lines(found: Wire) -> list[str]:
    """A patch for a terminal."""
    return [_shown(line) for line in found["patch"].rstrip("\n").split("\n")] if found["patch"] else []


def _shown(line: str) -> str:
    """One line of a patch for a terminal."""
    text = harmless(line)
    if line.startswith(_HEADS):
        return click.style(text, bold=True)
    return click.style(text, fg=_COLOURS[line[0]]) if line[:1] in _COLOURS else text
