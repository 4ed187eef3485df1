"""What a YAML scalar means where the schema wants a text, a number or a boolean; the traps of YAML 1.1 explained.

`no` is a text here, `012` is refused as a number: nothing depends on which YAML version a reader has in mind.
"""

import difflib
import re
from typing import Any, Final

from graphd.base.text import Text, t
from graphd.workflows import schema

_NUMBERS: Final = (schema.Int, schema.Number)
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

    def __init__(self, code: str, message: Text, hint: Text) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def read_scalar(kind: schema.Kind, text: str, is_plain: bool) -> Any:
    """The value of a scalar; `ScalarMisread` says why it is none of this kind."""
    if isinstance(kind, schema.Text):
        return _text(kind, text, is_plain)
    if is_plain and text in _NULL:
        raise ScalarMisread(
            "type", t("nothing stands here, not {meaning}", meaning=kind.meaning), t("write a value, or remove the key")
        )
    if isinstance(kind, schema.Bool):
        return _bool(text, is_plain)
    if isinstance(kind, _NUMBERS):
        return _within(kind, _number(kind, text, is_plain))
    return _any(text, is_plain)


def _text(kind: schema.Text, text: str, is_plain: bool) -> str:
    if is_plain:
        _refuse_other_types(kind, text)
    if kind.choices and text not in kind.choices:
        close = difflib.get_close_matches(text, kind.choices, 1)
        listed = t("one of {choices}", choices=", ".join(kind.choices))
        hint = t("did you mean {name}? {listed}", name=close[0], listed=listed) if close else listed
        raise ScalarMisread("value", t("{text} is none of its values", text=_shown(text)), hint)
    if kind.pattern and not re.fullmatch(kind.pattern, text):
        raise ScalarMisread(
            "value",
            t("{text} is not {meaning}", text=_shown(text), meaning=kind.meaning),
            t("it has to match {pattern}", pattern=kind.pattern),
        )
    return text


def _refuse_other_types(kind: schema.Text, text: str) -> None:
    if text in _NULL:
        raise ScalarMisread(
            "type",
            t("nothing stands here, not {meaning}", meaning=kind.meaning),
            t('write a text, or "" for an empty one'),
        )
    if text.lower() in _TRUTH:
        raise ScalarMisread(
            "type",
            t("{text} is a boolean, not {meaning}", text=text, meaning=kind.meaning),
            t('put it in quotes: "{text}"', text=text),
        )
    if _LOOKS_NUMERIC.match(text) or _BASED.match(text):
        raise ScalarMisread(
            "type",
            t("{text} is a number, not {meaning}", text=_shown(text), meaning=kind.meaning),
            t('put it in quotes: "{text}"', text=text[:40]),
        )


def _bool(text: str, is_plain: bool) -> bool:
    if is_plain and text in _TRUTH:
        return _TRUTH[text]
    meant = _LIKE_TRUTH.get(text.lower())
    if meant is None:
        raise ScalarMisread("type", t("{text} is not true or false", text=_shown(text)), t("write true or false"))
    if not is_plain:
        raise ScalarMisread(
            "type", t('"{text}" in quotes is a text, not true or false', text=text), t("write {meant}", meant=meant)
        )
    hint = t("write {meant}", meant=meant)
    if text.lower() in _TRUTH:
        raise ScalarMisread("type", t("{text} is written in lower case here", text=text), hint)
    raise ScalarMisread("type", t("{text} depends on the version of YAML", text=text), hint)


def _number(kind: schema.Int | schema.Number, text: str, is_plain: bool) -> int | float:
    if _INT.match(text):
        value: int | float = int(text)
    elif isinstance(kind, schema.Number) and _NUMBER.match(text):
        value = float(text)
    else:
        raise ScalarMisread(
            "type", t("{text} is not {meaning}", text=_shown(text), meaning=kind.meaning), _number_hint(text)
        )
    if not is_plain:
        raise ScalarMisread(
            "type",
            t('"{text}" in quotes is a text, not {meaning}', text=text, meaning=kind.meaning),
            t("write {text}", text=text),
        )
    return value


def _number_hint(text: str) -> Text:
    if _LEADING_ZERO.match(text):
        plain = int(text[:20])
        if set(text) & set("89"):
            return t("write it without leading zeros: {plain}", plain=plain)
        octal = int(text, 8)
        return t("write it without leading zeros: {plain} (YAML 1.1 reads {octal})", plain=plain, octal=octal)
    if _SEXAGESIMAL.match(text):
        total = 0
        for part in text.lstrip("+-")[:20].split(":"):
            total = total * 60 + int(part or 0)
        return t("YAML 1.1 reads base 60 here, {total}; write one number", total=total)
    if _BASED.match(text):
        return t("write it in decimal")
    if _GROUPED.match(text):
        return t("write it without separators: {number}", number=re.sub("[_,]", "", text)[:20])
    if _NUMBER.match(text):
        return t("write a whole number: {number}", number=round(float(text)))
    return t("write digits alone, without a unit")


def _within(kind: schema.Int | schema.Number, value: int | float) -> int | float:
    if (kind.low is None or value >= kind.low) and (kind.high is None or value <= kind.high):
        return value
    if kind.low is not None and kind.high is not None:
        allowed = t("from {low} to {high}", low=kind.low, high=kind.high)
    else:
        allowed = t("at least {low}", low=kind.low) if kind.low is not None else t("at most {high}", high=kind.high)
    raise ScalarMisread(
        "range",
        t("{value} is out of range", value=value),
        t("write {meaning}, {allowed}", meaning=kind.meaning, allowed=allowed),
    )


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
        hint = t('put it in quotes for a text: "{text}"', text=text[:40])
        raise ScalarMisread("type", t("what {text} is depends on the version of YAML", text=_shown(text)), hint)
    return text


def _shown(text: str) -> str:
    return text if len(text) <= 40 and text.isprintable() and text else repr(text[:40])
