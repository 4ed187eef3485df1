"""The running daemon of one workspace: wires store, core and children together. Decides nothing.

`async with Daemon.open(...)` holds everything that runs in one task group: a task that fails ends the daemon loudly,
its keepers start it again, and recovery goes on from what was committed.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from graphd import __version__
from graphd.base.clock import Clock, SystemClock
from graphd.base.refusal import Refused
from graphd.children.driver import Driver, Order, RunFactory
from graphd.children.drivers import DriverMissing, driver_of
from graphd.children.environment import EnvironmentMissing, load, snapshot
from graphd.children.session_lock import FOLDER, remove_free
from graphd.core.commands import Capacity, DaemonStarted, Done, Request, Tick
from graphd.core.events import AttemptKey, Change, Event
from graphd.core.evolve import evolve
from graphd.core.model import Attempt, State
from graphd.core.policy import Leave
from graphd.core.tape import Tape
from graphd.daemon.agents import AgentWatch, Served
from graphd.daemon.claim import claimed
from graphd.daemon.live_settings import LiveSettings
from graphd.daemon.log import log
from graphd.daemon.orders import House, build_order, session_lock
from graphd.daemon.recovery import sweep
from graphd.daemon.rests import Rests
from graphd.daemon.settings import Settings, SettingsRefused
from graphd.daemon.supervisor import Printed, Supervisor
from graphd.daemon.talking import is_close, speech
from graphd.daemon.watch import FolderWatch
from graphd.store.database import Database
from graphd.store.log import Log
from graphd.store.rebuild import differences
from graphd.store.refusals import StaleDaemon
from graphd.store.remembered import Remembered
from graphd.store.writer import Writer

T = TypeVar("T")
STARTS_WINDOW_MS = 600_000
DAY_MS = 86_400_000
_UNWOUND = Tape.unwound()


class Daemon:
    """What the server and the benchmarks talk to. Made by `open`."""

    def __init__(
        self, *, database: Database, log_store: Log, writer: Writer, supervisor: Supervisor, workspace: Path,
        folder: Path, clock: Clock, settings: LiveSettings, around: "Around", capacity: Callable[[], Capacity],
        house: House,
    ) -> None:  # fmt: skip
        self._database = database
        self._log = log_store
        self._writer = writer
        self._supervisor = supervisor
        self._settings = settings
        self._around = around
        self._capacity = capacity
        self._house = house
        self.workspace = workspace
        self.folder = folder
        self.clock = clock
        self.starts = 0
        self._waiting_for_store: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._watch: FolderWatch | None = None
        self._served: Served | None = None
        self._agent_watch: AgentWatch | None = None
        self._looking: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self.stop_requested = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, workspace: Path, folder: Path, *, config: Path, factory: RunFactory, restart_argv: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> "AsyncIterator[Daemon]":  # fmt: skip
        """Lock, open, load, recover, run. Raises WorkspaceLocked, OpeningRefused. Leaves children to their keepers."""
        clock = clock or SystemClock()
        async with (
            claimed(workspace, folder, clock=clock) as database,
            cls.on(
                database, workspace, folder, config=config, factory=factory, restart_argv=restart_argv, clock=clock
            ) as daemon,
        ):
            yield daemon

    @classmethod
    @contextlib.asynccontextmanager
    async def on(
        cls, database: Database, workspace: Path, folder: Path, *, config: Path, factory: RunFactory,
        restart_argv: tuple[str, ...], clock: Clock,
    ) -> "AsyncIterator[Daemon]":  # fmt: skip
        """Load, recover and run on a claimed database. A start that fails raises a group that holds the reason."""
        async with asyncio.TaskGroup() as tasks:
            daemon = await cls._start(
                database, workspace, folder, config=config, factory=factory, restart_argv=restart_argv,
                clock=clock, tasks=tasks,
            )  # fmt: skip
            yield daemon
            await daemon._leave()  # not after a failure: then the keepers start a daemon again
            daemon._cancel()

    @classmethod
    async def _start(
        cls, database: Database, workspace: Path, folder: Path, *, config: Path, factory: RunFactory,
        restart_argv: tuple[str, ...], clock: Clock, tasks: asyncio.TaskGroup,
    ) -> "Daemon":  # fmt: skip
        settings = LiveSettings(config / "settings.json", workspace / ".agents" / "settings.json")
        log_store = Log(database, clock=clock)
        state = await log_store.load(replay)
        house = House(
            folder=folder, sessions=folder.parent / FOLDER, store=database.store, epoch=database.epoch,
            restart_argv=restart_argv,
            load_environment=functools.lru_cache(maxsize=8)(lambda name: environment_of(folder, name)),
        )  # fmt: skip

        served = Served(lambda: settings.now.agents)

        def capacity() -> Capacity:
            return served.capacity(settings.now)._replace(
                is_attended=around.is_attended(), held=frozenset(around.held), elsewhere=frozenset(around.elsewhere)
            )

        writer = Writer(
            state, commit=log_store.commit, capacity=capacity, clock=clock,
            requests=Remembered(await log_store.requests(), graphs=state.graphs, now=clock.now_ms()),
            speech=speech(lambda profile: _driver_of(settings.now, profile)),
        )  # fmt: skip

        def order_of(graph: str, attempt: AttemptKey) -> Order:
            found = state.graphs[graph]
            talking = state.talks.get((graph, attempt))
            order = build_order(house, settings.now, found, found.attempts[attempt])
            if order.is_agent_gone and not order.argv:
                served.drop(order.profile)
            return replace(order, cursor=talking.cursor) if talking is not None else order

        around = Around(state, settings, clock)
        supervisor = Supervisor(
            folder=folder, factory=factory, submit=writer.submit, order_of=order_of, clock=clock, tasks=tasks,
            about=around, unsent=await log_store.unsent(),
        )  # fmt: skip
        daemon = cls(
            database=database, log_store=log_store, writer=writer, supervisor=supervisor, workspace=workspace,
            folder=folder, clock=clock, settings=settings, around=around, capacity=capacity, house=house,
        )  # fmt: skip
        await daemon._watch_agents(served, house, state, tasks)
        writer.on_effects = supervisor.carry_out
        writer.on_trouble = lambda: daemon._note_trouble(tasks)
        daemon._writing = tasks.create_task(writer.run())
        daemon._watch = FolderWatch.on(settings.folders, daemon.reload_settings, writes=True)
        daemon.reload_settings()  # what was written before the watch stood is not told by it
        daemon.starts = await database.recent_starts(window_ms=STARTS_WINDOW_MS, now_ms=clock.now_ms())
        daemon._sweeping = tasks.create_task(sweep(folder, state, store=database.store, epoch=database.epoch))
        started = DaemonStarted(database.epoch, __version__, daemon.starts, str(workspace))
        await daemon.execute(Request(started))
        old_ms = clock.now_ms() - settings.now.retention_days * DAY_MS
        tasks.create_task(_retain(log_store, old_ms))
        tasks.create_task(asyncio.to_thread(remove_free, house.sessions))
        return daemon

    # ---- what the server asks -------------------------------------------------------------------------------------

    @property
    def store_id(self) -> str:
        """The database's uuid."""
        return self._database.store

    @property
    def epoch(self) -> int:
        """Generation of the daemon."""
        return self._database.epoch

    @property
    def settings(self) -> Settings:
        """In force now."""
        return self._settings.now

    @property
    def state(self) -> State:
        """Committed only inside a listener or a `view`."""
        return self._writer.state

    @property
    def phases(self) -> dict[tuple[str, str], tuple[str, int]]:
        """(graph, node id) → (phase, since in ms)."""
        return self._supervisor.phases

    @property
    def last_lines(self) -> dict[tuple[str, str], str]:
        """(graph, node id) → the last line that it printed."""
        return self._supervisor.last_lines

    @property
    def on_printed(self) -> list[Printed]:
        """Called with what attempts print."""
        return self._supervisor.on_printed

    @property
    def on_phase(self) -> list[Callable[[str, str], None]]:
        """Called after a phase or a last line changed."""
        return self._supervisor.on_phase

    @property
    def adopted(self) -> int:
        """Attempts that this daemon took over alive."""
        return self._supervisor.adopted

    @property
    def store_health(self) -> str:
        """`ok`, `full` or `readOnly`."""
        return self._database.health

    @property
    def is_busy(self) -> bool:
        """Something runs, or will by itself: the daemon has a reason to stay."""
        return self._supervisor.is_busy or self._supervisor.has_timer

    async def look_for_agents(self, search_path: str, full_workers: frozenset[str]) -> None:
        """Look for agents on this PATH too, before a graph that has it is set or goes on."""
        if self._served is not None and await asyncio.to_thread(self._served.look, search_path, full=full_workers):
            self._supervisor.tick()

    def attended_by(self, is_attended: Callable[[], bool]) -> None:
        """Who knows whether somebody is there who could answer; asked with every batch."""
        self._around.is_attended = is_attended

    def left(self) -> None:
        """Somebody went: what has waited for an answer for long may get its default."""
        self._supervisor.tick()

    def hold(self, graph: str, node: str) -> bool:
        """Start this node no more until `let_go`; False where somebody else has it."""
        is_free = (graph, node) not in self._around.held
        self._around.held.add((graph, node))
        return is_free

    def let_go(self, graph: str, node: str) -> None:
        """It may be started again, and is where it can."""
        self._around.held.discard((graph, node))
        self._supervisor.tick()

    def session_lock(self, attempt: Attempt) -> Path:
        """What whoever opens the session of an attempt locks before."""
        return session_lock(self._house, self._settings.now.agents, attempt)

    @property
    def capacity(self) -> Capacity:
        """What the scheduler may fill now."""
        return self._capacity()

    async def execute(self, request: Request) -> Done:
        """Commit a command. Raises Refused. A cancelled wait takes nothing back."""
        return await self._writer.submit(request)

    def graph_of(self, request_id: str) -> str | None:
        """The graph that a request of this id was carried out on; None where none was, or where it made the graph."""
        return self._writer.graph_of(request_id)

    async def rehearse(self, request: Request, read: Callable[[State], T]) -> T:
        """Decide a command, run `read` on what it would leave, and take all of it back. Raises Refused."""
        done = await self._writer.submit(
            Request(
                request.command,
                request.actor,
                expected_rev=request.expected_rev,
                expected_plan=request.expected_plan,
                preview=read,
            )  # fmt: skip
        )
        preview: T = done.preview
        return preview

    async def view(self, read: Callable[[State], T]) -> T:
        """Run `read` on committed state."""
        return await self._writer.view(read)

    def subscribe(self, listener: Callable[[list[Change]], None]) -> Callable[[], None]:
        """Call `listener` right after each commit, while the state is committed."""
        return self._writer.listen(listener)

    async def history(self, graph: str, after: int, limit: int, kinds: list[str] | None) -> list[Event]:
        """Events of whole revs after `after`."""
        return (await self._log.history(graph, after=after, limit=limit, kinds=kinds)).events

    async def doctor(self) -> list[str]:
        """Where the tables differ from the log. Empty is well."""
        return await self._database.read(lambda connection: differences(connection, replay))

    async def submit_result(self, graph: str, attempt: AttemptKey, content: bytes) -> bool:
        """A result that an attempt hands in; False where none of its turns runs. OSError where it can't be kept."""
        return await self._supervisor.submit(graph, attempt, content)

    def report_progress(self, graph: str, attempt: AttemptKey, text: str) -> None:
        """What an attempt says of how far it is."""
        self._supervisor.progress(graph, attempt, text)

    def is_lock_ours(self) -> bool:
        """The lock file on disk is the one that we hold."""
        return self._database.lock.still_ours()

    @property
    def settings_trouble(self) -> SettingsRefused | None:
        """Why the newest settings are not in force, where they are not."""
        return self._settings.trouble

    def reload_settings(self) -> None:
        """Read the settings files again; a bad one keeps the last good settings. Freed slots are filled at once."""
        if self._settings.reload():
            if self._agent_watch is not None:
                self._agent_watch.settings_changed()
            self._supervisor.tick()

    # ---- life -----------------------------------------------------------------------------------------------------

    async def _watch_agents(self, served: Served, house: House, state: State, tasks: asyncio.TaskGroup) -> None:
        """Look for the agents of the graphs that were loaded, then again while one is needed."""

        def path_of(name: str | None) -> str:
            return house.load_environment(name).get("PATH", os.defpath)

        self._served = served
        self._agent_watch = AgentWatch(
            served, view=self.view, execute=self.execute, path_of=path_of, tick=self._supervisor.tick
        )
        self._writer.listen(self._agent_watch.committed)
        await self._agent_watch.begin(state)
        self._looking = tasks.create_task(self._agent_watch.run())

    def _note_trouble(self, tasks: asyncio.TaskGroup) -> None:
        if self._waiting_for_store is None or self._waiting_for_store.done():
            self._waiting_for_store = tasks.create_task(self._wait_for_store())

    async def _wait_for_store(self) -> None:
        """The store refused a commit: try again until it takes one, then let the scheduler look."""
        pause_s = 0.5
        while await self._database.probe() != "ok":
            await asyncio.sleep(pause_s)
            pause_s = min(30.0, pause_s * 2)
        with contextlib.suppress(Refused):
            await self.execute(Request(Tick()))

    async def _leave(self) -> None:
        await self._writer.drain()
        await self._supervisor.leave()
        log("daemon_stopped", epoch=self.epoch)

    def _cancel(self) -> None:
        self._supervisor.cancel()
        if self._watch is not None:
            self._watch.close()
        for task in (self._writing, self._waiting_for_store, self._looking, self._sweeping):
            if task is not None:
                task.cancel()


