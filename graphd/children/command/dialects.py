"""What the lines of each headless program mean: one function per program, from an event to the state of its turn.

A dialect trusts nothing that it was seen to say wrongly: exit code 0, `subtype: success` and `step_finish` each come
without success. Values of the wrong type are as if they were not there. Source: execution.md, Drivers; the shapes were
recorded from the versions that the profiles name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from graphd.base.text import t
from graphd_protocol.states import FailureClass

TEXT_LIMIT: Final = 16 << 20
SAID_LIMIT: Final = 2 << 10
ITEM_LIMIT: Final = 4 << 10
DENIED_LIMIT: Final = 8


@dataclass(slots=True)
class Trouble:
    """Why the turn failed, in the program's words."""

    failure_class: FailureClass
    said: str


@dataclass(slots=True)
class Turn:
    """All that a fold knows of the turn; plain values, so that it can be written down whole.

    `text` is the answer so far; with `begins_anew` the next piece of it is of a new message. `is_done` is what the
    success event said last, which alone is no success.
    """

    session: str = ""
    text: str = ""
    is_done: bool = False
    begins_anew: bool = False
    has_acted: bool = False
    trouble: Trouble | None = None
    denied: list[str] = field(default_factory=list)
    tokens: int = 0
    cost_usd: float | None = None
    tool_calls: int = 0
    said: str = ""
    counted: str = ""
    counted_tokens: int = 0


Made: TypeAlias = list[tuple[str, dict[str, Any]]]
Dialect: TypeAlias = Callable[[dict[str, Any], Turn], Made]
Event: TypeAlias = dict[str, Any]


def at(value: Any, *path: str) -> Any:
    """What stands there; None where anything on the way is no object."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_at(value: Any, *path: str) -> str:
    """The text that stands there; empty where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number_at(value: Any, *path: str) -> float:
    """The number that stands there, 0 where there is none or it is negative."""
    found = at(value, *path)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return max(0.0, min(float(found), 1e15)) if is_number and found == found else 0.0


def _rows(value: Any, *path: str) -> list[Any]:
    found = at(value, *path)
    return found if isinstance(found, list) else []


def _opened(turn: Turn, session: str) -> Made:
    if not session or turn.session:
        return []
    turn.session = session[:256]
    return [("session", {"id": turn.session})]


def _says(turn: Turn, text: str) -> Made:
    """A piece of the answer."""
    turn.text = (turn.text + text)[:TEXT_LIMIT]
    return [("item", {"kind": "text", "text": text[:ITEM_LIMIT]})] if text else []


def _uses(turn: Turn, tool: str, status: str = "completed") -> Made:
    """A tool call: told when it is over, or, as `status` says, before."""
    turn.tool_calls += 1
    turn.has_acted = True
    row = {"id": str(turn.tool_calls), "title": tool[:256], "status": status}
    return [("item", {"kind": "tool", "tool": row, "calls": turn.tool_calls}), usage(turn)]


def usage(turn: Turn) -> tuple[str, dict[str, Any]]:
    """The totals of this attempt so far."""
    return ("usage", {"tokens": turn.tokens, "costUsd": turn.cost_usd, "toolCalls": turn.tool_calls})


def _fails(turn: Turn, said: str, failure_class: FailureClass = "exec_failed") -> Made:
    """The last trouble stands: programs try again by themselves, and a later success clears it."""
    turn.trouble = Trouble(failure_class, said[:SAID_LIMIT] or t("it failed without a reason"))
    turn.is_done = False
    return []


def _done(turn: Turn) -> None:
    turn.is_done, turn.trouble = True, None


# ---- claude -p --output-format stream-json ------------------------------------------------------------------------


def claude(event: Event, turn: Turn) -> Made:
    """`result` says all; its subtype says `success` for errors too, so `is_error` and the denials are what counts.

    It names the session that was asked for also where there is none: what comes before it says that one stands.
    """
    kind = text_at(event, "type")
    made = _opened(turn, text_at(event, "session_id")) if kind != "result" else []
    if kind == "assistant":
        turn.text = ""  # the answer is the last message; `result` repeats it
        _count_message(turn, at(event, "message"))
        for part in _rows(event, "message", "content"):
            if text_at(part, "type") == "text":
                made += _says(turn, text_at(part, "text"))
            elif text_at(part, "type") == "tool_use":
                made += _uses(turn, text_at(part, "name"), "pending")
    elif kind == "result":
        made += _claude_result(event, turn)
    return made


def _count_message(turn: Turn, message: Any) -> None:
    """A message comes in several lines, each with its whole usage."""
    tokens, name = _claude_tokens(at(message, "usage")), text_at(message, "id")
    again = turn.counted_tokens if name and name == turn.counted else 0
    turn.tokens += max(0, tokens - again)
    turn.counted, turn.counted_tokens = name[:256], max(tokens, again)


def _claude_tokens(found: Any) -> int:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return int(sum(number_at(found, name) for name in names))


