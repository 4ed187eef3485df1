"""What clients cost beside yardsticks of the same run: a snapshot, a delivery, `graphd connect`, a cold start.

The yardsticks do the least that such a thing must do (`tests/kit/raw_wire.py`, `benchmarks/bare.py`); the same
measurements are asserted, in the best of a few rounds, by `tests/e2e/test_ratios.py`.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Row, at_most
from benchmarks.rounds import Effort, progress
from graphd.client.frames import frame
from graphd.client.paths import state_folder
from graphd.core.commands import Pause, Resume
from graphd.server.service import Server
from tests.kit.raw_wire import (
    ROOT,
    DaemonProcess,
    RawClient,
    RawProcess,
    daemon_process,
    raw_process,
    request_body,
)
from tests.kit.wire import InMemoryDaemon, hello_params, nodes

NODES = 200
SUBSCRIBERS = 50
STATUS_GOAL = 3.0
FAN_OUT_GOAL = 2.0
CONNECT_GOAL = 1.5
COLD_START_GOAL = 1.5

IMPORTS = "importing json (with re and enum), socket and hashlib is two thirds of what is ours"
OWN_START = "what the porch imports, the schema of a new database and three commits come to a fifth of a bare start"

Pair = tuple[float, float]
"""Ours, and the yardstick's."""


# ---- a snapshot ---------------------------------------------------------------------------------------------------


class Snapshots:
    """A real daemon with a graph of 200 nodes, and a raw server that answers with the same bytes."""

    def __init__(self, daemon: DaemonProcess, raw: RawProcess) -> None:
        self._ours, self._theirs = daemon.client(), raw.client()
        rows = [
            {"slug": f"n{i}", "spec": "lorem ipsum " * 20, "needs": [f"n{i - 1}"] if i else []} for i in range(NODES)
        ]
        plan = {"title": "snapshot", "nodes": rows, "start": False, "limits": {"maxNodes": NODES}}
        graph = self._ours.call("workgraph/set", plan)["graph"]
        self._body = request_body(1, "workgraph/status", {"graph": graph})
        self.size = len(self._ours.ask(self._body))
        self._theirs.ask(b"L" + self._ours.ask(self._body))

    @classmethod
    @contextmanager
    def running(cls, base: Path) -> "Iterator[Snapshots]":
        """Both processes, for the length of a block."""
        with daemon_process(base) as daemon, raw_process(base) as raw:
            made = cls(daemon, raw)
            try:
                yield made
            finally:
                made._ours.close()
                made._theirs.close()

    def p50_us(self, count: int = 300) -> Pair:
        """One after the other, in turns."""
        ours, theirs = [], []
        for _ in range(count):
            ours.append(_asked_us(self._ours, self._body))
            theirs.append(_asked_us(self._theirs, b"S"))
        return statistics.median(ours), statistics.median(theirs)


def _asked_us(client: RawClient, body: bytes) -> float:
    begun = time.perf_counter()
    client.ask(body)
    return (time.perf_counter() - begun) * 1e6


# ---- a delivery ---------------------------------------------------------------------------------------------------


class _Written(asyncio.Protocol):
    """The yardstick's side of a connection: it is only written to."""

    def __init__(self, everybody: list[asyncio.Transport]) -> None:
        self._everybody = everybody

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._everybody.append(transport)


async def fan_out_us(subscribers: int = SUBSCRIBERS, changes: int = 60) -> Pair:
    """CPU µs of the loop's thread for a delivery: the real server from the commit on, and bare `transport.write`s.

    The daemon is in memory, so that a commit costs no disk; its changes are real, and so are the sockets. After each
    change every subscriber must have its frame, whole, without another turn of the loop.
    """
    with tempfile.TemporaryDirectory(prefix="gd") as name:
        folder = Path(name).resolve()
        daemon = InMemoryDaemon(folder=folder, workspace=folder)
        begun_s, taken = [0.0], list[float]()
        daemon.subscribe(lambda changed: begun_s.__setitem__(0, time.thread_time()))
        server = Server(daemon, folder=folder)
        listening = asyncio.Event()
        serving = asyncio.create_task(server.run(listening.set))
        await listening.wait()
        daemon.subscribe(lambda changed: taken.append(time.thread_time() - begun_s[0]))
        everybody: list[asyncio.Transport] = []
        raw = await asyncio.get_running_loop().create_unix_server(lambda: _Written(everybody), str(folder / "raw"))
        sockets: list[socket.socket] = []
        try:
            return await _compared(
                daemon, folder, sockets, everybody, subscribers=subscribers, changes=changes, taken=taken
            )
        finally:
            for sock in sockets:
                sock.close()
            for transport in everybody:
                transport.close()
            raw.close()
            server.request_stop("measured")
            await serving


