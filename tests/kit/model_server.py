"""A scripted model server on 127.0.0.1: real agent programs, no model, no key, the same run every time.

    with ModelServer() as server:
        ...  # agents talk to server.url
        server.asked  # what they asked

It speaks OpenAI's chat completions and responses, Anthropic's messages (and their token count) and Gemini's
generateContent, plain or streamed; any prefix before the protocol's own path is accepted. What it answers stands in the
prompt, see `model_script`. By hand: `python -m tests.kit.model_server [--port 0]`.
"""

import argparse
import gzip
import json
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from tests.kit.model_dialects import STREAMED, WHOLE, read_turn
from tests.kit.model_script import Due, Said, Step, Turn

HOLD_LIMIT_S: Final = 600.0
FRAMES_BEFORE_DROP: Final = 5
MODELS: Final = ("scripted", "scripted-small")


@dataclass(frozen=True)
class Asked:
    """One request for an answer. `step` -1: a title or another request that no script answers."""

    at_s: float
    dialect: str
    model: str
    step: int
    script_id: str
    tools: tuple[str, ...]
    history: tuple[Said, ...]

    @property
    def user_texts(self) -> list[str]:
        """What the user is said to have said, oldest first."""
        return [said.text for said in self.history if said.who == "user"]


class _Book:
    """What the handler's threads share."""

    def __init__(self, by_phrase: Mapping[str, list[Step]]) -> None:
        self.by_phrase = by_phrase
        self.changed = threading.Condition()
        self.asked: list[Asked] = []
        self.strays: list[str] = []
        self.hangups = 0
        self.tries: Counter[tuple[str, int]] = Counter()
        self.released: set[str] = set()
        self.is_closed = False

    def note(self, turn: Turn, due: Due) -> int:
        """Remember a request; which try of its step it is, from 1."""
        names = tuple(name for name, _ in turn.tools)
        row = Asked(time.monotonic(), turn.dialect, turn.model, due.index, due.script_id, names, turn.history)
        with self.changed:
            self.asked.append(row)
            self.tries[due.script_id, due.index] += 1
            self.changed.notify_all()
            return self.tries[due.script_id, due.index]

    def hang_up(self) -> None:
        with self.changed:
            self.hangups += 1
            self.changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: self.is_closed or holds(), timeout_s)
            return holds()


