"""Interleaved rounds: every contestant once a round, in turning order, so that the machine's moods hit all alike."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.processes import Result, module, run

Contestants = dict[str, Callable[[], Result]]


@dataclass(slots=True, frozen=True)
class Effort:
    """How much to measure. `is_quick`: smaller sizes, shorter windows."""

    rounds: int = 5
    is_quick: bool = False


def interleave(title: str, rounds: int, contestants: Contestants) -> dict[str, list[Result]]:
    """The results of each contestant, a round each."""
    results: dict[str, list[Result]] = {name: [] for name in contestants}
    for number in range(rounds):
        names = list(contestants)
        for name in names if number % 2 == 0 else reversed(names):
            progress(f"{title}, round {number + 1}/{rounds}: {name}")
            results[name].append(contestants[name]())
    progress("")
    return results


def progress(text: str) -> None:
    """One line on stderr that overwrites the one before; nothing where nobody looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def per_node(results: list[Result], name: str = "wall_s") -> list[float]:
    """Milliseconds a node."""
    return [result[name] / result["nodes"] * 1000 for result in results]


def whole(workload: str, size: int, *options: object) -> Callable[[], Result]:
    """graphd's daemon on a workload."""
    return lambda: run(module("whole", workload, size, "FOLDER", *options))


def floor(workload: str, size: int, *options: object) -> Callable[[], Result]:
    """The floor on a workload."""
    return lambda: run(module("floor", workload, size, "FOLDER", *options))