async def _compared(
    daemon: InMemoryDaemon, folder: Path, sockets: list[socket.socket], everybody: list[asyncio.Transport], *,
    subscribers: int, changes: int, taken: list[float],
) -> Pair:  # fmt: skip
    loop = asyncio.get_running_loop()
    ours = [await _connected(loop, folder / "socket", sockets) for _ in range(subscribers)]
    theirs = [await _connected(loop, folder / "raw", sockets) for _ in range(subscribers)]
    hello = frame(request_body(1, "graphd/hello", hello_params()))
    steering = await _connected(loop, folder / "socket", sockets)
    plan = {"title": "fan-out", "nodes": nodes("a")}
    await _answered(loop, steering, hello, b'"id":1,')
    await _answered(loop, steering, frame(request_body(2, "workgraph/set", plan)), b'"id":2,')
    for sock in ours:
        await _answered(loop, sock, hello + frame(request_body(2, "workgraph/subscribe")), b'"id":2,')
    (graph,) = daemon.state.graphs
    await asyncio.sleep(0.05)  # the last answer's own turn of the writer is over
    ours_us, theirs_us = [], []
    for number in range(changes):
        taken.clear()
        await daemon.run(Pause(graph) if number % 2 == 0 else Resume(graph))
        ours_us.append(sum(taken) / subscribers * 1e6)
        frames = {sock.recv(1 << 20) for sock in ours}  # non-blocking: whoever has nothing yet raises
        assert len(frames) == 1
        written = frames.pop()
        begun_s = time.thread_time()
        for transport in everybody:
            transport.write(written)
        theirs_us.append((time.thread_time() - begun_s) / subscribers * 1e6)
        assert {sock.recv(1 << 20) for sock in theirs} == {written}
    return statistics.median(ours_us), statistics.median(theirs_us)


async def _connected(loop: asyncio.AbstractEventLoop, path: Path, sockets: list[socket.socket]) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    sockets.append(sock)
    await loop.sock_connect(sock, str(path))
    return sock


async def _answered(loop: asyncio.AbstractEventLoop, sock: socket.socket, raw: bytes, until: bytes) -> None:
    await loop.sock_sendall(sock, raw)
    received = b""
    while until not in received:
        received += await loop.sock_recv(sock, 1 << 20)


def compiled(environment: Mapping[str, str], base: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, below `base`: as installed ones are, whatever is set here."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(base / "compiled")}


# ---- `graphd connect` ---------------------------------------------------------------------------------------------


class Pipes:
    """`graphd connect` to a warm daemon, and the same entry point with an empty `main`."""

    def __init__(self, daemon: DaemonProcess, base: Path) -> None:
        stub = base / "stub" / "graphd"
        stub.mkdir(parents=True)
        (stub / "__init__.py").write_text('"""A stub."""\n')
        (stub / "__main__.py").write_text('"""A stub."""\n\n\ndef main():\n    """Do nothing."""\n')
        self._entry = base / "graphd"  # what an installer writes
        self._entry.write_text(
            "import sys\nfrom graphd.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
        )
        self._argv = [sys.executable, str(self._entry), "connect", "--workspace", str(daemon.workspace)]
        ours = os.pathsep.join([str(ROOT), str(ROOT / "protocol")])
        environment = compiled(daemon.environment, base)
        self._ours = {**environment, "PYTHONPATH": ours}
        self._theirs = {**environment, "PYTHONPATH": os.pathsep.join([str(stub.parent), ours])}
        self._request = frame(request_body(1, "workgraph/list"))

    def once(self, *, is_stub: bool = False) -> tuple[float, float, bytes]:
        """(wall s, CPU s, stdout) of one run: a request is sent, its answer comes, and the pipe ends."""
        begun_s = time.perf_counter()
        process = subprocess.Popen(
            self._argv, env=self._theirs if is_stub else self._ours, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._request)
            process.stdin.close()
        except BrokenPipeError:
            pass  # the stub does not read
        said = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        assert is_stub or b'"result":{"graphs":' in said
        return time.perf_counter() - begun_s, usage.ru_utime + usage.ru_stime, said

    def compared_ms(self, count: int = 9) -> tuple[Pair, Pair]:
        """(wall, CPU) in turns, medians; the first of each, which compiles, is not counted."""
        self.once()
        self.once(is_stub=True)
        ours, theirs = [], []
        for _ in range(count):
            ours.append(self.once()[:2])
            theirs.append(self.once(is_stub=True)[:2])
        wall, cpu = (
            (statistics.median(run[at] for run in ours) * 1000, statistics.median(run[at] for run in theirs) * 1000)
            for at in (0, 1)
        )
        return wall, cpu

    def imported(self) -> set[str]:
        """Top-level modules that ours imports and the stub does not."""

        def modules(environment: dict[str, str]) -> set[str]:
            argv = [sys.executable, "-X", "importtime", *self._argv[1:]]
            ran = subprocess.run(argv, env=environment, input=self._request, capture_output=True, check=True)
            lines = [line for line in ran.stderr.decode().splitlines() if line.startswith("import time:")]
            return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines[1:]}

        return modules(self._ours) - modules(self._theirs)


