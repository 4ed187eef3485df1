"""A small real daemon for the client's tests: flock, unix socket, readiness pipe, hello, a graph that outlives it.

A process of its own, like the one it stands for. It appends a line to `--starts` each time it has the lock.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from graphd import __version__
from graphd.client.frames import FrameReader, frame
from graphd.client.paths import LOCK, SOCKET, state_folder

STARTED_AT = time.time_ns() // 1_000_000


class Graph:
    """One graph `g1` with two running nodes, kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.log: list[dict[str, Any]] = []
        if path.exists():
            kept = json.loads(path.read_text())
            self.rev, self.nodes, self.status = kept["rev"], kept["nodes"], kept["status"]
        else:
            self.rev, self.status = 1, "active"
            self.nodes = [self._node("a", 1), self._node("b", 1)]
            self._keep()

    def advance(self, slug: str, state: str) -> dict[str, Any]:
        before, self.rev = self.rev, self.rev + 1
        for node in self.nodes:
            if node["slug"] == slug:
                node |= {"state": state, "rev": self.rev}
        self._keep()
        return self.value(before)

    def value(self, since: int | None) -> dict[str, Any]:
        start = 0 if since is None or since > self.rev else since
        return {
            "operation": "checkpoint",
            "graph": "g1",
            "from": start,
            "rev": self.rev,
            "header": {"id": "g1", "status": self.status, "rev": self.rev},
            "nodes": [
                {name: value for name, value in node.items() if name != "rev"}
                for node in self.nodes
                if node["rev"] > start
            ],
            "history": [{"at": 1, "rev": rev, "kind": "x"} for rev in range(start + 1, self.rev + 1)],
            **({"full": True} if start == 0 else {}),
        }

    def _node(self, slug: str, rev: int) -> dict[str, Any]:
        return {"slug": slug, "state": "running", "attempts": 1, "rev": rev}

    def _keep(self) -> None:
        self._path.write_text(json.dumps({"rev": self.rev, "nodes": self.nodes, "status": self.status}))


