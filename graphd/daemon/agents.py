"""Which profile serves each worker now: looked for on the PATHs of the graphs that live, kept for the scheduler.

The scheduler asks after every batch, so the answer is at hand and the looking is done beside it: when a graph is set or
resumed, when settings change, and again and again while a graph waits for an agent. An agent that is found again lets
such a graph go on by itself. Source: execution.md, Drivers (profiles).
"""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from graphd.children.profiles import Profile
from graphd.children.profiles.choosing import Agents, serve
from graphd.core.commands import Capacity, Done, Request, Resume
from graphd.core.events import Change, Refused
from graphd.core.model import Graph, State
from graphd.daemon.log import log
from graphd.daemon.settings import Settings

PROBE_S: Final = 10.0
KEPT_S: Final = 120.0
"""How long a PATH that was asked about is searched though no graph has it yet: a `set` on its way."""
_STIRRING: Final = frozenset({"graph_set", "plan_installed", "states_imported", "paused", "resumed", "reopened"})
Table = tuple[tuple[str, str], ...]
Caps = tuple[tuple[str, int], ...]


class Served:
    """Worker → profile, for all graphs. Read on the loop, looked for in threads."""

    def __init__(self, agents: Callable[[], Agents]) -> None:
        self._agents = agents
        self._own = os.environ.get("PATH", os.defpath)
        self._asked: dict[str, float] = {}
        self._graphs: tuple[str, ...] = ()
        self._looking = threading.Lock()
        self.table: Table = (("shell", "shell"),)  # nobody asked for an agent yet
        self._caps: tuple[Settings | None, Caps] = (None, ())

    def look(self, asked: str | None = None, *, graphs: Iterable[str] | None = None) -> bool:
        """Look again: on the PATHs of `graphs` where they are given, and on one that was asked about.

        True where the table changed. Blocks for ms.
        """
        with self._looking:
            now_s = time.monotonic()
            self._asked = {path: until for path, until in self._asked.items() if until > now_s}
            if asked is not None:
                self._asked[asked] = now_s + KEPT_S
            if graphs is not None:
                self._graphs = tuple(graphs)
            table = served(self._agents(), list(dict.fromkeys((*self._graphs, *self._asked, self._own))))
            is_changed, self.table = table != self.table, table
            return is_changed

    def capacity(self, settings: Settings) -> Capacity:
        """What the scheduler may fill."""
        if self._caps[0] is not settings:
            self._caps = (settings, caps(settings))
        return Capacity(settings.concurrency, per_profile=self._caps[1], profiles=self.table)

    def drop(self, profile: str) -> None:
        """Its program is gone: nothing more is started with it until it is found again."""
        self.table = tuple(row for row in self.table if row[1] != profile)


def served(agents: Agents, paths: list[str]) -> Table:
    """The profile of each worker that any of the PATHs serves; the first PATH wins."""
    known: dict[tuple[str | None, str | None], str | None] = {}  # workers that want the same get the same
    for worker, held in agents.workers.items():
        wish = (held.agent, held.permissions)
        if wish not in known:
            answers = (serve(agents, worker, path) for path in paths)
            known[wish] = next((answer.name for answer in answers if isinstance(answer, Profile)), None)
    rows = ((worker, known[(held.agent, held.permissions)]) for worker, held in agents.workers.items())
    return tuple((worker, name) for worker, name in rows if name is not None)


def caps(settings: Settings) -> Caps:
    """How many processes of each agent may run at once: as it says, and as many as fit into the memory alone."""
    room_mb = settings.memory_mb or _three_quarters_mb()
    profiles = [profile for profile in settings.agents.profiles.values() if profile.driver != "shell"]
    fitting = {profile.name: max(1, room_mb // max(1, profile.mem_mb)) for profile in profiles}
    return tuple((p.name, min(p.max_processes or fitting[p.name], fitting[p.name])) for p in profiles)


def _three_quarters_mb() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 // 1024**2)


def waiting_for_agent(state: State) -> list[str]:
    """Graphs that are held because nothing serves a worker of theirs."""
    return [g.id for g in state.graphs.values() if g.status == "infra_paused" and g.pause_cause == "agent"]


def environments(state: State) -> list[str | None]:
    """The environments of graphs with nodes for agents; an ended one may be tried again."""
    return list({graph.environment: None for graph in state.graphs.values() if _has_agents(graph)})


def is_agent_needed(state: State) -> bool:
    """A graph that has not ended has nodes for agents."""
    return any(not graph.is_ended and _has_agents(graph) for graph in state.graphs.values())


def _has_agents(graph: Graph) -> bool:
    return any(node.definition.worker not in ("", "shell") for node in graph.nodes.values())


class AgentWatch:
    """Looks again while a graph needs an agent, and has the graphs that waited for it go on. One task."""

    def __init__(
        self, table: Served, *, view: Callable[[Callable[[State], object]], Awaitable[object]],
        execute: Callable[[Request], Awaitable[Done]], path_of: Callable[[str | None], str], tick: Callable[[], None],
    ) -> None:  # fmt: skip
        self._served = table
        self._view = view
        self._execute = execute
        self._path_of = path_of
        self._tick = tick
        self._stirred = asyncio.Event()
        self._hurried = asyncio.Event()

    def committed(self, changes: list[Change]) -> None:
        """A listener: something may need an agent from now on."""
        if any(event.kind in _STIRRING for change in changes for event in change.events):
            self._stirred.set()

    def settings_changed(self) -> None:
        """Look at once: an agent may be named anew."""
        self._stirred.set()
        self._hurried.set()

    async def begin(self, state: State) -> None:
        """Before anything is started: `state` is committed and nothing else runs."""
        names = environments(state)
        if names:
            await asyncio.to_thread(lambda: self._served.look(graphs=[self._path_of(name) for name in names]))
        if is_agent_needed(state):
            self._stirred.set()

    async def run(self) -> None:
        """Until cancelled. Asleep while no graph needs an agent."""
        while True:
            await self._stirred.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROBE_S):
                    await self._hurried.wait()
            self._hurried.clear()
            if not await self.probe():
                self._stirred.clear()

    async def probe(self) -> bool:
        """Look once; what waited and is served now goes on. False where no graph needs an agent."""
        names: list[str | None] = []

        def read(state: State) -> None:
            names.extend(environments(state) if is_agent_needed(state) else [])

        await self._view(read)
        if not names:
            return False
        paths = await asyncio.to_thread(lambda: [self._path_of(name) for name in names])
        if await asyncio.to_thread(self._served.look, graphs=paths):
            log("agents_changed", served=dict(self._served.table))
            self._tick()
        await self.release()
        return True

    async def release(self) -> None:
        """Resume what waited for an agent that is there."""
        ready: list[str] = []
        have = {worker for worker, _ in self._served.table}

        def read(state: State) -> None:
            ready.extend(name for name in waiting_for_agent(state) if lacking(state.graphs[name]) <= have)

        await self._view(read)
        for graph in ready:
            with contextlib.suppress(Refused):
                await self._execute(Request(Resume(graph)))


def lacking(graph: Graph) -> set[str]:
    """The workers that its ready required nodes ask for: without them it would be held again at once."""
    nodes = (graph.nodes[node] for node in graph.ready)
    return {node.definition.worker for node in nodes if node.required}