def _driver_of(settings: Settings, profile: str) -> Driver:
    """How a profile's agents are spoken to; one whose profile or driver is gone is spoken to no more."""
    known = settings.agents.profiles.get(profile)
    try:
        return driver_of(known.driver if known is not None else "shell")
    except DriverMissing:
        return driver_of("shell")


class Around:
    """What the supervisor reads of committed state and of the settings."""

    def __init__(self, state: State, settings: LiveSettings, clock: Clock) -> None:
        self._state = state
        self._settings = settings
        self.rest_s = Rests(lambda: settings.now.agents, clock).rest_s
        self.is_attended: Callable[[], bool] = lambda: False
        self.held: set[tuple[str, str]] = set()
        self.elsewhere: set[tuple[str, str]] = set()

    def is_close(self, graph: str, attempt: AttemptKey) -> bool:
        """Its end is wanted because its result is accepted."""
        return is_close(self._state.graphs[graph].attempts[attempt])

    def waits(self, graph: str, attempt: AttemptKey) -> bool:
        """An ask of it is open."""
        found = self._state.graphs[graph]
        asks = [found.asks[ask] for ask in found.open_asks]
        return any((ask.node, ask.role, ask.attempt) == attempt for ask in asks)

    def leave(self, order: Order) -> Leave:
        """What an attempt may do by itself."""
        writes = self._state.graphs[order.graph].nodes[order.node].definition.writes
        now = self._settings.now
        detached: Literal["wait", "deny"] = "deny" if now.detached_asks == "deny" else "wait"
        return Leave(
            order.permissions or "edit", str(order.cwd), writes, now.denied, now.asked, now.allowed, detached=detached,
            is_attended=self.is_attended(),
        )  # fmt: skip


async def _retain(log_store: Log, ended_before_ms: int) -> None:
    """Once a start, beside the work: a store that refuses is asked at the next one, and by its own daemon."""
    with contextlib.suppress(Refused, StaleDaemon):
        await log_store.retain(ended_before_ms=ended_before_ms)


def replay(state: State, event: Event) -> None:
    """Apply a stored event; nothing is to be taken back."""
    evolve(state, _UNWOUND, event)


def environment_of(folder: Path, name: str | None) -> dict[str, str]:
    """A graph's stored environment; the daemon's own, allow-listed, where none was sent or its file is gone."""
    if name is not None:
        try:
            return load(folder / "environments", name)
        except EnvironmentMissing:
            log("environment_missing", name=name)
    return snapshot(os.environ)
