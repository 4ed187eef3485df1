"""Reads an HTML page strictly: every element is closed, in order; and finds what it would fetch or run."""

from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"meta", "rect", "line", "polyline", "path", "br", "img", "link", "input", "hr"})
FETCHING = frozenset({"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "xlink:href"})


class Page(HTMLParser):
    """A parsed page: its elements as (tag, attributes), its visible text, its ids and inner links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.troubles: list[str] = []
        self.feed(text)
        self.close()
        self.troubles += [f"<{name}> is never closed" for name in self._open]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def links(self) -> list[str]:
        return [attributes["href"] for _, attributes in self.elements if "href" in attributes]

    def all(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    def unsafe(self) -> list[str]:
        """What would run or be fetched."""
        found = [
            f"<{tag}>" for tag, _ in self.elements if tag in ("script", "iframe", "object", "embed", "link", "img")
        ]
        for tag, attributes in self.elements:
            found += [f"<{tag} {name}>" for name in attributes if name in FETCHING or name.startswith("on")]
            found += [f"<{tag} style>" for name in attributes if name == "style"]
        return found + [link for link in self.links if not link.startswith("#")]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.troubles.append(f"<{tag}/> is not closed by that in HTML")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.troubles.append(f"</{tag}> at {self.getpos()} within {self._open[-2:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.texts.append(data)
