"""P9 and P10: how wall time, bytes and memory grow with the nodes of a layered graph, and what an idle daemon holds."""

import math
import statistics

from benchmarks.machine import status_mb
from benchmarks.processes import Result
from benchmarks.report import Row, at_most, short
from benchmarks.rounds import Effort, floor, interleave, whole
from benchmarks.start import RunningDaemon

SIZES = (100, 1000, 10_000)
BASE_LIMIT_MB = 40


def growth(effort: Effort) -> list[Row]:
    """All sizes of both contestants, interleaved; exponents and slopes a round, then their medians."""
    sizes = SIZES[:2] if effort.is_quick else SIZES
    contestants = {f"{side.__name__} {size}": side("layered", size) for size in sizes for side in (whole, floor)}
    results = interleave("P9, P10", effort.rounds, contestants)
    ours = [results[f"whole {size}"] for size in sizes]
    theirs = [results[f"floor {size}"] for size in sizes]
    span = f"{sizes[0]:,} → {sizes[-1]:,} nodes"
    return [
        _exponent(f"P9 wall of the whole run with its set, exponent, {span}", sizes, ours, theirs, "run_s"),
        _exponent(f"P9 database bytes, exponent, {span}", sizes, ours, theirs, "db_bytes"),
        _size_row(sizes[-1], ours[-1], theirs[-1]),
        _memory(sizes, ours, theirs),
        base(),
    ]


def _exponent(
    what: str, sizes: tuple[int, ...], ours: list[list[Result]], theirs: list[list[Result]], name: str
) -> Row:
    parts = ", ".join(f"{size:,}: {short(_each(results, name))}" for size, results in zip(sizes, ours, strict=True))
    unit = "ms" if name == "run_s" else "B"
    mine, other = exponents(sizes, ours, name), exponents(sizes, theirs, name)
    row = Row(what, "", mine, other=f"{statistics.median(other):.3g}", goal=at_most(1.05, is_ratio=False))
    row.why = f"{unit} a node: {parts}"
    if name == "run_s":
        cpu, collected = (
            [short(_each(results, key)) for results in (ours[0], ours[-1])] for key in ("run_cpu_s", "gc_s")
        )
        row.why += f"; CPU {' → '.join(cpu)}, of it Python's cyclic collector {' → '.join(collected)}"
    row.facts = {"floorExponents": other, "perNode": parts}
    return row


def _each(results: list[Result], name: str) -> float:
    scale = 1000 if name.endswith("_s") else 1
    return statistics.median(float(result[name]) / float(result["nodes"]) * scale for result in results)


def exponents(sizes: tuple[int, ...], results: list[list[Result]], name: str) -> list[float]:
    """The slope of the line through the sizes in logarithms, a round each."""
    logs = [math.log(size) for size in sizes]
    return [
        statistics.linear_regression(logs, [math.log(value[name]) for value in values]).slope
        for values in zip(*results, strict=True)
    ]


def _size_row(size: int, ours: list[Result], theirs: list[Result]) -> Row:
    rounds = [[result["db_bytes"] / result["nodes"] for result in side] for side in (ours, theirs)]
    why = "definition, output, attempt, four events and the closing base: the floor keeps none"
    return Row(f"layered {size:,}, database bytes a node", "B", rounds[0], rounds[1], why=why)


def _memory(sizes: tuple[int, ...], ours: list[list[Result]], theirs: list[list[Result]]) -> Row:
    """Slope of the peak RSS between the two largest sizes."""
    slopes = [
        [(large["peak_mb"] - small["peak_mb"]) / (sizes[-1] - sizes[-2]) * 1000
         for small, large in zip(side[-2], side[-1], strict=True)]
        for side in (ours, theirs)
    ]  # fmt: skip
    held = statistics.median((large["held_mb"] - large["base_mb"]) / sizes[-1] * 1000 for large in ours[-1])
    row = Row("P10 peak RSS for 1,000 nodes", "MB", slopes[0], other=f"{statistics.median(slopes[1]):.2g} MB",
              goal=at_most(2, is_ratio=False, note=" MB"))  # fmt: skip
    row.why = f"nodes, definitions, attempts and outputs stay in memory ({held:.1f} MB held at the end), and the" \
              " closing base is made whole"  # fmt: skip
    row.facts = {"floorSlopes": slopes[1], "heldMb": held}
    return row


def base() -> Row:
    """RSS of a real daemon, empty, after its first answer."""
    with RunningDaemon.graphd() as daemon, RunningDaemon.bare() as bare:
        ours, theirs = (status_mb(running.pid, "VmRSS") for running in (daemon, bare))
    row = Row("P10 base RSS", "MB", [ours], other=f"{theirs:.1f} MB (bare daemon)",
              goal=at_most(BASE_LIMIT_MB, is_ratio=False, note=" MB"))  # fmt: skip
    row.why = "see the modules of P11"
    return row
