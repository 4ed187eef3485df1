"""Yardsticks of the wire: a raw framed server in a process of its own, a real daemon's process, and a blocking client.

`python -m tests.kit.raw_wire SOCKET` serves frames with asyncio.Protocol and nothing else: no JSON, no tasks. A body's
first byte says what to do: `L…` keep the rest as the answer, `S` send it, `F` send it to every other connection and
then an empty frame back, anything else: the same body back.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from graphd.client.frames import FrameReader, frame
from graphd.client.paths import state_folder

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT_S: Final = 20.0
HELLO: Final = {"client": {"name": "raw", "version": "1"}, "protocol": [1, 1]}


class RawServer(asyncio.Protocol):
    """One connection of the yardstick."""

    canned = b""
    everybody: "set[RawServer]" = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self._held = transport, b""
        self.everybody.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.everybody.discard(self)

    def data_received(self, data: bytes) -> None:
        held = self._held + data
        while (end := held.find(b"\r\n\r\n")) >= 0:
            length = int(held[16:end])
            if len(held) < end + 4 + length:
                break
            body, held = held[end + 4 : end + 4 + length], held[end + 4 + length :]
            self._take(body)
        self._held = held

    def _take(self, body: bytes) -> None:
        kind = body[:1]
        if kind == b"S":
            self.transport.write(RawServer.canned)
        elif kind == b"F":
            for other in self.everybody:
                if other is not self:
                    other.transport.write(RawServer.canned)
            self.transport.write(frame(b""))
        elif kind == b"L":
            RawServer.canned = frame(body[1:])
            self.transport.write(frame(b""))
        else:
            self.transport.write(frame(body))


async def serve(path: str) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_unix_server(RawServer, path, backlog=128)
    await server.serve_forever()


class RawClient:
    """A blocking connection that knows frames."""

    def __init__(self, path: Path | str, *, name: str | None = None, hello: bool = True) -> None:
        self._frames = FrameReader()
        self._ids = itertools.count(1)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        self._connect(str(path))
        if hello:
            client = HELLO["client"] if name is None else {"name": name, "version": "1"}
            self.call("graphd/hello", {**HELLO, "client": client, "env": {"PATH": os.environ.get("PATH", "")}})

    def _connect(self, path: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while True:
            try:
                self.socket.connect(path)
            except BlockingIOError:  # its queue of connections is full
                assert time.monotonic() < limit
                time.sleep(0.001)
            except OSError:
                self.socket.close()
                raise
            else:
                return

    def send(self, body: bytes) -> None:
        """One frame."""
        self.socket.sendall(frame(body))

    def take(self) -> bytes:
        """The next body. EOFError at the end."""
        while (body := self._frames.take()) is None:
            chunk = self.socket.recv(1 << 20)
            if not chunk:
                raise EOFError
            self._frames.push(chunk)
        return body

    def ask(self, body: bytes) -> bytes:
        """Send a body, take one."""
        self.send(body)
        return self.take()

    def request(self, method: str, params: Any = None) -> int:
        """Send a request; returns its id."""
        number = next(self._ids)
        self.send(request_body(number, method, params))
        return number

    def call(self, method: str, params: Any = None) -> Any:
        """The result of a request; notifications before it are dropped."""
        number = self.request(method, params)
        while (message := json.loads(self.take())).get("id") != number:
            pass
        assert "error" not in message, message
        return message["result"]

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


def request_body(number: int | str, method: str, params: Any = None) -> bytes:
    """The body of a request."""
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}).encode()


class Outside:
    """What the system says of a process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def clock_s(self) -> float:
        """CPU seconds of the process up to this very moment, though it may be running."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def cpu_s(self) -> float:
        """CPU seconds of all its threads, in nanosecond resolution."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def loop_cpu_s(self) -> float:
        """CPU seconds of its first thread alone, the one with the loop."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def rss_kb(self) -> int:
        """Resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def threads(self) -> int:
        """How many threads it has."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def descriptors(self) -> list[str]:
        """What its open descriptors are."""
        found = []
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(entry.readlink()))
        return sorted(found)


class DaemonProcess(Outside):
    """A real daemon in folders of its own."""

    def __init__(self, base: Path, **environment: str) -> None:
        self.workspace = base / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHD_")}
        folders = {"GRAPHD_STATE_DIR": str(base / "state"), "GRAPHD_CONFIG_DIR": str(base / "config")}
        self.environment = kept | folders | environment
        self.folder = base / "state" / Path(state_folder(str(self.workspace.resolve()))).name
        self.path = self.folder / "socket"
        self.log = base / "stderr"
        read_end, write_end = os.pipe()
        argv = [sys.executable, "-P", "-m", "graphd.server", "--workspace", str(self.workspace)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, "--ready-fd", str(write_end)], pass_fds=[write_end], env=self.environment, cwd=base,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            line = json.loads(pipe.read() or b"{}")
        if line.get("ready") is not True:
            self.end()
            raise AssertionError(line)
        super().__init__(self.process.pid)

    def client(self, **options: Any) -> RawClient:
        """One more connection."""
        return RawClient(self.path, **options)

    def end(self) -> None:
        """Ask it to end, and wait. AssertionError where it had ended before, or would not end cleanly."""
        was_alive = self.process.poll() is None
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        assert (was_alive, code) == (True, 0)


@contextlib.contextmanager
def daemon_process(base: Path, **environment: str) -> Iterator[DaemonProcess]:
    """A real daemon for the length of a block."""
    daemon = DaemonProcess(base, **environment)
    try:
        yield daemon
    finally:
        daemon.end()


class RawProcess(Outside):
    """The yardstick's process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        argv = [sys.executable, "-m", "tests.kit.raw_wire", str(path)]
        self.process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL)
        super().__init__(self.process.pid)
        limit = time.monotonic() + LIMIT_S
        while True:
            try:
                self.client().close()
                return
            except OSError:
                assert self.process.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.01)

    def client(self) -> RawClient:
        """One more connection."""
        return RawClient(self.path, hello=False)


@contextlib.contextmanager
def raw_process(base: Path) -> Iterator[RawProcess]:
    """The yardstick for the length of a block."""
    raw = RawProcess(base / "raw")
    try:
        yield raw
    finally:
        raw.process.kill()
        raw.process.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
