"""Provider weather and other troubles, recognised in errors and in what agents say instead of an error.

Weather is a rate limit or an overload: nobody's fault, over by itself. Source: execution.md, Provider weather;
research agents.md §3, §7.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

TEXT_LIMIT: Final = 600
"""A whole message longer than this is an answer that speaks of limits, not an error."""
RETRY_LIMIT_S: Final = 24 * 3600.0
_WEATHER: Final = (
    r"\b429\b", r"\b529\b", r"\b503\b", r"rate.?limit", r"too many requests", r"overloaded", r"quota exceeded",
    r"insufficient_quota", r"resource.?exhausted", r"server is busy", r"temporarily unavailable", r"high demand",
)  # fmt: skip
_LIKE_ERROR: Final = re.compile(
    r"\s*(?:\[?api error|error\b|http |status |\{\s*\"(?:error|type)\"|\d{3}\b)", re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"prompt is too long|context.{0,20}(?:length|window).{0,40}(?:exceed|too|limit)|context_length_exceeded|"
    r"maximum context|input is too long|too many tokens in",
    re.IGNORECASE,
)
_SECONDS: Final = (("milli", 0.001), ("ms", 0.001), ("m", 60.0), ("s", 1.0), ("h", 3600.0), ("d", 86_400.0))
"""A unit by its beginning, the first that fits."""
_TIME: Final = r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|min(?:ute)?s?|m|sec(?:ond)?s?|s|hours?|h|days?|d)?"
_RETRY: Final = (
    re.compile(rf"retry[-_ ]?after[\"']?\s*[:=]?\s*[\"']?{_TIME}(?!\w|\.\d)", re.IGNORECASE),
    re.compile(rf"retry[-_ ]?delay[\"']?\s*[:=]\s*[\"']?{_TIME}(?!\w|\.\d)", re.IGNORECASE),
    re.compile(rf"(?:try again|retry|retrying) in {_TIME}", re.IGNORECASE),
)
_LOGIN: Final = re.compile(
    r"\b401\b|unauthori[sz]ed|authentication required|invalid api key|not logged in", re.IGNORECASE
)
_NEEDS_LOGIN: Final = -32000


@dataclass(slots=True, frozen=True)
class Trouble:
    """What an error means. `retry_after_s` only with weather, where the provider said it."""

    kind: Literal["weather", "too_long", "login", "other"]
    words: str
    retry_after_s: float | None = None


def of_error(error: Any, more: tuple[str, ...] = ()) -> Trouble:
    """What a JSON-RPC error means; `more` are the profile's own patterns of weather."""
    shown = _shown(error)
    whole = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)[:20_000]
    if _TOO_LONG.search(whole):
        return Trouble("too_long", shown)
    if _pattern(more).search(whole):
        return Trouble("weather", shown, _retry_after_s(whole))
    code = error.get("code") if isinstance(error, dict) else None
    return Trouble("login" if code == _NEEDS_LOGIN or _LOGIN.search(whole) else "other", shown)


def of_text(text: str, more: tuple[str, ...] = ()) -> Trouble | None:
    """The trouble that a turn's whole last message is; None where it is an answer."""
    if len(text) > TEXT_LIMIT:
        return None
    is_theirs = any(re.search(pattern, text, re.IGNORECASE) for pattern in more)
    if is_theirs or (_LIKE_ERROR.match(text) and _pattern(()).search(text)):
        return Trouble("weather", text.strip(), _retry_after_s(text))
    if _LIKE_ERROR.match(text) and _TOO_LONG.search(text):
        return Trouble("too_long", text.strip())
    return None


def _shown(error: Any) -> str:
    """An error in the words of the agent, with the detail that some put beside a message that says nothing."""
    if not isinstance(error, dict):
        return str(error)[:TEXT_LIMIT]
    said = str(error.get("message") or "").strip()
    detail = error.get("data")
    if isinstance(detail, dict):
        detail = next((detail[name] for name in ("details", "message", "error", "detail") if detail.get(name)), detail)
    if detail:
        shown = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False, default=str)
        said = f"{said}: {shown}" if said else shown
    return (said or f"error {error.get('code')}")[:TEXT_LIMIT]


def _retry_after_s(text: str) -> float | None:
    for pattern in _RETRY:
        if found := pattern.search(text):
            unit = (found[2] or "s").lower()
            factor = next(seconds for beginning, seconds in _SECONDS if unit.startswith(beginning))
            return min(float(found[1]) * factor, RETRY_LIMIT_S)
    return None


@cache
def _pattern(more: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join((*_WEATHER, *more)), re.IGNORECASE)
