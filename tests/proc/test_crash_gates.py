"""Crash points with real processes, in a run with a gate that sends work back, a list, waits and a signal.

As in `test_crash_sweep`: whoever passes the point first is killed there, and the end is that of a clean run.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.workspaces import Workspace
from tests.proc.test_crash_sweep import Point, sweep

PLAN = """
nodes:
  - {{ id: list, run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; echo "[1, 2]"' }}
  - id: each
    needs: [list]
    for_each: {{ in: list.output, as: n }}
    run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; echo "$GRAPHD_VAR_n"'
  - {{ id: make, needs: [each], run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}; echo "${{GRAPHD_VAR_findings:-none}}"' }}
  - id: review
    needs: [make]
    gate: {{ revise: make }}
    run: |
      echo "$GRAPHD_ATTEMPT" >> {oracle}
      if grep -q again "$GRAPHD_INPUT_DIR/make"; then echo '{{"verdict": "ACCEPT"}}'
      else echo '{{"verdict": "REVISE", "reason": "again"}}'; fi
  - {{ id: calm, wait: {{ until: 200ms }} }}
  - {{ id: go, needs: [calm], wait: {{ signal: go }} }}
  - {{ id: ship, needs: [review, go], run: 'echo "$GRAPHD_ATTEMPT" >> {oracle}' }}
"""
CLEAN_STARTS = 8
NODES = ["list", "each", "make", "review", "calm", "go", "ship", "each-1", "each-2"]


def prepare(base: Path, **environment: str) -> Workspace:
    workspace = Workspace(base, environment)
    (workspace.root / ".agents").mkdir()
    (workspace.root / "plan.yaml").write_text(PLAN.format(oracle=workspace.oracle))
    return workspace


def ran(workspace: Workspace) -> str | None:
    """Run it, with a signal that may come before or after its node waits; what went wrong, or None."""
    begun = workspace.graphd("run", "plan.yaml", "--yes", "--detach")
    if begun.returncode == 5 and not workspace.lines():  # the very start of the daemon was killed
        begun = workspace.graphd("run", "plan.yaml", "--yes", "--detach")
    sent = workspace.graphd("signal", "go", "--key", "once")
    if sent.returncode != 0:  # its daemon was killed under it: a person types it again, with the same key
        sent = workspace.graphd("signal", "go", "--key", "once")
    watched = workspace.graphd("watch", "@last")
    return None if watched.returncode == 0 else f"{begun.stderr} {sent.stderr} {watched.stdout} {watched.stderr}"


def clean_points(base: Path) -> list[str]:
    log = base / "failpoints"
    workspace = prepare(base, GRAPHD_FAILPOINT_LOG=str(log))
    try:
        assert ran(workspace) is None
        assert len(workspace.lines()) == CLEAN_STARTS
        return sorted({line.split()[1] for line in log.read_text().splitlines()})
    finally:
        workspace.end()


def crash_at(base: Path, point: Point) -> str | None:
    once = base / "once"
    workspace = prepare(base, GRAPHD_FAILPOINT=str(point), GRAPHD_FAILPOINT_ONCE=str(once))
    try:
        if trouble := ran(workspace):
            return trouble
        return judge(workspace, point) if once.exists() else "the point was not passed"
    finally:
        workspace.end()


def judge(workspace: Workspace, point: Point) -> str | None:
    starts = Counter(workspace.lines())
    if again := [cookie for cookie, count in starts.items() if count > 1]:
        return f"one attempt acted twice: {again}"
    allowed = CLEAN_STARTS + (1 if point.name.startswith("keeper.") else 0)
    if not CLEAN_STARTS <= len(starts) <= allowed:
        return f"{len(starts)} starts: {sorted(starts)}"
    (graph,) = json.loads(workspace.graphd("status", "@last", "--json").stdout)["graphs"]
    found = {node["slug"]: node["state"] for node in graph["nodes"]}
    if found != dict.fromkeys(NODES, "achieved") or graph["outcome"] != "ok":
        return f"ended as {graph['outcome']} with {found}"
    doctor = workspace.graphd("doctor", "--json")
    return None if doctor.returncode == 0 else f"the doctor found: {doctor.stdout}"


@pytest.mark.timeout(300)
def test_killed_while_a_gate_decides_and_a_list_is_joined_the_run_ends_as_if_nothing_happened(tmp_path: Path) -> None:
    points = ("store.commit.before", "store.commit.after", "writer.reply.before", "writer.notify.after")
    assert sweep(tmp_path, [Point(name, hit) for name, hit in zip(points, (4, 5, 6, 7), strict=True)], crash_at) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_any_point_the_run_ends_as_if_nothing_happened(tmp_path: Path) -> None:
    points = [Point(name, 1) for name in clean_points(tmp_path / "clean") if not name.startswith("cli.")]
    commits = [Point(name, hit) for name in ("store.commit.before", "store.commit.after") for hit in range(2, 16)]
    assert sweep(tmp_path, points + commits, crash_at) == {}
