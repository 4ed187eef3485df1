"""Chain, fan, layered and wide against the floor; a chain against raw SQLite loops (P2, P5 of the research's goals)."""

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import cpu_s
from benchmarks.processes import ContestantFailed, Result, fresh_folder, module, run
from benchmarks.report import Goal, Row, at_most
from benchmarks.rounds import Effort, floor, interleave, per_node, progress, whole
from benchmarks.workloads import graph

# What P3 and P4 leave against the floor, by the research's table of peers: e.g. Restate's chain is 1.7 floors.
IMPLIED = {"chain": 1.7, "fan": 2.5, "layered": 3.3}
SIZES = {"chain": 200, "fan": 1000, "layered": 1000}
CONCURRENCY = 8


def speed(workload: str) -> Callable[[Effort], list[Row]]:
    """The measurement of one workload through the whole daemon with the no-op driver."""

    def measure(effort: Effort) -> list[Row]:
        size = SIZES[workload]
        results = interleave(workload, effort.rounds, {"graphd": whole(workload, size), "floor": floor(workload, size)})
        ours, theirs = results["graphd"], results["floor"]
        goal = at_most(IMPLIED[workload], note=" (what P3, P4 leave)")
        return [
            Row(f"{workload} {size}, wall a node", "ms", per_node(ours), per_node(theirs), goal=goal,
                why=_reason(ours, theirs)),
            Row(f"{workload} {size}, CPU a node", "ms", per_node(ours, "cpu_s"), per_node(theirs, "cpu_s"),
                why=f"{middle(ours, 'commits'):.0f} commits, floor {middle(theirs, 'commits'):.0f}"),
        ]  # fmt: skip

    return measure


def _reason(ours: list[Result], theirs: list[Result]) -> str:
    nodes = ours[0]["nodes"]
    loop = statistics.median(per_node(ours, "loop_s"))
    store = statistics.median(per_node(ours, "cpu_s")) - loop
    bytes_ours, bytes_theirs = (middle(side, "db_bytes") / nodes for side in (ours, theirs))
    collected = statistics.median(per_node(ours, "gc_s"))
    return (
        f"CPU a node: {loop:.2f} ms on the loop, {store:.2f} ms in the store's thread; Python's cyclic collector, set"
        f" included, {collected:.2f} ms; {bytes_ours:,.0f} B a node stored, floor {bytes_theirs:,.0f} B"
    )


def middle(results: list[Result], name: str) -> float:
    """The median of one value."""
    return statistics.median(float(result[name]) for result in results)


def chain_against_raw(effort: Effort) -> list[Row]:
    """P2: a chain against the loop that only commits the same transitions, and against graphd's own rows replayed."""
    size = 200
    with fresh_folder() as folder:
        rows = folder / "rows"
        progress("P2: recording graphd's rows")
        run(module("whole", "chain", size, "FOLDER", "--record", rows))
        contestants = {
            "graphd": whole("chain", size),
            "raw loop": lambda: run(module("raw", "transitions", size, "FOLDER")),
            "replay": lambda: run(module("raw", "replay", size, "FOLDER", "--rows", rows)),
            "with identity": whole("chain", size, "--driver", "identified"),
        }
        results = interleave("P2", effort.rounds, contestants)
    ours, raw, replay, identified = results.values()
    cpu = {name: statistics.median(per_node(results[name], "cpu_s")) for name in results}
    loop = statistics.median(per_node(ours, "loop_s"))
    why = f"graphd's own rows alone, replayed, take {cpu['replay']:.2f} ms CPU a node; its loop's thread {loop:.2f} ms"
    return [
        Row("P2 chain 200, wall, FULL", "ms", per_node(ours), per_node(raw), "raw loop", at_most(1.5), why),
        Row("P2 chain 200, CPU, FULL", "ms", per_node(ours, "cpu_s"), per_node(raw, "cpu_s"), "raw loop",
            at_most(5), why),
        Row("P2 chain 200, wall, NORMAL", "ms", [], other="raw loop", goal=at_most(2.5),
            why="not measured: graphd has no switch for NORMAL"),
        Row("chain 200, wall, against its own rows", "ms", per_node(ours), per_node(replay), "replay of graphd's rows",
            why="what the scheduler adds to its rows"),
        Row("chain 200, wall, an identity committed before each run", "ms", per_node(identified), per_node(ours),
            "without", why="a real keeper's run has this second commit a node"),
    ]  # fmt: skip


