"""What the journal of a headless program adds up to: session, usage, what it does, and how its turn ended.

Lines that are no JSON are noise, kept only for the reason of a failure. The state is written down before the journal is
trimmed, at the end of a whole line; a fold that begins again takes it up and passes over what it covers. Source:
execution.md, Exactly once over a crash, How a turn ends, Provider weather.
"""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.acp.weather import of_error
from graphd.children.acp.wire import value_of
from graphd.children.command.dialects import DIALECTS, SAID_LIMIT, Trouble, Turn
from graphd.children.driver import Ending, Fact, Monologue, Order
from graphd.children.environment import write_private
from graphd.children.journal import Lines, Record
from graphd.children.keeping.files import OUT
from graphd.children.profiles.shape import Headless
from graphd.children.results import INLINE_LIMIT, exit_reason, inline, is_json
from graphd.children.shell import ShellFold
from graphd.children.sink import CaptureShort
from graphd.core.model import Output
from graphd_protocol.states import FailureClass

STATE: Final = "turn.json"
_FENCED: Final = re.compile(r"\A\s*```(?:json)?[ \t]*\n(.*)\n```\s*\Z", re.DOTALL)


class CommandFold(Monologue):
    """Facts `session`, `usage`, `item`; the end says the rest."""

    def __init__(self, order: Order, headless: Headless, *, out_bytes: int) -> None:
        self._order = order
        self._headless = headless
        self._dialect = DIALECTS[headless.dialect]
        self._lines = Lines()
        self._covered = 0
        self._position = 0
        self.turn = Turn()
        if out_bytes:
            self._load()

    def feed(self, record: Record) -> list[Fact]:
        """The facts of the lines that end in this record."""
        if record.kind != OUT:
            return []
        facts = []
        for line in self._lines.feed(record):
            self._position = line.end
            if line.end > self._covered:
                made = self._read(line.text)
                facts += [Fact(line.end, index, kind, content) for index, (kind, content) in enumerate(made)]
        return facts

    def _read(self, line: bytes) -> list[tuple[str, dict[str, Any]]]:
        event = value_of(line)
        if not isinstance(event, dict):
            said = line.decode("utf-8", "replace").strip()
            self.turn.said = f"{self.turn.said}\n{said}".strip()[-SAID_LIMIT:]
            return []
        made = self._dialect(event, self.turn)
        for kind, content in made:
            if kind == "session":
                content["restored"] = "resumed" if content["id"] == self._order.resume_session else "new"
        return made

    def release(self) -> int:
        """Write down what the whole lines came to; the journal up to there is needed no more."""
        self._covered = max(self._covered, self._position)
        content = json.dumps({"position": self._covered, "turn": asdict(self.turn)}).encode()
        write_private(self._order.folder / f"{STATE}.new", content, becomes=self._order.folder / STATE)
        return self._position

    def _load(self) -> None:
        try:
            held = json.loads((self._order.folder / STATE).read_bytes())
            turn = held["turn"]
            trouble = Trouble(**turn["trouble"]) if turn["trouble"] else None
            self.turn = Turn(**{**turn, "trouble": trouble})
            self._covered = int(held["position"])
        except (OSError, ValueError, KeyError, TypeError) as trouble:
            raise CaptureShort(t("what was known of its turn is gone")) from trouble

    def end(self, exit_record: dict[str, Any]) -> Ending:
        """Exit code 0, the success event, nothing denied and an answer: achieved. The rest says what it lacks."""
        turn, output = self.turn, self._captured()
        if exit_record["code"] == 0 and turn.is_done and turn.trouble is None and not turn.denied:
            if turn.text.strip():
                return Ending("achieved", output=output)
            return Ending("failed", "verdict_fail", t("it ended well and answered nothing"), output)
        if turn.denied and turn.trouble is None and exit_record["code"] == 0:
            tools = ", ".join(turn.denied)
            return Ending("failed", "refused", t("it was denied what it needed: {tools}", tools=tools), output)
        return self._failed(exit_record, output)

    def _failed(self, exit_record: dict[str, Any], output: Output | None) -> Ending:
        turn = self.turn
        ended = exit_reason(self._order.folder, exit_record)
        said = turn.trouble.said if turn.trouble else turn.said
        words = f"{said}\n{ended}"
        failure_class: FailureClass = turn.trouble.failure_class if turn.trouble else "exec_failed"
        if self._is_gone(words):
            session = self._order.resume_session
            gone: str = t("its session {session} can't be opened again: {said}", session=session, said=said or ended)
            return Ending("lost", reason=gone)  # nothing was done, and what there was can't go on: begin afresh
        found = of_error(words, self._order.quirks.weather)
        if failure_class == "exec_failed" and found.kind == "weather":
            return self._weather(t("the provider is busy: {said}", said=said or ended), found.retry_after_s, output)
        if found.kind == "too_long":
            failure_class = "limit"
        if exit_record["code"] == 0 and not said:
            return Ending("failed", "exec_failed", t("it ended without saying that it was done"), output)
        reason = t("{said} ({ended})", said=said, ended=ended) if said and exit_record["code"] != 0 else said or ended
        return Ending("failed", failure_class, reason, output)

    def _weather(self, reason: str, retry_after_s: float | None, output: Output | None) -> Ending:
        """Before it acted nothing was lost but time."""
        weather = {} if retry_after_s is None else {"retryAfterS": retry_after_s}
        if self.turn.has_acted:
            return Ending("failed", "exec_failed", reason, output, weather=weather)
        return Ending("put_back", None, reason, weather=weather)

    def _is_gone(self, words: str) -> bool:
        gone = self._headless.gone
        is_untouched = bool(self._order.resume_session and gone) and not self.turn.has_acted
        return is_untouched and re.search(gone, words, re.IGNORECASE) is not None

    def _captured(self) -> Output | None:
        """The answer, in `output`; JSON where it is one value, out of its code fence where a schema asks for it."""
        text = self.turn.text.strip()
        fenced = _FENCED.match(text) if self._order.output_schema else None
        if fenced and _is_value(fenced[1]):
            text = fenced[1].strip()
        content = text.encode("utf-8", "replace")[: self._order.output_limit_bytes]
        path: Path = self._order.folder / "output"
        write_private(self._order.folder / "output.new", content, becomes=path)
        is_value = _is_value(text) if self._order.output_schema is not None else is_json(content)
        return inline(content[:INLINE_LIMIT], len(content), "application/json" if is_value else "text/plain")


class PlainFold(ShellFold):
    """A program that speaks no dialect: all that it prints is its answer, exit code 0 its success."""

    def __init__(self, order: Order, *, out_bytes: int) -> None:
        super().__init__(order.folder, out_bytes=out_bytes, limit_bytes=order.output_limit_bytes)


def _is_value(text: str) -> bool:
    """Any JSON value: a lone word or number too, where a schema asks for one."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
