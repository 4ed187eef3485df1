"""`graphd run`: a workflow by name, a file, stdin or a few commands become a graph, followed to its end."""

import asyncio
import contextlib
import sys
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli import consent
from graphd.cli.amounts import budget_of
from graphd.cli.edits import reasoned
from graphd.cli.exits import CommandEnded, CommandRefused
from graphd.cli.look import show_graph, timeout_of
from graphd.cli.options import Command, completes_source, json_option, print_json
from graphd.cli.shelf import nodes_of, title_of
from graphd.cli.talk import call, call_once, is_at_terminal, open_session
from graphd.cli.words import harmless, short_id
from graphd.cli.workflow_files import print_diagnostics

if TYPE_CHECKING:
    from graphd.cli.following import Wishes
    from graphd.client.session import Session

Wire = dict[str, Any]
_LATER = {
    "--goal": "planning from a goal",
    "--agent": "agents other than the shell",
}


class RunCommand(Command):
    """Remembers in which order `--sh` and `--then` were typed, and names what this version does not have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse twice: once for click's values, once for the order, which click forgets."""
        for word in args:
            name = word.split("=", 1)[0]
            if name in _LATER:
                raise CommandRefused(
                    "notSupported", f"{name}: {_LATER[name]} is not in this version", "graphd run --help"
                )
            if name == "--":
                break
        values, _, order = self.make_parser(ctx).parse_args(list(args))
        left = {name: list(values.get(name) or ()) for name in ("sh", "then")}
        names = [param.name for param in order if param.name in left]
        ctx.obj = [(name, left[name].pop(0)) for name in names if left[name]]
        return super().parse_args(ctx, args)


@dataclass(slots=True)
class Plan:
    """What is to be run: params of `workgraph/set`, and the file whose bytes the user consents to."""

    params: Wire
    file: Path | None = None
    content: bytes = b""
    inputs: dict[str, str] = field(default_factory=dict)


