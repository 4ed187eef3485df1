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
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from graphd.children.profiles import Profile
from graphd.children.profiles.choosing import Agents, serve
from graphd.core.commands import Capacity, Done, Estimate, Request, Resume
from graphd.core.definition import Definition
from graphd.core.events import Change, Refused
from graphd.core.model import Graph, State
from graphd.daemon.log import log
from graphd.daemon.settings import Settings, memory_mb

PROBE_S: Final = 10.0
STAGGER_MS: Final = 500
"""Between two starts of one agent: its start-up is 1 to 9 s of CPU, and ten at once only slow each other down."""
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
        self._asked_full: dict[str, float] = {}
        self._graphs: tuple[str, ...] = ()
        self._full: frozenset[str] = frozenset()
        self._looking = threading.Lock()
        self.table: Table = (("shell", "shell"),)  # nobody asked for an agent yet
        self._bounds: tuple[Settings | None, Capacity] = (None, Capacity())

    def look(self, asked: str | None = None, *, graphs: Iterable[str] | None = None, full: Iterable[str] = ()) -> bool:
        """Look again: on the PATHs of `graphs` where they are given, and on one that was asked about.

        `full`: workers with nodes that may do anything, which an agent that does not ask may serve too. True where the
        table changed. Blocks for ms.
        """
        with self._looking:
            now_s = time.monotonic()
            for held in (self._asked, self._asked_full):
                for name in [name for name, until_s in held.items() if until_s <= now_s]:
                    del held[name]
            if asked is not None:
                self._asked[asked] = now_s + KEPT_S
            if graphs is not None:
                self._graphs, self._full = tuple(graphs), frozenset(full)
            else:
                self._asked_full |= dict.fromkeys(full, now_s + KEPT_S)
            paths = list(dict.fromkeys((*self._graphs, *self._asked, self._own)))
            table = served(self._agents(), paths, full=self._full | set(self._asked_full))
            is_changed, self.table = table != self.table, table
            return is_changed

    def on(self, path: str) -> Table:
        """What one PATH alone serves. Blocks for ms."""
        return served(self._agents(), [path], full=self._full | set(self._asked_full))

    def capacity(self, settings: Settings) -> Capacity:
        """What the scheduler may fill."""
        if self._bounds[0] is not settings:
            self._bounds = (settings, bounds(settings))
        return self._bounds[1]._replace(profiles=self.table)

    def drop(self, profile: str) -> None:
        """Its program is gone: nothing more is started with it until it is found again."""
        self.table = tuple(row for row in self.table if row[1] != profile)


def served(agents: Agents, paths: list[str], *, full: Collection[str] = ()) -> Table:
    """The profile of each worker that any of the PATHs serves; the first PATH wins, and an agent that asks."""
    known: dict[tuple[str | None, str | None, bool], str | None] = {}  # workers that want the same get the same
    rows = []
    for worker, held in agents.workers.items():
        wish = (held.agent, held.permissions, worker in full)
        if wish not in known:
            answers = [serve(agents, worker, path) for path in paths]
            if worker in full:
                answers += [serve(agents, worker, path, permissions="full") for path in paths]
            known[wish] = next((answer.name for answer in answers if isinstance(answer, Profile)), None)
        rows.append((worker, known[wish]))
    return tuple((worker, name) for worker, name in rows if name is not None)


def caps(settings: Settings) -> Caps:
    """How many processes of each agent may run at once: as it says, and as many as fit into the memory alone."""
    room_mb = memory_mb(settings)
    profiles = [profile for profile in settings.agents.profiles.values() if profile.driver != "shell"]
    fitting = {profile.name: max(1, room_mb // max(1, profile.mem_mb)) for profile in profiles}
    return tuple((p.name, min(p.max_processes or fitting[p.name], fitting[p.name])) for p in profiles)


def bounds(settings: Settings) -> Capacity:
    """All that the settings say of it; which profile serves a worker is not among that."""
    profiles = settings.agents.profiles.values()
    agents = [profile for profile in profiles if profile.driver != "shell"]
    return Capacity(
        settings.concurrency,
        per_profile=caps(settings),
        reports=tuple((profile.name, profile.reports) for profile in profiles),
        estimates=tuple((profile.name, Estimate(profile.estimate)) for profile in agents),
        stagger_ms=tuple((profile.name, STAGGER_MS) for profile in agents),
        memory_mb=memory_mb(settings),
        memory_mb_of=tuple((profile.name, profile.mem_mb) for profile in agents),
    )


def waiting_for_agent(state: State) -> list[Graph]:
    """Graphs that are held because nothing serves a worker of theirs."""
    return [g for g in state.graphs.values() if g.status == "infra_paused" and g.pause_cause == "agent"]


def full_workers(state: State) -> set[str]:
    """Workers of which a node may do anything."""
    nodes = (node.definition for graph in state.graphs.values() for node in graph.nodes.values())
    return {definition.worker for definition in nodes if definition.permissions == "full"}


def environments(state: State) -> list[str | None]:
    """The environments of graphs with nodes for agents; an ended one may be tried again."""
    return list({graph.environment: None for graph in state.graphs.values() if _has_agents(graph)})


def is_agent_needed(state: State) -> bool:
    """A graph that has not ended has nodes for agents."""
    return any(not graph.is_ended and _has_agents(graph) for graph in state.graphs.values())


def _has_agents(graph: Graph) -> bool:
    return any(_is_for_agents(node.definition) for node in graph.nodes.values())


def _is_for_agents(definition: Definition) -> bool:
    """It is work for an agent, or an agent has to check it."""
    is_checked = definition.verify is not None and definition.verify.worker is not None
    return definition.worker not in ("", "shell") or is_checked


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
        names, full = environments(state), full_workers(state)
        if names:
            await asyncio.to_thread(lambda: self._served.look(graphs=map(self._path_of, names), full=full))
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
            self._stirred.clear()  # before it looks: what is set meanwhile is looked for next time
            if await self.probe():
                self._stirred.set()

    async def probe(self) -> bool:
        """Look once; what waited and is served now goes on. False where no graph needs an agent."""
        names: list[str | None] = []
        full: set[str] = set()

        def read(state: State) -> None:
            if is_agent_needed(state):
                names.extend(environments(state))
                full.update(full_workers(state))

        await self._view(read)
        if not names:
            return False
        if await asyncio.to_thread(lambda: self._served.look(graphs=map(self._path_of, names), full=full)):
            log("agents_changed", served=dict(self._served.table))
            self._tick()
        await self.release()
        return True

    async def release(self) -> None:
        """Resume what waited for an agent that is there now, on the graph's own PATH."""
        held: list[tuple[str, str | None, set[str]]] = []
        await self._view(lambda state: held.extend((g.id, g.environment, lacking(g)) for g in waiting_for_agent(state)))
        for graph, environment, workers in held:
            if workers <= await asyncio.to_thread(self._workers_on, environment):
                with contextlib.suppress(Refused):
                    await self._execute(Request(Resume(graph)))

    def _workers_on(self, environment: str | None) -> set[str]:
        return {worker for worker, _ in self._served.on(self._path_of(environment))}


def lacking(graph: Graph) -> set[str]:
    """The workers that its ready required nodes ask for: without them it would be held again at once."""
    nodes = (graph.nodes[node] for node in graph.ready)
    return {node.definition.worker for node in nodes if node.required}
