"""P1: syncs a node with FULL, counted by strace at two sizes: the difference leaves opening and closing out."""

import re
import shutil
from pathlib import Path

from benchmarks.processes import fresh_folder, module, run
from benchmarks.report import Row, at_most
from benchmarks.rounds import Effort, progress

SIZES = {"chain": (50, 150), "fan": (200, 1000), "layered": (200, 1000), "wide": (8, 24)}
QUICK = {"chain": (20, 60), "fan": (100, 400), "layered": (100, 400)}
TRACE = ["strace", "-f", "-c", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,sync_file_range,msync"]


def syncs(effort: Effort) -> list[Row]:
    """Chain, fan and layered with the no-op driver; wide with real keepers, all of their processes counted."""
    if shutil.which("strace") is None:
        return [Row("P1 syncs a node, FULL", "", [], why="not measured: strace missing")]
    rows = []
    for workload, limit in (("chain", 1.1), ("fan", 0.1), ("layered", 0.1)):
        sizes = (QUICK if effort.is_quick else SIZES)[workload]
        ours, theirs = (_slope(side, workload, sizes) for side in ("whole", "floor"))
        goal = at_most(limit, is_ratio=False)
        what = f"P1 {workload}, syncs a node (strace)"
        why = "more than one commit a node" if workload == "chain" else "its commits hold few transitions"
        rows.append(Row(what, "", [ours], other=f"{theirs:.3g}", goal=goal, why=why, facts={"floorSyncs": theirs}))
    if not effort.is_quick:
        kept = _slope("whole", "wide", SIZES["wide"], "--driver", "keepers", "--concurrency", 8)
        why = "the attempt's files and their folder, by daemon and keeper, beside the daemon's commits"
        rows.append(Row("wide, real keepers, syncs a node (strace, keepers too)", "", [kept], why=why))
    return rows


def _slope(contestant: str, workload: str, sizes: tuple[int, int], *options: object) -> float:
    small, large = sizes
    counts = []
    for size in (small, large):
        progress(f"P1: {contestant} {workload} {size}")
        counts.append(_count(module(contestant, workload, size, "FOLDER", *options)))
    progress("")
    return (counts[1] - counts[0]) / (large - small)


def _count(argv: list[str]) -> int:
    with fresh_folder() as folder:
        counted = folder / "strace"
        run([*TRACE, "-o", str(counted), *argv], folder)
        return calls(counted)


def calls(path: Path) -> int:
    """The number of calls in a summary of `strace -c`."""
    text = path.read_text()
    return sum(int(found[1]) for found in re.finditer(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*sync", text, re.MULTILINE))
