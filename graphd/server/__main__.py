"""The daemon's process: `python -m graphd.server --workspace DIR [--ready-fd N] [--restarted]`.

Stands in the state folder, opens the daemon, listens, says so on the given descriptor, and ends cleanly on
SIGTERM, SIGINT, `graphd/stop`, idleness, or the loss of its lock. Source: spec protocol.md, Daemon, socket, lock.
"""

import asyncio
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from graphd import __version__
from graphd.base.catalogue import Language, localised, negotiated
from graphd.base.clock import Clock, SystemClock
from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import said, t
from graphd.daemon.claim import claimed
from graphd.server.hello import Host
from graphd.server.listen import SOCKET_NAME
from graphd.server.place import config_folder, state_folder
from graphd.server.porch import Porch
from graphd.store.database import Database
from graphd.store.folder import prepare_folder
from graphd.store.refusals import WorkspaceLocked, WorkspaceMoved

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from graphd.children.driver import Order, Run, RunFactory, TalkReport
    from graphd.daemon.house import Daemon
    from graphd.server.service import Server

OK: Final = 0
FAILED: Final = 1
BUSY: Final = 3
FORCED: Final = 130
GC_THRESHOLDS: Final = (50_000, 20, 20)
"""State is large and long-lived: at the usual thresholds a quarter of a big run went to the collector."""

PARTS: Final = (
    "graphd.core.events", "graphd.core.model", "graphd.core.commands", "graphd.core.decide", "graphd.core.restore",
    "graphd.children.driver", "graphd.children.orphans", "graphd.store.log", "graphd.store.writer",
    "graphd.daemon.supervisor", "graphd.daemon.house", "graphd.server.subscriptions", "graphd.server.connection",
    "graphd.server.service",
)  # fmt: skip
"""What serves, in pieces of a few ms each: the last two would bring all of it, in one."""

Served = Callable[["Server"], Awaitable[None]]


class Readiness:
    """The pipe on which whoever started us waits: one line of JSON, then it is closed."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self.is_asked = fd is not None

    @property
    def is_said(self) -> bool:
        """The line is out, or nobody waits for it."""
        return self._fd is None

    def say(self, **facts: object) -> None:
        """Write the line and close; later calls do nothing."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        failpoint("server.ready.before")
        with contextlib.suppress(OSError):
            os.write(fd, json.dumps(localised(facts, _own_language())).encode() + b"\n")
            os.close(fd)
        failpoint("server.ready.after")


