"""A store with the real core on top, without daemon or children; as a script, the process that crash tests kill.

`python -m tests.data.store.workload FOLDER ACKNOWLEDGED BATCHES [checkpoint] [die]` appends a line `graph rev` to
ACKNOWLEDGED for each change after its commit, before the next batch is begun.
"""

import asyncio
import os
import sys
from pathlib import Path

from graphd.base.clock import SystemClock
from graphd.core.commands import AttemptEnded, AttemptIdentified, Capacity, Command, Request, Set
from graphd.core.decide import decide
from graphd.core.events import Event
from graphd.core.evolve import evolve
from graphd.core.model import Definition, Graph, Identity, Limits, Output, Source, State
from graphd.core.schedule import schedule
from graphd.core.tape import Tape
from graphd.store.database import Database, Opening
from graphd.store.lock import WorkspaceLock
from graphd.store.log import Log
from graphd.store.writer import Decided


def apply(state: State, event: Event) -> None:
    """The evolve of a replay: nothing is taken back, so the tape is thrown away."""
    evolve(state, Tape(), event)


async def open_database(folder: Path, *, version: str = "1.0", is_new_place: bool = False, now_ms: int = 1) -> Database:
    """Lock and open the store of the workspace `<folder>/ws`, its state in `<folder>/state`."""
    workspace = folder / "ws"
    workspace.mkdir(parents=True, exist_ok=True)
    lock = WorkspaceLock.take(folder / "state", version=version, now_ms=now_ms)
    try:
        return await Database.open(lock, Opening(workspace, version, now_ms, is_new_place))
    except BaseException:
        lock.release()
        raise


async def close_database(database: Database) -> None:
    """Close and unlock."""
    await database.close()
    database.lock.release()


def plan(name: str, size: int, *, spec: str = "true") -> Set:
    """A graph of `size` nodes: layers of five, each node on one of the layer before."""
    definitions = tuple(
        Definition(slug=f"n{i}", spec=spec, worker="shell", needs=(f"n{i - 5}",) if i >= 5 else (), required=True)
        for i in range(size)
    )
    source = Source("nodes")
    return Set(
        graph=name, title=name, objective="work", source=source, workspace="/ws", definitions=definitions,
        limits=Limits(max_nodes=10_000),
    )  # fmt: skip


class Workload:
    """The state, its log, and batches of commands."""

    def __init__(self, log: Log, state: State) -> None:
        self.log = log
        self.state = state
        self.now = 1_000

    @classmethod
    async def on(cls, database: Database) -> "Workload":
        log = Log(database, clock=SystemClock())
        return cls(log, await log.load(apply))

    async def batch(self, *commands: Command) -> Decided:
        """Decide and commit; on an error the state is taken back."""
        self.now += 1
        tape, decided = Tape(), Decided()
        try:
            for command in commands:
                decision = decide(self.state, tape, Request(command), self.now)
                decided.changes += decision.changes
            changes, _ = schedule(self.state, tape, Capacity(), self.now)
            decided.changes += changes
            await self.log.commit(decided, self.state)
        except BaseException:
            tape.rollback()
            self.state.are_queues_stale = True
            raise
        return decided

    def steps(self, graph: Graph) -> list[Command]:
        """The facts that move every live attempt one step on."""
        facts: list[Command] = []
        for key in graph.live:
            if graph.attempts[key].state == "starting":
                facts.append(AttemptIdentified(graph.id, key, Identity("boot", "ns", 1, 2, 3)))
            else:
                output = Output(f"said by {key[0]}", 12, "text/plain")
                facts.append(AttemptEnded(graph.id, key, "achieved", exit_code=0, output=output))
        return facts

    async def finish(self, name: str) -> None:
        """Drive a graph to its end."""
        while not self.state.graphs[name].is_ended:
            await self.batch(*self.steps(self.state.graphs[name]))


async def _run(folder: Path, acknowledged: Path, batches: int, has_checkpoints: bool) -> None:
    database = await open_database(folder)
    workload = await Workload.on(database)
    if not has_checkpoints:
        await database.write(lambda connection: connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall())
    sink = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in range(batches):
        live = [graph for graph in workload.state.graphs.values() if not graph.is_ended]
        commands = [fact for graph in live for fact in workload.steps(graph)[:2]]
        decided = await workload.batch(*(commands or [plan(f"g{database.epoch}-{number}", 8)]))
        lines = "".join(f"{change.graph} {change.rev}\n" for change in decided.changes)
        os.write(sink, lines.encode())
        if has_checkpoints and number % 7 == 6:
            await database.checkpoint()
    if "die" in sys.argv:
        os._exit(0)  # as killed: the journal stays as it is
    await close_database(database)


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), "checkpoint" in sys.argv))