# ---- a cold start -------------------------------------------------------------------------------------------------


def cold_start_ms(base: Path, *, is_bare: bool) -> tuple[float, float]:
    """(wall ms, CPU ms) from spawn to the first answer, in a fresh folder.

    What is imported is compiled beside the folder: the first start of each kind there is no measure.
    """
    base.mkdir()
    path = base / "bare"
    workspace = base / "workspace"
    workspace.mkdir()
    folders = {"GRAPHD_STATE_DIR": str(base / "state"), "GRAPHD_CONFIG_DIR": str(base / "config")}
    environment = compiled({**os.environ, **folders}, base.parent)
    argv = [sys.executable, "-m", "benchmarks.bare", str(path), str(base / "bare.db")]
    if not is_bare:
        argv = [sys.executable, "-P", "-m", "graphd.server", "--workspace", str(workspace)]
        path = base / "state" / Path(state_folder(str(workspace.resolve()))).name / "socket"
    with (base / "log").open("wb") as log:
        begun_s = time.perf_counter()
        process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        client = _patiently(path, process)
        client.call("graphd/hello", hello_params())
        wall_s = time.perf_counter() - begun_s
        usage = sum(
            int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{process.pid}/task").iterdir()
        )
        client.close()
        return wall_s * 1000, usage / 1e6
    finally:
        process.kill()
        process.wait()


def _patiently(path: Path, process: "subprocess.Popen[bytes]") -> RawClient:
    limit_s = time.monotonic() + 20
    while True:
        try:
            return RawClient(path, hello=False)
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < limit_s
            time.sleep(0.001)


# ---- the rows -----------------------------------------------------------------------------------------------------


def clients(effort: Effort) -> list[Row]:
    """All of it, some rounds each, as rows."""
    rounds = range(effort.rounds)
    with tempfile.TemporaryDirectory(prefix="gd") as name:
        base = Path(name).resolve()
        progress("clients: snapshots")
        with Snapshots.running(base) as snapshots:
            status = [snapshots.p50_us() for _ in rounds]
            size_kb = snapshots.size / 1024
        progress("clients: deliveries")
        fan_out = [asyncio.run(fan_out_us()) for _ in rounds]
        progress("clients: connect")
        with daemon_process(base / "pipes") as daemon:
            pipes = Pipes(daemon, base)
            connect = [pipes.compared_ms() for _ in rounds]
            each_ms, each_kb = connection_cost(daemon)
        progress("clients: cold starts")
        cold = [_cold_pair(base, number) for number in range(-1, effort.rounds)][1:]  # the first one compiles
        progress("")
    return [
        _row(f"status of {NODES} nodes ({size_kb:.0f} KB), p50", "µs", status, "raw framed server", STATUS_GOAL),
        _row(f"fan-out to {SUBSCRIBERS}, CPU a delivery", "µs", fan_out, "transport.write", FAN_OUT_GOAL),
        _row("graphd connect, one answer", "ms", [wall for wall, _ in connect], "an empty main", CONNECT_GOAL, IMPORTS),
        _row("the same, CPU", "ms", [cpu for _, cpu in connect], "an empty main", CONNECT_GOAL, IMPORTS),
        _row("cold start to the first answer, compiled, CPU", "ms", cold, "bare daemon", COLD_START_GOAL, OWN_START),
        Row("a connection, hello and subscribe, CPU of the daemon", "ms", [each_ms]),
        Row("a connection, hello and subscribe, memory", "KB", [each_kb]),
    ]


def _cold_pair(base: Path, number: int) -> Pair:
    ours = cold_start_ms(base / f"ours{number}", is_bare=False)[1]
    return ours, cold_start_ms(base / f"theirs{number}", is_bare=True)[1]


def _row(what: str, unit: str, pairs: list[Pair], other: str, limit: float, why: str = "") -> Row:
    ours, theirs = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    return Row(what, unit, ours, theirs, other, at_most(limit), why)


def connection_cost(daemon: DaemonProcess, count: int = SUBSCRIBERS) -> Pair:
    """(ms of the daemon's CPU, KB) for each of some connections that say hello and subscribe."""
    for _ in range(200):
        daemon.client().close()
    kb, cpu_s = daemon.rss_kb(), daemon.cpu_s()
    greeted = [daemon.client() for _ in range(count)]
    for client in greeted:
        client.call("workgraph/subscribe")
    cost = (daemon.cpu_s() - cpu_s) / count * 1000, (daemon.rss_kb() - kb) / count
    for client in greeted:
        client.close()
    return cost
