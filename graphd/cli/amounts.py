"""Amounts as people type them: `200k` tokens, `2.50usd`, `30m` of wall time, several with commas. Pure."""

import re
from typing import Any, Final

from graphd.cli.exits import CommandRefused
from graphd.cli.words import seconds_of

HINT: Final = "one of 200k, 1.5M (tokens), 2.50usd, 30m (wall time), or several with commas"
_TOKENS: Final = re.compile(r"(\d+(?:\.\d+)?)(k|M)?(?: ?tokens?)?")
_DOLLARS: Final = re.compile(r"\$ ?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) ?usd", re.IGNORECASE)
_FACTORS: Final = {None: 1, "k": 1000, "M": 1_000_000}


def budget_of(text: str) -> dict[str, Any]:
    """The wire's budget. `m` are minutes, `M` are a million tokens. Raises a usage refusal."""
    budget: dict[str, Any] = {}
    for part in text.split(","):
        unit, amount = _amount(part.strip())
        if unit in budget:
            raise CommandRefused("usage", f"{text!r} names {unit} twice", HINT)
        budget[unit] = amount
    return budget


def _amount(part: str) -> tuple[str, float]:
    dollars = _DOLLARS.fullmatch(part)
    if dollars:
        return "costUsd", float(dollars[1] or dollars[2])
    tokens = _TOKENS.fullmatch(part)
    if tokens:
        return "tokens", round(float(tokens[1]) * _FACTORS[tokens[2]])
    try:
        return "wallSeconds", seconds_of(part)
    except ValueError:
        raise CommandRefused("usage", f"{part!r} is no amount", HINT) from None


def milliseconds_of(text: str) -> int:
    """A duration in ms. Raises a usage refusal."""
    try:
        return round(seconds_of(text) * 1000)
    except ValueError as trouble:
        raise CommandRefused("usage", str(trouble), "30s, 20m, 2h") from None