def wide(effort: Effort) -> list[Row]:
    """100 × /bin/true at concurrency 8: real keepers against bare processes, make and ninja."""
    size = 24 if effort.is_quick else 100
    options = ("--concurrency", CONCURRENCY)
    contestants = {
        "graphd": whole("wide", size, "--driver", "keepers", *options),
        "floor": floor("wide", size, "--payload", "true", *options),
        "python": floor("wide", size, "--payload", "python", *options),
        **{tool: _build_tool(tool, size) for tool in ("make", "ninja") if shutil.which(tool)},
    }
    results = interleave("wide", effort.rounds, contestants)
    ours = results["graphd"]
    why = (
        f"a keeper is a Python process with a journal of its own: the floor with one bare Python process a node takes"
        f" {statistics.median(per_node(results['python'])):.1f} ms; a node of graphd takes"
        f" {middle(ours, 'cpu_s') / size * 1000:.0f} ms of CPU and {middle(ours, 'commits') / size:.2f} commits"
    )
    rows = [
        Row(f"wide {size} × /bin/true, c=8, wall a node", "ms", per_node(ours), per_node(results["floor"]), why=why),
        Row(f"wide {size}, against one bare Python process a node", "ms", per_node(ours), per_node(results["python"]),
            "floor with `python -I -S -c pass`", why="what keeper, journal and commits add to a process start"),
    ]  # fmt: skip
    for tool in ("make", "ninja"):
        goal = at_most(2, note=" (P5)") if tool == "ninja" else None
        rows.append(_against_tool(tool, ours, results.get(tool), goal, why))
    return rows


def _against_tool(tool: str, ours: list[Result], theirs: list[Result] | None, goal: Goal | None, why: str) -> Row:
    what = f"wide, against {tool} -j8"
    if theirs is None:
        return Row(what, "ms", per_node(ours), other=tool, why=f"not measured: {tool} is missing")
    return Row(what, "ms", per_node(ours), per_node(theirs), tool, goal, why if goal else "")


def _build_tool(tool: str, size: int) -> Callable[[], Result]:
    def measure() -> Result:
        with fresh_folder() as folder:
            (folder / "out").mkdir()
            command = _write_build_file(tool, folder, size)
            cpu, start = cpu_s(), time.perf_counter()
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            wall_s, used_s = time.perf_counter() - start, cpu_s() - cpu
            made = len(list((folder / "out").iterdir()))
        if made != size:
            raise ContestantFailed(f"{tool} made {made} of {size}")
        return {"wall_s": wall_s, "cpu_s": used_s, "nodes": size}

    return measure


def _write_build_file(tool: str, folder: Path, size: int) -> list[str]:
    nodes = graph("wide", size)
    if tool == "ninja":
        rule = "rule r\n  command = /bin/true && : > $out\n"
        (folder / "build.ninja").write_text(rule + "".join(f"build out/{node}: r\n" for node in nodes))
        return ["ninja", f"-j{CONCURRENCY}", "--quiet"]
    targets = "all: " + " ".join(f"out/{node}" for node in nodes) + "\n"
    recipes = "".join(f"out/{node}:\n\t@/bin/true && : > $@\n" for node in nodes)
    (folder / "Makefile").write_text(targets + recipes)
    return ["make", "-s", f"-j{CONCURRENCY}", "all"]
