"""What the agent tells while it works: text, thoughts, tool calls, plans, usage; and kinds that nobody knows yet.

Nothing is dropped: an unknown update is an item too. What a restored session replays is no part of the live fold: it
is let go until our first prompt there. Source: execution.md, Drivers, Recovery; research agents.md §3.
"""

import math
import re
from functools import cache
from typing import Any, Final

from graphd.children.acp.permission import tool_facts
from graphd.children.acp.state import Made, State
from graphd.children.acp.wire import bounded, mapping, words
from graphd.children.driver import Order

HARMLESS_KINDS: Final = frozenset({"read", "search", "think", "fetch"})
REPLAYED: Final = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
SUBMIT: Final = "submit_result"


def told(state: State, order: Order, params: dict[str, Any]) -> list[Made]:
    """The items and totals that one `session/update` makes."""
    update = mapping(params.get("update"))
    kind = words(update.get("sessionUpdate")) or "unknown"
    if state.turn is not None and order.quirks.failure_mark and _is_marked(update, order.quirks.failure_mark):
        state.turn.has_failed_inside = True
    if kind in REPLAYED and order.resume_session is not None and not state.has_prompted:
        return []
    is_ours = state.session is None or params.get("sessionId") in (None, state.session)
    if kind == "agent_message_chunk":
        return _message(state, order, update, is_ours=is_ours)
    if kind == "agent_thought_chunk":
        text = _text(update)
        return [("item", {"kind": "thought", "text": text})] if text else []
    if kind == "user_message_chunk":
        return []  # our own words
    if kind in ("tool_call", "tool_call_update"):
        return _tool(state, update, is_new=kind == "tool_call")
    if kind == "usage_update":
        return _cost(state, update)
    return [("item", {"kind": kind, "update": bounded(update)})]


def usage(state: State) -> list[Made]:
    """The totals of this attempt so far."""
    return [("usage", {"tokens": state.tokens, "costUsd": state.cost_usd, "toolCalls": state.tool_calls})]


def _is_marked(update: dict[str, Any], mark: tuple[str, ...]) -> bool:
    found: Any = update.get("_meta")
    for name in mark[:-1]:
        found = mapping(found).get(name)
    return bool(found == mark[-1])


def _message(state: State, order: Order, update: dict[str, Any], *, is_ours: bool) -> list[Made]:
    text = _text(update)
    if not text:
        return [("item", {"kind": "content", "update": bounded(update)})]
    if any(pattern.fullmatch(text.strip()) for pattern in _patterns(order.quirks.own_texts)):
        begin_message(state)  # what the model said before it and what it says next are two messages
        return [("item", {"kind": "notice", "text": bounded(text)})]
    turn = state.turn
    if turn is not None and is_ours:
        message_id = words(update.get("messageId"))
        if message_id and turn.message_id and message_id != turn.message_id:
            begin_message(state)
        turn.message_id = message_id or turn.message_id
        room = max(0, order.output_limit_bytes - turn.size)
        turn.parts.append(text[:room])
        turn.size += len(text)
    return [("item", {"kind": "text", "text": bounded(text)})]


def begin_message(state: State) -> None:
    """What comes next is another message; the last one with words in it is kept."""
    turn = state.turn
    if turn is not None:
        if any(part.strip() for part in turn.parts):
            turn.before = turn.parts
        turn.parts, turn.size, turn.message_id = [], 0, None


def _tool(state: State, update: dict[str, Any], *, is_new: bool) -> list[Made]:
    call_id = words(update.get("toolCallId")) or "?"
    call = state.tool(call_id)
    call.update(tool_facts(update))
    if not call.get("isCounted"):
        call["isCounted"] = True
        state.tool_calls += 1
    if call.get("kind") not in HARMLESS_KINDS and "own" not in call:
        state.has_acted = True
    turn = state.turn
    if turn is not None:
        if is_new:
            begin_message(state)
        if call.get("own") == SUBMIT and call.get("status") == "completed":
            turn.has_submitted = True
    shown = {name: call[name] for name in ("title", "kind", "status", "paths", "command") if name in call}
    return [("item", {"kind": "tool", "tool": {"id": call_id, **shown}, "calls": state.tool_calls})]


def _cost(state: State, update: dict[str, Any]) -> list[Made]:
    cost = mapping(update.get("cost"))
    amount = cost.get("amount")
    is_known = isinstance(amount, int | float) and not isinstance(amount, bool) and math.isfinite(amount)
    if is_known and cost.get("currency", "USD") == "USD":
        state.cost_usd = max(0.0, float(amount or 0))
    used = {name: update[name] for name in ("used", "size") if isinstance(update.get(name), int)}
    return [("item", {"kind": "context", **used}), *(usage(state) if is_known else [])]


def _text(update: dict[str, Any]) -> str:
    """The text of a content block; a list of blocks, as some send, counts as their sum."""
    content = update.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block if isinstance(block, str) else mapping(block).get("text") for block in blocks]
    return "".join(text for text in texts if isinstance(text, str))


@cache
def _patterns(sources: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(source, re.DOTALL) for source in sources)
