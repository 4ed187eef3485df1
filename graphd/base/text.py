"""Messages for people that can still be translated after they were made.

`t("node {slug} failed", slug=…)` is a `str` (the English sentence) that remembers its template and values; at the wire
the template is looked up in the catalogue of the client's locale (`graphd.base.catalogue`), and nested texts with it.
User text, ids, codes and states go in as values and are never translated. Templates are literals, so a test finds
them all.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, Self


class Text(str):
    """An English sentence with its template and values. A slice or a join of it is a plain `str` again."""

    __slots__ = ("template", "values")

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, values: dict[str, Any]) -> Self:
        """Format in English."""
        made = super().__new__(cls, template.format_map(values) if values else template)
        made.template = template
        made.values = values
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, dict[str, Any]]]:
        """Copies and pickles keep the template."""
        return (type(self), (self.template, self.values))


def t(template: str, /, **values: Any) -> Text:
    """A sentence for people. Without values the template is taken as it stands, braces too."""
    return Text(template, values)


def said(trouble: BaseException) -> str:
    """What an exception says: its own text where it was made with one (`str(…)` would lose the template)."""
    first = trouble.args[0] if trouble.args else None
    return first if isinstance(first, Text) else str(trouble)


def either(words: Iterable[str]) -> str:
    """`a or b or c`; the words themselves are not translated."""
    return reduce(lambda left, right: t("{left} or {right}", left=left, right=right), words)