@click.command("run", cls=RunCommand)
@click.argument("source", required=False, metavar="[WORKFLOW|FILE|-]", shell_complete=completes_source)
@click.option("--sh", multiple=True, metavar="CMD", help="A node that runs CMD; repeated ones run together.")
@click.option("--then", multiple=True, metavar="CMD", help="A node that runs CMD after everything before it.")
@click.option("--input", "inputs", multiple=True, metavar="K=V", help="A value for an input of the workflow.")
@click.option("--prune", multiple=True, metavar="NODE=REASON", help="Leave a node of the workflow out; say why.")
@click.option("--budget", metavar="AMOUNT", help="It stops at so much: 200k tokens, 2.50usd, 30m of wall time.")
@click.option("--detach", "-d", is_flag=True, help="Return as soon as the start is committed.")
@click.option("--timeout", metavar="D", help="Stop watching after 30s, 5m, 2h (exit code 124); the graph goes on.")
@click.option("--allow-failures", is_flag=True, help="Exit code 0 also when optional nodes failed.")
@click.option("--dry-run", is_flag=True, help="Show what would run; start nothing.")
@click.option(
    "--yes", "-y", is_flag=True, help="Ask nothing: run a changed file; keep the graphs of a replaced folder."
)
@click.option("--no-ask", is_flag=True, help="Ask nothing at all: missing inputs are an error.")
@click.option(
    "--workspace", "-w", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="The workspace, or a directory in it. Default: the current directory.",
)  # fmt: skip
@json_option("one object a line with `type`: Changed …, the Snapshot last,")
@click.pass_obj
def run_command(
    steps: list[tuple[str, str]], *, source: str | None, sh: tuple[str, ...], then: tuple[str, ...],
    inputs: tuple[str, ...], prune: tuple[str, ...], budget: str | None, detach: bool, timeout: str | None,
    allow_failures: bool,
    dry_run: bool, yes: bool, no_ask: bool, workspace: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a workflow by its name, a workflow file, stdin (-), or a few commands, and watch it to the end.

    The graph belongs to the daemon: closing this terminal, Ctrl-C or a crash of anything stops nothing.

    Exit codes: 0 complete; 1 failed or blocked; 2 usage or bad file; 3 cancelled or cleared; 5 no agent, a stuck
    process, no daemon, store trouble; 6 a person is needed; 7 paused; 124 --timeout; 130 detached.

    Examples:
      graphd run checkup
      graphd run deploy.yaml --input stage=test --timeout 10m
      graphd run --sh 'make lint' --sh 'make test' --then './deploy'
      graphd run checkup --detach
    """
    if bool(source) == bool(sh or then):
        raise CommandRefused("usage", "run what?", "graphd run WORKFLOW, graphd run FILE, or graphd run --sh CMD")
    from graphd.cli.following import Wishes

    wishes = Wishes(
        as_json=as_json, timeout_s=timeout_of(timeout), allow_failures=allow_failures, asks=not no_ask,
        shows_output=True, steers=True,
    )  # fmt: skip
    given = dict(pair(item) for item in inputs)
    limit = budget_of(budget) if budget is not None else None
    may_ask = is_at_terminal() and not no_ask and source != "-"
    may_confirm = may_ask and not yes and not as_json
    left_out = reasoned("--prune", prune)
    order = Order(
        source, steps, given, left_out, may_ask=may_ask, may_confirm=may_confirm, says_yes=yes, budget=limit
    )  # fmt: skip
    raise CommandEnded(asyncio.run(perform(workspace, order, wishes, is_detached=detach, is_dry_run=dry_run)))


@dataclass(slots=True, frozen=True)
class Order:
    """What was typed after `run`, and what may be asked of a person."""

    source: str | None
    steps: list[tuple[str, str]]
    inputs: dict[str, str]
    left_out: list[Wire] = field(default_factory=list)
    """Nodes that are pruned, each with its reason."""
    may_ask: bool = False
    may_confirm: bool = False
    says_yes: bool = False
    budget: Wire | None = None


def pair(item: str) -> tuple[str, str]:
    """`name=value`, taken apart. Raises a usage refusal."""
    name, mark, value = item.partition("=")
    if not mark or not name:
        raise CommandRefused("usage", f"{item!r} is not of the form name=value", "graphd run NAME --input name=value")
    return name, value


async def perform(
    workspace: Path | None, order: Order, wishes: "Wishes", *, is_detached: bool = False, is_dry_run: bool = False
) -> int:
    """Set the graph and follow it; returns the exit code."""
    from graphd.cli.following import follow_to_the_end

    session = await open_session(workspace, keeps_place=order.says_yes)
    try:
        plan = await _planned(session, order)
        if order.left_out:
            plan.params["prune"] = order.left_out
        if order.budget is not None:
            plan.params["budget"] = order.budget
        state = _state_folder(session)
        if plan.file is not None:
            consent.ask_if_changed(state, plan.file, plan.content, may_ask=order.may_confirm and not is_dry_run)
        if is_dry_run:
            _show_preview(
                await _set(session, order, {**plan.params, "dryRun": True}, wishes=wishes), as_json=wishes.as_json
            )
            return 0
        answer = await _set(session, order, {**plan.params, "requestId": str(uuid.uuid4())}, wishes=wishes)
        if plan.file is not None:
            consent.remember(state, plan.file, plan.content)
    finally:
        await session.close()
    if is_detached:
        if wishes.as_json:
            print_json({"graph": answer["graph"], "rev": answer["rev"]})
        else:
            click.echo(f"started {short_id(answer['graph'])}\n  graphd watch {short_id(answer['graph'])}")
        return 0
    return await follow_to_the_end(workspace, answer["graph"], wishes)


def _state_folder(session: "Session") -> Path:
    from graphd.client.paths import state_folder

    return Path(state_folder(session.hello["workspace"]))


async def _planned(session: "Session", order: Order) -> Plan:
    if order.source is None:
        return Plan({"nodes": nodes_of(order.steps), "title": title_of(order.steps)})
    if order.source == "-":
        return Plan({"text": sys.stdin.read(), "inputs": order.inputs})
    if "/" in order.source or order.source.endswith((".yaml", ".yml")):
        return _from_file(Path(order.source), order.inputs)
    return _from_name(order.source, order.inputs, await call(session, "workgraph/workflows"))


def _from_name(name: str, inputs: dict[str, str], entries: list[Wire]) -> Plan:
    listed = {entry["name"]: entry for entry in entries}
    entry = listed.get(name)
    if entry is None:
        if Path(name).is_file():
            return _from_file(Path(name), inputs)
        raise _no_such_workflow(name, list(listed))
    plan = Plan({"workflow": name, "inputs": inputs})
    if entry["source"] != "bundled" and Path(entry["path"]).is_file():
        return _from_file(Path(entry["path"]), inputs)
    return plan


def _from_file(path: Path, inputs: dict[str, str]) -> Plan:
    """The bytes are read once: what the person sees is what is sent, whatever becomes of the file."""
    content = file_bytes(path)
    params: Wire = {"file": str(path.resolve()), "inputs": inputs}
    with contextlib.suppress(UnicodeDecodeError):  # the daemon reads that file itself, and says what is wrong with it
        params["text"] = content.decode()
    return Plan(params, file=path.resolve(), content=content)


def file_bytes(path: Path) -> bytes:
    """The bytes of a file that was named on the command line. Raises a usage refusal where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as trouble:
        raise CommandRefused("usage", f"{path}: {trouble.strerror}", "graphd workflows lists what can be run") from None


def _no_such_workflow(name: str, known: list[str]) -> CommandRefused:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "graphd workflows lists what can be run"
    return CommandRefused("notFound", f"there is no workflow {name!r}, and no file of that name", hint, exit_code=2)


async def _set(session: "Session", order: Order, params: Wire, *, wishes: "Wishes") -> Wire:
    """Send `workgraph/set`; inputs that are missing are asked for at a terminal, once."""
    try:
        answer: Wire = await call_once(session, "workgraph/set", params)
    except CommandRefused as refusal:
        if refusal.code == "inputMissing" and order.may_ask:
            given = _asked_for(refusal.facts.get("diagnostics") or [])
            inputs = params.get("inputs", {}) | given
            return await _set(session, replace(order, may_ask=False), {**params, "inputs": inputs}, wishes=wishes)
        diagnostics = refusal.facts.get("diagnostics")
        if wishes.as_json or not diagnostics:
            raise
        print_diagnostics("<stdin>" if order.source == "-" else order.source or "--sh", diagnostics, err=True)
        raise CommandRefused(refusal.code, "nothing was started") from None
    return answer


def _asked_for(diagnostics: list[Wire]) -> dict[str, str]:
    """What a person types for each input that is missing."""
    missing = [found for found in diagnostics if found["code"] == "inputMissing"]
    return {found["path"].rpartition(".")[2]: click.prompt(harmless(found["message"]), err=True) for found in missing}


def _show_preview(answer: Wire, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    elif answer.get("preview"):
        show_graph(answer["preview"], is_preview=True)
    else:
        click.echo("it can be run; nothing was started")
