"""Commands that change the plan of a graph: extend, replan, apply, accept, dismiss, rerun, save."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.edits import edits_of, nodes_of, read_edits, reasoned
from graphd.cli.exits import PERSON_NEEDED, CommandEnded, CommandRefused
from graphd.cli.options import command, completes_source, graph_argument, graph_option, json_option, print_json
from graphd.cli.steer import mutate, tell, verb_options
from graphd.cli.talk import call, graph_named, is_at_terminal, talk
from graphd.cli.words import harmless, short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("extend")
@click.argument("source", metavar="FILE|-")
@graph_option
@verb_options
def extend_command(
    *, source: str, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Add the nodes in FILE (JSON or YAML) to a graph. A complete graph opens again.

    Examples:
      echo '[{"id": "docs", "run": "make docs", "needs": ["tests"]}]' | graphd extend -
      graphd extend more.yaml --graph checkup --dry-run
    """
    nodes = nodes_of(read_edits(source), source)
    result = mutate(workspace, "extend", graph, nodes=nodes, settle=wait, dryRun=dry_run)
    _tell(result, "extended", as_json=as_json, dry_run=dry_run)


@command("replan")
@click.argument("source", required=False, metavar="[FILE|-]")
@graph_option
@click.option("--restart", multiple=True, metavar="NODE", help="Run NODE again, and what read its output.")
@click.option("--remove", multiple=True, metavar="NODE=REASON", help="Take NODE out of the plan.")
@click.option("--cancel", multiple=True, metavar="NODE", help="Cancel NODE; it stays in the plan.")
@click.option("--resume", is_flag=True, help="Go on, if the graph is paused.")
@click.option("--reason", metavar="TEXT", help="Shown to whoever looks.")
@verb_options
def replan_command(
    *,
    source: str | None,
    graph: str | None,
    restart: tuple[str, ...],
    remove: tuple[str, ...],
    cancel: tuple[str, ...],
    resume: bool,
    reason: str | None,
    wait: bool,
    dry_run: bool,
    as_json: bool,
    workspace: Path | None,
) -> None:
    """Change the plan of a graph: everything happens as one plan version, or nothing does.

    FILE (JSON or YAML) holds add, change, remove, restart and cancelNodes; options add to it.

    Examples:
      graphd replan --restart build --dry-run
      graphd replan --remove docs="nobody reads them"
      graphd replan edits.yaml --resume
    """
    edits = edits_of(read_edits(source), source) if source is not None else {}
    for name, more in (("restart", restart), ("cancelNodes", cancel), ("remove", reasoned("--remove", remove))):
        if more:
            edits[name] = [*(edits.get(name) or []), *more]
    if resume:
        edits["resume"] = True
    if reason is not None:
        edits["reason"] = reason
    if not edits:
        raise CommandRefused("usage", "replan what?", "graphd replan FILE, --restart NODE or --remove NODE=REASON")
    result = mutate(workspace, "replan", graph, **{**edits, "settle": wait, "dryRun": dry_run})
    _tell(result, "replanned", as_json=as_json, dry_run=dry_run)


@command("apply")
@click.argument("file", shell_complete=completes_source)
@graph_option
@click.option("--yes", is_flag=True, help="Accept without asking.")
@verb_options
def apply_command(
    *,
    file: str,
    graph: str | None,
    yes: bool,
    wait: bool,
    dry_run: bool,
    as_json: bool,
    workspace: Path | None,
) -> None:
    """Compare the edited workflow FILE with the graph started from it, show what differs, and replan.

    Only nodes that changed run again, with what read their output. Without a terminal it stays a proposal.

    Examples:
      graphd apply .agents/workflows/checkup.yaml --dry-run
      graphd apply checkup.yaml --yes
    """
    path = Path(file).absolute()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        raise CommandRefused("usage", f"{file}: {trouble}", "name a readable workflow file") from None
    result = mutate(workspace, "apply", graph, finds_graph=True, file=str(path), text=text, dryRun=dry_run)
    proposal = result.get("proposal")
    if not as_json:
        print_diff(result.get("diff") or {})
    if dry_run or proposal is None:
        _end_of_apply(result, as_json=as_json, is_dry=dry_run)
        return
    graph = result["graph"]
    if not yes and is_at_terminal() and not as_json:
        yes = click.confirm("Apply this to the running graph?", default=False)
        if not yes:
            mutate(workspace, "dismiss", graph, proposal=proposal)
            click.echo("nothing was changed")
            raise CommandEnded(1)
    if yes:
        result = {**mutate(workspace, "accept", graph, proposal=proposal, settle=wait), "diff": result.get("diff")}
        tell(result, "applied", as_json=as_json, dry_run=False)
        return
    if as_json:
        print_json(result)
    else:
        click.echo(f"proposed: {proposal}\n  graphd accept {proposal}")
    raise CommandEnded(PERSON_NEEDED)


