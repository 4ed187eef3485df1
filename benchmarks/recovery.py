"""Recovery (P6): SIGKILL at half of a graph, then from the spawn of a new process to the first node that it starts.

graphd recovers with its server and socket, as it really starts. The chain is killed anew each round; the larger
states are made once and copied, for a store pauses its graphs at the fifth start in ten minutes.
"""

import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import (
    ROOT,
    ContestantFailed,
    Result,
    environment,
    fresh_folder,
    kill,
    marks,
    module,
    run,
    spawn,
    wait_for_marks,
)
from benchmarks.report import Row, at_most
from benchmarks.rounds import Effort, interleave, progress
from benchmarks.start import RunningDaemon
from benchmarks.workloads import graph

DONE = {
    "whole": ("graph.db", "SELECT CAST(substr(slug, 2) AS INTEGER) FROM nodes WHERE state = 'achieved'"),
    "floor": ("floor.db", "SELECT id FROM nodes WHERE state = 'done'"),
}


@dataclass(slots=True, frozen=True)
class Killed:
    """What a killed run left: its folder, the nodes that had started, and those that were committed as done."""

    side: str
    workload: str
    size: int
    folder: Path
    started: frozenset[int]
    done: frozenset[int]

    def recover(self, folder: Path) -> Result:
        """Spawn → first node in ms, then to the end: how many done nodes ran again, and how many others did."""
        first_ms = time_first_node(self, folder)
        where = ("--workspace", self.folder / "workspace") if self.side == "whole" else ()
        run(module(self.side, self.workload, self.size, folder, "--resume", *where), folder)
        after = marks(folder)[len(self.started) :]
        again = [node for node in after if node in self.started]
        missing = set(graph(self.workload, self.size)) - self.started - set(after)
        if missing:
            raise ContestantFailed(f"{self.side} {self.workload} {self.size}: {len(missing)} nodes never ran")
        return {"first_ms": first_ms, "done_again": len(self.done.intersection(after)), "in_flight_again": len(again)}


