"""The command `graphd`: a group that loads a command's module when it is used, and what an exit code is made from."""

import json
import os
import sys
from importlib import import_module
from typing import Final, NamedTuple

import click

from graphd.cli.exits import DETACHED, FAILED, OK, USAGE, CommandEnded, CommandRefused, code_of_refusal


class Entry(NamedTuple):
    """One command: where its code is and what the overview says."""

    section: str
    module: str
    summary: str


COMMANDS: Final[dict[str, Entry]] = {
    "run": Entry("Run", "run", "Run a workflow, a file or a few commands, and watch it."),
    "validate": Entry("Run", "workflow_files", "Check a workflow file without running anything."),
    "explain": Entry("Run", "workflow_files", "Show the nodes that a workflow compiles to."),
    "workflows": Entry("Run", "workflow_files", "List the workflows that can be run by name."),
    "init": Entry("Run", "workflow_files", "Write a sample workflow and print the editor lines."),
    "apply": Entry("Run", "replan", "Make an edited workflow file the plan of the graph started from it."),
    "save": Entry("Run", "replan", "Write the plan of a graph as a workflow file."),
    "rerun": Entry("Run", "replan", "Run the plan of a graph again."),
    "status": Entry("Look", "look", "Show the daemon and the graphs of this workspace."),
    "watch": Entry("Look", "look", "Follow a graph as a live tree."),
    "show": Entry("Look", "show", "Draw a graph in layers."),
    "logs": Entry("Look", "printed", "Show what a node printed."),
    "output": Entry("Look", "printed", "Print a node's result."),
    "diff": Entry("Look", "differing", "Show what an agent changed."),
    "why": Entry("Look", "past", "Say why a node or a graph is where it is, and what to type next."),
    "history": Entry("Look", "past", "List what happened to a graph."),
    "processes": Entry("Look", "look", "List the process trees that are kept."),
    "pause": Entry("Steer", "steer", "Start nothing more; with --stop, stop what runs too."),
    "resume": Entry("Steer", "steer", "Go on with a paused graph."),
    "step": Entry("Steer", "steer", "Start one node, then pause again."),
    "retry": Entry("Steer", "steer", "Try failed and blocked nodes again."),
    "finish": Entry("Steer", "steer", "Let what runs finish, skip the rest."),
    "cancel": Entry("Steer", "steer", "Stop a graph and end every process of it."),
    "clear": Entry("Steer", "steer", "Stop a graph and forget it, with its files."),
    "signal": Entry("Steer", "signals", "Tell what waits for it that something happened."),
    "extend-timeout": Entry("Steer", "steer", "Let a running node work for longer."),
    "extend": Entry("Steer", "replan", "Add nodes to a graph."),
    "replan": Entry("Steer", "replan", "Change the plan of a graph."),
    "accept": Entry("Steer", "replan", "Carry out what was proposed."),
    "dismiss": Entry("Steer", "replan", "Turn down what was proposed."),
    "release": Entry("Steer", "steer", "Declare a stuck process tree dead."),
    "ask": Entry("Answer", "people", "List what waits for a person."),
    "answer": Entry("Answer", "people", "Answer what an agent, a gate or a deadline asks."),
    "attach": Entry("Answer", "attaching", "Read along with a node, and answer what it asks."),
    "agents": Entry("Set up", "setup", "List the agents that can do work here."),
    "doctor": Entry("Set up", "setup", "Check that everything is in order."),
    "daemon": Entry("Set up", "setup", "Run the daemon here, or start it in the background."),
    "stop": Entry("Set up", "setup", "Stop the daemon; what runs goes on under its keepers."),
    "connect": Entry("Set up", "setup", "A byte pipe to the daemon: what an editor starts."),
    "mcp": Entry("Set up", "setup", "The tools of a child, as an MCP server: what its agent starts."),
    "config": Entry("Set up", "config", "Show, change and check the settings."),
    "workspace": Entry("Set up", "workspaces", "List the folders that have graphs; move or forget them."),
    "export": Entry("Set up", "carry", "Write a graph as JSON lines, or as a page."),
    "import": Entry("Set up", "carry", "Read a graph that was exported."),
    "purge": Entry("Set up", "carry", "Remove ended graphs, or what they left on the disk."),
    "completion": Entry("Set up", "completion", "Print the completion script of a shell."),
    "demo": Entry("Set up", "demo", "Show it at work; with --chaos, kill everything meanwhile."),
}
_ALIASES: Final = {"stdio": "connect"}


class LazyGroup(click.Group):
    """Imports the module of a command at its first use, and lists the commands in groups without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; its module is imported now. None where there is no such command."""
        name = _ALIASES.get(cmd_name, cmd_name)
        entry = COMMANDS.get(name)
        if entry is None:
            return None
        module = import_module(f"graphd.cli.{entry.module}")
        found: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but with the nearest names where there is no such command."""
        name = args[0]
        if name not in COMMANDS and name not in _ALIASES and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, 2)
            hint = f"did you mean {' or '.join(near)}?" if near else "graphd --help lists the commands"
            raise CommandRefused("usage", f"there is no command {name!r}", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview: five groups."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                formatter.write_dl([(name, e.summary) for name, e in COMMANDS.items() if e.section == section])
        with formatter.section("Examples"):
            for line in ("graphd run checkup", "graphd run --sh 'make lint' --sh 'make test' --then './deploy'"):
                formatter.write(f"  {line}\n")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Run a durable graph of work: real processes, kept over every crash, watched from any terminal.

    GRAPH is an id, a prefix of one, a workflow's name (its latest run) or @last; left out, it is the only live
    one. NODE is a node's name; NODE@2 is its second attempt.
    """
    if version:
        from graphd import __version__

        click.echo(f"graphd {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run_command(args: list[str]) -> int:
    """Run one command line and return its exit code; refusals are printed here and nowhere else."""
    wants_json = "--json" in args
    try:
        cli.main(args, prog_name="graphd", standalone_mode=False)
        sys.stdout.flush()
    except CommandEnded as end:
        return end.code
    except CommandRefused as refusal:
        _report(refusal, wants_json=wants_json)
        return code_of_refusal(refusal.code) if refusal.exit_code is None else refusal.exit_code
    except click.UsageError as trouble:
        hint = f"{trouble.ctx.command_path} --help" if trouble.ctx else "graphd --help"
        _report(CommandRefused("usage", trouble.format_message(), hint), wants_json=wants_json)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return DETACHED
    except BrokenPipeError:
        # Whoever read us has enough. Python would complain once more when it flushes stdout at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as trouble:
        what = f"{trouble.filename}: {trouble.strerror}" if trouble.filename else str(trouble)
        _report(CommandRefused("failed", what), wants_json=wants_json)
        return FAILED
    return OK


def _report(refusal: CommandRefused, *, wants_json: bool) -> None:
    if wants_json:
        sys.stdout.write(json.dumps(refusal.wire(), ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stdout.flush()
        return
    from graphd.cli.words import harmless

    lines = [f"graphd: {harmless(refusal.message)}"] + ([f"  {harmless(refusal.hint)}"] if refusal.hint else [])
    print("\n".join(lines), file=sys.stderr)


def main() -> None:
    """Entry point: run the command line of this process and exit."""
    sys.exit(run_command(sys.argv[1:]))