def dialect_of(path: str) -> str | None:
    """The protocol that a path belongs to."""
    for ending, dialect in (("/chat/completions", "chat"), ("/responses", "responses"), ("/messages", "messages")):
        if path.endswith(ending):
            return dialect
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "scripted-model"
    book: _Book

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is the base class's
        return

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the agent went away, which is its right
            self.book.hang_up()

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if not path.endswith("/models"):
            self.book.strays.append(f"GET {path}")
            self._send({"error": {"message": "no such path", "type": "not_found"}}, 404)
        elif "v1beta" in path:
            methods = {"supportedGenerationMethods": ["generateContent"]}
            self._send({"models": [{"name": f"models/{name}", **methods} for name in MODELS]})
        else:
            more = {"object": "model", "created": 0, "owned_by": "graphd", "type": "model"}
            rows = [{"id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z", **more} for name in MODELS]
            self._send({"object": "list", "data": rows, "models": [], "has_more": False})

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        body = self._body()
        if path.endswith("/count_tokens"):
            return self._send({"input_tokens": 100})
        if path.endswith(":countTokens"):
            return self._send({"totalTokens": 100})
        dialect = dialect_of(path)
        if dialect is None:
            self.book.strays.append(f"POST {path}")
            return self._send({}, 404)
        is_streamed = bool(body.get("stream"))
        if dialect == "gemini":
            is_streamed = path.endswith(":streamGenerateContent")
            body.setdefault("model", path.rsplit("/", 1)[-1].split(":")[0])
        return self._answer(read_turn(dialect, body), is_streamed=is_streamed)

    def _answer(self, turn: Turn, *, is_streamed: bool) -> None:
        due = turn.due(self.book.by_phrase)
        step, number = due.step, self.book.note(turn, due)
        does_befall = number <= step.get("times", number) and step.get("until") not in self.book.released
        if does_befall and "wait" in step:
            self.book.wait_until(lambda: False, step["wait"])
        if does_befall and "hold" in step:
            self.book.wait_until(lambda: step["hold"] in self.book.released, HOLD_LIMIT_S)
        if does_befall and "error" in step:
            return self._fail(step)
        calls = turn.calls(step)
        usage = tuple(step.get("usage") or (100 + 10 * len(turn.history), 20))
        if not is_streamed:
            return self._send(WHOLE[turn.dialect](turn, step, calls, (usage[0], usage[1])))
        frames = STREAMED[turn.dialect](turn, step, calls, (usage[0], usage[1]))
        limit = FRAMES_BEFORE_DROP if does_befall and step.get("drop") else None
        return self._stream(frames, gap_s=step.get("gap", 0), limit=limit)

    def _fail(self, step: Step) -> None:
        status: int = step["error"]
        kind = {429: "rate_limit_error", 529: "overloaded_error", 401: "authentication_error"}.get(status, "api_error")
        headers = {"retry-after": str(step["retryAfterS"])} if "retryAfterS" in step else {}
        words = {429: "Rate limit exceeded", 529: "Overloaded", 401: "Invalid API key"}.get(status, "scripted failure")
        error = {"type": kind, "code": status, "message": words, "status": "SCRIPTED"}
        self._send({"type": "error", "error": error}, status, headers)

    def _stream(self, frames: Any, *, gap_s: float, limit: int | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for count, (name, content) in enumerate(frames):
            if count == limit:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            text = content if isinstance(content, str) else json.dumps(content)
            frame = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            if gap_s:
                self.book.wait_until(lambda: False, gap_s)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> None:
        encoded = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def _body(self) -> dict[str, Any]:
        if (self.headers.get("transfer-encoding") or "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        coding = (self.headers.get("content-encoding") or "").lower()
        raw = gzip.decompress(raw) if coding == "gzip" else zlib.decompress(raw) if coding == "deflate" else raw
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: an agent that was killed in the middle of its request is what the tests are for."""


class ModelServer:
    """The server in threads of this process, from `with` on."""

    def __init__(self, port: int = 0, by_phrase: Mapping[str, list[Step]] | None = None) -> None:
        self._book = _Book(by_phrase or {})
        self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"book": self._book}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.port: int = self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._book.changed:
            self._book.is_closed = True
            self._book.changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Asked]:
        """All requests for an answer so far."""
        with self._book.changed:
            return list(self._book.asked)

    @property
    def scripted(self) -> list[Asked]:
        """Those that a script answered: no titles, no summaries."""
        return [row for row in self.asked if row.step >= 0]

    @property
    def strays(self) -> list[str]:
        """Requests for paths that it doesn't serve."""
        return list(self._book.strays)

    def release(self, name: str) -> None:
        """Let every answer go that is held, or will be, under this name."""
        with self._book.changed:
            self._book.released.add(name)
            self._book.changed.notify_all()

    def wait_for(self, holds: Callable[[list[Asked]], bool], timeout_s: float = 60.0) -> None:
        """Until what was asked fulfils this; AssertionError after `timeout_s`."""
        if not self._book.wait_until(lambda: holds(list(self._book.asked)), timeout_s):
            raise AssertionError(f"asked so far: {[(row.dialect, row.step) for row in self.asked]}")

    def wait_for_step(self, index: int, timeout_s: float = 60.0) -> None:
        """Until some script's step was asked for."""
        self.wait_for(lambda rows: any(row.step == index for row in rows), timeout_s)


def main() -> None:
    """Serve until interrupted, telling each request."""
    parser = argparse.ArgumentParser(description="scripted model server")
    parser.add_argument("--port", type=int, default=0)
    with ModelServer(parser.parse_args().port) as server:
        print(server.url, flush=True)
        told = 0
        try:
            while True:
                time.sleep(0.5)
                for row in server.asked[told:]:
                    told += 1
                    print(row.dialect, row.model, row.step, f"{len(row.history)} messages", flush=True)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
