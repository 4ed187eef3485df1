"""The fold over one attempt's journal: records in, facts out; the same for a live run, a recovered one, a test.

It reads what the agent wrote and what was written to it, in their order. So it knows which request of ours a response
answers, which ask is open, and whether a reject or a cancel was ours, without any memory but the journal. Source:
execution.md, Exactly once over a crash.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.children.acp import (
    asking,
    capture,
    files,
    lines,
    opening,
    state,
    terminal_serving,
    terminals,
    turns,
    wire,
)
from graphd.children.acp.permission import with_real_paths
from graphd.children.acp.state import Made
from graphd.children.driver import Due, Ending, Fact, Order
from graphd.children.journal import Line as Said
from graphd.children.journal import Lines, Record
from graphd.children.keeping.files import IN, NOTE, OUT, TERMINAL_NOTE
from graphd.children.results import exit_reason
from graphd.core.talk import Line

LINE_LIMIT: Final = wire.LINE_LIMIT


class AcpFold:
    """See `graphd.children.driver.Fold`. Blocks at its making, for the state that an earlier one wrote down."""

    def __init__(self, order: Order, *, out_bytes: int) -> None:
        self._order = order
        self._state, self._position, rest = state.read(order.folder, out_bytes)
        self._lines = Lines(LINE_LIMIT, rest)
        self._is_kept = True

    @property
    def is_in_turn(self) -> bool:
        """A prompt has no response yet."""
        return self._state.turn is not None

    @property
    def is_owed(self) -> bool:
        """A request of ours has no response yet."""
        return bool(self._state.pending)

    @property
    def unheard(self) -> tuple[str, ...]:
        """Open asks: no answer of ours is in the journal."""
        return tuple(self._state.asks)

    @property
    def due(self) -> Due | None:
        """Initialize, session and settings have their limits; a turn takes its time."""
        quirks = self._order.quirks
        limits = {"initialize": quirks.init_s, "session/load": quirks.restore_s, "session/resume": quirks.restore_s}
        for request in self._state.pending.values():
            if self._state.has_prompted or request["method"] == "session/prompt":
                continue
            limit_s = limits.get(request["method"], quirks.open_s)
            reason = t("the agent did not answer {method} within {limit:g} s", method=request["method"], limit=limit_s)
            return Due(int(request["atNs"] + limit_s * 1e9), reason)
        return None

    def feed(self, record: Record) -> list[Fact]:
        """Facts of the whole lines that this record ends."""
        if record.end <= self._position:
            return []
        facts: list[Fact] = []
        if record.kind == IN:
            facts = _placed(record.end, self._sent(record))
            self._state.in_count = record.in_seq + 1
        elif record.kind == NOTE and record.payload.startswith(TERMINAL_NOTE):
            facts = _placed(record.end, terminals.noted(self._state, record.payload))
        elif record.kind == OUT:
            facts = [fact for line in self._lines.feed(record) for fact in self._said(line)]
            self._state.out_bytes = record.out_offset + len(record.payload)
        self._position = record.end
        return facts

    def keep(self) -> None:
        """The captured result as the file `result.<round>`."""
        captured = self._state.captured
        if captured is not None and not self._is_kept:
            capture.keep(self._order.folder, captured, f"result.{captured.round}")
            self._is_kept = True

    def hand_in(self, staged: Path) -> bool:
        """A durable file becomes the result of the running turn. Only while that turn runs: a later fold of the same
        journal then finds what this one finds.
        """
        turn = self._state.turn
        if turn is None:
            return False
        failpoint("result.rename.before")
        staged.rename(capture.submitted_path(self._order.folder, turn.seq))
        failpoint("result.rename.after")
        return True

    def finish(self, fact: Fact) -> Fact:
        """Serve a request for a file or a terminal inside the folder of the node; make the paths of an ask real ones.
        The ask of a command that is to run elsewhere becomes its refusal.
        """
        if fact.kind == "serve":
            return _said_instead(fact, self._served(fact.content))
        if fact.kind == "ask":
            content = with_real_paths(fact.content, self._order.cwd)
            if not content["key"].startswith(lines.TERMINAL_ASK):
                return replace(fact, content=content)
            key = content["key"].removeprefix(lines.TERMINAL_ASK)
            refusal = terminal_serving.refused_folder(key, content["action"]["paths"][0], self._order.cwd)
            return replace(fact, content=content) if refusal is None else _said_instead(fact, refusal)
        return fact

    def _served(self, request: dict[str, Any]) -> Line:
        if request["method"].startswith("terminal/"):
            return terminal_serving.serve(request, self._order)
        return files.serve(request, self._order.cwd, may_write=self._order.permissions != "read")

    def release(self) -> int:
        """Write down the state; the journal up to here is needed no more."""
        if self._position:
            state.write(self._order.folder, self._state, self._position, self._lines.rest)
        return self._position

    def end(self, exit_record: dict[str, Any]) -> Ending:
        """Achieved only with a captured result that no later prompt took back."""
        captured, failed = self._state.captured, self._state.failed
        if captured is not None:
            capture.keep(self._order.folder, captured, "output")
            return Ending("achieved", output=capture.output_of(captured))
        if failed is not None:
            return Ending("failed", failed["class"], failed["reason"])
        said = exit_reason(self._order.folder, exit_record)
        return Ending("failed", "exec_failed", t("the agent ended without a result: {said}", said=said))

    # --- lines of both sides --------------------------------------------------------------------------------------

    def _sent(self, record: Record) -> list[Made]:
        """What went to the agent, or to its keeper, by whichever daemon."""
        try:
            message = wire.mapping(json.loads(record.payload))
        except ValueError:
            return []
        method = message.get("method")
        if method is None:
            asking.answered(self._state, message)
        elif "id" in message:
            key = wire.key_of(message["id"])
            self._state.pending[key] = {"method": method, "atNs": record.at_ns}
            if method == "session/prompt":
                turns.began(self._state, int(message["id"]))
            elif method == "initialize":
                offered = wire.mapping(wire.mapping(message.get("params")).get("clientCapabilities"))
                self._state.offers_terminals = offered.get("terminal") is True
        elif method == "graphd/terminal/allow":
            return terminals.allowed(self._state, message["params"]["key"])
        elif method == "session/cancel" and self._state.turn is not None:
            self._state.turn.was_cancelled = True
        return []

    def _said(self, line: Said) -> list[Fact]:
        messages = wire.messages(line.text)
        made = [fact for message in messages for fact in self._read(message)]
        if not messages and line.text.strip():
            made = _noise(line.text)
        return _placed(line.end, made)

    def _read(self, message: dict[str, Any]) -> list[Made]:
        if not isinstance(message.get("method"), str):
            return self._answered(message)
        if message.get("id") is not None:
            return asking.requested(self._state, message)
        return asking.notified(self._state, self._order, message)

    def _answered(self, response: dict[str, Any]) -> list[Made]:
        """A response: to a request of ours, or to nothing that we ever asked (again)."""
        key = wire.key_of(response.get("id"))
        if isinstance(response.get("id"), str) and key not in self._state.pending:
            key = response["id"]  # some send the number back as a text
        request = self._state.pending.pop(key, None)
        if request is None:
            return [("item", {"kind": "noise", "text": f"a response to {key[:100]}, which is no open request"})]
        if request["method"] != "session/prompt":
            return opening.answered(self._state, self._order, request["method"], response)
        if key in self._state.superseded:
            self._state.superseded.remove(key)
            return [("item", {"kind": "noise", "text": f"the end of an overtaken turn, {key}"})]
        made = turns.ended(self._state, self._order, response)
        self._is_kept = not any(kind == "candidate" for kind, _ in made)
        return made


def _said_instead(fact: Fact, line: Line) -> Fact:
    return replace(fact, kind="say", content={"message": line.message, "isRequest": line.is_request})


def _placed(offset: int, made: list[Made]) -> list[Fact]:
    return [Fact(offset, index, kind, content) for index, (kind, content) in enumerate(made)]


def _noise(text: bytes) -> list[Made]:
    """A line that is no message. A request that is too long to be read is refused, so that nobody waits for it."""
    made: list[Made] = [("item", {"kind": "noise", "text": wire.noise(text)})]
    key = wire.overlong_request(text)
    if key is not None:
        made.append(asking.say(lines.refusal(key, lines.INVALID_REQUEST, f"longer than {LINE_LIMIT} bytes")))
    return made
