"""Commands that change a graph: pause, resume, step, retry, finish, cancel, clear, extend-timeout, release."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphd.cli.amounts import budget_of, milliseconds_of
from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, completes_node, graph_argument, graph_option, json_option, print_json
from graphd.cli.talk import call_once, graph_named, talk
from graphd.cli.words import counted, duration, short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


def verb_options(function: F) -> F:
    """What every verb takes: `--wait`, `--dry-run`, `--json`."""
    function = json_option("MutationResult")(function)
    function = click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")(function)
    return click.option("--wait", is_flag=True, help="Answer when the last process has ended (bounded).")(function)


def mutate(workspace: Path | None, verb: str, graph: str | None, *, finds_graph: bool = False, **params: Any) -> Wire:
    """Send one verb. Its request id makes a second arrival of the same request harmless.

    `finds_graph`: where no graph is named, the daemon finds it by the other params.
    """

    async def work(session: "Session") -> Wire:
        named = {} if finds_graph and graph is None else {"graph": await graph_named(session, graph)}
        sent = {**named, "requestId": str(uuid.uuid4()), **{k: v for k, v in params.items() if v is not None}}
        result: Wire = await call_once(session, f"workgraph/{verb}", sent)
        return result

    return talk(workspace, work)


def tell(result: Wire, what: str, *, as_json: bool, dry_run: bool, follow: str = "watch") -> None:
    """Say what a verb did, and what to type next."""
    if as_json:
        print_json(result)
        return
    graph = short_id(result["graph"])
    if dry_run:
        click.echo(f"would be {what}: {graph}; nothing was changed")
        return
    left = result.get("stopping") or []
    still = f"; {counted(len(left), 'node')} still stopping: {', '.join(left)}" if left else ""
    click.echo(f"{what}: {graph}{still}")
    click.echo(f"  graphd {follow} {graph}".rstrip())


@command("pause")
@graph_argument
@click.option("--stop", is_flag=True, help="Stop what runs, too; it goes back to ready and nothing is lost.")
@click.option("--reason", metavar="TEXT", help="Shown to whoever looks.")
@verb_options
def pause_command(
    *,
    graph: str | None,
    stop: bool,
    reason: str | None,
    wait: bool,
    dry_run: bool,
    as_json: bool,
    workspace: Path | None,
) -> None:
    """Start nothing more. What runs may finish, unless --stop is given.

    Examples:
      graphd pause
      graphd pause checkup --stop
    """
    mode = "stop" if stop else "drain"
    result = mutate(workspace, "pause", graph, mode=mode, reason=reason, settle=wait, dryRun=dry_run)
    tell(result, "paused", as_json=as_json, dry_run=dry_run, follow="resume")


@command("resume")
@graph_argument
@click.option("--top-up", metavar="AMOUNT", help="Let it use so much more: 200k tokens, 2.50usd, 30m of wall time.")
@verb_options
def resume_command(
    *, graph: str | None, top_up: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Go on with a paused graph, with the environment of this shell.

    Examples:
      graphd resume
      graphd resume @last --top-up 200k
    """
    more = budget_of(top_up) if top_up is not None else None
    result = mutate(workspace, "resume", graph, topUp=more, settle=wait, dryRun=dry_run)
    tell(result, "going on", as_json=as_json, dry_run=dry_run)


