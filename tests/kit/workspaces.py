"""A workspace with folders of its own, real daemons in it, and the proof that nothing of it lives on after the test."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from graphd.client.paths import find_workspace, state_folder

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Workspace:
    """Folders for one test's daemon; `environment` is what its processes get."""

    base: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.base / "workspace"
        self.root.mkdir(parents=True, exist_ok=True)
        self.oracle = self.base / "oracle"
        self.oracle.touch()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")}
        self.environment = {
            **inherited,
            "GRAPHD_STATE_DIR": str(self.base / "state"),
            "GRAPHD_CONFIG_DIR": str(self.base / "config"),
            **self.environment,
        }

    @property
    def folder(self) -> Path:
        """The state folder of this workspace."""
        root = find_workspace(str(self.root)).root
        return self.base / "state" / Path(state_folder(root)).name

    def settings(self, text: str) -> None:
        """Write the user's settings file."""
        (self.base / "config").mkdir(exist_ok=True)
        (self.base / "config" / "settings.json").write_text(text)

    def graphd(self, *words: str, timeout_s: float = 60, **extra: str) -> "subprocess.CompletedProcess[str]":
        """Run the command line in the workspace."""
        return subprocess.run(
            [sys.executable, "-m", "graphd", *words], cwd=self.root, env={**self.environment, **extra},
            capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    def start(self, *words: str, **extra: str) -> "subprocess.Popen[str]":
        """The same in the background."""
        return subprocess.Popen(
            [sys.executable, "-m", "graphd", *words], cwd=self.root, env={**self.environment, **extra},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def lines(self) -> list[str]:
        """What the children wrote to the oracle, the file outside the database that says what really ran."""
        return self.oracle.read_text().splitlines()

    def processes(self) -> dict[int, str]:
        """Every process of this test: whoever has its state folder in the environment. pid → command line."""
        marker = f"GRAPHD_STATE_DIR={self.base / 'state'}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def daemons(self) -> list[int]:
        """Pids of its daemons."""
        return [pid for pid, line in self.processes().items() if "graphd.server" in line and "launch.py" not in line]

    def keepers(self) -> list[int]:
        """Pids of its keepers."""
        return [pid for pid, line in self.processes().items() if "keeper.py" in line]

    def end(self) -> None:
        """Kill all that is left, daemons first, until nothing is."""
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in sorted(left, key=lambda pid: "graphd" not in left[pid]):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
        assert not left, f"still alive: {left}"
