"""Texts in the language of whoever reads them: English as made, Chinese by the catalogue.

The catalogue is loaded with the first Chinese reader. A text that has no entry stays English. Source: spec protocol.md,
Errors (`locale`); ADR 0006.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Final, Literal

from graphd.base.text import Text

Language = Literal["en", "zh"]
WORDS: Final = frozenset({"paused", "cancelled", "cleared", "set without starting", "the daemon was stopped"})
"""Reasons that stand where a person may give an own one."""
_NESTED: Final = frozenset({"reason", "why", "kind", "wanted", "trouble"})
_DEPTH_LIMIT: Final = 8


def negotiated(*wishes: str | None) -> Language:
    """The language of the first locale that is named (`zh`, `zh_CN.UTF-8`, `zh-Hans`); English for any other."""
    for wish in wishes:
        if wish and wish.strip():
            tag = wish.strip().partition(".")[0].partition("@")[0].replace("_", "-").lower()
            return "zh" if tag.split("-")[0] == "zh" else "en"
    return "en"


def translate(text: str, language: Language) -> str:
    """The text in this language, nested texts too. What is no `Text`, or not in the catalogue, stays as it is."""
    if language == "en" or not isinstance(text, Text):
        return text
    chinese = _catalogue().get(text.template)
    if chinese is None:
        return text
    if not text.values:
        return chinese
    return chinese.format_map({name: _value(name, value, language) for name, value in text.values.items()})


def _value(name: str, value: Any, language: Language) -> Any:
    """A value inside a text: texts are translated, and what was a reason before the log made plain English of it."""
    if isinstance(value, Text):
        return translate(value, language)
    return translate_stored(value, language) if name == "reason" and isinstance(value, str) else value


def localised(value: Any, language: Language) -> Any:
    """A JSON value with every `Text` in it translated; the value itself where the language is English."""
    if language == "en":
        return value
    if isinstance(value, Text):
        return translate(value, language)
    if isinstance(value, dict):
        return {key: localised(item, language) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [localised(item, language) for item in value]
    return value


def translate_stored(text: str, language: Language) -> str:
    """A reason as the log keeps it, matched back to its template. No template, no translation."""
    if language == "en":
        return text
    if isinstance(text, Text):
        return translate(text, language)
    found = _matched(text, 0)
    return text if found is None else found


def translate_word(text: str, language: Language) -> str:
    """The same where a person may have given the reason: only our own words are translated, never theirs."""
    return translate_stored(str(text), language) if text in WORDS else text


@cache
def _catalogue() -> dict[str, str]:
    from graphd.base.chinese import CATALOGUE  # with the first Chinese reader, not with the daemon

    return CATALOGUE


@cache
def _stored() -> "tuple[dict[str, str], list[tuple[list[str], list[str], str]]]":
    """The stored templates without values, and the others as (literal pieces, names between them, Chinese)."""
    from graphd.base.chinese import CATALOGUE, STORED

    plain: dict[str, str] = {}
    patterns: list[tuple[list[str], list[str], str]] = []
    for template in STORED:
        pieces, names = _split(template)
        if names:
            patterns.append((pieces, names, CATALOGUE[template]))
        else:
            plain[template] = CATALOGUE[template]
    patterns.sort(key=lambda pattern: (pattern[0][0] == "", -sum(map(len, pattern[0]))))  # the surest first
    return plain, patterns


def _split(template: str) -> tuple[list[str], list[str]]:
    from string import Formatter  # not on the way to the first hello

    pieces, names = [""], []
    for literal, name, _, _ in Formatter().parse(template):
        pieces[-1] += literal
        if name is not None:
            names.append(name)
            pieces.append("")
    return pieces, names


@lru_cache(maxsize=1024)
def _matched(text: str, depth: int) -> str | None:
    plain, patterns = _stored()
    if text in plain:
        return plain[text]
    if depth > _DEPTH_LIMIT:
        return None
    for pieces, names, chinese in patterns:
        values = _values(text, pieces)
        if values is None:
            continue
        shown = dict(_shown(names, values, depth))
        if pieces[0] or names[0] not in _NESTED or shown[names[0]] is not None:  # a reason first: it has to be ours
            return _unconverted(chinese).format_map(
                {name: value if shown[name] is None else shown[name] for name, value in zip(names, values, strict=True)}
            )
    return None


def _shown(names: list[str], values: list[str], depth: int) -> Iterator[tuple[str, str | None]]:
    """Reasons inside a reason, translated; None for all else, which may be anybody's text."""
    for name, value in zip(names, values, strict=True):
        yield name, _matched(value, depth + 1) if name in _NESTED else None


@cache
def _unconverted(template: str) -> str:
    """The template without conversions: what was matched is formatted already."""
    pieces, names = _split(template)
    parts = [piece.replace("{", "{{").replace("}", "}}") for piece in pieces]
    return "".join(part + "{" + name + "}" for part, name in zip(parts, [*names, ""], strict=True))[: -len("{}")]


def _values(text: str, pieces: list[str]) -> list[str] | None:
    """What stands between the pieces, each as short as it can be; None where they don't fit. Linear in the text."""
    first, last = pieces[0], pieces[-1]
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return None
    values, at, end = [], len(first), len(text) - len(last)
    for piece in pieces[1:-1]:
        found = text.find(piece, at, end)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(piece)
    return [*values, text[at:end]]
