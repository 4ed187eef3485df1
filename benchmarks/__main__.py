"""`python -m benchmarks [NAMES…] [--rounds N] [--quick] [--json]`: measure, and print one table with ratios.

No target is asserted: what falls short of a goal of the research is printed with the reason. docs/benchmarks.md tells
how to read it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

from benchmarks import clients, growth, idle, machine, recovery, speed, start, syncs
from benchmarks.processes import ContestantFailed
from benchmarks.report import Row, table
from benchmarks.rounds import Effort

MEASUREMENTS: dict[str, Callable[[Effort], list[Row]]] = {
    "chain": speed.speed("chain"),
    "fan": speed.speed("fan"),
    "layered": speed.speed("layered"),
    "wide": speed.wide,
    "p1": syncs.syncs,
    "p2": speed.chain_against_raw,
    "p9": growth.growth,
    "p10": growth.growth,
    "p11": start.cold_start,
    "p12": idle.idle,
    "clients": clients.clients,
    "recovery": recovery.recovery,
}


def main() -> int:
    """Measure what is named, or all. 1 where a contestant failed; falling short of a goal is no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("names", nargs="*", type=str.lower, metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--rounds", type=int, help="default 5; 3 with --quick")
    parser.add_argument("--quick", action="store_true", help="no 10,000 nodes, shorter windows: within a minute")
    parser.add_argument("--json", action="store_true", help="every value of every round")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"no measurement {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    effort = Effort(given.rounds or (3 if given.quick else 5), given.quick)
    chosen = {MEASUREMENTS[name]: name for name in reversed(given.names or list(MEASUREMENTS))}
    about, begun = machine.description(), time.monotonic()
    rows, failed = [], 0
    for measure, name in reversed(chosen.items()):
        try:
            rows += measure(effort)
        except ContestantFailed as trouble:
            failed += 1
            sys.stderr.write(f"\n{name}: {trouble}\n")
            rows.append(Row(name, "", [], why="not measured: a contestant failed, see above"))
    about["seconds"] = f"{time.monotonic() - begun:.0f}"
    about["load at the end"] = machine.description()["load"]
    about["rounds"] = str(effort.rounds)
    if given.json:
        print(json.dumps({"machine": about, "rows": [row.wire() for row in rows]}, indent=1))
    else:
        print(", ".join(f"{name} {value}" for name, value in about.items()))
        print(f"\n{table(rows)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
