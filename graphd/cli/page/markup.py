"""HTML that can't be broken out of: text becomes markup here alone, harmless, redacted and escaped.

Redaction is that of everything that leaves (`graphd.base.redaction`); it comes after escape sequences are gone, so a
secret with a colour in its middle is found too.
"""

from html import escape
from typing import Final

from graphd.base.redaction import PLAIN
from graphd.cli.words import harmless

_EMPTY: Final = frozenset({"meta", "rect", "line", "polyline", "path"})
"""Elements without content, which close themselves."""


class Markup(str):
    """HTML already. Any other string is text."""

    __slots__ = ()


def clean(text: str) -> str:
    """Text as a page may show it: what a terminal would show of it, without secrets."""
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)
    return PLAIN.text(harmless(text))


def markup(child: str | None) -> str:
    """A child as HTML: markup as it is, text escaped, None as nothing."""
    if child is None:
        return ""
    return child if isinstance(child, Markup) else escape(clean(child), quote=False)


def join(*children: str | None) -> Markup:
    """Children one after the other."""
    return Markup("".join(map(markup, children)))


def tag(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` is class, `aria_label` is aria-label; None and False leave an attribute out."""
    written = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(word)
        else:
            written.append(f'{word}="{escape(clean(value)) if isinstance(value, str) else value}"')
    opened = " ".join(written)
    return Markup(f"<{opened}/>" if name in _EMPTY else f"<{opened}>{join(*children)}</{name}>")


def table(caption: str, head: list[str], rows: list[list[str]], *, class_: str | None = None) -> Markup:
    """A table with a caption, whose first column heads its rows."""
    heads = tag("thead", tag("tr", *(tag("th", word, scope="col") for word in head)))
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell, class_="empty" if not cell else None)
                                                    for cell in row[1:]))
        for row in rows
    ]  # fmt: skip
    whole = tag("table", tag("caption", caption), heads, tag("tbody", *body), class_=class_)
    return tag("div", whole, class_="wide", role="region", aria_label=caption, tabindex="0")
