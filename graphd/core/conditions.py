"""The condition language: text to a small tree, and the tree to a yes or no. Source: spec model.md, Gates.

A condition looks at nothing but the states, verdicts and outputs of direct needs, and runs no code. What
can't be answered is said (`ConditionUnanswerable`) and fails the node; it never becomes a silent `false`.
`and` and `or` look at their right side only where the left one leaves it open, so that
`a.state == "achieved" and a.output.n > 3` is safe.
"""

import difflib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphd.base.text import Text, t
from graphd.core.slugs import slug_reason
from graphd_protocol.ids import CONDITION_WORDS
from graphd_protocol.states import NODE_STATES

MAX_CHARACTERS: Final = 4_096
MAX_DEPTH: Final = 64
VERDICTS: Final = ("ACCEPT", "REVISE", "REJECT", "BLOCKED", "REPLAN")
PARTS: Final = ("state", "verdict", "output")
ORDERING: Final = frozenset({"<", "<=", ">", ">="})

Scalar: TypeAlias = str | int | float | bool | None
Step: TypeAlias = str | int


class ConditionMalformed(ValueError):
    """The text is no condition; `offset` counts characters from its start."""

    def __init__(self, offset: int, message: Text, hint: Text) -> None:
        super().__init__(t("{message} (character {place})", message=message, place=offset + 1))
        self.offset = offset
        self.message = message
        self.hint = hint


