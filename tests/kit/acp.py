"""For tests of the driver `acp`: a core that answers by rule, a journal made in memory, orders for the fake agent."""

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphd.children.acp.driver import AcpDriver
from graphd.children.driver import Driver, Fact, Fold, Order, Report
from graphd.children.journal import Decoder, Header, Record
from graphd.children.keeping.files import IN, NOTE, OUT, RECORD, TERMINAL_NOTE, VERSION
from graphd.children.run import KeptRun
from graphd.core.talk import Line, render
from tests.kit.kept import PROGRAMS, Heard, make_order

Decide = Callable[[Fact], str | None]
"""The option for an ask; None is cancelled. `WAIT` leaves it open."""
WAIT = "\0wait"
OFFERS = {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}, "close": {}}}


def choose(options: list[dict[str, Any]], kind: str) -> str | None:
    """The option of a kind, as the core chooses: never the agent's own "always"."""
    return next((option["id"] for option in options if option["kind"] == kind), None)


def allow(fact: Fact) -> str | None:
    return choose(fact.content["options"], "allow_once")


def reject(fact: Fact) -> str | None:
    return choose(fact.content["options"], "reject_once")


def wait(_fact: Fact) -> str | None:
    return WAIT


def acp_order(tmp_path: Path, script: dict[str, Any] | None = None, **changes: Any) -> Order:
    """An order for the fake agent with this script. Its sessions and its trace lie in `tmp_path`."""
    path = tmp_path / f"script-{len(list(tmp_path.glob('script-*')))}.json"
    script = {"store": str(tmp_path / "sessions"), "trace": str(tmp_path / "trace"), **(script or {})}
    path.write_text(json.dumps(script))
    argv = (sys.executable, "-I", "-S", str(PROGRAMS / "fake_acp_agent.py"), str(path))
    return make_order(tmp_path, **{"profile": "fake", "argv": argv, "told": "do it", "permissions": "edit"} | changes)


def traced(tmp_path: Path, **wanted: Any) -> list[dict[str, Any]]:
    """The lines of the fake agent's trace that have these values."""
    path = tmp_path / "trace"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


