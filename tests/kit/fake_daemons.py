"""Where a test's fake daemons live, how they are started, counted and ended."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphd.client.paths import state_folder

REPOSITORY = Path(__file__).parents[2]


class FakeDaemons:
    """State and workspace folders of one test, and the count of daemons that were started in them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.starts_file = root / "starts"
        self.workspace = root / "work"
        self.workspace.mkdir()
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("GRAPHD_STATE_DIR", str(root / "state"))
        monkeypatch.delenv("GRAPHD_WORKSPACE", raising=False)
        monkeypatch.delenv("GRAPHD_ATTEMPT", raising=False)
        self.use()

    @property
    def folder(self) -> Path:
        return Path(state_folder(self.workspace))

    def use(self, *flags: str) -> None:
        """The next start runs the fake daemon with these flags."""
        script = str(REPOSITORY / "tests/kit/fake_daemon.py")
        argv = [sys.executable, "-S", "-E", script, "--starts", str(self.starts_file), *flags]
        self._monkeypatch.setenv("GRAPHD_DAEMON_ARGV", json.dumps(argv))

    def starts(self) -> list[int]:
        """The pids of all daemons that ever held the lock."""
        return [int(pid) for pid in self.starts_file.read_text().split()] if self.starts_file.exists() else []

    def live(self) -> list[int]:
        return [pid for pid in self.starts() if is_alive(pid)]

    def kill(self) -> None:
        """SIGKILL to all that live; returns when they are gone. Sockets and lock files stay, as after a crash."""
        for pid in self.live():
            os.kill(pid, signal.SIGKILL)
        while self.live() or any(map(is_locked, self.root.glob("**/lock"))):
            time.sleep(0.005)


def started_for(root: Path) -> list[int]:
    """All processes, launchers too, that a start in `root` left; zombies have no command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if b"fake_daemon.py" in command and os.fsencode(root) in command:
                    found.append(int(entry.name))
    return found


def is_locked(lock: Path) -> bool:
    """Whether a daemon holds it: a dying one, whose main thread is a zombie already, may for a moment."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_alive(pid: int) -> bool:
    """Whether it is a fake daemon that runs: never a zombie, never a pid that another program has by now."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # A dying process has no command line any more, though its sockets are open still.
    return state not in ("Z", "X") and (not command or b"fake_daemon.py" in command)


@pytest.fixture
def daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDaemons]:
    found = FakeDaemons(tmp_path, monkeypatch)
    yield found
    while coming := started_for(tmp_path):  # one that a client no longer waited for may come up late
        for pid in coming:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
