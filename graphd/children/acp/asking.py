"""What the agent asks for: every request gets an answer, whatever it is.

A permission becomes an ask, a file request is served, anything else is refused as unknown. Source: execution.md,
Drivers, People; research agents.md §9.
"""

from typing import Any

from graphd.children.acp import files, lines, terminals
from graphd.children.acp.permission import ask, tool_facts
from graphd.children.acp.state import Made, State
from graphd.children.acp.updates import HARMLESS_KINDS, told
from graphd.children.acp.wire import bounded, key_of, mapping, words
from graphd.children.driver import Order
from graphd.core.talk import Line

KEYS_LIMIT = 4096
GRANTED_LIMIT = 32


def say(line: Line) -> Made:
    """A line of the driver's own."""
    return ("say", {"message": line.message, "isRequest": line.is_request})


def requested(state: State, message: dict[str, Any]) -> list[Made]:
    """A request of the agent."""
    key, method, params = key_of(message["id"]), message["method"], mapping(message.get("params"))
    if method == "session/request_permission":
        return _permission(state, key, params)
    if method in files.METHODS:
        state.has_acted = state.has_acted or method == "fs/write_text_file"
        return [("serve", {"id": key, "method": method, "params": params})]
    if method in terminals.METHODS and state.offers_terminals:
        return terminals.requested(state, key, method, params)
    unknown = {"kind": "unknown", "update": {"method": bounded(str(method), 200), "params": bounded(params)}}
    return [("item", unknown), say(lines.refusal(key, lines.METHOD_NOT_FOUND, "Method not found"))]


def notified(state: State, order: Order, message: dict[str, Any]) -> list[Made]:
    """A notification of the agent; one that nobody knows is kept."""
    method, params = message["method"], mapping(message.get("params"))
    if method == "session/update":
        return told(state, order, params)
    if method == "$/cancel_request":
        return _taken_back(state, key_of(params.get("requestId", params.get("id"))))
    return [("item", {"kind": "unknown", "update": {"method": bounded(str(method), 200), "params": bounded(params)}})]


def answered(state: State, reply: dict[str, Any]) -> None:
    """We answered a request of the agent: the line is in the journal."""
    if "error" in reply:
        terminals.refused(state, key_of(reply.get("id")))
    key = _open_key(state, key_of(reply.get("id")))
    if key is None:
        return
    ask = state.asks.pop(key)
    outcome = mapping(mapping(reply.get("result")).get("outcome"))
    chosen = str(mapping(ask.get("options")).get(str(outcome.get("optionId"))))
    if (chosen.startswith("reject") or "terminal" in ask) and state.turn is not None:
        state.turn.was_rejected = True
    if chosen.startswith("allow") and "command" in ask:
        state.granted = [*state.granted, ask["command"]][-GRANTED_LIMIT:]


def withdraw_all(state: State) -> list[Made]:
    """Its turn is over: what it still asks is moot, and is answered all the same."""
    made: list[Made] = []
    for key in list(state.asks):
        del state.asks[key]
        made += [("ask_gone", {"key": key}), say(lines.outcome(key, None))]
    return made


def _permission(state: State, key: str, params: dict[str, Any]) -> list[Made]:
    """An id that was used before gets a key of its own: the same JSON with blanks behind it."""
    if _open_key(state, key) is not None:
        return [("item", {"kind": "noise", "text": f"a second request {key}"})]  # the answer to the first serves both
    count = state.used_keys.get(key, 0)
    if len(state.used_keys) < KEYS_LIMIT or count:
        state.used_keys[key] = count + 1
    key += " " * count
    call = mapping(params.get("toolCall"))
    call_id = words(call.get("toolCallId"))
    known = state.tools.get(call_id, {}) if call_id else {}
    content = ask(key, params, known)
    if call_id:
        state.tool(call_id).update(tool_facts(call))
    if content["action"]["toolKind"] not in HARMLESS_KINDS:
        state.has_acted = True
    state.asks[key] = {"options": {option["id"]: option["kind"] for option in content["options"]}}
    if content["action"]["toolKind"] == "execute" and "command" in content["action"]:
        state.asks[key]["command"] = content["action"]["command"]
    return [("ask", content)]


def _taken_back(state: State, key: str) -> list[Made]:
    found = _open_key(state, key)
    if found is None:
        return []
    del state.asks[found]
    refusal = lines.refusal(found.removeprefix(lines.TERMINAL_ASK), lines.TAKEN_BACK, "Request cancelled")
    return [("ask_gone", {"key": found}), say(refusal)]


def _open_key(state: State, key: str) -> str | None:
    """The open ask with this id."""
    wanted = (key, lines.TERMINAL_ASK + key)
    return next((open_key for open_key in state.asks if open_key.rstrip() in wanted), None)
