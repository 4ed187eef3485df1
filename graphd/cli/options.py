"""Options that many commands share, and the class of command that prints its examples."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose docstring may end with an `Examples:` block, printed line by line as it stands."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text, then the examples under a heading of their own."""
        _format_help_text(self, formatter)


def _format_help_text(shown: click.Command, formatter: click.HelpFormatter) -> None:
    text, _, examples = (shown.help or "").partition("Examples:")
    with formatter.indentation():
        formatter.write_paragraph()
        for paragraph in text.strip().split("\n\n"):
            formatter.write_text(" ".join(paragraph.split()))
            formatter.write_paragraph()
    lines = [line.strip() for line in examples.strip().splitlines() if line.strip()]
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"  {line}\n")


class Group(click.Group):
    """A group of subcommands whose docstring may end with examples, as a `Command`'s."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text, then the examples."""
        _format_help_text(self, formatter)


def command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command of ours; every one of them takes `--workspace`."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        option = click.option(
            "--workspace", "-w", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
            help="The workspace, or a directory in it. Default: the current directory.",
        )  # fmt: skip
        return click.command(name, cls=Command)(option(function))

    return decorate


def json_option(wire: str) -> Callable[[F], F]:
    """`--json`, with the wire type of `protocol.json` that it prints."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {wire} as JSON.")


def _completed(what: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """A completion whose code is loaded when a shell asks for it."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> Any:
        from graphd.cli import completion

        return getattr(completion, f"complete_{what}")(ctx, param, begun)

    return complete


completes_node = _completed("node")
completes_source = _completed("source")
completes_graph = _completed("graph")
graph_argument = click.argument("graph", required=False, shell_complete=completes_graph)
graph_option = click.option(
    "--graph",
    "-g",
    metavar="GRAPH",
    shell_complete=completes_graph,
    help="Id, prefix, workflow's name or @last. Default: the only live one.",
)


def print_json(value: Any) -> None:
    """One JSON value on one line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def table(rows: list[list[str]], header: list[str] | None = None) -> None:
    """Left-aligned columns on stdout; the last one is as long as it likes."""
    from graphd.cli.words import harmless

    shown = [[harmless(cell).replace("\n", " ") for cell in row] for row in rows]
    everything = [header, *shown] if header else shown
    widths = (
        [max(_cells(row[column]) for row in everything) for column in range(len(everything[0]))] if everything else []
    )
    for index, row in enumerate(everything):
        padded = [cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(padded).rstrip()
        click.echo(click.style(line, bold=True) if header and index == 0 else line, color=colour())


def _cells(text: str) -> int:
    """How many columns a terminal needs for it."""
    from unicodedata import east_asian_width

    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def colour() -> bool:
    """Whether stdout may carry colour: a terminal, and `NO_COLOR` is not set."""
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
