"""What waits for a person: ask, answer."""

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, graph_option, json_option, print_json, table
from graphd.cli.talk import call, call_once, is_at_terminal, talk
from graphd.cli.words import clock, counted, harmless, short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
_WORDS = {
    "allow": "allow_once",
    "yes": "allow_once",
    "reject": "reject_once",
    "deny": "reject_once",
    "no": "reject_once",
}
_SCOPES = ("once", "attempt", "graph")


@command("ask")
@click.argument("ask", required=False)
@click.option("--scopes", is_flag=True, help="List the standing answers instead: those for an attempt or a graph.")
@click.option("--revoke", is_flag=True, help="The standing answer ASK covers nothing more.")
@graph_option
@json_option("[Ask]")
def ask_command(
    *, ask: str | None, scopes: bool, revoke: bool, graph: str | None, as_json: bool, workspace: Path | None
) -> None:
    """List what waits for a person; with ASK, show one whole.

    Examples:
      graphd ask
      graphd ask ask-3f21
      graphd ask --scopes
      graphd ask ask-3f21 --revoke
    """
    if revoke:
        _revoke(ask, workspace, as_json=as_json)
        return

    async def work(session: "Session") -> list[Wire]:
        params = {"state": "standing" if scopes else "open", **({"graph": graph} if graph else {})}
        found: list[Wire] = await call(session, "workgraph/asks", params)
        return found

    found = talk(workspace, work)
    shown = [one(found, ask)] if ask is not None else found
    if as_json:
        print_json(shown)
    elif ask is not None:
        click.echo("\n".join(whole(shown[0])))
    elif not shown:
        click.echo("no standing answer" if scopes else "nothing waits for a person")
    else:
        table([_row(item) for item in shown], ["ASK", "NODE", "SINCE", "WHAT", "ANSWERS"])
        if not scopes:
            click.echo(f"\n  graphd answer {shown[0]['id']} {_first_choice(shown[0])}")


def _revoke(ask: str | None, workspace: Path | None, *, as_json: bool) -> None:
    if ask is None:
        raise CommandRefused("usage", "revoke which?", "graphd ask --scopes lists the standing answers")

    async def work(session: "Session") -> Wire:
        result: Wire = await call_once(session, "workgraph/revoke", {"ask": ask})
        return result

    result = talk(workspace, work)
    if as_json:
        print_json(result)
    else:
        click.echo(f"revoked: {ask}; what it allowed already is not taken back")


@command("answer")
@click.argument("ask")
@click.argument("option", required=False)
@click.option("--scope", type=click.Choice(_SCOPES), default="once", show_default=True,
              help="For this once, for all alike of this attempt, or of the whole graph.")  # fmt: skip
@click.option("--text", metavar="TEXT", help="The answer to a question that has no options.")
@click.option("--comment", metavar="TEXT", help="Why; kept in the history.")
@json_option("MutationResult")
def answer_command(
    *, ask: str, option: str | None, scope: str, text: str | None, comment: str | None, as_json: bool,
    workspace: Path | None,
) -> None:  # fmt: skip
    """Answer ASK (an id, or the beginning of one) with OPTION: its id, its label, or allow, reject.

    The answer is for the very action that is shown: where a terminal can ask, it shows it first.

    Examples:
      graphd answer ask-3f21 allow
      graphd answer ask-3f21 allow --scope graph
      graphd answer ask-3f21 --text "use the staging host"
    """

    async def work(session: "Session") -> tuple[Wire, Wire]:
        found = one(await call(session, "workgraph/asks", {}), ask)
        chosen = None if text is not None and option is None else choice(found, option)
        sent = response(found, option=chosen, scope=scope, text=text, comment=comment)
        return found, await call_once(session, "workgraph/respond", sent)

    found, result = talk(workspace, work)
    if as_json:
        print_json(result)
        return
    click.echo(f"answered: {harmless(found['title'])}")
    click.echo(f"  graphd watch {short_id(found['graph'])}")


def response(ask: Wire, *, option: str | None, scope: str = "once", text: str | None = None,
             comment: str | None = None) -> Wire:  # fmt: skip
    """The params of `workgraph/respond`, applied once."""
    given = {"option": option, "text": text, "comment": comment}
    return {
        "ask": ask["id"], "actionHash": ask["actionHash"], "scope": scope, "requestId": str(uuid.uuid4()),
        **{name: value for name, value in given.items() if value is not None},
    }  # fmt: skip


def one(asks: list[Wire], name: str) -> Wire:
    """The open ask of this id or beginning. Raises CommandRefused."""
    wanted = name.removeprefix("ask-")
    found = [ask for ask in asks if ask["id"].removeprefix("ask-").startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(ask["id"] for ask in found)
        raise CommandRefused(
            "ambiguous", f"{counted(len(found), 'ask')} begin with {name}: {listed}", "use more of the id"
        )
    raise CommandRefused("notFound", f"no ask {name} waits", "graphd ask lists what waits")


def choice(ask: Wire, word: str | None) -> str:
    """The id of the option that is meant. Raises CommandRefused with the options."""
    options = ask["options"]
    if word is None and options and is_at_terminal():
        click.echo("\n".join(whole(ask)), err=True)
        number = click.prompt("answer", type=click.IntRange(1, len(options)), err=True)
        return str(options[number - 1]["id"])
    lowered = (word or "").lower()
    for matches in (
        [o for o in options if o["id"] == word],
        [o for o in options if o["kind"] == _WORDS.get(lowered)],
        [o for o in options if lowered and o["label"].lower().startswith(lowered)],
    ):
        if len(matches) == 1:
            return str(matches[0]["id"])
    names = ", ".join(f"{o['id']} ({o['label']})" for o in options)
    said = f"{word!r} is no answer to {ask['id']}" if word else f"answer {ask['id']} with what?"
    raise CommandRefused("usage", said, f"one of: {names}" if names else '--text "…"')


def whole(ask: Wire) -> list[str]:
    """An ask as lines: what, where, the action, the options, and what a standing answer would cover."""
    action = ask["action"]
    lines = [f"{ask['id']}  {harmless(ask['title'])}"]
    if ask.get("node"):
        lines.append(f"  node     {ask['node']}" + (f"@{ask['attempt']}" if ask.get("attempt") else ""))
    lines.append(f"  what     {ask['kind']}, {action.get('toolKind', '')}".rstrip(", "))
    if action.get("command"):
        lines.append(f"  command  {harmless(str(action['command']))}")
    lines += [f"  path     {harmless(str(path))}" for path in action.get("paths") or ()]
    for number, option in enumerate(ask["options"], 1):
        lines.append(f"  {number}        {harmless(option['label'])} ({option['id']})")
    if ask.get("rule"):
        lines.append(f"  --scope attempt or graph would cover: {harmless(ask['rule'])}")
    if ask.get("deadlineAt"):
        lines.append(f"  at {clock(ask['deadlineAt'])} it is answered {ask.get('default') or 'by itself'}")
    return lines


def _row(ask: Wire) -> list[str]:
    answers = " ".join(option["id"] for option in ask["options"]) or "--text"
    if ask.get("state") == "answered":
        answers = f"{ask.get('option')} for the {ask.get('scope')}: {ask.get('rule', '')}"
    return [ask["id"], ask.get("node", ""), clock(ask["openedAt"]), ask["title"], answers]


def _first_choice(ask: Wire) -> str:
    if any(option["kind"] == "allow_once" for option in ask["options"]):
        return "allow"
    return str(ask["options"][0]["id"]) if ask["options"] else '--text "…"'