@command("step")
@click.argument("node", required=False, shell_complete=completes_node)
@graph_option
@verb_options
def step_command(
    *, node: str | None, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Start NODE, or the next one in order, and pause again when it is settled.

    Examples:
      graphd step
      graphd step tests --graph checkup
    """
    result = mutate(workspace, "step", graph, node=node, settle=wait, dryRun=dry_run)
    tell(result, f"stepping {node}" if node else "stepping", as_json=as_json, dry_run=dry_run)


@command("extend-timeout")
@click.argument("node", shell_complete=completes_node)
@click.argument("by", metavar="DURATION")
@graph_option
@verb_options
def extend_timeout_command(
    *, node: str, by: str, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Let NODE, which runs, work for DURATION more than it may now.

    Examples:
      graphd extend-timeout build 20m
    """
    by_ms = milliseconds_of(by)
    result = mutate(workspace, "extendTimeout", graph, node=node, byMs=by_ms, settle=wait, dryRun=dry_run)
    tell(result, f"{node} may work for {duration(by_ms)} more", as_json=as_json, dry_run=dry_run)


@command("retry")
@click.argument("target", required=False, metavar="[NODE|GRAPH]", shell_complete=completes_node)
@click.option("--all", "every", is_flag=True, help="All failed and blocked nodes of GRAPH.")
@graph_option
@verb_options
def retry_command(
    *,
    target: str | None,
    every: bool,
    graph: str | None,
    wait: bool,
    dry_run: bool,
    as_json: bool,
    workspace: Path | None,
) -> None:
    """Try NODE again with what hung on it; with --all, everything that failed or was blocked in GRAPH.

    Examples:
      graphd retry tests
      graphd retry --all @last
    """
    if target is None and not every:
        raise CommandRefused("usage", "retry what?", "graphd retry NODE, or graphd retry --all")
    if every:
        result = mutate(workspace, "retry", target or graph, all=True, settle=wait, dryRun=dry_run)
        what = "trying all again"
    else:
        result = mutate(workspace, "retry", graph, node=target, settle=wait, dryRun=dry_run)
        what = f"trying {target} again"
    tell(result, what, as_json=as_json, dry_run=dry_run)


@command("finish")
@graph_argument
@click.option("--reason", required=True, metavar="TEXT", help="Why it is enough; kept in the history.")
@verb_options
def finish_command(
    *, graph: str | None, reason: str, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Let what runs finish and skip what has not started; what failed stays failed.

    Examples:
      graphd finish --reason "the report is good enough"
    """
    result = mutate(workspace, "finish", graph, reason=reason, settle=wait, dryRun=dry_run)
    tell(result, "finishing", as_json=as_json, dry_run=dry_run)


@command("cancel")
@graph_argument
@click.option("--reason", metavar="TEXT", help="Shown to whoever looks.")
@verb_options
def cancel_command(
    *, graph: str | None, reason: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Stop a graph for good and end every process of it. It says "cancelled" only when the last one is dead.

    Examples:
      graphd cancel
      graphd cancel checkup --wait
    """
    result = mutate(workspace, "cancel", graph, reason=reason, settle=wait, dryRun=dry_run)
    tell(result, "cancelled" if not result.get("stopping") else "cancelling", as_json=as_json, dry_run=dry_run,
          follow="history")  # fmt: skip


@command("clear")
@graph_argument
@verb_options
def clear_command(*, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None) -> None:
    """Stop a graph and forget it: a tombstone stays, its files go.

    Examples:
      graphd clear @last
    """
    result = mutate(workspace, "clear", graph, settle=wait, dryRun=dry_run)
    if as_json or dry_run:
        tell(result, "cleared", as_json=as_json, dry_run=dry_run)
        return
    left = result.get("stopping") or []
    click.echo(f"cleared: {short_id(result['graph'])}" + (f"; still stopping: {', '.join(left)}" if left else ""))
    click.echo("  graphd status")


@command("release")
@click.argument("node", shell_complete=completes_node)
@click.option("--pids", required=True, metavar="PID[,PID…]", help="Exactly the pids that `graphd why NODE` shows.")
@graph_option
@verb_options
def release_command(
    *, node: str, pids: str, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Declare the stuck process tree of NODE dead, after you have looked. It is logged as yours.

    Examples:
      graphd release tests --pids 4711,4712
    """
    try:
        numbers = [int(part) for part in pids.replace(",", " ").split()]
    except ValueError:
        raise CommandRefused("usage", f"{pids!r} is not a list of pids", f"graphd why {node}") from None
    result = mutate(workspace, "release", graph, node=node, pids=numbers, settle=wait, dryRun=dry_run)
    tell(result, f"released {node}", as_json=as_json, dry_run=dry_run)
