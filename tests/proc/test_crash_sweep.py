"""Crash points with real processes: SIGKILL at each, and an outside file that says what really ran.

For every failpoint that a clean run passes, a fresh workspace: whoever passes it first is killed there, daemon or
keeper; nobody helps. The run must end as the clean one did, every attempt must have started at most once, nothing
that was acknowledged may be missing, the tables must equal the log, and no process may be left.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.workspaces import Workspace

PLAN = """
nodes:
  - {{ id: a, run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; sleep 0.2; echo A' }}
  - {{ id: b, needs: [a], run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; cat "$GRAPHD_INPUT_DIR/a"' }}
  - {{ id: c, needs: [a], retry: {{ max: 1, backoff_s: 0 }}, run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; exit 3' }}
  - {{ id: d, needs: [b, c], run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; cat "$GRAPHD_INPUT_DIR/b"' }}
"""
CLEAN_STARTS = 5
SETTLED = {"a": "achieved", "b": "achieved", "c": "failed", "d": "achieved"}
AT_ONCE = 5


@dataclass(frozen=True)
class Point:
    """A failpoint, and which of its hits."""

    name: str
    hit: int

    def __str__(self) -> str:
        return f"{self.name}:{self.hit}"


def prepare(base: Path, **environment: str) -> Workspace:
    workspace = Workspace(base, environment)
    (workspace.root / "plan.yaml").write_text(PLAN.format(oracle=workspace.oracle))
    return workspace


def clean_points(base: Path) -> dict[str, int]:
    """The failpoints that a clean run passes, and how often."""
    log = base / "failpoints"
    workspace = prepare(base, GRAPHD_FAILPOINT_LOG=str(log))
    try:
        ran = workspace.graphd("run", "plan.yaml", "--allow-failures")
        assert ran.returncode == 0, ran.stderr
        assert len(workspace.lines()) == CLEAN_STARTS
        passed = log.read_text().splitlines()
    finally:
        workspace.end()
    return dict(Counter(line.split()[1] for line in passed))


def crash_at(base: Path, point: Point) -> str | None:
    """Run one schedule; what is wrong with how it ended, or None."""
    once = base / "once"
    workspace = prepare(base, GRAPHD_FAILPOINT=str(point), GRAPHD_FAILPOINT_ONCE=str(once))
    try:
        ran = workspace.graphd("run", "plan.yaml", "--allow-failures", "--yes")
        if ran.returncode == 5 and not workspace.lines():
            # The very start of the daemon was killed, and its client said so: a person types it again.
            ran = workspace.graphd("run", "plan.yaml", "--allow-failures", "--yes")
        if ran.returncode == -9:  # it was the client: the graph is the daemon's, and another client sees its end
            ran = workspace.graphd("watch", "@last", "--allow-failures")
        if not once.exists():
            return f"the point was not passed: {ran.stderr}"
        return judge(workspace, point, ran.returncode, ran.stderr)
    finally:
        workspace.end()


def judge(workspace: Workspace, point: Point, code: int, said: str) -> str | None:
    if code != 0:
        return f"exit {code}: {said}"
    starts = Counter(workspace.lines())
    if again := [cookie for cookie, count in starts.items() if count > 1]:
        return f"one attempt acted twice: {again}"
    allowed = CLEAN_STARTS + (1 if point.name.startswith("keeper.") else 0)
    if not CLEAN_STARTS <= len(starts) <= allowed:
        return f"{len(starts)} starts: {sorted(starts)}"
    status = json.loads(workspace.graphd("status", "--json").stdout)
    for graph in status["graphs"]:
        if states := {node["slug"]: node["state"] for node in graph["nodes"]}:
            if states != SETTLED:
                return f"settled as {states}"
            if (graph["status"], graph["outcome"]) != ("complete", "withFailures"):
                return f"ended as {graph['status']} {graph['outcome']}"
    if len(status["graphs"]) != 1:
        return f"{len(status['graphs'])} graphs"
    doctor = workspace.graphd("doctor", "--json")
    if doctor.returncode != 0:
        return f"the doctor found: {doctor.stdout}"
    workspace.graphd("stop")
    deadline = time.monotonic() + 5
    while (left := workspace.processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return f"left behind: {left}" if left else None


def sweep(base: Path, points: list[Point], crash: Callable[[Path, Point], str | None] = crash_at) -> dict[str, str]:
    """All schedules, some at once: most of their time is waiting. What went wrong, by point."""

    def one(point: Point) -> tuple[str, str | None]:
        place = base / f"{point.name}-{point.hit}"
        place.mkdir()
        return str(point), crash(place, point)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {point: trouble for point, trouble in pool.map(one, points) if trouble is not None}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("share", range(2))
def test_killed_at_any_point_the_run_ends_as_if_nothing_happened(tmp_path: Path, share: int) -> None:
    passed = clean_points(tmp_path / "clean")
    assert len(passed) > 40
    assert sweep(tmp_path, [Point(name, 1) for name in sorted(passed)[share::2]]) == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_every_hit_of_every_point(tmp_path: Path) -> None:
    passed = clean_points(tmp_path / "clean")
    points = [Point(name, hit) for name, count in sorted(passed.items()) for hit in range(2, count + 1)]
    assert sweep(tmp_path, points) == {}