def _claude_result(event: Event, turn: Turn) -> Made:
    turn.tokens = _claude_tokens(at(event, "usage")) or turn.tokens
    turn.cost_usd = _claude_cost(event, turn.cost_usd)
    said = text_at(event, "result") or "; ".join(word for word in _rows(event, "errors") if isinstance(word, str))
    denied = [text_at(row, "tool_name") for row in _rows(event, "permission_denials")]
    subtype = text_at(event, "subtype")
    if subtype == "error_max_turns":
        _fails(turn, said or subtype, "limit")
    elif at(event, "is_error") is not False or subtype != "success":
        _fails(turn, said or subtype)
    elif text_at(event, "stop_reason") == "refusal":
        _fails(turn, said, "refused")
    else:
        turn.text, turn.denied = said[:TEXT_LIMIT], denied[:DENIED_LIMIT]
        _done(turn)
    return [usage(turn)]


def _claude_cost(event: Event, known: float | None) -> float | None:
    """Of this run: `total_cost_usd` counts from the beginning of a session that was resumed."""
    by_model = at(event, "model_usage_since_last_result")
    if isinstance(by_model, dict):
        return sum(number_at(row, "costUSD") for row in by_model.values())
    return known if at(event, "total_cost_usd") is None else number_at(event, "total_cost_usd")


# ---- codex exec --json --------------------------------------------------------------------------------------------


def codex(event: Event, turn: Turn) -> Made:
    """`turn.completed` is the success event; the answer is the last message before it.

    Its usage counts from the beginning of the session: too much, never too little, for one that was resumed.
    """
    kind = text_at(event, "type")
    if kind == "thread.started":
        return _opened(turn, text_at(event, "thread_id"))
    if kind == "item.completed":
        return _codex_item(at(event, "item"), turn)
    if kind == "turn.completed":
        turn.tokens += int(number_at(event, "usage", "input_tokens") + number_at(event, "usage", "output_tokens"))
        _done(turn)
        return [usage(turn)]
    if kind in ("turn.failed", "error"):
        return _fails(turn, text_at(event, "error", "message") or text_at(event, "message"))
    return []


def _codex_item(item: Any, turn: Turn) -> Made:
    kind = text_at(item, "type") or text_at(item, "item_type")
    if kind in ("agent_message", "assistant_message"):
        turn.text = ""
        return _says(turn, text_at(item, "text"))
    if kind == "reasoning":
        return [("item", {"kind": "thought", "text": text_at(item, "text")[:ITEM_LIMIT]})]
    if kind in ("command_execution", "file_change", "mcp_tool_call", "web_search"):
        return _uses(turn, text_at(item, "command") or text_at(item, "tool") or kind)
    return []


# ---- opencode run --format json -----------------------------------------------------------------------------------


def opencode(event: Event, turn: Turn) -> Made:
    """Only a `step_finish` with reason `stop` is an end. After a tool was refused it ends with `tool-calls`, exit 0."""
    made = _opened(turn, text_at(event, "sessionID"))
    kind, part = text_at(event, "type"), at(event, "part")
    if kind == "text":
        made += _says(turn, text_at(part, "text"))
    elif kind == "step_start":
        turn.text, turn.is_done = "", False
    elif kind == "tool_use":
        made += _uses(turn, text_at(part, "tool"))
        if "rejected permission" in text_at(part, "state", "error"):
            turn.denied = [*turn.denied, text_at(part, "tool")][:DENIED_LIMIT]
    elif kind == "step_finish":
        made += _opencode_step(part, turn)
    elif kind == "error":
        made += _fails(turn, text_at(event, "error", "data", "message") or text_at(event, "error", "name"))
    return made


def _opencode_step(part: Any, turn: Turn) -> Made:
    names = (("input",), ("output",), ("reasoning",), ("cache", "read"), ("cache", "write"))
    turn.tokens += int(sum(number_at(part, "tokens", *name) for name in names))
    if at(part, "cost") is not None:
        turn.cost_usd = (turn.cost_usd or 0.0) + number_at(part, "cost")
    if text_at(part, "reason") == "stop":
        turn.denied = []  # it went on after what was refused, and came to its end
        _done(turn)
    return [usage(turn)]


# ---- gemini -p … --output-format stream-json ----------------------------------------------------------------------


def gemini(event: Event, turn: Turn) -> Made:
    """`result` with status `success` is the success event; text comes in pieces, anew behind every tool."""
    made = _opened(turn, text_at(event, "session_id"))
    kind = text_at(event, "type")
    if kind == "message" and text_at(event, "role") == "assistant":
        if turn.begins_anew or at(event, "delta") is not True:
            turn.text, turn.begins_anew = "", False
        made += _says(turn, text_at(event, "content"))
    elif kind == "tool_use":
        turn.begins_anew = True
        made += _uses(turn, text_at(event, "tool_name"), "pending")
    elif kind == "result":
        turn.tokens = int(number_at(event, "stats", "total_tokens")) or turn.tokens
        made.append(usage(turn))
        if text_at(event, "status") == "success":
            _done(turn)
        else:
            _fails(turn, text_at(event, "error", "message") or text_at(event, "status"))
    elif kind == "error" and text_at(event, "severity") != "warning":
        made += _fails(turn, text_at(event, "message"))
    return made


DIALECTS: Final[dict[str, Dialect]] = {"claude": claude, "codex": codex, "opencode": opencode, "gemini": gemini}
"""`plain`, which is none of them: all of stdout is the answer, and exit code 0 is the success."""