def _own_language() -> Language:
    """Of whoever started us: the environment is theirs."""
    return negotiated(*(os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")))


def main(argv: list[str] | None = None) -> int:
    """Run one daemon; returns its exit code."""
    options = _options(sys.argv[1:] if argv is None else argv)
    readiness = Readiness(options.ready_fd)
    if options.workspace is not None and options.is_restarted:
        from graphd.server.handover import become_newest  # a keeper's start alone

        become_newest(state_folder(options.workspace), ["--workspace", str(options.workspace), "--restarted"])
    if options.workspace is None:
        readiness.say(failed=t("no workspace was named"), hint=t("give --workspace DIR"))
        return FAILED
    return asyncio.run(run(options.workspace, readiness))


class _Options:
    def __init__(self) -> None:
        self.workspace: Path | None = None
        self.ready_fd: int | None = None
        self.is_restarted = False


def _options(arguments: list[str]) -> _Options:
    """By hand: argparse would cost its import on every start."""
    options = _Options()
    rest = list(arguments)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        if name in ("--workspace", "--ready-fd") and not value and rest:
            value = rest.pop(0)
        if name == "--workspace" and value:
            options.workspace = Path(value).resolve()
        elif name == "--ready-fd" and value.isdecimal():
            options.ready_fd = int(value)
        elif name == "--restarted":
            options.is_restarted = True
        else:
            sys.stderr.write(f"graphd.server: unknown option {name}\n")
    return options


def restart_argv(workspace: Path) -> tuple[str, ...]:
    """The command line by which a keeper starts this daemon again: ours, without the readiness pipe."""
    own = [sys.executable, *sys.orig_argv[1:]]
    kept, is_value = [], False
    for word in own:
        if is_value or word.startswith(("--ready-fd", "--workspace", "--restarted")):
            is_value = not is_value and word in ("--ready-fd", "--workspace")
            continue
        kept.append(word)
    return (*kept, "--workspace", str(workspace), "--restarted")


async def run(
    workspace: Path, readiness: Readiness, runs: "RunFactory | None" = None, served: Served | None = None
) -> int:
    """Open the daemon of a workspace and serve it to its end. `runs` replaces real children; `served` runs beside."""
    gc.set_threshold(*GC_THRESHOLDS)
    clock = SystemClock()
    try:
        folder = _stand_in(state_folder(workspace))
        async with claimed(workspace, folder, clock=clock) as database:
            host = Host(str(workspace), database.store, __version__, clock.now_ms(), database.epoch)
            knows_callers = not await database.has_unsettled_attempts()
            porch = Porch(host, is_ours=database.lock.still_ours, knows_callers=knows_callers)
            async with asyncio.TaskGroup() as tasks:
                porch.open(tasks)
                readiness.say(ready=True, pid=os.getpid(), socket=str(folder / SOCKET_NAME))
                with _signals(porch):
                    house = _house(database, workspace, folder, clock=clock, runs=runs)
                    return await _serve(porch, house, tasks, is_awaited=readiness.is_asked, served=served)
    except WorkspaceLocked as locked:
        readiness.say(busy=True, message=said(locked))
        return BUSY
    except WorkspaceMoved as moved:
        readiness.say(failed=moved.message, hint=moved.hint, code=moved.code, moved=[moved.was, moved.is_now])
        return FAILED
    except Refused as refusal:
        readiness.say(failed=refusal.message, hint=refusal.hint, code=refusal.code)
        return FAILED
    except OSError as trouble:
        if readiness.is_said:
            raise
        readiness.say(failed=t("the daemon could not start: {trouble}", trouble=said(trouble)), hint="graphd doctor")
        return FAILED


def _kept(order: "Order", report: "TalkReport") -> "Run":
    """A `RunFactory`: what runs children is imported with the first one, not before the first answer."""
    from graphd.children.drivers import DriverMissing, driver_of
    from graphd.children.refused import RefusedRun
    from graphd.children.run import KeptRun

    def kept(order: "Order", report: "TalkReport") -> "Run":
        driver = driver_of(order.driver)
        return KeptRun(order, report, driver=driver, on_facts=report.said, cursor=order.cursor)

    if order.refusal is not None:
        return RefusedRun(order, report, kept)
    try:
        return kept(order, report)
    except DriverMissing as trouble:
        from dataclasses import replace  # not on the way to the first answer

        return RefusedRun(replace(order, refusal=said(trouble)), report, kept)


async def _serve(
    porch: Porch, house: "AbstractAsyncContextManager[Daemon]", tasks: asyncio.TaskGroup, *, is_awaited: bool,
    served: Served | None,
) -> int:  # fmt: skip
    """Load the house behind the porch and serve it to its end; where it can't be loaded, tell whoever waits for it."""
    async with contextlib.AsyncExitStack() as open_house:
        try:
            await _furnish(porch)
            porch.hold_all()
            daemon = await open_house.enter_async_context(house)
        except Exception as trouble:  # noqa: BLE001 -- whatever it is, those who were let in are to hear of it
            from graphd.server.farewell import see_off

            return await see_off(porch, tasks, trouble, is_awaited=is_awaited)
        return await _serve_house(daemon, porch, served)


async def _furnish(porch: Porch) -> None:
    """Import what serves, and between two parts answer the door."""
    await porch.answer_door()
    for part in PARTS:
        importlib.import_module(part)
        await porch.answer_door()


@contextlib.asynccontextmanager
async def _house(
    database: Database, workspace: Path, folder: Path, *, clock: Clock, runs: "RunFactory | None"
) -> AsyncIterator["Daemon"]:
    """The daemon on the claimed database, loaded and recovered."""
    from graphd.daemon.house import Daemon
    from graphd.server.handover import note_daemon

    restart = restart_argv(workspace)
    async with Daemon.on(
        database, workspace, folder, config=config_folder(), factory=runs or _kept, restart_argv=restart, clock=clock
    ) as daemon:
        gc.freeze()  # what was loaded lives long: the collector need not look at it again
        note_daemon(folder, restart)
        yield daemon


async def _serve_house(daemon: "Daemon", porch: Porch, served: Served | None) -> int:
    from graphd.children.orphans import ending_orphans
    from graphd.server.service import Server

    server = Server(daemon, porch=porch)
    with ending_orphans(), _signals(server):
        async with asyncio.TaskGroup() as tasks:
            if served is not None:
                tasks.create_task(_beside(served, server))
            await server.run()
    return OK


async def _beside(served: Served, server: "Server") -> None:
    try:
        await served(server)
    finally:
        server.request_stop(t("what ran beside has ended"))


def _stand_in(folder: Path) -> Path:
    """Make the state folder and stand in it: socket names are relative from here on."""
    prepare_folder(folder)
    os.chdir(folder)
    os.umask(0o077)
    return folder


@contextlib.contextmanager
def _signals(ending: "Server | Porch") -> Iterator[None]:
    """SIGTERM and SIGINT end us cleanly; the second one at once."""
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        if ending.stop_reason is not None:
            os._exit(FORCED)  # whoever sends a second one does not want to wait
        ending.request_stop(t("stopped by {signal}", signal=number.name))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


if __name__ == "__main__":
    sys.exit(main())