class Core:
    """Plays the core and the store for one attempt, over any number of daemons.

    A candidate of a round that has a text in `rounds` gets it as the next turn, the others are accepted. What fails or
    is cancelled is stopped. `pause` is awaited before and after each commit: there a test lets the daemon die.
    """

    def __init__(
        self, order: Order, driver: Driver | None = None, *, decide: Decide = allow, rounds: tuple[str, ...] = ()
    ):
        self.order = order
        self.driver: Driver = driver or AcpDriver()
        self.decide = decide
        self.rounds = rounds
        self.facts: list[Fact] = []
        self.rows: list[str] = [render(line, seq) for seq, line in enumerate(self.driver.prompt(order))]
        self.cursor = (0, -1)
        self.session: str | None = None
        self.open_asks: dict[str, Fact] = {}
        self.is_closed = self.is_stopped = False
        self.epochs = itertools.count(1)
        self.run: KeptRun
        self.pause: Callable[[], Any] | None = None

    def make(self, report: Report | None = None) -> KeptRun:
        """The run of the next daemon, told all rows that there are."""
        order = replace(self.order, epoch=next(self.epochs))
        self.run = KeptRun(order, report or Heard(), driver=self.driver, on_facts=self.on_facts, cursor=self.cursor)
        self.tell()
        return self.run

    def tell(self) -> None:
        self.run.tell(list(enumerate(self.rows)))
        if self.is_closed:
            self.run.request_close()
        if self.is_stopped:
            self.run.request_stop()

    async def on_facts(self, facts: tuple[Fact, ...], cursor: tuple[int, int]) -> None:
        if self.pause is not None:
            await self.pause()
        for fact in facts:
            self.facts.append(fact)
            self.commit(fact)
        self.cursor = cursor
        if self.pause is not None:
            await self.pause()
        self.tell()

    def commit(self, fact: Fact) -> None:
        for line in self.decided(fact):
            self.add(line)

    def add(self, *lines: Line) -> None:
        for line in lines:
            self.rows.append(render(line, len(self.rows)))

    def decided(self, fact: Fact) -> tuple[Line, ...]:
        """The lines that a fact leads to in its transaction."""
        match fact.kind:
            case "say":
                return (Line(fact.content["message"], fact.content["isRequest"]),)
            case "session":
                self.session = fact.content["id"]
            case "ask":
                option = self.decide(fact)
                if option != WAIT:
                    return self.driver.answer(fact.content["key"], option, None)
                self.open_asks[fact.content["key"]] = fact
            case "ask_gone":
                self.open_asks.pop(fact.content["key"], None)
            case "candidate":
                if fact.content["round"] <= len(self.rounds):
                    return self.driver.turn(self.session or "", self.rounds[fact.content["round"] - 1])
                self.is_closed = True
                return self.driver.close(self.session)
            case "turn_failed" | "turn_cancelled":
                self.is_stopped = True
        return ()

    def answer(self, key: str, option: str | None) -> None:
        """A person answered an ask that was left open."""
        del self.open_asks[key]
        self.add(*self.driver.answer(key, option, None))
        self.tell()

    def stop(self) -> None:
        """The stop of a person: the cancel lines are part of its commit."""
        self.add(*self.driver.cancel(self.session, tuple(self.open_asks)))
        self.open_asks.clear()
        self.is_stopped = True
        self.tell()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of all facts of a kind."""
        return [fact.content for fact in self.facts if fact.kind == kind]


class Tape:
    """A journal in memory: what the agent writes is fed to the fold, what the core decides is written behind it."""

    def __init__(self, order: Order, *, decide: Decide = allow, rounds: tuple[str, ...] = ()) -> None:
        order.folder.mkdir(parents=True, exist_ok=True)
        self.core = Core(order, decide=decide, rounds=rounds)
        self.order = order
        self.content = b""
        self.decoder = Decoder(Header())
        self.fold: Fold = self.core.driver.fold(order, out_bytes=0)
        self.facts = self.core.facts
        self.written = 0
        self.at_ns = 1_000_000_000
        self.flush()

    def flush(self) -> None:
        """Write the rows that the journal lacks."""
        while self.written < len(self.core.rows):
            self.written += 1
            self._take(self._record(IN, self.core.rows[self.written - 1].encode() + b"\n"))

    def agent(self, *messages: dict[str, Any]) -> list[Fact]:
        """Each message is one line; all of them come in one record."""
        return self.raw(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))

    def raw(self, part: bytes) -> list[Fact]:
        """Raw bytes of stdout. Answers the facts that they make."""
        done = self._take(self._record(OUT, part))
        self.flush()
        return done

    def note(self, **content: Any) -> list[Fact]:
        """What the keeper says of a terminal."""
        return self.noted(TERMINAL_NOTE + json.dumps(content).encode())

    def noted(self, payload: bytes) -> list[Fact]:
        """The same, as its bytes."""
        done = self._take(self._record(NOTE, payload))
        self.flush()
        return done

    def _take(self, facts: list[Fact]) -> list[Fact]:
        if any(fact.kind == "candidate" for fact in facts):
            self.fold.keep()
        done = [self.fold.finish(fact) for fact in facts]
        for fact in done:
            self.facts.append(fact)
            self.core.commit(fact)
        return done

    def update(self, kind: str, /, session: str = "s1", **more: Any) -> list[Fact]:
        return self.agent(
            {"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": kind, **more}}}
        )

    def text(self, text: str, **more: Any) -> list[Fact]:
        return self.update("agent_message_chunk", content={"type": "text", "text": text}, **more)

    def sent(self) -> list[dict[str, Any]]:
        """What was written to the agent."""
        return [json.loads(row) for row in self.core.rows[: self.written]]

    def last(self, method: str) -> dict[str, Any]:
        """The last message with this method that was written to the agent."""
        return next(message for message in reversed(self.sent()) if message.get("method") == method)

    def respond(self, method: str, result: Any = None, *, error: Any = None) -> list[Fact]:
        """Answer our last request of this method."""
        body = {"error": error} if error is not None else {"result": result}
        return self.agent({"id": self.last(method)["id"], **body})

    def open(self, result: dict[str, Any] | None = None) -> "Tape":
        """Up to the first prompt, in a new session `s1`."""
        self.respond("initialize", {"protocolVersion": 1, "agentCapabilities": OFFERS})
        self.respond("session/new", {"sessionId": "s1", **(result or {})})
        return self

    def stop(self, reason: Any = "end_turn", **more: Any) -> list[Fact]:
        """The prompt's response."""
        return self.respond("session/prompt", {"stopReason": reason, **more})

    def ask(self, key: Any = 7, **call: Any) -> list[Fact]:
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "t1", **call}, "options": OPTIONS}
        return self.agent({"id": key, "method": "session/request_permission", "params": params})

    def _record(self, kind: int, payload: bytes) -> list[Fact]:
        self.at_ns += 1_000_000
        part = RECORD.pack(VERSION, kind, len(payload), self.at_ns) + payload
        self.content += part
        return [fact for record in self.decoder.feed(part) for fact in self.fold.feed(record)]

    def records(self) -> list[Record]:
        return Decoder(Header()).feed(self.content)


def kinds(facts: list[Fact]) -> list[str]:
    """What kinds these facts are, what is only shown left out."""
    return [fact.kind for fact in facts if fact.kind not in ("item", "usage")]


OPTIONS = [
    {"optionId": "a+", "name": "Always", "kind": "allow_always"},
    {"optionId": "a", "name": "Yes", "kind": "allow_once"},
    {"optionId": "r", "name": "No", "kind": "reject_once"},
]
EXIT = {"code": 0, "signal": None, "errBytes": 0, "execError": None}
