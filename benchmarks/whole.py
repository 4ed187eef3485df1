"""The whole daemon in its own process, without the socket: real core, writer, SQLite with FULL, and a chosen driver.

The clock runs from the acknowledged `set` to the commit that completes the graph.

usage: python -m benchmarks.whole WORKLOAD SIZE FOLDER [--driver noop|identified|keepers] [--concurrency N]
       [--resume] [--record FILE] [--workspace DIR]
"""

import argparse
import asyncio
import gc
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

from benchmarks import noop
from benchmarks.machine import cpu_s, peak_mb, status_mb
from benchmarks.processes import emit
from benchmarks.workloads import GRAPH_ID, graph, plan
from graphd.children.driver import RunFactory
from graphd.children.environment import save, snapshot
from graphd.core.commands import Request, Set
from graphd.core.events import Change
from graphd.daemon.house import Daemon
from graphd.server.place import config_folder, state_folder
from graphd.store.folder import prepare_folder
from graphd.store.log import Log


class Watch:
    """Counts what is committed, and sees the end. Listens to the daemon's changes."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.ended = asyncio.Event()
        self.end = (0.0, 0.0, 0.0)
        self.commits = self.events = 0
        daemon.subscribe(self._committed)
        self._look()

    def _committed(self, changes: list[Change]) -> None:
        self.commits += 1
        self.events += sum(len(change.events) for change in changes)
        self._look()

    def _look(self) -> None:
        found = self._daemon.state.graphs.get(GRAPH_ID)
        if found is not None and found.is_ended and not self.ended.is_set():
            self.end = now()
            self.ended.set()


class Collections:
    """Seconds that Python's cyclic collector took, in whatever thread."""

    def __init__(self) -> None:
        self.spent_s = self._begun = 0.0
        gc.callbacks.append(self._called)

    def _called(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.perf_counter()
        else:
            self.spent_s += time.perf_counter() - self._begun


def now() -> tuple[float, float, float]:
    """Wall, CPU of all threads with reaped children, CPU of the loop's thread."""
    return time.perf_counter(), cpu_s(), time.thread_time()


def record(path: Path) -> None:
    """Append the rows of every commit to `path`: what `benchmarks.raw` replays."""
    inner = Log._rows
    sink = path.open("wb")

    def rows(self: Log, *given: Any) -> Any:
        write = inner(self, *given)
        pickle.dump(write.statements, sink)
        sink.flush()
        return write

    Log._rows = rows  # type: ignore[method-assign,assignment]


def driver(name: str) -> RunFactory:
    """The factory of runs that is measured."""
    if name == "keepers":
        from graphd.children.run import KeptRun

        return KeptRun
    return noop.factory(has_identity=name == "identified")


def made(given: argparse.Namespace, workspace: Path, state: Path) -> Set:
    """The command, with a stored environment as a client's `set` has one. Not kept: memory is measured."""
    kept = save(state / "environments", snapshot(os.environ))
    command = plan(
        given.workload, given.size, spec="exec /bin/true", workspace=str(workspace), concurrency=given.concurrency
    )
    return command._replace(environment=kept)


async def main() -> None:
    """Run one workload and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("size", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--driver", default="noop", choices=("noop", "identified", "keepers"))
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--workspace", type=Path, help="of a store that is resumed elsewhere")
    given = parser.parse_args()
    workspace = (given.workspace or given.folder / "workspace").resolve()
    state, config = state_folder(workspace), config_folder()
    prepare_folder(state)
    os.chdir(state)  # as the server does: names of sockets are relative
    settings = {"concurrency": given.concurrency, "keepersRestartDaemon": False}
    (config / "settings.json").write_text(json.dumps(settings))
    if given.record:
        record(given.record)
    opened = time.perf_counter()
    async with Daemon.open(workspace, state, config=config, factory=driver(given.driver)) as daemon:
        open_s = time.perf_counter() - opened
        base_mb = status_mb(os.getpid(), "VmRSS")
        watch = Watch(daemon)
        collections, begun = Collections(), now()
        if given.resume and GRAPH_ID not in daemon.state.graphs:
            raise SystemExit("there is nothing to resume")
        if not given.resume:
            await daemon.execute(Request(made(given, workspace, state)))
        start, set_commits = now(), watch.commits
        await watch.ended.wait()
        gc_s, held_mb = collections.spent_s, status_mb(os.getpid(), "VmRSS")
        await asyncio.sleep(0.05)  # what follows the last commit: the last run is collected
        outcome = daemon.state.graphs[GRAPH_ID].outcome
    if outcome != "ok":
        raise SystemExit(f"the graph ended as {outcome}")
    wall_s, used_s, loop_s = (end - at for end, at in zip(watch.end, start, strict=True))
    emit(
        wall_s=wall_s, cpu_s=used_s, loop_s=loop_s, gc_s=gc_s, nodes=len(graph(given.workload, given.size)),
        commits=watch.commits - set_commits, events=watch.events, open_s=open_s, set_s=start[0] - begun[0],
        run_s=watch.end[0] - begun[0], run_cpu_s=watch.end[1] - begun[1],
        base_mb=base_mb, held_mb=held_mb, peak_mb=peak_mb(), db_bytes=(state / "graph.db").stat().st_size,
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
