"""`graphd signal`: something happened outside, and what waits for it goes on."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.exits import CommandRefused
from graphd.cli.options import command, json_option, print_json
from graphd.cli.talk import call_once, talk
from graphd.cli.words import short_id

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]


@command("signal")
@click.argument("name")
@click.option("--payload", metavar="JSON", help="What it brings: the output of every node that it wakes.")
@click.option("--key", metavar="KEY", help="A second signal with the same key changes nothing.")
@json_option("SignalResult")
def signal_command(*, name: str, payload: str | None, key: str | None, as_json: bool, workspace: Path | None) -> None:
    """Tell every node that waits for the signal NAME that it came; nodes that are yet to wait find it there.

    Examples:
      graphd signal deployed
      graphd signal deployed --payload '{"version": "1.2"}' --key build-4711
    """
    try:
        value = json.loads(payload) if payload is not None else None
    except ValueError:
        hint = "a text stands in quotes of its own: --payload '\"text\"'"
        raise CommandRefused("usage", f"{payload!r} is no JSON", hint) from None

    async def work(session: "Session") -> Wire:
        params = {"name": name, "payload": value, **({"idempotencyKey": key} if key is not None else {})}
        result: Wire = await call_once(session, "workgraph/signal", params, key="idempotencyKey")
        return result

    result = talk(workspace, work)
    if as_json:
        print_json(result)
        return
    for word, rows in (("woke", result["woke"]), ("kept for", result.get("kept", []))):
        for row in rows:
            click.echo(f"{word} {row['node']} of {short_id(row['graph'])}")
    if not result["woke"] and not result.get("kept"):
        click.echo(f"nobody waits for {name}")
