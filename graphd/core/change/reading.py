"""Strict readers of foreign JSON values: each returns its value checked, or says what is wrong and where.

A reader raises MalformedChange without a place; whoever reads an object or a list puts the place in front
while the error passes. Nothing recurses into free values: a hostile file can't exhaust the stack.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphd.base.text import t

Reader = Callable[[Any], Any]

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 64


class MalformedChange(Exception):
    """A change that breaks the format. `field` is the path to the trouble, `index` the first index in it."""

    def __init__(self, message: str, field: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.index = index

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def below(self, place: str | int) -> "MalformedChange":
        """Put one more step, a key or a list index, in front of the path."""
        if isinstance(place, int):
            self.index = place
            step = f"[{place}]"
        else:
            step = place
        self.field = step + ("" if not self.field or self.field.startswith("[") else ".") + self.field
        return self


@dataclass(slots=True, frozen=True)
class Key:
    """One key of an object: how its value is read, whether it must be there, whether it may be null."""

    read: Reader
    is_required: bool = True
    is_nullable: bool = False


def maybe(read: Reader) -> Key:
    """A key that may be left out or null."""
    return Key(read, is_required=False, is_nullable=True)


def left_out(read: Reader) -> Key:
    """A key that may be left out, and is never null."""
    return Key(read, is_required=False)


def show(value: Any) -> str:
    """A short, safe picture of a value for a message."""
    if isinstance(value, dict):
        return t("an object")
    if isinstance(value, list):
        return t("an array")
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_text(value: Any) -> str:
    """Any string."""
    if not isinstance(value, str):
        raise MalformedChange(t("expected a string, got {value}", value=show(value)))
    return value


def read_filled(value: Any) -> str:
    """A string that is not blank."""
    if not read_text(value).strip():
        raise MalformedChange(t("must not be blank"))
    return str(value)


def read_flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise MalformedChange(t("expected true or false, got {value}", value=show(value)))
    return value


def read_integer(value: Any) -> int:
    """An integer that every JSON reader keeps exact."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedChange(t("expected an integer, got {value}", value=show(value)))
    if abs(value) > MAX_INTEGER:
        raise MalformedChange(t("the integer is too large to be exact"))
    return value


def read_count(value: Any) -> int:
    """An integer of 0 or more."""
    if read_integer(value) < 0:
        raise MalformedChange(t("must not be negative, got {value}", value=value))
    return int(value)


def read_positive(value: Any) -> int:
    """An integer of 1 or more."""
    if read_integer(value) < 1:
        raise MalformedChange(t("must be at least 1, got {value}", value=value))
    return int(value)


def read_amount(value: Any) -> float:
    """A finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedChange(t("expected a number, got {value}", value=show(value)))
    if isinstance(value, int):
        return read_count(value)
    if not math.isfinite(value) or value < 0:
        raise MalformedChange(t("expected a finite number of 0 or more, got {value}", value=value))
    return value


def read_free(value: Any) -> Any:
    """Any JSON value of bounded depth, kept as it is."""
    todo = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise MalformedChange(t("nested deeper than {limit}", limit=MAX_DEPTH))
        if isinstance(item, dict):
            todo.extend((inner, depth + 1) for inner in item.values())
        elif isinstance(item, list):
            todo.extend((inner, depth + 1) for inner in item)
    return value


def read_free_object(value: Any) -> dict[str, Any]:
    """Any JSON object of bounded depth, kept as it is."""
    if not isinstance(value, dict):
        raise MalformedChange(t("expected an object, got {value}", value=show(value)))
    read_free(value)
    return value


def one_of(names: Collection[str]) -> Reader:
    """A string that is one of `names`."""
    known = frozenset(names)

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise MalformedChange(
                t("unknown value {value}; known are {known}", value=show(value), known=", ".join(sorted(known)))
            )
        return value

    return read


def list_of(reader: Reader, *, cap: int | None = None) -> Reader:
    """An array, each item read by `reader`; longer than `cap` is refused."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise MalformedChange(t("expected an array, got {value}", value=show(value)))
        if cap is not None and len(value) > cap:
            raise MalformedChange(t("has {count} entries, over its cap of {cap}", count=len(value), cap=cap))
        items = []
        for index, item in enumerate(value):
            try:
                items.append(reader(item))
            except MalformedChange as trouble:
                raise trouble.below(index) from None
        return items

    return read


def map_of(reader: Reader) -> Reader:
    """An object with any keys, each value read by `reader`."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MalformedChange(t("expected an object, got {value}", value=show(value)))
        return {key: _read_at(key, reader, item) for key, item in value.items()}

    return read


def object_of(table: Mapping[str, Key]) -> Reader:
    """An object with exactly the keys of `table`."""
    required = {name for name, key in table.items() if key.is_required}

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MalformedChange(t("expected an object, got {value}", value=show(value)))
        for name in value:
            if name not in table:
                raise MalformedChange(t("unknown key {name}", name=show(name)))
        if missing := required - value.keys():
            raise MalformedChange(t("missing key {name!r}", name=min(missing)))
        return {
            name: item if item is None and table[name].is_nullable else _read_at(name, table[name].read, item)
            for name, item in value.items()
        }

    return read


def _read_at(name: str, reader: Reader, value: Any) -> Any:
    try:
        return reader(value)
    except MalformedChange as trouble:
        raise trouble.below(name) from None
