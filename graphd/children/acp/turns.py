"""How a turn ends: the table of execution.md, row by row. Nothing that is not a result here becomes one elsewhere.

| the prompt's response | means |
| --- | --- |
| after a cancel of ours, whatever it says | the stop that asked |
| `end_turn`, or a reason that nobody knows | a candidate; after a reject, or without its result: one nudge turn |
| `cancelled` that is not ours | a person is asked; after our reject, where the profile says so: a nudge turn |
| `max_tokens`, `max_turn_requests` | one continue turn, then `limit` |
| `refusal` | `refused` |
| an error | provider weather, `limit` for a prompt too long, else `exec_failed` |

A candidate is what was handed in by `submit_result` in this round, else the last message.
"""

from dataclasses import asdict
from typing import Any, Final

from graphd.base.text import t
from graphd.children.acp import lines, weather
from graphd.children.acp.asking import say, withdraw_all
from graphd.children.acp.capture import capture, handed_in, is_handed_in, last_message, output_of
from graphd.children.acp.state import Captured, Made, State, Turn
from graphd.children.acp.updates import usage
from graphd.children.acp.weather import Trouble
from graphd.children.acp.wire import mapping, words
from graphd.children.driver import Order

KNOWN_STOPS: Final = frozenset({"end_turn", "cancelled", "max_tokens", "max_turn_requests", "refusal"})


def began(state: State, seq: int) -> None:
    """A prompt of ours is in the journal. A turn that it overtakes decides nothing any more."""
    if state.turn is not None:
        state.superseded.append(str(state.turn.seq))
    state.granted = []  # what was allowed in the turn before is over with it
    kind, state.next_turn = state.next_turn, "round"
    if kind == "round":
        state.was_nudged = state.was_continued = False
        state.submitted = None
    state.turn, state.captured, state.failed, state.has_prompted = Turn(seq, kind), None, None, True


def ended(state: State, order: Order, response: dict[str, Any]) -> list[Made]:
    """The response to the running turn's prompt."""
    turn, state.turn = state.turn, None
    if turn is None:
        return []
    result = mapping(response.get("result"))
    had_open_ask = bool(state.asks)
    if is_handed_in(order.folder, turn.seq):
        state.submitted = turn.seq
    made = [*withdraw_all(state), *_count(state, order, result)]
    if turn.was_cancelled:
        return [*made, ("item", {"kind": "turn_end", "text": "cancelled"})]
    if response.get("error") is not None:
        return made + failed(state, weather.of_error(response["error"], order.quirks.weather))
    return made + _by_stop_reason(state, order, turn, result, had_open_ask=had_open_ask)


def failed(state: State, trouble: Trouble) -> list[Made]:
    """The agent, its model or the way to it did not work."""
    match trouble.kind:
        case "weather":
            found = {} if trouble.retry_after_s is None else {"retryAfterS": trouble.retry_after_s}
            reason = t("the provider is over its limits: {said}", said=trouble.words)
            return state.fail("exec_failed", reason, weather=found)
        case "too_long":
            return state.fail("limit", t("the prompt is too long for the model: {said}", said=trouble.words))
        case "login":
            return state.fail("exec_failed", t("the agent wants to be logged in: {said}", said=trouble.words))
    return state.fail("exec_failed", t("the agent answered with an error: {said}", said=trouble.words))


def _by_stop_reason(
    state: State, order: Order, turn: Turn, result: dict[str, Any], *, had_open_ask: bool
) -> list[Made]:
    reason = words(result.get("stopReason")) or ""
    match reason:
        case "refusal":
            words_of_it = last_message(turn)[:500]
            why = t("the model refused: {said}", said=words_of_it) if words_of_it else t("the model refused")
            return state.fail("refused", why)
        case "max_tokens" | "max_turn_requests":
            if state.was_continued:
                return state.fail("limit", t("it came to its limit ({limit}) again", limit=reason))
            state.was_continued, state.next_turn = True, "continue"
            return [say(lines.prompt(state.session or "", lines.CONTINUE))]
        case "cancelled" if not (turn.was_rejected and order.quirks.reject_cancels):
            return [("turn_cancelled", {})]
    made = _odd(state, reason)
    said = last_message(turn)
    if turn.has_failed_inside:
        return made + failed(state, weather.of_error(said, order.quirks.weather))
    trouble = weather.of_text(said, order.quirks.weather)
    if trouble is not None and state.submitted is None and not turn.has_submitted:
        return made + failed(state, trouble)
    is_cut_short = turn.was_rejected or had_open_ask
    return made + _result(state, order, turn, is_cut_short=is_cut_short)


def _odd(state: State, reason: str) -> list[Made]:
    """A stop reason that nobody knows counts as `end_turn`, and is said once."""
    if reason in KNOWN_STOPS or reason in state.odd_stops:
        return []
    state.odd_stops.append(reason)
    return [
        ("item", {"kind": "notice", "text": t("it stopped for {stop}, taken as end_turn", stop=repr(reason)[:100])})
    ]


def _result(state: State, order: Order, turn: Turn, *, is_cut_short: bool) -> list[Made]:
    if state.submitted is not None:
        return _candidate(state, handed_in(order.folder, state.submitted, state.round + 1), has_submitted=True)
    if is_cut_short and not state.was_nudged and not turn.has_submitted:
        return _nudge(state, lines.NUDGE_REJECT)
    captured = capture(turn, state.round + 1, is_contracted=order.output_schema is not None)
    if captured is not None:
        return _candidate(state, captured, has_submitted=turn.has_submitted)
    if state.was_nudged:
        return state.fail("verdict_fail", t("it ended without its result, though it was asked for it again"))
    is_contract = order.output_schema is not None and bool(last_message(turn))
    return _nudge(state, lines.NUDGE_CONTRACT + (order.output_schema or "") if is_contract else lines.NUDGE_EMPTY)


def _candidate(state: State, captured: Captured, *, has_submitted: bool) -> list[Made]:
    state.round, state.captured = captured.round, captured
    return [("candidate", {"output": asdict(output_of(captured)), "round": captured.round, "submitted": has_submitted})]


def _nudge(state: State, text: str) -> list[Made]:
    state.was_nudged, state.next_turn = True, "nudge"
    return [say(lines.prompt(state.session or "", text))]


def _count(state: State, order: Order, result: dict[str, Any]) -> list[Made]:
    """The turn's tokens; where an agent leaves the sum out, that of its parts."""
    found = mapping(result.get("usage"))
    names = ("totalTokens",) if _number(found, "totalTokens") else ("inputTokens", "outputTokens")
    tokens = sum(_number(found, name) for name in names)
    state.tokens = max(state.tokens, tokens) if order.quirks.are_totals_of_session else state.tokens + tokens
    return usage(state)


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