class ConditionUnanswerable(Exception):
    """A well-formed condition has no answer here; the node fails as `verdict_fail` with this reason."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True, frozen=True)
class Facts:
    """What a condition may know of a need. `output_text` None: it has no output."""

    state: str
    verdict: str | None = None
    output_text: str | None = None
    media_type: str | None = "text/plain"
    is_cut: bool = False


@dataclass(slots=True, frozen=True)
class Reference:
    """`slug.state`, `slug.verdict` or `slug.output…`; `path` starts with that word."""

    slug: str
    path: tuple[Step, ...]
    offset: int

    def __str__(self) -> str:
        steps = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.path)
        return f"{self.slug}{steps}"


@dataclass(slots=True, frozen=True)
class Comparison:
    """`ref op literal`; with `in`, `values` has all that were listed, else exactly one."""

    reference: Reference
    operator: str
    values: tuple[Scalar, ...]


@dataclass(slots=True, frozen=True)
class Not:
    """The opposite."""

    inner: "Condition"


@dataclass(slots=True, frozen=True)
class Every:
    """`and`."""

    parts: tuple["Condition", ...]


@dataclass(slots=True, frozen=True)
class Some:
    """`or`."""

    parts: tuple["Condition", ...]


Condition: TypeAlias = Comparison | Not | Every | Some

_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SINGLE = re.compile(r"'([^'\\\x00-\x1f]*)'")
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>|in(?![A-Za-z0-9_-])")
_INDEX = re.compile(r"\[[ \t]*([0-9]{1,9})[ \t]*\]")
_FOREIGN = {"&&": "and", "||": "or", "!": "not", "=": "=="}
_GRAMMAR_HINT = t('write for example: lint.state == "achieved" and not tests.output.failed > 0')
_LITERALS: dict[str, Scalar] = {"true": True, "false": False, "null": None}


def parse(text: str) -> Condition:
    """The tree of a condition; `ConditionMalformed` with position and hint where it is none."""
    if len(text) > MAX_CHARACTERS:
        raise ConditionMalformed(
            MAX_CHARACTERS,
            t("a condition has at most {limit} characters", limit=MAX_CHARACTERS),
            t("let a node work it out instead"),
        )
    reader = _Reader(text)
    condition = reader.either(0)
    if not reader.is_at_end():
        raise reader.trouble(t("the condition should end here, or go on with and / or"), _GRAMMAR_HINT)
    return condition


class _Reader:
    """Recursive descent without tokens: slugs may start with a digit, so place decides what a digit is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def trouble(self, message: Text, hint: Text, at: int | None = None) -> ConditionMalformed:
        where = self.at if at is None else at
        rest = self.text[where:]
        for foreign, ours in _FOREIGN.items():
            if rest.startswith(foreign) and not rest.startswith(("==", "!=")):
                return ConditionMalformed(
                    where, t("{foreign} is not of this language", foreign=foreign), t("write {ours}", ours=ours)
                )
        if not rest:
            return ConditionMalformed(where, t("{message}, found the end", message=message), hint)
        return ConditionMalformed(where, t("{message}, found {found!r}", message=message, found=rest[:12]), hint)

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def is_at_end(self) -> bool:
        self.skip()
        return self.at >= len(self.text)

    def word(self, wanted: str) -> bool:
        self.skip()
        match = _WORD.match(self.text, self.at)
        if match is None or match.group() != wanted:
            return False
        self.at = match.end()
        return True

    def sign(self, wanted: str) -> bool:
        self.skip()
        if not self.text.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def either(self, depth: int) -> Condition:
        parts = [self.both(depth)]
        while self.word("or"):
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def both(self, depth: int) -> Condition:
        parts = [self.negated(depth)]
        while self.word("and"):
            parts.append(self.negated(depth))
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def negated(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise ConditionMalformed(
                self.at, t("nested more than {limit} deep", limit=MAX_DEPTH), t("take parentheses and not away")
            )
        if self.word("not"):
            return Not(self.negated(depth + 1))
        if self.sign("("):
            inner = self.either(depth + 1)
            if not self.sign(")"):
                raise self.trouble(t("expected )"), t("close the parenthesis"))
            return inner
        return self.comparison()

    def comparison(self) -> Condition:
        reference = self.reference()
        self.skip()
        at = self.at
        match = _OPERATOR.match(self.text, at)
        if match is None:
            raise self.trouble(
                t("expected an operator after {reference}", reference=str(reference)), t("one of == != < <= > >= in")
            )
        operator = match.group()
        self.at = match.end()
        values = self.listed() if operator == "in" else (self.literal(),)
        _check_values(reference, operator, values, at)
        return Comparison(reference, operator, values)

    def reference(self) -> Reference:
        self.skip()
        at = self.at
        match = _WORD.match(self.text, at)
        if match is None:
            raise self.trouble(t("expected a node"), _GRAMMAR_HINT)
        slug = match.group()
        if slug in CONDITION_WORDS:
            raise self.trouble(t("expected a node"), t("{slug} is a word of the condition language", slug=slug))
        reason = slug_reason(slug)
        if reason is not None:
            raise ConditionMalformed(at, t("{slug!r} is no node's slug", slug=slug), reason)
        self.at = match.end()
        return Reference(slug, self.path(slug), at)

    def path(self, slug: str) -> tuple[Step, ...]:
        if not self.text.startswith(".", self.at):
            raise self.trouble(
                t("expected .state, .verdict or .output after {slug}", slug=slug),
                t("write {slug}.state or {slug}.output", slug=slug),
            )
        first = self.name()
        if first not in PARTS:
            close = difflib.get_close_matches(first, PARTS, 1)
            hint = (
                t("did you mean {name}?", name=close[0])
                if close
                else t("outputs are read as {slug}.output.{first}", slug=slug, first=first)
            )
            raise ConditionMalformed(
                self.at - len(first), t("a node has no {first!r}: state, verdict or output", first=first), hint
            )
        steps: list[Step] = [first]
        while self.text.startswith((".", "["), self.at):
            if first != "output":
                raise self.trouble(
                    t("{first} is a plain text and has nothing inside", first=first), t("only output has a path")
                )
            steps.append(self.name() if self.text[self.at] == "." else self.index())
        return tuple(steps)

    def name(self) -> str:
        match = _WORD.match(self.text, self.at + 1)
        if match is None:
            self.at += 1
            raise self.trouble(t("expected a name after the dot"), t("names have A-Z a-z 0-9 _ -"))
        self.at = match.end()
        return match.group()

    def index(self) -> int:
        match = _INDEX.match(self.text, self.at)
        if match is None:
            raise self.trouble(t("expected a position like [0]"), t("positions are whole numbers from 0"))
        self.at = match.end()
        return int(match.group(1))

    def listed(self) -> tuple[Scalar, ...]:
        if not self.sign("["):
            raise self.trouble(t("expected [ after in"), t('write in ["a", "b"]'))
        values = [self.literal()]
        while self.sign(","):
            values.append(self.literal())
        if not self.sign("]"):
            raise self.trouble(t("expected , or ]"), t("close the list"))
        return tuple(values)

    def literal(self) -> Scalar:
        self.skip()
        if match := _STRING.match(self.text, self.at):
            value = self._text(match.group())
        elif match := _SINGLE.match(self.text, self.at):
            value = match.group(1)
        elif match := _NUMBER.match(self.text, self.at):
            value = self._number(match.group())
        else:
            match = _WORD.match(self.text, self.at)
            if match is None or match.group() not in _LITERALS:
                hint = (
                    t('texts stand in quotes: "{found}"', found=match.group())
                    if match
                    else t('a number, a "text", true, false or null')
                )
                raise self.trouble(t("expected a value"), hint)
            value = _LITERALS[match.group()]
        self.at = match.end()
        return value

    def _text(self, quoted: str) -> Scalar:
        try:
            value: str = json.loads(quoted)
        except ValueError:
            raise self.trouble(t("a text with an unknown escape"), t("escapes are those of JSON")) from None
        return value

    def _number(self, text: str) -> Scalar:
        value = json.loads(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise self.trouble(t("a number out of range"), t("at most about 1.8e308"))
        return value if isinstance(value, int) else float(value)


def _check_values(reference: Reference, operator: str, values: tuple[Scalar, ...], at: int) -> None:
    if operator in ORDERING and (isinstance(values[0], bool) or values[0] is None):
        raise ConditionMalformed(
            at, t("{operator} orders numbers and texts only", operator=operator), t("compare with == or !=")
        )
    known = {"state": NODE_STATES, "verdict": VERDICTS}.get(str(reference.path[0]))
    if known is None:
        return
    if operator in ORDERING:
        raise ConditionMalformed(at, t("{part} has no order", part=reference.path[0]), t("compare with ==, != or in"))
    allowed = {*known, None} if reference.path[0] == "verdict" else set(known)
    for value in values:
        if isinstance(value, bool) or value not in allowed:
            close = difflib.get_close_matches(str(value), known, 1, 0.5)
            hint = t('did you mean "{name}"?', name=close[0]) if close else t("one of {known}", known=", ".join(known))
            raise ConditionMalformed(at, t("{value!r} is never a {part}", value=value, part=reference.path[0]), hint)


def references(condition: Condition) -> list[tuple[str, tuple[Step, ...]]]:
    """Every (slug, path) that the condition reads, in the order of the text, each once."""
    found: dict[tuple[str, tuple[Step, ...]], None] = {}
    for comparison in comparisons(condition):
        found[(comparison.reference.slug, comparison.reference.path)] = None
    return list(found)


def comparisons(condition: Condition) -> list[Comparison]:
    """All leaves, in the order of the text."""
    if isinstance(condition, Comparison):
        return [condition]
    if isinstance(condition, Not):
        return comparisons(condition.inner)
    return [leaf for part in condition.parts for leaf in comparisons(part)]


def evaluate(condition: Condition, lookup: Callable[[str], Facts]) -> bool:
    """The answer, given the facts of each need; `ConditionUnanswerable` where there is none."""
    if isinstance(condition, Not):
        return not evaluate(condition.inner, lookup)
    if isinstance(condition, Every):
        return all(evaluate(part, lookup) for part in condition.parts)
    if isinstance(condition, Some):
        return any(evaluate(part, lookup) for part in condition.parts)
    value = _value(condition.reference, lookup(condition.reference.slug))
    if condition.operator in ORDERING:
        return _ordered(condition, value)
    is_found = any(_same(value, wanted) for wanted in condition.values)
    return is_found != (condition.operator == "!=")


def _value(reference: Reference, facts: Facts) -> Any:
    """What the reference points at; a missing path is None, as null."""
    if reference.path[0] == "state":
        return facts.state
    if reference.path[0] == "verdict":
        return facts.verdict
    text = facts.output_text
    if text is None:
        return None
    is_json = (facts.media_type or "").partition(";")[0].strip() == "application/json"
    if len(reference.path) == 1 and not is_json:
        return text.rstrip("\r\n")
    value = _document(reference, text, facts.is_cut)
    for step in reference.path[1:]:
        value = _inside(value, step)
    return value


def _document(reference: Reference, text: str, is_cut: bool) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        names = {"reference": str(reference), "node": reference.slug}
        if is_cut:
            reason = t("{reference}: the output of {node} is longer than what is kept inline", **names)
        else:
            reason = t("{reference}: the output of {node} is not JSON", **names)
        raise ConditionUnanswerable(reason) from None


def _inside(value: Any, step: Step) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, wanted: Scalar) -> bool:
    """Equality of JSON: 1 is 1.0, but true is not 1."""
    if _is_number(value) and _is_number(wanted):
        return bool(value == wanted)
    return type(value) is type(wanted) and value == wanted


def _ordered(condition: Comparison, value: Any) -> bool:
    wanted = condition.values[0]
    both_numbers = _is_number(value) and _is_number(wanted)
    if not both_numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        asked = f"{condition.reference} {condition.operator} {json.dumps(wanted)}"
        reason = t(
            "{asked}: the left side is {kind}, not {wanted}", asked=asked, kind=_kind(value), wanted=_kind(wanted)
        )
        raise ConditionUnanswerable(reason)
    answers: dict[str, bool] = {
        "<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted
    }  # fmt: skip
    return answers[condition.operator]


def _kind(value: Any) -> Text:
    if value is None:
        return t("missing")
    if isinstance(value, bool):
        return t("a boolean")
    if _is_number(value):
        return t("a number")
    if isinstance(value, str):
        return t("a text")
    return t("a list") if isinstance(value, list) else t("an object")
