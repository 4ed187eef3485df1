"""All that one attempt says, on its way to the database, a notification or people: the place where secrets go out.

Known key shapes, and the exact values that its profile gave it, also over the borders of chunks. Source: execution.md,
Secrets and text.
"""

import codecs
from collections.abc import Callable, Iterable
from dataclasses import replace

from graphd.base.redaction import PLAIN, Redactor
from graphd.base.text import t
from graphd.children.driver import Fact, Order
from graphd.children.items import Items
from graphd.core.commands import AttemptEnded
from graphd.daemon.log import log


class Texts:
    """The texts of one attempt."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.redactor = Redactor(order.secrets) if order.secrets else PLAIN
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stream = self.redactor.stream()
        self._items: Items | None = None

    def printed(self, chunk: bytes) -> bytes:
        """What of a chunk may be shown now: whole characters, without secrets."""
        return self._stream.feed(self._decoder.decode(chunk)).encode()

    def keep(self, facts: Iterable[Fact], *, at_ms: int) -> None:
        """Keep the items for people; a disk that has no room for them holds up no agent."""
        self._keep(lambda items: items.append(facts, at_ms=at_ms))

    def progress(self, text: str, *, at_ms: int) -> str:
        """Keep what it says of how far it is; the text as people may see it."""
        shown = self.redactor.text(text)
        self._keep(lambda items: items.note("progress", shown, at_ms=at_ms))
        return shown

    def _keep(self, write: Callable[[Items], None]) -> None:
        try:
            if self._items is None:
                self._items = Items(self.order.folder, self.redactor)
            write(self._items)
        except OSError as trouble:
            log("items_not_kept", graph=self.order.graph, node=self.order.node, error=trouble.strerror)

    def over_limit(self, facts: Iterable[Fact]) -> str | None:
        """Why it has to end: it made more tool calls than its node allows, as its fold counts them from its start."""
        limit = self.order.max_tool_calls
        calls = max((fact.content.get("calls", 0) for fact in facts if fact.kind == "item"), default=0)
        if limit is None or calls <= limit:
            return None
        return t("more than {limit} tool calls", limit=limit)

    def of_end(self, ended: AttemptEnded) -> AttemptEnded:
        """How it ended, as it goes on to the database."""
        reason = self.redactor.text(ended.reason) if ended.reason else ended.reason
        output = ended.output
        text = self.redactor.text(output.text) if output else ""
        if reason == ended.reason and (output is None or text == output.text):
            return ended
        return ended._replace(reason=reason, output=replace(output, text=text) if output else None)
