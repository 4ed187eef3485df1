"""What a scenario over bare ACP comes down to, in a few stable words: the cells of docs/agents.md."""

from typing import Any, Final

Seen = dict[str, Any]

CELLS: Final[dict[str, str]] = {
    "allow": "write and command, allowed once",
    "reject": "write, rejected once",
    "cancel_wait": "cancel while the model is silent",
    "cancel_tool": "cancel while a command runs",
    "cancel_ask": "cancel while it asks",
    "killed_resume": "SIGKILL in mid-turn, session/resume, go on",
    "killed_load": "SIGKILL in mid-turn, session/load, go on",
    "unknown_session": "restore of an unknown session",
    "error_500": "500 twice, then well",
    "error_429": "429 once (Retry-After 2), then well",
    "dropped": "the stream breaks once, then well",
    "limit_429": "429 for ever",
    "limit_500": "500 for ever",
    "refused_401": "401 for ever",
    "refused_400": "400 for ever",
    "mcp_result": "our tool over stdio MCP",
}
ANSWER: Final = "a text of several words"


def _stop(seen: Seen) -> str:
    stop = seen.get("stop")
    return f"error {seen['error']['code']}" if stop == "error" else str(stop)


def _next(seen: Seen) -> str:
    well = seen.get("next", {})
    return "next turn well" if well.get("stop") == "end_turn" and well.get("has_said_it") else f"next: {_stop(well)}"


def _allow(seen: Seen) -> str:
    done = "both done" if seen["a"] and seen["b"] else f"a {seen['a']}, b {seen['b']}"
    asks = f"asks {len(seen['options'])}×" if seen["options"] else "never asks"
    files = ", writes through us" if "fs/write_text_file" in seen["served"] else ""
    return f"{_stop(seen)}, {done}, {asks}{files}"


def _reject(seen: Seen) -> str:
    if not seen["asked"]:
        return f"{_stop(seen)}, never asks"
    goes = "the model goes on" if seen["goes_on"] else "the turn ends"
    return f"{_stop(seen)}, {goes}{', YET WRITTEN' if seen['a'] else ''}"


def _cancel_tool(seen: Seen) -> str:
    return f"{_stop(seen)}, the command {'lives on' if seen['tool_lives'] else 'is dead'}, {_next(seen)}"


def _cancel(seen: Seen) -> str:
    return f"{_stop(seen)}{', YET WRITTEN' if seen.get('a') else ''}, {_next(seen)}"


def _killed(seen: Seen) -> str:
    well = seen["a"] and seen["b"] and "finished" in seen["text"]
    once = "nothing repeated" if seen["tries"][0] == 1 else f"step 0 asked {seen['tries'][0]}×"
    replayed = [kind for kind in seen["replayed"] if kind.endswith("_chunk") or kind.startswith("tool_call")]
    kinds = dict.fromkeys(kind.removesuffix("_update").removesuffix("_chunk") for kind in replayed)
    played = f"replays {', '.join(kinds)}" if kinds else "silent"
    return f"{_stop(seen)}, {'goes on' if well else 'does not go on'}, {once}, {played}"


def _unknown(seen: Seen) -> str:
    def code(text: str) -> str:
        return text if text == "accepted" else text.partition('"code": ')[2].partition(",")[0] or "silent"

    return f"resume {code(seen['resume'])}, load {code(seen['load'])}"


def _recovers(seen: Seen) -> str:
    if seen["stop"] != "end_turn":
        return f"{_stop(seen)}, {'at once' if seen['tries'] == 1 else 'after retries'}"
    if ANSWER not in seen["text"]:
        return "end_turn WITHOUT the answer"
    said = seen["text"].partition(ANSWER)[0].partition("Retrying")[0]
    return "well, said in part twice" if said.rstrip().endswith(("a", "text", "of", "several")) else "well"


def _fails(seen: Seen) -> str:
    tries = "at once" if seen["tries"] == 1 else "after retries"
    if seen["stop"] == "silent":
        return "silent for 60 s, retrying"
    told = ", told as text" if seen["stop"] == "end_turn" and seen["text"] else ""
    return f"{_stop(seen)}, {tries}{told}"


def _mcp(seen: Seen) -> str:
    if not seen["taken"]:
        return f"{_stop(seen)}, not called"
    return f"called as `{', '.join(seen['tool_names'])}`, {'asks first' if seen['asked'] else 'unasked'}"


_MADE: Final = {
    "allow": _allow, "reject": _reject, "cancel_wait": _cancel, "cancel_tool": _cancel_tool, "cancel_ask": _cancel,
    "killed_resume": _killed, "killed_load": _killed, "unknown_session": _unknown, "error_500": _recovers,
    "error_429": _recovers, "dropped": _recovers, "limit_429": _fails, "limit_500": _fails, "refused_401": _fails,
    "refused_400": _fails, "mcp_result": _mcp,
}  # fmt: skip


def cell(scenario: str, seen: Seen | None) -> str:
    """The few words for one scenario's result."""
    if seen is None:
        return "–"
    if str(seen.get("why", "")).startswith("a permission:"):
        return "never asks"
    if seen.get("stop") in ("not offered", "no answer", "missed", "refused"):
        return str(seen["stop"]) if seen["stop"] != "missed" else "never asks"
    return _MADE[scenario](seen)