def kill_at_half(side: str, workload: str, size: int, folder: Path) -> Killed:
    """Run to half of the nodes, SIGKILL."""
    process = spawn(module(side, workload, size, folder), folder)
    wait_for_marks(folder, len(graph(workload, size)) // 2, process)
    kill(process)
    return Killed(side, workload, size, folder, frozenset(marks(folder)), frozenset(done_nodes(side, folder)))


def done_nodes(side: str, folder: Path) -> list[int]:
    """Read from a copy, so that looking recovers nothing."""
    name, query = DONE[side]
    found = next(folder.rglob(name))
    with fresh_folder() as copy:
        for path in found.parent.glob(f"{name}*"):
            shutil.copyfile(path, copy / path.name)
        connection = sqlite3.connect(copy / name)
        nodes = [int(row[0]) for row in connection.execute(query)]
        connection.close()
    return nodes


def time_first_node(killed: Killed, folder: Path) -> float:
    """Spawn the new process, wait for its first node, kill it."""
    if killed.side == "floor":
        argv = module("floor", killed.workload, killed.size, folder, "--resume")
    else:
        argv = module("served", killed.folder / "workspace")
    before, begun = len(marks(folder)), time.monotonic()
    process = spawn(argv, folder)
    try:
        return (wait_for_marks(folder, before + 1, process) - begun) * 1000
    finally:
        kill(process)


def recovery(effort: Effort) -> list[Row]:
    """A chain of 200, killed anew each round, and layered graphs of 1,000 and 10,000."""
    rows = _chain(effort)
    for size in (1000,) if effort.is_quick else (1000, 10_000):
        rows += _layered(effort, size)
    return rows


def _fresh(side: str) -> Callable[[], Result]:
    def measure() -> Result:
        with fresh_folder() as folder:
            return kill_at_half(side, "chain", 200, folder).recover(folder)

    return measure


def _own_start() -> Result:
    with RunningDaemon.graphd() as daemon:
        return {"first_ms": daemon.ready_s * 1000}


def _chain(effort: Effort) -> list[Row]:
    contestants = {"graphd": _fresh("whole"), "floor": _fresh("floor"), "start": _own_start}
    results = interleave("recovery chain 200", effort.rounds, contestants)
    ours, theirs, start = ([result["first_ms"] for result in results[name]] for name in contestants)
    what = "recovery, chain 200, spawn to first node"
    return [
        Row(what, "ms", ours, theirs, why=_again(results["graphd"])),
        Row(f"{what}, against its own cold start", "ms", ours, start, "graphd's cold start", at_most(2, note=" (P6)"),
            "see the imports of P11"),
        _rerun("chain 200", results["graphd"]),
    ]  # fmt: skip


def _layered(effort: Effort, size: int) -> list[Row]:
    with fresh_folder() as ours, fresh_folder() as theirs, fresh_folder() as built:
        progress(f"recovery {size}: runs to be killed")
        killed = [kill_at_half("whole", "layered", size, ours), kill_at_half("floor", "layered", size, theirs)]
        contestants = {run_.side: _copied(run_) for run_ in killed}
        has_ninja = size == 10_000 and shutil.which("ninja") is not None
        if has_ninja:
            _ninja_to_half(built, size)
            contestants["ninja"] = lambda: {"first_ms": _ninja_again(built)}
        results = interleave(f"recovery {size}", effort.rounds, contestants)
        whole_end = [_in_copy(killed[0], lambda run_, folder: run_.recover(folder))]
    first = {name: [result["first_ms"] for result in found] for name, found in results.items()}
    what = f"recovery, layered {size:,}, spawn to first node"
    rows = [Row(what, "ms", first["whole"], first["floor"], why=_again(whole_end))]
    if size == 10_000:
        why = "the whole log since the last base is read and folded before anything starts" if has_ninja else ""
        rows.append(Row(f"{what}, against ninja's", "ms", first["whole"], first.get("ninja", []), "ninja",
                        at_most(2, note=" (P6)"), why or "not measured: ninja is missing"))  # fmt: skip
    return [*rows, _rerun(f"layered {size:,}", whole_end)]


def _copied(killed: Killed) -> Callable[[], Result]:
    return lambda: _in_copy(killed, lambda run_, folder: {"first_ms": time_first_node(run_, folder)})


def _in_copy(killed: Killed, act: Callable[[Killed, Path], Result]) -> Result:
    """Act on a copy of the state; the workspace stays the one that the store was made for."""
    with fresh_folder() as folder:
        for name in ("state", "config"):
            shutil.copytree(killed.folder / name, folder / name, dirs_exist_ok=True)
        for path in (*killed.folder.glob("floor.db*"), killed.folder / "marks"):
            shutil.copyfile(path, folder / path.name)
        return act(killed, folder)


def _rerun(what: str, results: list[Result]) -> Row:
    again = [float(result["done_again"]) for result in results]
    return Row(f"recovery, {what}, done nodes that ran again", "", again, goal=at_most(0, is_ratio=False),
               why="a committed node ran twice")  # fmt: skip


def _again(results: list[Result]) -> str:
    most = max(result["in_flight_again"] for result in results)
    return f"ran again: {max(result['done_again'] for result in results)} done, at most {most} that were in flight"


# ---- ninja ----------------------------------------------------------------------------------------------------------


def _ninja(folder: Path) -> "subprocess.Popen[str]":
    with (folder / "stderr").open("a") as log:
        return subprocess.Popen(
            ["ninja", "-C", str(folder), "-j8", "--quiet"], cwd=ROOT, env=environment(folder), text=True, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip


def _ninja_to_half(folder: Path, size: int) -> None:
    progress("recovery: ninja to half")
    (folder / "out").mkdir()
    lines = ["rule r\n  command = echo 0 >> marks && : > $out\n"]
    for node, needs in graph("layered", size).items():
        lines.append(f"build out/{node}: r {' '.join(f'out/{need}' for need in needs)}\n")
    (folder / "build.ninja").write_text("".join(lines))
    _killed_after(_ninja(folder), folder, size // 2)


def _ninja_again(folder: Path) -> float:
    begun, before = time.monotonic(), len(marks(folder))
    return (_killed_after(_ninja(folder), folder, before + 1) - begun) * 1000


def _killed_after(process: "subprocess.Popen[str]", folder: Path, count: int) -> float:
    """ninja gives each of its commands a process group, so they end by themselves."""
    try:
        return wait_for_marks(folder, count, process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.3)  # its last commands still leave their marks