def _end_of_apply(result: Wire, *, as_json: bool, is_dry: bool) -> None:
    if as_json:
        print_json(result)
    elif is_dry and result.get("preview"):
        click.echo(f"would be applied: {short_id(result['graph'])}; nothing was changed")
    else:
        click.echo(f"the plan is what the file says: {short_id(result['graph'])}")


@command("accept")
@click.argument("proposal")
@graph_option
@verb_options
def accept_command(
    *, proposal: str, graph: str | None, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Carry out a proposal (graphd status names them), as one change of the plan.

    Examples:
      graphd accept ask-1a2b3c4d --dry-run
      graphd accept ask-1a2b3c4d
    """
    result = mutate(workspace, "accept", graph, finds_graph=True, proposal=proposal, settle=wait, dryRun=dry_run)
    _tell(result, "accepted", as_json=as_json, dry_run=dry_run)


@command("dismiss")
@click.argument("proposal")
@graph_option
@click.option("--reason", metavar="TEXT", help="Kept in the history.")
@verb_options
def dismiss_command(
    *,
    proposal: str,
    graph: str | None,
    reason: str | None,
    wait: bool,
    dry_run: bool,
    as_json: bool,
    workspace: Path | None,
) -> None:
    """Say that a proposal is not wanted.

    Examples:
      graphd dismiss ask-1a2b3c4d --reason "not now"
    """
    result = mutate(
        workspace, "dismiss", graph, finds_graph=True, proposal=proposal, reason=reason, settle=wait, dryRun=dry_run
    )  # fmt: skip
    _tell(result, "dismissed", as_json=as_json, dry_run=dry_run)


@command("rerun")
@graph_argument
@click.option("--failed", is_flag=True, help="Try what failed in it again, instead of a new graph.")
@verb_options
def rerun_command(
    *, graph: str | None, failed: bool, wait: bool, dry_run: bool, as_json: bool, workspace: Path | None
) -> None:
    """Run the plan of GRAPH again as a new graph: the same nodes, whatever its file says by now.

    Default is the latest graph. With --failed, its failed and blocked nodes are tried again.

    Examples:
      graphd rerun
      graphd rerun checkup --failed
    """
    named = graph or "@last"
    if failed:
        result = mutate(workspace, "retry", named, all=True, settle=wait, dryRun=dry_run)
    else:
        result = mutate(workspace, "rerun", named, settle=wait, dryRun=dry_run)
    tell(result, "running again", as_json=as_json, dry_run=dry_run)


@command("save")
@click.argument("names", nargs=-1, required=True, metavar="[GRAPH] NAME")
@click.option("--force", is_flag=True, help="Put it in the place of a file that is there.")
@click.option("--dry-run", is_flag=True, help="Print the file; write nothing.")
@json_option("SaveResult")
def save_command(*, names: tuple[str, ...], force: bool, dry_run: bool, as_json: bool, workspace: Path | None) -> None:
    """Write the plan of GRAPH, as it is now, to .agents/workflows/NAME.yaml.

    Examples:
      graphd save @last nightly
      graphd save nightly --dry-run
    """
    if len(names) > 2:
        raise CommandRefused("usage", "save takes a graph and a name", "graphd save GRAPH NAME")

    async def work(session: "Session") -> Wire:
        named = await graph_named(session, names[0] if len(names) == 2 else None)
        params = {"graph": named, "name": names[-1], "force": force, "dryRun": dry_run}
        result: Wire = await call(session, "workgraph/save", params)
        return result

    result = talk(workspace, work)
    if as_json:
        print_json(result)
    elif dry_run:
        click.echo(result["text"], nl=False)
    else:
        click.echo(f"wrote {result['path']}\n  graphd run {names[-1]}")


# ---- what a change of the plan comes to ---------------------------------------------------------------------------


def _tell(result: Wire, what: str, *, as_json: bool, dry_run: bool) -> None:
    if not as_json:
        print_diff(result.get("diff") or {})
    tell(result, what, as_json=as_json, dry_run=dry_run)


def print_diff(diff: Wire) -> None:
    """A plan diff in lines: `+` added, `~` changed, `-` removed, `!` stopped first, `>` moved, `=` kept."""
    lines = [("+", node, "") for node in diff.get("added", ())]
    lines += [("~", row["node"], ", ".join(row["fields"])) for row in diff.get("changed", ())]
    lines += [("-", row["node"], row["reason"]) for row in diff.get("removed", ())]
    lines += [("!", row["node"], f"its process is stopped, then {row['then']}") for row in diff.get("stopped", ())]
    lines += [(">", row["node"], f"{row['origin']} -> {row['state']}") for row in diff.get("moved", ())]
    lines += [("=", node, "at rest, and no longer in the file: it stays") for node in diff.get("kept", ())]
    width = max((len(node) for _, node, _ in lines), default=0)
    for mark, node, said in lines:
        click.echo(harmless(f"{mark} {node:{width}}  {said}").rstrip())
