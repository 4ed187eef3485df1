"""`graphd demo`: the bundled check-up on this directory; with `--chaos`, a graph that outlives all that is killed."""

import asyncio
from pathlib import Path

import click

from graphd.cli.exits import CommandEnded
from graphd.cli.options import command


@command("demo")
@click.option("--chaos", is_flag=True, help="Kill daemon, keepers and clients at random under a live tree, then count.")
@click.option("--seed", type=int, metavar="N", help="Repeat the choices of an earlier --chaos.")
def demo_command(chaos: bool, seed: int | None, workspace: Path | None) -> None:
    """Show it at work: run the check-up on this directory. It needs no key and no agent.

    With --chaos, a graph of small shell nodes runs in a folder of its own while the daemon, the keepers and the
    clients are killed at random (SIGKILL). Every node writes to a file outside of everything; at the end that
    file is counted. Exit code 0 only if nothing that was promised was broken.

    Examples:
      graphd demo
      graphd demo --chaos
    """
    if chaos:
        from graphd.cli.chaos import chaos as unleash

        raise CommandEnded(asyncio.run(unleash(seed)))
    from graphd.cli.following import Wishes
    from graphd.cli.run import Order, perform

    order = Order("checkup", [], {})
    raise CommandEnded(asyncio.run(perform(workspace, order, Wishes(shows_output=True))))
