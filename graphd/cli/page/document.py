"""The whole page: landmarks, a policy that forbids every request, the parts in their order."""

from typing import Final

from graphd import __version__
from graphd.base.text import t
from graphd.cli.page.drawing import drawing
from graphd.cli.page.facts import bar_table, head, moment, node_table, spending
from graphd.cli.page.markup import Markup, clean, join, tag
from graphd.cli.page.nodes import ask_table, sections
from graphd.cli.page.style import POLICY, SHEET
from graphd.cli.page.taking import Taken
from graphd.cli.page.timeline import timeline
from graphd.cli.speech import language, say

_TAGS: Final = {"en": "en", "zh": "zh-Hans"}


def document(taken: Taken) -> str:
    """The page. It reads the same without its style, aloud, and on paper."""
    parts = [
        ("graph", say(t("Graph")), join(_hidden(taken), drawing(taken), node_table(taken))),
        ("timeline", say(t("Timeline")), join(timeline(taken), bar_table(taken))),
        ("budget", say(t("Budget")), spending(taken)),
        ("nodes", say(t("Nodes")), sections(taken)),
    ]
    if taken.asks:
        parts.append(("asks", say(t("Asks")), ask_table(taken.asks, taken, say(t("All that people were asked")))))
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts]
    body = tag(
        "body", tag("a", say(t("to the nodes")), href="#nodes", class_="skip"),
        tag("header", head(taken), tag("nav", tag("ul", *links), aria_label=say(t("parts of this page")))),
        tag("main", *(_part(*part) for part in parts)), _foot(taken),
    )  # fmt: skip
    return "<!doctype html>\n" + tag("html", _head(taken), body, lang=_TAGS[language()]) + "\n"


def _head(taken: Taken) -> Markup:
    return tag(
        "head", tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"graphd {__version__}"),
        tag("title", clean(taken.snapshot["title"])), tag("style", Markup(SHEET)),
    )  # fmt: skip


def _part(name: str, title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def _hidden(taken: Taken) -> Markup | None:
    hidden = taken.picture["hidden"]
    if not hidden:
        return None
    said = t("{count} nodes are not drawn: these are around what runs and what failed; the table has all", count=hidden)
    return tag("p", say(said), class_="quiet")


def _foot(taken: Taken) -> Markup:
    version = t("written by graphd {version}, at rev {rev} of the graph,", version=__version__,
                rev=taken.snapshot["rev"])  # fmt: skip
    return tag("footer", tag("p", f"{say(version)} ", moment(taken.at_ms)))
