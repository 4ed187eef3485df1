"""An agent that speaks the Agent Client Protocol, scripted by a JSON file, with every bad habit of real ones.

Usage: fake_acp_agent.py SCRIPT (or the variable FAKE_ACP_SCRIPT). Standard library alone. Keys of the script:

- `store`: folder of the sessions, so that a fresh process can take one up again; `trace`: file of JSON lines of what it
  got (`got`) and did (`did`), so that a test can prove that nothing ran twice;
- `version` (1), `capabilities`: what initialize answers; `session`: more fields of the result of new and load;
- `answers`: {method: how}: `ok`, `silent` (never), {"error": {…}}, {"result": any}; `load` and `resume` also `empty`,
  `null`, `replays`, `any` (success for what it does not have);
- `on_cancel`: cancelled, end_turn, ignore, error; `on_reject`: go_on, or the stop reason that ends the turn;
- `on_eof`: exit (default), stay; `tick_s`: a pause before each step;
- `turns`: a list of turns, each a list of steps; a session's n-th prompt plays the n-th, the last one again and again.

Steps: `say, think, tool, update` (raw), `notify`, `line` (raw text), `bytes` (hex), `ask` (permission), `request`,
`respond` (raw), `terminal` (a command that we are asked to run, `then` wait_for_exit, output, …; `on_terminal`),
`mcp` ({tool, arguments}, of the session's MCP server), `effect` (done once: a line of the trace), `files` ({name: text,
or null to delete it}, where it stands), `wait` s, `until` (a file is there), `until_cancel`, `stderr` bytes, `flood`
updates, `child` (leaves a process), `die` (signal or "mid_line" or exit code), `stop` (a stop
reason, {"result"} or {"error"}); `after`: steps behind the response.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = json.loads(Path(sys.argv[1] if sys.argv[1:] else os.environ["FAKE_ACP_SCRIPT"]).read_text())
OUT = threading.Lock()


def trace(**what: Any) -> None:
    fd = os.open(SCRIPT["trace"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, json.dumps({"pid": os.getpid(), **what}).encode() + b"\n")
    os.close(fd)


def write(content: bytes) -> None:
    with OUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Ended(Exception):
    """The turn is over: this is its response."""

    def __init__(self, response: dict[str, Any]) -> None:
        super().__init__()
        self.response = response


class Session:
    """What survives the process: the prompts, and what was said."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.path = Path(SCRIPT["store"]) / f"{session_id}.json"
        self.prompts: list[str] = []
        self.history: list[dict[str, Any]] = []
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            self.prompts, self.history = kept["prompts"], kept["history"]

    def keep(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"prompts": self.prompts, "history": self.history}))
        new.rename(self.path)

    def update(self, update: dict[str, Any], *, is_new: bool = True) -> None:
        if is_new:
            self.history.append(update)
            self.keep()
        send({"method": "session/update", "params": {"sessionId": self.id, "update": update}})


