"""All that the fold remembers between two records, as plain values that can be written down whole.

`fold.json` in the attempt's folder is such a state with the journal's offset behind it; it is durable before the
journal is trimmed, so a fold goes on from it where the records are gone. Source: execution.md, Exactly once over a
crash.
"""

import base64
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.environment import write_private
from graphd.children.sink import CaptureShort

VERSION: Final = 1
TOOLS_LIMIT: Final = 512

Made = tuple[str, dict[str, Any]]
"""A fact before it has its place: (kind, content)."""


@dataclass(slots=True)
class Turn:
    """One prompt of ours and what came for it. `kind`: round, nudge or continue."""

    seq: int
    kind: str
    parts: list[str] = field(default_factory=list)
    """The message that is being said; `before` is the last one with words in it."""
    before: list[str] = field(default_factory=list)
    message_id: str | None = None
    size: int = 0
    was_rejected: bool = False
    was_cancelled: bool = False
    """By us."""
    has_submitted: bool = False
    """Its agent says that our tool took a result. The file says it for sure; this saves a nudge."""
    has_failed_inside: bool = False
    """The agent said so by the way, and may end the turn as if nothing were."""


@dataclass(slots=True)
class Captured:
    """A result that is captured: the text of the file `result.<round>`, whole size, type."""

    round: int
    text: str
    total_bytes: int
    media_type: str


@dataclass(slots=True)
class State:
    """What the records so far add up to. Requests and asks are under their ids as JSON."""

    in_count: int = 0
    out_bytes: int = 0
    rest: str = ""
    """The bytes of an unfinished line, base64. Filled only for writing down."""
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Requests of ours without a response: {method, atNs}."""
    can: dict[str, bool] = field(default_factory=dict)
    """load, resume, list: what the agent offers."""
    session: str | None = None
    restored: str | None = None
    """new, resumed, loaded, once the session stands."""
    tried: list[str] = field(default_factory=list)
    """The ways back that were tried."""
    why_fresh: str | None = None
    """Why a session that was wanted could not be taken up again."""
    setup: list[dict[str, Any]] = field(default_factory=list)
    """What is still to be set before the first prompt: {message, wants}."""
    setting: str | None = None
    """What is being set: mode, model, thinking."""
    list_pages: int = 0
    has_prompted: bool = False
    turn: Turn | None = None
    superseded: list[str] = field(default_factory=list)
    """Prompts that a later one overtook: their responses decide nothing."""
    next_turn: str = "round"
    round: int = 0
    was_nudged: bool = False
    was_continued: bool = False
    has_acted: bool = False
    asks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Open asks of the agent: {options: {id: kind}}."""
    used_keys: dict[str, int] = field(default_factory=dict)
    offers_terminals: bool = False
    """We told the agent that we run commands for it."""
    terminals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was asked for and is not gone: {key, argv, cwd, env, limit, command, exit, waits, isLive, isReleased}."""
    terminal_count: int = 0
    granted: list[str] = field(default_factory=list)
    """Commands that were allowed when the agent asked, in this turn: each may be run in a terminal once, unasked."""
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    tool_calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    odd_stops: list[str] = field(default_factory=list)
    submitted: int | None = None
    """The prompt of this round in whose turn a result was handed in last: its file is `submitted.<seq>`."""
    captured: Captured | None = None
    failed: dict[str, Any] | None = None
    """The content of the `turn_failed` that ended it."""

    def tool(self, call_id: str) -> dict[str, Any]:
        """What is known of a tool call, to be added to; the oldest are forgotten."""
        if call_id not in self.tools and len(self.tools) >= TOOLS_LIMIT:
            del self.tools[next(iter(self.tools))]
        return self.tools.setdefault(call_id, {})

    def fail(self, failure_class: str, reason: str, **more: Any) -> list[Made]:
        """The attempt can't go on: the first such trouble is what it ended by."""
        content = {"class": failure_class, "reason": reason, "acted": self.has_acted, **more}
        if self.failed is None:
            self.failed = content
        return [("turn_failed", content)]


def write(folder: Path, state: State, position: int, rest: bytes) -> None:
    """Make a state durable, with the offset up to which it knows the journal. Blocks."""
    state.rest = base64.b64encode(rest).decode()
    content = {"v": VERSION, "position": position, "state": asdict(state)}
    state.rest = ""
    path = folder / "fold.json"
    write_private(folder / "fold.json.new", json.dumps(content).encode(), becomes=path)


def read(folder: Path, out_bytes: int) -> tuple[State, int, bytes]:
    """The state to go on from: the one written down, or a new one. CaptureShort where neither is enough. Blocks."""
    try:
        content = json.loads((folder / "fold.json").read_bytes())
        state, position = _state(content["state"]), int(content["position"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        state, position = State(), 0
    if state.out_bytes < out_bytes:
        captured = state.out_bytes
        raise CaptureShort(
            t("{captured} of {wanted} bytes of stdout were captured", captured=captured, wanted=out_bytes)
        )
    rest, state.rest = base64.b64decode(state.rest), ""
    return state, position, rest


def _state(content: dict[str, Any]) -> State:
    turn, captured = content["turn"], content["captured"]
    content["turn"] = Turn(**turn) if turn else None
    content["captured"] = Captured(**captured) if captured else None
    return State(**content)
