"""P11: from spawn to the first answer, against a bare daemon; and what is imported on the way. Runs real daemons."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, ContestantFailed, Result, environment, fresh_folder, module
from benchmarks.report import Row, at_most
from benchmarks.rounds import Effort, interleave, progress
from graphd.server.place import state_folder

PATIENCE_S = 30.0
FORBIDDEN = ("pygls", "lsprotocol", "pydantic")
HELLO = {"client": {"name": "benchmark", "version": "0"}, "protocol": [1, 1]}


class RunningDaemon:
    """A daemon's process, after its first answer."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, path: Path, begun: float) -> None:
        self.pid = process.pid
        self.folder = folder
        self._path = path
        self._process = process
        self.hello = Peer(path, process).call("graphd/hello", HELLO)
        self.ready_s = time.perf_counter() - begun

    def connect(self) -> "Peer":
        """One more client, greeted."""
        peer = Peer(self._path, self._process)
        peer.call("graphd/hello", HELLO)
        return peer

    @classmethod
    @contextlib.contextmanager
    def graphd(cls, folder: Path | None = None, *, options: tuple[str, ...] = ()) -> "Iterator[RunningDaemon]":
        """The real daemon by its own command line; in a fresh folder unless one is given."""
        if folder is None:
            with fresh_folder() as made, cls.graphd(made, options=options) as daemon:
                yield daemon
            return
        workspace = (folder / "workspace").resolve()
        path = folder / "state" / state_folder(workspace).name / "socket"
        argv = [sys.executable, *options, "-P", "-m", "graphd.server", "--workspace", str(workspace)]
        with cls._running(argv, folder, path) as daemon:
            yield daemon

    @classmethod
    @contextlib.contextmanager
    def bare(cls) -> "Iterator[RunningDaemon]":
        """The bare daemon, in a fresh folder."""
        with fresh_folder() as folder:
            path = folder / "socket"
            with cls._running(module("bare", path, folder / "bare.db"), folder, path) as daemon:
                yield daemon

    @classmethod
    @contextlib.contextmanager
    def _running(cls, argv: list[str], folder: Path, path: Path) -> "Iterator[RunningDaemon]":
        with (folder / "stderr").open("ab") as log:
            begun = time.perf_counter()
            process = subprocess.Popen(
                argv, cwd=ROOT, env=environment(folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield cls(process, folder, path, begun)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


class Peer:
    """A client of few words: blocking, framed."""

    def __init__(self, path: Path, process: "subprocess.Popen[bytes]") -> None:
        self._socket = _connected(path, process)
        self._held = b""
        self._number = 0

    def call(self, method: str, params: Any) -> Any:
        """The result of one request; notifications before it are dropped."""
        self._number += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        while True:
            message = self._take()
            if message.get("id") == self._number:
                if "error" in message:
                    raise ContestantFailed(f"{method}: {message['error']}")
                return message["result"]

    def _take(self) -> dict[str, Any]:
        while b"\r\n\r\n" not in self._held:
            self._receive()
        header, _, self._held = self._held.partition(b"\r\n\r\n")
        found = re.search(rb"content-length:\s*(\d+)", header, re.IGNORECASE)
        length = int(found[1]) if found else 0
        while len(self._held) < length:
            self._receive()
        body, self._held = self._held[:length], self._held[length:]
        message: dict[str, Any] = json.loads(body)
        return message

    def _receive(self) -> None:
        chunk = self._socket.recv(65536)
        if not chunk:
            raise ContestantFailed("the daemon closed the connection")
        self._held += chunk

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _connected(path: Path, process: "subprocess.Popen[bytes]") -> socket.socket:
    limit = time.monotonic() + PATIENCE_S
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE_S)
        try:
            client.connect(str(path))
        except OSError:
            client.close()
            if process.poll() is not None or time.monotonic() > limit:
                raise ContestantFailed(f"{process.args!r} does not listen on {path}") from None
            time.sleep(0.0005)
        else:
            return client


def cold_start(effort: Effort) -> list[Row]:
    """Fresh and used state, the bare daemon, `python -c pass`; then the imports, once."""
    with fresh_folder() as used:
        with RunningDaemon.graphd(used):
            progress("P11: compiled and warm")

        def ready(kind: str) -> Result:
            running = RunningDaemon.bare() if kind == "bare" else RunningDaemon.graphd(used if kind == "used" else None)
            with running as daemon:
                return {"wall_s": daemon.ready_s}

        contestants = {
            "fresh": lambda: ready("fresh"),
            "used": lambda: ready("used"),
            "bare": lambda: ready("bare"),
            "python": _python_alone,
        }
        results = interleave("P11", effort.rounds, contestants)
    fresh, used_ms, bare, python = ([result["wall_s"] * 1000 for result in results[name]] for name in contestants)
    imports = imported()
    total_ms = sum(imports.values()) / 1000
    found = heavy(imports)
    listed = ", ".join(f"{name} {cost / 1000:.0f} ms" for name, cost in list(found.items())[:8]) or "none"
    why = f"imports take {total_ms:.0f} ms (-X importtime, itself slower); the heaviest packages: {listed}"
    loaded = [name for name in FORBIDDEN if name in {module_.partition(".")[0] for module_ in imports}]
    verdict = Row("P11 pygls, lsprotocol, pydantic imported before the first answer", "", [len(loaded)],
                  goal=at_most(0, is_ratio=False), why=", ".join(loaded))  # fmt: skip
    verdict.facts = {"imported": sorted(imports), "heavyUs": found}
    return [
        Row("P11 cold start, spawn to first answer, new state", "ms", fresh, bare, "bare daemon", at_most(1.5), why),
        Row("P11 the same, state exists", "ms", used_ms, bare, "bare daemon", at_most(1.5), why),
        Row("P11 against an empty interpreter", "ms", fresh, python, "python -c pass"),
        verdict,
        Row("P11 against an empty pygls server", "ms", [], other="pygls", goal=at_most(0.25),
            why="not measured: pygls is no dependency here"),
    ]  # fmt: skip


def _python_alone() -> Result:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return {"wall_s": time.perf_counter() - begun}


def imported() -> dict[str, int]:
    """Modules that a real daemon imported until its first answer and its end right after, with the µs of each."""
    with fresh_folder() as folder, RunningDaemon.graphd(folder, options=("-X", "importtime")):
        text = (folder / "stderr").read_text(errors="replace")
    rows = re.findall(r"^import time:\s+(\d+) \|\s+\d+ \| \s*(\S+)$", text, re.MULTILINE)
    return {name: int(own_us) for own_us, name in rows}


def heavy(imports: dict[str, int], *, from_us: int = 2000) -> dict[str, int]:
    """µs by package, the heaviest first; packages of ours by their second name."""
    packages: dict[str, int] = {}
    for name, own_us in imports.items():
        parts = name.split(".")
        package = ".".join(parts[:2]) if parts[0] == "graphd" else parts[0]
        packages[package] = packages.get(package, 0) + own_us
    ranked = sorted(packages.items(), key=lambda item: -item[1])
    return {name: cost for name, cost in ranked if cost >= from_us or name in FORBIDDEN}


if __name__ == "__main__":
    for name_, cost_ in heavy(imported(), from_us=500).items():
        print(f"{cost_ / 1000:8.1f} ms  {name_}")
