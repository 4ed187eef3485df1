"""How one attempt's tree is brought to its end: at a stop, at an accepted result, at a start that takes too long.

A stop: the cancel lines are told, so a running turn gets the grace to end by itself; interrupt, grace, TERM, grace,
KILL. A close: what was told is sent and answered, stdin is closed, then as above without the interrupt, and
without the first grace where an agent is known not to mind its stdin. What even KILL does not end is stuck, and asked
again on a recheck. Source: execution.md, Time; research agents.md §3, §9.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.children.driver import Fold, Order, Report
from graphd.children.link import CallRefused, Link, LinkLost
from graphd.children.outbox import Outbox

LOOK_EVERY_S: Final = 0.02


class Wanted:
    """What is asked of a run from outside, on the loop."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.close = asyncio.Event()
        self.recheck = asyncio.Event()
        self.caught_up = asyncio.Event()
        """The fold has all that the journal had at the attach: only now it knows what runs."""
        self.overdue: str | None = None
        """Why the run ends its agent itself: it did not answer its start."""

    async def end(self) -> None:
        """Returns when an end of either kind is wanted."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.stop, self.close)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


async def escalate(link: Link, wanted: Wanted, *, order: Order, report: Report, fold: Fold, outbox: Outbox) -> None:
    """Wait until an end is wanted, and bring it about. Returns when the connection is lost: the reader sees it too."""
    await wanted.end()
    await _until(wanted.caught_up.is_set, order.grace_s)
    verbs: tuple[str, ...] = ("interrupt", "terminate", "kill")
    try:
        if wanted.stop.is_set():
            await _until(lambda: not fold.is_in_turn, order.grace_s)
        else:
            await _until(lambda: wanted.stop.is_set() or (outbox.is_empty and not fold.is_owed), order.grace_s)
            await link.call("closeStdin")
            if order.quirks.ends_with_stdin:
                await _until(wanted.stop.is_set, order.grace_s)
            verbs = ("terminate", "kill")
        for verb in verbs:
            failpoint("escalation.signal.before")
            await link.call(verb)
            failpoint("escalation.signal.after")
            await asyncio.sleep(order.grace_s)
        while True:
            wanted.recheck.clear()
            status = await link.call("status")
            if status["pids"]:
                await report.stuck(tuple(status["pids"]), t("SIGKILL did not end it"))
            await wanted.recheck.wait()
            await link.call("kill")
    except (LinkLost, CallRefused):
        return


async def watch_start(wanted: Wanted, fold: Fold, changed: asyncio.Event) -> None:
    """Stop an agent that owes an answer to its start for too long, counted from when the question was written."""
    await wanted.caught_up.wait()
    while True:
        changed.clear()
        due = fold.due
        rest_s = None if due is None else due.at_ns / 1e9 - time.monotonic()
        if due is not None and rest_s is not None and rest_s <= 0:
            wanted.overdue = due.reason
            wanted.stop.set()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rest_s):
                await changed.wait()


async def _until(is_so: Callable[[], bool], limit_s: float) -> None:
    """Look until it is so, `limit_s` at most."""
    end = time.monotonic() + limit_s
    while not is_so() and time.monotonic() < end:  # noqa: ASYNC110  journal and outbox change it; short, and rare
        await asyncio.sleep(LOOK_EVERY_S)
