"""What a YAML scalar means where the schema wants a text, a number or a boolean; the traps of YAML 1.1 explained.

`no` is a text here, `012` is refused as a number: nothing depends on which YAML version a reader has in mind.
"""

import difflib
import re
from typing import Any, Final

from graphd.workflows import schema

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTH: Final = {"true": True, "false": False}
_LIKE_TRUTH: Final = {
    **dict.fromkeys(("true", "yes", "on", "y"), "true"),
    **dict.fromkeys(("false", "no", "off", "n"), "false"),
}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,2})?\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")
_BASED = re.compile(r"[-+]?0[xob][0-9A-Fa-f_]+\Z")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+\Z")
_GROUPED = re.compile(r"[-+]?[0-9][0-9_,]*[_,][0-9_,]*\Z")
_LOOKS_NUMERIC = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\Z|[-+]?\.(?:inf|nan)\Z", re.IGNORECASE
)


class ScalarMisread(ValueError):
    """The text is not what the schema wants here."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def read_scalar(kind: schema.Kind, text: str, is_plain: bool) -> Any:
    """The value of a scalar; `ScalarMisread` says why it is none of this kind."""
    if isinstance(kind, schema.Text):
        return _text(kind, text, is_plain)
    if is_plain and text in _NULL:
        raise ScalarMisread("type", f"nothing stands here, not {kind.meaning}", "write a value, or remove the key")
    if isinstance(kind, schema.Bool):
        return _bool(text, is_plain)
    if isinstance(kind, schema.Int | schema.Number):
        return _within(kind, _number(kind, text, is_plain))
    return _any(text, is_plain)


def _text(kind: schema.Text, text: str, is_plain: bool) -> str:
    if is_plain:
        _refuse_other_types(kind, text)
    if kind.choices and text not in kind.choices:
        close = difflib.get_close_matches(text, kind.choices, 1)
        listed = f"one of {', '.join(kind.choices)}"
        hint = f"did you mean {close[0]}? {listed}" if close else listed
        raise ScalarMisread("value", f"{_shown(text)} is none of its values", hint)
    if kind.pattern and not re.fullmatch(kind.pattern, text):
        raise ScalarMisread("value", f"{_shown(text)} is not {kind.meaning}", f"it has to match {kind.pattern}")
    return text


def _refuse_other_types(kind: schema.Text, text: str) -> None:
    if text in _NULL:
        raise ScalarMisread("type", f"nothing stands here, not {kind.meaning}", 'write a text, or "" for an empty one')
    if text.lower() in _TRUTH:
        raise ScalarMisread("type", f"{text} is a boolean, not {kind.meaning}", f'put it in quotes: "{text}"')
    if _LOOKS_NUMERIC.match(text) or _BASED.match(text):
        raise ScalarMisread(
            "type", f"{_shown(text)} is a number, not {kind.meaning}", f'put it in quotes: "{text[:40]}"'
        )


def _bool(text: str, is_plain: bool) -> bool:
    if is_plain and text in _TRUTH:
        return _TRUTH[text]
    meant = _LIKE_TRUTH.get(text.lower())
    if meant is None:
        raise ScalarMisread("type", f"{_shown(text)} is not true or false", "write true or false")
    if not is_plain:
        raise ScalarMisread("type", f'"{text}" in quotes is a text, not true or false', f"write {meant}")
    why = "depends on the version of YAML" if text.lower() not in _TRUTH else "is written in lower case here"
    raise ScalarMisread("type", f"{text} {why}", f"write {meant}")


def _number(kind: schema.Int | schema.Number, text: str, is_plain: bool) -> int | float:
    if _INT.match(text):
        value: int | float = int(text)
    elif isinstance(kind, schema.Number) and _NUMBER.match(text):
        value = float(text)
    else:
        raise ScalarMisread("type", f"{_shown(text)} is not {kind.meaning}", _number_hint(text))
    if not is_plain:
        raise ScalarMisread("type", f'"{text}" in quotes is a text, not {kind.meaning}', f"write {text}")
    return value


def _number_hint(text: str) -> str:
    if _LEADING_ZERO.match(text):
        octal = int(text, 8) if not set(text) & set("89") else None
        second = f" (YAML 1.1 reads {octal})" if octal is not None else ""
        return f"write it without leading zeros: {int(text[:20])}{second}"
    if _SEXAGESIMAL.match(text):
        total = 0
        for part in text.lstrip("+-")[:20].split(":"):
            total = total * 60 + int(part or 0)
        return f"YAML 1.1 reads base 60 here, {total}; write one number"
    if _BASED.match(text):
        return "write it in decimal"
    if _GROUPED.match(text):
        return f"write it without separators: {re.sub('[_,]', '', text)[:20]}"
    if _NUMBER.match(text):
        return f"write a whole number: {round(float(text))}"
    return "write digits alone, without a unit"


def _within(kind: schema.Int | schema.Number, value: int | float) -> int | float:
    if (kind.low is None or value >= kind.low) and (kind.high is None or value <= kind.high):
        return value
    if kind.low is not None and kind.high is not None:
        allowed = f"from {kind.low} to {kind.high}"
    else:
        allowed = f"at least {kind.low}" if kind.low is not None else f"at most {kind.high}"
    raise ScalarMisread("range", f"{value} is out of range", f"write {kind.meaning}, {allowed}")


def _any(text: str, is_plain: bool) -> str | int | float | bool:
    if not is_plain:
        return text
    if text in _TRUTH:
        return _TRUTH[text]
    if _INT.match(text):
        return int(text)
    if _NUMBER.match(text):
        return float(text)
    if text.lower() in _LIKE_TRUTH or any(p.match(text) for p in (_LEADING_ZERO, _SEXAGESIMAL, _BASED, _LOOKS_NUMERIC)):
        hint = f'put it in quotes for a text: "{text[:40]}"'
        raise ScalarMisread("type", f"what {_shown(text)} is depends on the version of YAML", hint)
    return text


def _shown(text: str) -> str:
    return text if len(text) <= 40 and text.isprintable() and text else repr(text[:40])
