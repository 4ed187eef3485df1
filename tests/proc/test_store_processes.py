"""Real processes: one lock for many, and kills at any moment of a run of commits."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphd.store.rebuild import differences_in
from tests.data.store.workload import apply

ROOT = Path(__file__).parents[2]

CONTENDER = """
import os, sys, time
from pathlib import Path
from graphd.store.lock import WorkspaceLock
from graphd.store.refusals import WorkspaceLocked
folder, gate = Path(sys.argv[1]), Path(sys.argv[2])
print("here", flush=True)
while not gate.exists():
    time.sleep(0.001)
try:
    lock = WorkspaceLock.take(folder, version="1", now_ms=1)
except WorkspaceLocked:
    print("lost", flush=True)
    sys.exit(3)
os.close(os.open(folder / "serving", os.O_CREAT | os.O_EXCL))
print("won", flush=True)
sys.stdin.read()
"""


def test_of_twenty_starts_one_wins_and_a_kill_frees_the_lock(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (tmp_path / "linked").symlink_to(tmp_path)
    for turn in range(2):
        gate = tmp_path / f"gate{turn}"
        spellings = [state, tmp_path / "linked" / "state", tmp_path / "." / "state"]
        contenders = [
            subprocess.Popen(
                [sys.executable, "-c", CONTENDER, str(spellings[n % 3]), str(gate)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for n in range(20)
        ]  # fmt: skip
        try:
            for contender in contenders:
                assert contender.stdout is not None
                assert contender.stdout.readline() == "here\n"
            gate.touch()
            answers = [contender.stdout.readline() for contender in contenders if contender.stdout]
            assert sorted(answers) == ["lost\n"] * 19 + ["won\n"]
        finally:
            for contender in contenders:
                contender.kill()
                contender.communicate()
        (state / "serving").unlink()


def start(folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.data.store.workload", str(folder), str(folder / "acknowledged"), "100000"]
    return subprocess.Popen([*command, "checkpoint"], cwd=ROOT, env={**os.environ, **environment})


def assert_nothing_acknowledged_is_lost(folder: Path) -> int:
    lines = (folder / "acknowledged").read_text().splitlines() if (folder / "acknowledged").exists() else []
    highest: dict[str, int] = {}
    for line in lines:
        graph, rev = line.split()
        assert int(rev) == highest.get(graph, 0) + 1  # no gap, no repeat, over all kills
        highest[graph] = int(rev)
    path = folder / "state" / "graph.db"
    connection = sqlite3.connect(path, isolation_level=None)
    stored = dict(connection.execute("SELECT id, rev FROM graphs").fetchall())
    connection.close()
    for name, acknowledged in highest.items():
        assert stored[name] >= acknowledged
    assert differences_in(path, apply) == []
    # The one batch that was under way may be stored without having been acknowledged: its revs are accounted for.
    ahead = "".join(f"{g} {r}\n" for g in stored for r in range(highest.get(g, 0) + 1, stored[g] + 1))
    with (folder / "acknowledged").open("a") as sink:
        sink.write(ahead)
    return len(lines)


def test_kills_at_any_moment_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    total = 0
    for turn in range(6):
        process = start(tmp_path)
        deadline = time.monotonic() + 20
        acknowledged = tmp_path / "acknowledged"
        size = acknowledged.stat().st_size if acknowledged.exists() else 0
        while not acknowledged.exists() or acknowledged.stat().st_size == size:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(random.Random(turn).uniform(0, 0.15))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        total = assert_nothing_acknowledged_is_lost(tmp_path)
    assert total > 50


@pytest.mark.parametrize("point", ["store.commit.before:9", "store.commit.after:9"])
def test_kills_on_both_sides_of_a_commit(tmp_path: Path, point: str) -> None:
    for _ in range(2):
        process = start(tmp_path, GRAPHD_FAILPOINT=point)
        assert process.wait(timeout=30) == -signal.SIGKILL
        assert_nothing_acknowledged_is_lost(tmp_path)
