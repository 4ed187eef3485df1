"""Who is alive: start times, zombies, sessions, cookies, strangers; and what can't be known."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphd.children import identity
from graphd.children.identity import (
    Alive,
    Dead,
    Unknown,
    boot_id,
    end_survivors,
    is_locked,
    pid_namespace,
    proof_of_death,
    start_time,
)
from graphd.children.keeping.tree import below, look_at

COOKIE = "0197/gn-e40c292c@1/x"


def recorded(folder: Path, agent: int, **changes: object) -> None:
    """As a keeper would have written it."""
    found = {
        "bootId": boot_id(), "pidNamespace": pid_namespace(), "keeperPid": 1 << 22,
        "keeperStart": start_time(os.getpid()), "agentPid": agent, "agentStart": start_time(agent), "cookie": COOKIE,
    }  # fmt: skip
    (folder / "keeper.json").write_text(json.dumps(found | changes))
    (folder / "lock").touch()


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own, without a cookie."""
    process = subprocess.Popen(["/bin/sleep", "100"], env={}, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_dead_process_that_nobody_reaped_is_dead() -> None:
    process = subprocess.Popen(["/bin/true"])
    while not (seen := look_at(process.pid)) or not seen.is_dead:
        time.sleep(0.01)
    assert seen.state == "Z"
    assert process.pid not in [found.pid for found in below([os.getpid()])]
    process.wait()
    assert start_time(process.pid) is None


def test_the_session_of_the_agent_is_of_the_attempt_and_a_reused_number_is_not(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    recorded(tmp_path, sleeper.pid)
    assert proof_of_death(tmp_path, COOKIE) == Alive((sleeper.pid,))
    recorded(tmp_path, sleeper.pid, agentStart=1)
    assert proof_of_death(tmp_path, COOKIE) == Dead()


def test_recorded_descendants_are_found_without_session_and_cookie(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    recorded(tmp_path, 1 << 22, agentStart=5)
    assert proof_of_death(tmp_path, COOKIE) == Dead()
    (tmp_path / "tree.json").write_text(json.dumps([[sleeper.pid, start_time(sleeper.pid), sleeper.pid]]))
    assert proof_of_death(tmp_path, COOKIE) == Alive((sleeper.pid,))


def test_the_cookie_finds_what_left_session_and_parent(tmp_path: Path) -> None:
    (tmp_path / "claimed").touch()
    process = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 100 & wait"], env={"GRAPHD_ATTEMPT": COOKIE}, start_new_session=True
    )
    other = subprocess.Popen(["/bin/sleep", "100"], env={"GRAPHD_ATTEMPT": COOKIE + "2"})
    while len(below([process.pid])) < 1 or not Path(f"/proc/{process.pid}/environ").read_bytes():
        time.sleep(0.01)
    proof = proof_of_death(tmp_path, COOKIE)
    assert isinstance(proof, Alive)
    assert len(proof.pids) == 2
    assert end_survivors(tmp_path, COOKIE, grace_s=0.2) == Dead()
    process.wait()
    assert other.poll() is None
    other.kill()
    other.wait()


def test_an_empty_cookie_is_nobodys(tmp_path: Path) -> None:
    """Not everybody's who has none: `end_survivors` would have ended every process of the user."""
    (tmp_path / "claimed").touch()
    bystander = subprocess.Popen(["/bin/sleep", "100"], env={})
    assert proof_of_death(tmp_path, "") == Dead()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_what_ignores_term_is_killed(tmp_path: Path) -> None:
    argv = ["/bin/sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"]
    process = subprocess.Popen(argv, env={"GRAPHD_ATTEMPT": COOKIE}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    assert end_survivors(tmp_path, COOKIE, grace_s=0.1) == Dead()
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_another_boot_is_dead_and_another_namespace_unknown(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    recorded(tmp_path, sleeper.pid, bootId="another")
    assert proof_of_death(tmp_path, COOKIE) == Dead()
    recorded(tmp_path, sleeper.pid, pidNamespace="pid:[1]")
    assert isinstance(proof_of_death(tmp_path, COOKIE), Unknown)


def test_a_held_lock_is_no_death(tmp_path: Path) -> None:
    recorded(tmp_path, 1 << 22)
    program = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert is_locked(tmp_path)
    assert isinstance(proof_of_death(tmp_path, COOKIE), Unknown)
    holder.communicate()
    assert not is_locked(tmp_path)
    assert proof_of_death(tmp_path, COOKIE) == Dead()


def test_an_unreadable_environment_is_unknown_unless_older_than_the_attempt(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that is not dumpable; root can read all, so the reading is made to fail."""
    real = identity._cookie
    monkeypatch.setattr(identity, "_cookie", lambda pid: None if pid == sleeper.pid else real(pid))
    recorded(tmp_path, 1 << 22, agentStart=5, keeperStart=start_time(sleeper.pid))
    proof = proof_of_death(tmp_path, COOKIE)
    assert isinstance(proof, Unknown)
    assert proof.pids == (sleeper.pid,)
    recorded(tmp_path, 1 << 22, agentStart=5, keeperStart=(start_time(sleeper.pid) or 0) + 1)
    assert proof_of_death(tmp_path, COOKIE) == Dead()


def test_strangers_are_ended_and_reaped_and_known_children_are_left(sleeper: "subprocess.Popen[bytes]") -> None:
    """In a process of its own, as a subreaper: an orphan comes to it."""
    program = f"""if True:
        import os, subprocess, sys, time
        sys.path[:0] = {sys.path!r}
        from graphd.children.identity import reap_strangers
        from graphd.children.keeping.sibling import become_subreaper
        from graphd.children.keeping.tree import below
        become_subreaper()
        known = subprocess.Popen(["/bin/sleep", "100"])
        subprocess.run(["/bin/sh", "-c", "setsid sleep 100 & setsid sh -c 'sleep 100 & wait' & sleep 0.2"])
        assert len(below([os.getpid()])) == 4
        assert len(reap_strangers([known.pid])) == 2
        while len(below([os.getpid()])) > 1:
            reap_strangers([known.pid])
        assert known.poll() is None
        known.kill()
        known.wait()
    """
    subprocess.run([sys.executable, "-c", program], check=True)
    assert sleeper.poll() is None
