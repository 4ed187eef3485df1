"""A bare ACP client over stdio: says each line that was said, and nothing that it was not told to say.

It exists to learn what real agents do (docs/agents.md) and to record it for the fold's tests. Standard library alone;
the product has its own client. One `Probe` is one process of an agent.
"""

import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

Message = dict[str, Any]
CALL_LIMIT_S: Final = 90.0


@dataclass(frozen=True)
class Line:
    """One line of the conversation; `at_s` since the start. A line that is no JSON object is {"noise": text}."""

    whose: Literal["ours", "theirs"]
    message: Message
    at_s: float


class NoAnswer(Exception):
    """The agent said nothing in time, or ended; with the last lines and what it wrote to stderr."""


def option_of(request: Message, *kinds: str) -> str | None:
    """The id of the first offered option of one of these kinds, in the order of the kinds."""
    offered = {option["kind"]: option["optionId"] for option in reversed(request["params"]["options"])}
    return next((offered[kind] for kind in kinds if kind in offered), None)


def living(mark: str) -> dict[int, str]:
    """Every living process with this NAME=value in its environment: pid → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return {pid: line for pid, line in found.items() if line and pid != os.getpid()}


class Probe:
    """An agent process and the conversation with it. `permit` says which option kinds answer a permission; () leaves it
    open."""

    def __init__(self, argv: tuple[str, ...], environment: dict[str, str], cwd: Path, stderr: Path) -> None:
        self.cwd = cwd
        self.lines: list[Line] = []
        self.permit: tuple[str, ...] = ("allow_once",)
        self.session = ""
        self.servers: list[Message] = []
        self.reads_files = True
        self._mark = f"ACP_PROBE={uuid.uuid4().hex}"
        self._began = time.monotonic()
        self._changed = threading.Condition()
        self._next = 0
        self._stderr = stderr
        name, value = self._mark.split("=")
        with stderr.open("ab") as err:
            self.process = subprocess.Popen(
                argv, cwd=cwd, env={**environment, name: value}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=err, start_new_session=True,
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # ------------------------------------------------------------- the wire
    def _read(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            try:
                message = json.loads(raw)
            except ValueError:
                message = None
            self._note("theirs", message if isinstance(message, dict) else {"noise": raw.decode(errors="replace")})
            if isinstance(message, dict) and "method" in message and "id" in message:
                self._serve(message)
        with self._changed:
            self._changed.notify_all()

    def _note(self, whose: Literal["ours", "theirs"], message: Message) -> None:
        with self._changed:
            self.lines.append(Line(whose, message, time.monotonic() - self._began))
            self._changed.notify_all()

    def send(self, message: Message) -> None:
        """Say a line as it is."""
        assert self.process.stdin is not None
        self._note("ours", message)
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return  # it ended; whoever waits for an answer learns that

    def _serve(self, request: Message) -> None:
        method, params = request["method"], request.get("params") or {}
        answer: Message
        if method == "session/request_permission":
            if not self.permit:
                return
            self.send({"jsonrpc": "2.0", "id": request["id"], "result": self._outcome(request)})
            return
        try:
            if method == "fs/read_text_file":
                answer = {"result": {"content": Path(params["path"]).read_text()}}
            elif method == "fs/write_text_file":
                Path(params["path"]).write_text(params["content"])
                answer = {"result": None}
            else:
                answer = {"error": {"code": -32601, "message": "Method not found"}}
        except OSError as failed:
            answer = {"error": {"code": -32002, "message": str(failed.strerror)}}
        self.send({"jsonrpc": "2.0", "id": request["id"], **answer})

    def _outcome(self, request: Message) -> Message:
        chosen = option_of(request, *self.permit)
        outcome: Message = {"outcome": "cancelled"}
        if chosen is not None:
            outcome = {"outcome": "selected", "optionId": chosen}
        return {"outcome": outcome}

    def answer(self, request: Message, *kinds: str) -> None:
        """Answer a permission that was left open; no kind means cancelled."""
        self.permit, before = kinds, self.permit
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": self._outcome(request)})
        self.permit = before

    # ------------------------------------------------------------- waiting
    def wait_for(self, what: str, holds: Callable[[Message], bool], limit_s: float = CALL_LIMIT_S) -> Message:
        """The first line of the agent that fulfils this."""
        deadline = time.monotonic() + limit_s
        at = 0
        with self._changed:
            while True:
                for line in self.lines[at:]:
                    if line.whose == "theirs" and holds(line.message):
                        return line.message
                at = len(self.lines)
                left = deadline - time.monotonic()
                if left <= 0 or (not self._reader.is_alive() and at == len(self.lines)):
                    break
                self._changed.wait(min(left, 0.5))
        last = [line.message for line in self.lines if line.whose == "theirs"][-3:]
        state = "ended" if self.process.poll() is not None else "silent"
        stderr = self._stderr.read_text(errors="replace")[-1500:]
        raise NoAnswer(f"{what}: {state}; last lines {json.dumps(last)[-1500:]}; stderr {stderr!r}")

    def ask(self, method: str, params: Message) -> int:
        """Send a request; its id."""
        with self._changed:
            self._next += 1
            number = self._next
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def response(self, number: int, limit_s: float = CALL_LIMIT_S) -> Message:
        """The response to a request of ours, result or error."""
        return self.wait_for(f"response to {number}", lambda m: m.get("id") == number and "method" not in m, limit_s)

    def call(self, method: str, params: Message, limit_s: float = CALL_LIMIT_S) -> Message:
        """Ask and wait; the result, NoAnswer on an error."""
        message = self.response(self.ask(method, params), limit_s)
        if "error" in message:
            raise NoAnswer(f"{method}: {json.dumps(message['error'])}")
        return message.get("result") or {}

    # ------------------------------------------------------------- the life
    def begin(self, *, restore: str | None = None, mode: str | None = None, how: str = "new") -> Message:
        """initialize, then session/new, or `how` ("load", "resume") for the session `restore`; its result."""
        files = {"readTextFile": self.reads_files, "writeTextFile": True}
        told = {"clientCapabilities": {"fs": files, "terminal": False}, "clientInfo": {"name": "probe", "version": "1"}}
        self.initialized = self.call("initialize", {"protocolVersion": 1, **told})
        params: Message = {"cwd": str(self.cwd), "mcpServers": self.servers}
        result = self.call(f"session/{how}", {**params, **({"sessionId": restore} if restore else {})})
        self.session = restore or result["sessionId"]
        if mode:
            self.call("session/set_mode", {"sessionId": self.session, "modeId": mode})
        return result

    def prompt(self, text: str) -> int:
        """Begin a turn; the request's id."""
        return self.ask("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})

    def cancel(self) -> None:
        """Ask it to stop the turn."""
        self.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}})

    def permission(self, limit_s: float = CALL_LIMIT_S) -> Message:
        """The last permission that it asked for."""
        self.wait_for("a permission", lambda m: m.get("method") == "session/request_permission", limit_s)
        return next(m for m in reversed(self.theirs) if m.get("method") == "session/request_permission")

    @property
    def theirs(self) -> list[Message]:
        """All that the agent said."""
        with self._changed:
            return [line.message for line in self.lines if line.whose == "theirs"]

    def updates(self, kind: str = "") -> list[Message]:
        """The updates of this kind, or all."""
        made = [m["params"]["update"] for m in self.theirs if m.get("method") == "session/update"]
        return [update for update in made if not kind or update.get("sessionUpdate") == kind]

    def text(self) -> str:
        """What it said in its messages, put together."""
        return "".join(str(u["content"].get("text", "")) for u in self.updates("agent_message_chunk"))

    def tree(self) -> dict[int, str]:
        """Every living process that came of this one: pid → command line."""
        return living(self._mark)

    def kill(self) -> None:
        """SIGKILL the whole tree, and read what it still said."""
        deadline = time.monotonic() + 10
        while (left := self.tree() or ({self.process.pid: ""} if self.process.poll() is None else {})) and (
            time.monotonic() < deadline
        ):
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.process.poll()
            time.sleep(0.02)
        self.process.wait(10)
        self._reader.join(10)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue

    def hang_up(self, limit_s: float = 10.0) -> float | None:
        """Close its stdin; seconds until it ended, None when it had not by the limit."""
        assert self.process.stdin is not None
        began = time.monotonic()
        self.process.stdin.close()
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - began
