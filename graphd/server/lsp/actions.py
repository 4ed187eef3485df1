"""What may be done about a file or a node as things stand: the same offers as lenses and as code actions.

`Run to here` is not in this version. Source: spec protocol.md, Language features
(every lens has a code-action twin).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from graphd.base.text import t
from graphd.server.lsp.asks import COMMAND, LiveAsk, choices
from graphd.server.lsp.live import LiveGraph

Json = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Offer:
    """One command with its only argument. `is_lens` False: it is offered as a code action alone."""

    title: str
    command: str
    argument: Json
    is_lens: bool = True

    @property
    def wire(self) -> Json:
        """LSP's Command."""
        return {"title": self.title, "command": self.command, "arguments": [self.argument]}


def for_file(uri: str, live: LiveGraph | None, *, is_edited: bool = False) -> list[Offer]:
    """What may be done with the whole file. `is_edited`: its plan is not the graph's any more."""
    if live is None:
        return [Offer(t("Run"), "graphd.run", {"uri": uri})]
    of_graph = {"uri": uri, "graph": live.id}
    offers = []
    if not live.is_live:
        offers.append(Offer(t("Run"), "graphd.run", {"uri": uri}))
    elif "resume" in live.verbs:
        offers.append(Offer(t("Resume"), "graphd.resume", of_graph))
    elif live.status == "active" and "pause" in live.verbs:
        offers.append(Offer(t("Pause"), "graphd.pause", of_graph))
    if is_edited and "replan" in live.verbs:
        offers.append(Offer(t("Apply to the running graph"), "graphd.apply", of_graph))
    if "retry" in live.verbs:
        offers.append(Offer(t("Retry what failed"), "graphd.retry", of_graph))
    if "cancel" in live.verbs:
        offers.append(Offer(t("Cancel"), "graphd.cancel", of_graph, is_lens=False))
    return offers


def for_node(uri: str, slug: str, live: LiveGraph | None) -> list[Offer]:
    """What may be done with one node."""
    node = live.nodes.get(slug) if live is not None else None
    if live is None or node is None:
        return []
    of_node = {"uri": uri, "graph": live.id, "node": slug}
    offers = [offer for ask in live.asks if ask.node == slug for offer in _answers(ask)]
    if node.state in ("failed", "blocked") and "retry" in live.verbs:
        offers.append(Offer(t("Retry"), "graphd.retry", of_node))
    if node.attempt:
        offers.append(Offer(t("Open output"), "graphd.openOutput", of_node))
    return offers


def for_asks_elsewhere(live: LiveGraph | None, known: Collection[str]) -> list[Offer]:
    """Answers to what none of the `known` nodes asks: it is shown at the beginning of the file."""
    asks = live.asks if live is not None else ()
    return [offer for ask in asks if ask.node not in known for offer in _answers(ask)]


def _answers(ask: LiveAsk) -> list[Offer]:
    return [Offer(title, COMMAND, argument, is_lens=False) for title, argument in choices(ask)]