class FakeDaemon:
    """Listens, one thread a connection."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(state_folder(options.workspace))
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chdir(self.folder)
        self.subscribers: list[socket.socket] = []

    def run(self) -> None:
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.tell({"busy": True})
            return
        with open(self.options.starts, "a") as starts:
            starts.write(f"{os.getpid()}\n")
        self.starts = len(Path(self.options.starts).read_text().split())
        time.sleep(self.options.boot_s + random.random() * self.options.jitter_s)
        if self.options.die:
            print(self.options.die, file=sys.stderr, flush=True)
            os._exit(3)
        if self.options.fail:
            self.tell({"failed": self.options.fail, "hint": "Do it otherwise."})
            return
        self.graph = Graph(self.folder / "fake_graph.json")
        listener = self.bind()
        self.tell({"ready": True, "pid": os.getpid(), "socket": str(self.folder / SOCKET)})
        threading.Thread(target=self.accept, args=[listener], daemon=True).start()
        while True:  # as the real one: a vanished socket is bound again
            time.sleep(0.1)
            if not Path(SOCKET).exists():
                threading.Thread(target=self.accept, args=[self.bind()], daemon=True).start()

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # who started it was killed meanwhile: no reason to follow
            os.write(self.options.ready_fd, json.dumps(message).encode() + b"\n")
        os.close(self.options.ready_fd)

    def bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{SOCKET}.new")
        listener.listen(128)
        os.rename(f"{SOCKET}.new", SOCKET)
        return listener

    def accept(self, listener: socket.socket) -> None:
        dropped = 0
        while True:
            connection, _ = listener.accept()
            if dropped < self.options.drop_first:
                dropped += 1
                connection.close()
                continue
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        frames = FrameReader()
        try:
            with connection:
                while chunk := connection.recv(65536):
                    for body in frames.feed(chunk):
                        self.answer(connection, json.loads(body))
        except OSError:
            pass

    def answer(self, connection: socket.socket, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        if "id" not in message:
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "graphd/hello" and self.options.refuse:
            data = {"code": self.options.refuse, "hint": "Use another version."}
            reply["error"] = {"code": -32067, "message": "not with you", "data": data}
        elif method == "graphd/handover" and self.options.handover != "yes":
            number = -32601 if self.options.handover == "unknown" else -32057
            reply["error"] = {"code": number, "message": "I stay"}
        elif method in ("graphd/handover", "graphd/stop"):
            self.send(connection, {**reply, "result": {}})
            os._exit(0)
        elif method == "test/refuse":
            reply["error"] = {"code": -32050, "message": "no such node", "data": {"code": "notFound", "hint": "Look."}}
        elif method == "test/unavailable" and self.starts == 1:
            facts = {"code": "storeUnavailable", "hint": "connect again"}
            self.send(connection, {**reply, "error": {"code": -32066, "message": "not now", "data": facts}})
            if params["leaves"]:
                os._exit(0)
            return
        elif method in ("graphd/hello", "initialize"):
            if self.options.mute:
                return
            reply["result"] = self.hello(params)
        else:
            result = getattr(self, method.replace("/", "_"))(connection, params)
            if result is None:
                return
            reply["result"] = result
        self.send(connection, reply)

    def send(self, connection: socket.socket, message: dict[str, Any]) -> None:
        connection.sendall(frame(json.dumps(message).encode()))

    def hello(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocol": self.options.protocol,
            "daemon": {
                "version": self.options.version,
                "pid": os.getpid(),
                "startedAt": STARTED_AT,
                "epoch": self.starts,
            },
            "store": "store-1",
            "workspace": self.options.workspace,
            "principal": "user",
            "limits": {},
            "heard": params,
        }

    def test_echo(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        time.sleep(params.get("delayS", 0))
        return params

    def test_facts(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        fds = [
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in os.listdir("/proc/self/fd")
            if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")
        ]
        return {
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "sid": os.getsid(0),
            "fds": fds,
            "stdio": [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)],
            "environment": dict(os.environ),
        }

    def test_hang(self, connection: socket.socket, params: dict[str, Any]) -> None:
        return None

    def test_die(self, connection: socket.socket, params: dict[str, Any]) -> None:
        os._exit(9)

    def test_garbage(self, connection: socket.socket, params: dict[str, Any]) -> None:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def test_ask(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        self.send(connection, {"jsonrpc": "2.0", "id": "s1", "method": "window/showMessageRequest", "params": {}})
        return {}

    def test_stop(self, connection: socket.socket, params: dict[str, Any]) -> None:
        self.send(connection, {"jsonrpc": "2.0", "method": "graphd/stopping", "params": params})
        os._exit(0)

    def test_unavailable(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def test_goodbye(self, connection: socket.socket, params: dict[str, Any]) -> None:
        for subscriber in self.subscribers:
            with contextlib.suppress(OSError):
                self.send(subscriber, params["message"])
        os._exit(0)

    def test_notify(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        for number in range(params["count"]):
            value = {"number": number, "pad": "x" * params.get("pad", 0)}
            self.send(connection, {"jsonrpc": "2.0", "method": "test/noted", "params": value})
        return {"count": params["count"]}

    def test_advance(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        value = self.graph.advance(params["node"], params["state"])
        if params.get("lose"):
            return value
        self.broadcast("workgraph/changed", value)
        return value

    def test_clear(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        value = {
            "operation": "clear",
            "graph": "g1",
            "from": self.graph.rev,
            "rev": self.graph.rev + 1,
            "cleared": {"at": 1},
        }
        self.broadcast("workgraph/changed", value)
        return value

    def broadcast(self, method: str, params: dict[str, Any]) -> None:
        for subscriber in self.subscribers:
            with contextlib.suppress(OSError):
                self.send(subscriber, {"jsonrpc": "2.0", "method": method, "params": params})

    def workgraph_subscribe(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        since = (params.get("since") or {}).get("g1") if params.get("store") == "store-1" else None
        self.subscribers.append(connection)
        return {"subscription": "s", "store": "store-1", "graphs": [self.graph.value(since)]}

    def workgraph_unsubscribe(self, connection: socket.socket, params: dict[str, Any]) -> dict[str, Any]:
        self.subscribers.remove(connection)
        return {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--starts", required=True)
    parser.add_argument("--boot-s", type=float, default=0.0)
    parser.add_argument("--jitter-s", type=float, default=0.0)
    parser.add_argument("--die", default="")
    parser.add_argument("--fail", default="")
    parser.add_argument("--refuse", default="")
    parser.add_argument("--protocol", type=int, default=1)
    parser.add_argument("--version", default=__version__)
    parser.add_argument("--handover", choices=["yes", "no", "unknown"], default="yes")
    parser.add_argument("--drop-first", type=int, default=0)
    parser.add_argument("--mute", action="store_true")
    FakeDaemon(parser.parse_args()).run()


if __name__ == "__main__":
    main()
