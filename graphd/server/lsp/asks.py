"""Asks in an editor: a diagnostic on the node, a code action per answer, and a message for whoever started the graph.

The message (`window/showMessageRequest`) is the fallback for editors that follow no `workgraph/asks`; closing it, or
any answer that is none of ours, decides nothing. Source: spec protocol.md, Language features.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pygls.exceptions import JsonRpcException

from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.core.model import Ask, Graph
from graphd.core.policy import glob_of
from graphd.server.lsp.glue import EditorGone

Json = dict[str, Any]
COMMAND: Final = "graphd.answer"
SHOWING_LIMIT: Final = 4
_INFO: Final = 3


@dataclass(slots=True, frozen=True)
class LiveAsk:
    """An open ask, as plain values. `covers` is what a standing answer would stand for; None where none may stand."""

    id: str
    action_hash: str
    node: str | None
    title: str
    detail: str
    options: tuple[tuple[str, str], ...]
    scopes: tuple[str, ...]
    covers: str | None


def open_asks(graph: Graph) -> tuple[LiveAsk, ...]:
    """At a committed moment: what waits for a person, oldest first."""
    return tuple(_live(graph, graph.asks[ask]) for ask in graph.open_asks)


def _live(graph: Graph, ask: Ask) -> LiveAsk:
    done = ask.action.get("command") or ", ".join(map(str, ask.action.get("paths") or ()))
    node = graph.nodes.get(ask.node) if ask.node is not None else None
    return LiveAsk(
        id=ask.id, action_hash=ask.action_hash, node=node.slug if node is not None else None, title=ask.title,
        detail=str(done) if done and str(done) not in ask.title else "",
        options=tuple((option["id"], option["label"]) for option in ask.options), scopes=ask.scopes,
        covers=glob_of(ask.action) if len(ask.scopes) > 1 else None,
    )  # fmt: skip


def said(ask: LiveAsk) -> Text:
    """What is asked, and how a terminal answers it."""
    what: str = f"{ask.title}: {ask.detail}" if ask.detail else ask.title
    if ask.node is not None:  # else it is about the plan
        what = t("{node} asks: {what}", node=ask.node, what=what)
    if ask.options:
        return t("{question}\nanswer with a code action here, or: graphd answer {ask}", question=what, ask=ask.id)
    return t('{question}\nanswer it with: graphd answer {ask} --text "…"', question=what, ask=ask.id)


def choices(ask: LiveAsk) -> list[tuple[Text, Json]]:
    """(title, argument of the command) of each answer: every option once, then as a standing answer where it may be."""
    made = []
    for option, label in ask.options:
        for scope in ask.scopes:
            argument = {"ask": ask.id, "actionHash": ask.action_hash, "option": option, "scope": scope}
            made.append((_title(ask, label, scope), argument))
    return sorted(made, key=lambda row: ask.scopes.index(row[1]["scope"]))


def _title(ask: LiveAsk, label: str, scope: str) -> Text:
    if scope == "attempt":
        return t("{answer} for this attempt ({covers}): {what}", answer=label, covers=ask.covers, what=ask.title)
    if scope == "graph":
        return t("{answer} for the graph ({covers}): {what}", answer=label, covers=ask.covers, what=ask.title)
    return t("{answer}: {what}", answer=label, what=ask.title)


class Asker:
    """Shows the asks of graphs that one editor started as messages; each once, a few at a time."""

    def __init__(
        self, *, ask: Callable[[str, Json], Awaitable[Any]], answer: Callable[[Json], Awaitable[Any]],
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], is_needed: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._ask = ask
        self._answer = answer
        self._spawn = spawn
        self._is_needed = is_needed
        self._graphs: set[str] = set()
        self._waiting: dict[str, tuple[LiveAsk, ...]] = {}
        self._shown: set[str] = set()
        self._showing = 0

    def started(self, graph: str) -> None:
        """This editor started a graph."""
        self._graphs.add(graph)

    def see(self, graph_id: str, graph: Graph | None) -> None:
        """At a committed moment: what a graph asks now."""
        if graph_id in self._graphs:
            self._waiting[graph_id] = open_asks(graph) if graph is not None else ()
            self._show_next()

    def _show_next(self) -> None:
        if not self._is_needed():
            return
        for ask in [ask for asks in self._waiting.values() for ask in asks if ask.options]:
            if self._showing < SHOWING_LIMIT and ask.id not in self._shown:
                self._shown.add(ask.id)
                self._showing += 1
                self._spawn(partial(self._show, ask))

    async def _show(self, ask: LiveAsk) -> None:
        titles = _titles(ask)
        params = {"type": _INFO, "message": said(ask), "actions": [{"title": title} for title in titles]}
        try:
            chosen = _title_of(await self._ask("window/showMessageRequest", params))
            if chosen in titles and any(ask in asks for asks in self._waiting.values()):
                option = titles[chosen]
                await self._answer({"ask": ask.id, "actionHash": ask.action_hash, "option": option, "scope": "once"})
        except (EditorGone, JsonRpcException, ConnectionError, Refused):
            pass  # it waits where all others see it
        finally:
            self._showing -= 1
            self._show_next()


def _titles(ask: LiveAsk) -> dict[str, str]:
    """Title → option id; two options that are called the same are told apart by their ids."""
    labels = [label for _, label in ask.options]
    return {label if labels.count(label) == 1 else f"{label} ({option})": option for option, label in ask.options}


def _title_of(answer: Any) -> str | None:
    """The chosen title; a null answer, or a closed message, is no choice."""
    title = answer.get("title") if isinstance(answer, dict) else getattr(answer, "title", None)
    return title if isinstance(title, str) else None