class Agent:
    """One process, its requests and its one running turn."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.waiting: dict[Any, queue.Queue[dict[str, Any]]] = {}
        self.next_id = 100
        self.cancelled = threading.Event()
        self.turn: threading.Thread | None = None
        self.servers: list[dict[str, Any]] = []
        self.terminals: dict[str, Any] = {}
        self.mcp: subprocess.Popen[bytes] | None = None

    # --- what comes in

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            method = message.get("method")
            if method is None:
                trace(got="reply", id=message["id"], reply=message.get("result", message.get("error")))
                waiting = self.waiting.get(message["id"])
                if waiting is not None:
                    waiting.put(message)
            elif method == "session/cancel":
                trace(got=method)
                if SCRIPT.get("on_cancel") != "ignore":
                    self.cancelled.set()
            else:
                trace(got=method, id=message["id"], params=message.get("params"))
                self.request(message["id"], method, message.get("params") or {})
        trace(got="eof")
        if SCRIPT.get("on_eof") == "stay":
            time.sleep(1000)

    def request(self, number: Any, method: str, params: dict[str, Any]) -> None:
        how = SCRIPT.get("answers", {}).get(method, "ok")
        if how == "silent":
            return
        if isinstance(how, dict):
            send({"id": number, **how})
            return
        if method == "session/prompt":
            self.turn = threading.Thread(target=self.prompted, args=(number, params), daemon=True)
            self.turn.start()
            return
        answer = {
            "initialize": self.initialize, "session/new": self.new, "session/load": self.restore,
            "session/resume": self.restore, "session/list": self.list,
        }.get(method)  # fmt: skip
        if answer is None:
            known = method in ("session/set_mode", "session/set_model", "session/set_config_option", "session/close")
            error = {"code": -32601, "message": f"{method} is not known"}
            send({"id": number, "result": {}} if known else {"id": number, "error": error})
            return
        send({"id": number, **answer(method, params, how)})

    def initialize(self, _method: str, _params: dict[str, Any], _how: str) -> dict[str, Any]:
        for line in SCRIPT.get("greeting", []):
            write(line.encode() + b"\n")
        default = {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}, "close": {}}}
        offers = SCRIPT.get("capabilities", default)
        return {"result": {"protocolVersion": SCRIPT.get("version", 1), "agentCapabilities": offers}}

    def new(self, _method: str, params: dict[str, Any], _how: str) -> dict[str, Any]:
        self.servers = params["mcpServers"]
        assert isinstance(self.servers, list)
        count = len(list(Path(SCRIPT["store"]).glob("*.json")))
        self.session = Session(f"session-{count + 1}")
        self.session.keep()
        trace(did="new", session=self.session.id)
        return {"result": {"sessionId": self.session.id, **SCRIPT.get("session", {})}}

    def restore(self, method: str, params: dict[str, Any], how: str) -> dict[str, Any]:
        self.servers = params["mcpServers"]
        assert isinstance(self.servers, list)
        self.session = Session(params["sessionId"])
        if not self.session.path.exists() and how != "any":
            return {"error": {"code": -32002, "message": "Resource not found"}}
        if how == "replays" or (method == "session/load" and how not in ("empty", "null")):
            for update in self.session.history:
                self.session.update(update, is_new=False)
        trace(did=method, session=self.session.id)
        return {"result": None if how == "null" else {} if how == "empty" else dict(SCRIPT.get("session", {}))}

    def list(self, _method: str, _params: dict[str, Any], _how: str) -> dict[str, Any]:
        found = [{"sessionId": path.stem, "cwd": "/"} for path in Path(SCRIPT["store"]).glob("*.json")]
        return {"result": {"sessions": found}}

    # --- a turn

    def prompted(self, number: Any, params: dict[str, Any]) -> None:
        session = self.session
        assert session is not None
        assert session.id == params["sessionId"]
        text = params["prompt"][0]["text"]
        turns = SCRIPT.get("turns", [[{"say": "done"}]])
        steps = turns[min(len(session.prompts), len(turns) - 1)]
        session.prompts.append(text)
        session.history.append({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}})
        session.keep()
        self.cancelled.clear()
        response: dict[str, Any] = {"result": {"stopReason": "end_turn"}}
        try:
            for step in steps:
                if "after" not in step:
                    time.sleep(SCRIPT.get("tick_s", 0))
                    self.step(session, step)
        except Ended as end:
            response = end.response
        trace(did="turn", response=response)
        send({"id": number, **response})
        for step in steps:
            for late in step.get("after", []):
                self.step(session, late)

    def step(self, session: Session, step: dict[str, Any]) -> None:
        if self.cancelled.is_set():
            self.end_cancelled()
        for name, value in step.items():
            getattr(self, f"do_{name}")(session, value)

    def end_cancelled(self) -> None:
        how = SCRIPT.get("on_cancel", "cancelled")
        if how == "error":
            raise Ended({"error": {"code": -32603, "message": "'NoneType' object has no attribute 'startswith'"}})
        raise Ended({"result": {"stopReason": how}})

    def do_say(self, session: Session, text: str) -> None:
        session.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def do_think(self, session: Session, text: str) -> None:
        session.update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    def do_tool(self, session: Session, call: dict[str, Any]) -> None:
        session.update({"sessionUpdate": "tool_call", "status": "pending", **call})

    def do_update(self, session: Session, update: dict[str, Any]) -> None:
        session.update(update)

    def do_notify(self, _session: Session, message: dict[str, Any]) -> None:
        send(message)

    def do_line(self, _session: Session, text: str) -> None:
        write(text.encode() + b"\n")

    def do_bytes(self, _session: Session, text: str) -> None:
        write(bytes.fromhex(text))

    def do_pad(self, session: Session, size: int) -> None:
        self.do_say(session, "x" * size)

    def do_effect(self, _session: Session, name: str) -> None:
        trace(did="effect", name=name)

    def do_files(self, _session: Session, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            if text is None:
                Path(name).unlink()
            else:
                Path(name).write_text(text)

    def do_wait(self, _session: Session, seconds: float) -> None:
        if self.cancelled.wait(seconds):
            self.end_cancelled()

    def do_until(self, _session: Session, path: str) -> None:
        while not Path(path).exists():
            self.do_wait(_session, 0.01)

    def do_until_cancel(self, _session: Session, _value: Any) -> None:
        self.cancelled.wait()
        self.end_cancelled()

    def do_stderr(self, _session: Session, size: int) -> None:
        for _ in range(size // 1000):
            os.write(2, b"e" * 999 + b"\n")

    def do_flood(self, session: Session, count: int) -> None:
        for number in range(count):
            update = {"sessionUpdate": "tool_call_update", "toolCallId": "flood", "title": f"{number} " + "y" * 900}
            session.update(update, is_new=False) if number else self.do_tool(session, {"toolCallId": "flood"})

    def do_child(self, _session: Session, seconds: float) -> None:
        child = subprocess.Popen(["sleep", str(seconds)], start_new_session=True, stdin=subprocess.DEVNULL)
        trace(did="child", child=child.pid)

    def do_die(self, _session: Session, how: Any) -> None:
        if how == "mid_line":
            write(b'{"jsonrpc": "2.0", "method": "session/upd')
            how = "KILL"
        if isinstance(how, str):
            os.kill(os.getpid(), getattr(signal, f"SIG{how}"))
            time.sleep(1000)
        os._exit(how)

    def do_stop(self, _session: Session, how: Any) -> None:
        raise Ended({"result": {"stopReason": how}} if isinstance(how, str) else how)

    def do_respond(self, _session: Session, message: dict[str, Any]) -> None:
        send(message)

    def do_mcp(self, _session: Session, call: dict[str, Any]) -> None:
        """Its server gets the variables that the session names and no other, as some agents do it."""
        if self.mcp is None:
            (server,) = self.servers
            env = {"PATH": os.environ["PATH"], **{item["name"]: item["value"] for item in server["env"]}}
            argv = [server["command"], *server["args"]]
            self.mcp = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.ask_server("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
            self.tell_server({"method": "notifications/initialized"})
            trace(did="mcp tools", tools=[tool["name"] for tool in self.ask_server("tools/list", {})["tools"]])
        params = {"name": call["tool"], "arguments": call.get("arguments", {})}
        trace(did="mcp call", tool=call["tool"])
        result = self.ask_server("tools/call", params)
        trace(did="mcp", tool=call["tool"], text=result["content"][0]["text"], failed=result["isError"])

    def tell_server(self, message: dict[str, Any]) -> None:
        assert self.mcp is not None
        assert self.mcp.stdin is not None
        self.mcp.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.mcp.stdin.flush()

    def ask_server(self, method: str, params: dict[str, Any]) -> Any:
        assert self.mcp is not None
        assert self.mcp.stdout is not None
        self.next_id += 1
        self.tell_server({"id": self.next_id, "method": method, "params": params})
        answer = json.loads(self.mcp.stdout.readline())
        assert answer["id"] == self.next_id
        return answer["result"]

    def do_request(self, _session: Session, message: dict[str, Any]) -> None:
        reply = self.call(message.get("id"), message["method"], message.get("params"))
        trace(did="request", method=message["method"], reply=reply.get("result", reply.get("error")))

    def do_terminal(self, session: Session, params: dict[str, Any]) -> None:
        """A command of ours: created, kept under `as`, then what `then` says, in order."""
        params = dict(params)
        name, then = params.pop("as", "last"), params.pop("then", [])
        reply = self.call(None, "terminal/create", {"sessionId": session.id, **params})
        self.terminals[name] = reply.get("result", {}).get("terminalId")
        trace(did="terminal", name=name, reply=reply.get("result", reply.get("error")))
        for what in then if self.terminals[name] else []:
            self.do_on_terminal(session, {"as": name, "what": what})

    def do_on_terminal(self, session: Session, step: dict[str, Any]) -> None:
        name, what = step["as"], step["what"]
        reply = self.call(None, f"terminal/{what}", {"sessionId": session.id, "terminalId": self.terminals[name]})
        trace(did=what, name=name, reply=reply.get("result", reply.get("error")))

    def do_ask(self, session: Session, params: dict[str, Any]) -> None:
        """A permission; on an allow its `effect` is done, on a reject the turn goes on or ends."""
        params = dict(params)
        number, effect, is_waited = params.pop("id", None), params.pop("effect", None), params.pop("wait", True)
        params.setdefault("options", OPTIONS)
        reply = self.call(
            number, "session/request_permission", {"sessionId": session.id, **params}, is_waited=is_waited
        )
        outcome = reply.get("result", {}).get("outcome", {})
        trace(did="asked", outcome=outcome)
        kinds = {option["optionId"]: option["kind"] for option in params["options"]}
        kind = kinds.get(outcome.get("optionId"), "cancelled")
        if kind.startswith("allow") and effect:
            self.do_effect(session, effect)
        if kind.startswith("reject") and SCRIPT.get("on_reject", "go_on") != "go_on":
            raise Ended({"result": {"stopReason": SCRIPT["on_reject"]}})
        if outcome.get("outcome") == "cancelled" and is_waited:
            self.cancelled.wait(5)
            self.end_cancelled()

    def call(self, number: Any, method: str, params: Any, *, is_waited: bool = True) -> dict[str, Any]:
        if number is None:
            self.next_id += 1
            number = self.next_id
        self.waiting[number] = queue.Queue()
        send({"id": number, "method": method, "params": params})
        return self.waiting[number].get() if is_waited else {}


OPTIONS = [
    {"optionId": "proceed_always", "name": "Always", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]

if __name__ == "__main__":
    Path(SCRIPT["store"]).mkdir(exist_ok=True)
    trace(did="start")
    Agent().run()
