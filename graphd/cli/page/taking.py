"""Reads everything that a page shows of a graph, over the wire alone. Bounded: outputs are cut, reasons are counted."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphd.base.redaction import PLAIN
from graphd.cli.exits import CommandRefused
from graphd.cli.talk import call
from graphd.cli.words import harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
OUTPUT_BYTES: Final = 65_536
"""So much of an output is shown."""
OUTPUTS_BYTES: Final = 8 << 20
"""And so much of all together; each is left at least LEAST_BYTES."""
LEAST_BYTES: Final = 1024
REASONS_LIMIT: Final = 200
_AT_ONCE: Final = 32  # requests in flight; the daemon takes 64 a connection
_QUEUED: Final = ("node_ready", "node_put_back")
_KINDS: Final = [*_QUEUED, "attempt_stopping", "ask_answered"]
_REASONED: Final = ("failed", "blocked", "running", "ready", "waiting", "cancelled", "skipped")


@dataclass(slots=True, frozen=True)
class Printed:
    """A result as the page shows it: `text` of `shown` bytes out of `total`; None where it is binary."""

    text: str | None
    shown: int
    total: int


@dataclass(slots=True)
class Taken:
    """A graph as it stood at `at_ms`. By slug, but for the moments."""

    snapshot: Wire
    picture: Wire
    at_ms: int
    asks: list[Wire] = field(default_factory=list)
    attempts: dict[str, list[Wire]] = field(default_factory=dict)
    outputs: dict[str, Printed] = field(default_factory=dict)
    reasons: dict[str, list[Wire]] = field(default_factory=dict)
    queued: dict[str, list[int]] = field(default_factory=dict)
    """When a node came into the queue, oldest first."""
    stopping: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """(node, role, number) → when its end was wanted."""
    answered: dict[str, int] = field(default_factory=dict)
    """Ask → when it was answered."""

    @property
    def nodes(self) -> list[Wire]:
        """Nodes of the plan, in its order."""
        return [node for node in self.snapshot["nodes"] if "removedIn" not in node]

    @property
    def is_ended(self) -> bool:
        """Nothing of it changes any more."""
        return self.snapshot["status"] in ("complete", "cancelled")


async def take(session: "Session", graph: str) -> Taken:
    """All of a graph. Raises CommandRefused where there is none."""
    snapshot: Wire | None = await call(session, "workgraph/status", {"graph": graph})
    if snapshot is None:
        raise CommandRefused("notFound", f"there is no graph {graph!r}", "graphd status")
    taken = Taken(snapshot, await call(session, "workgraph/picture", {"graph": graph}), round(time.time() * 1000))
    for state in ("open", "answered", "withdrawn"):
        taken.asks += await call(session, "workgraph/asks", {"graph": graph, "state": state})
    taken.asks.sort(key=lambda ask: int(ask["openedAt"]))
    await _take_events(session, graph, taken)
    tried = [node for node in taken.nodes if node["attempts"] or node.get("startedAt")]
    await _each(tried, lambda node: _take_attempts(session, graph, taken, node))
    made = [node for node in taken.nodes if node.get("output")]
    share = max(LEAST_BYTES, min(OUTPUT_BYTES, OUTPUTS_BYTES // max(1, len(made))))
    await _each(made, lambda node: _take_output(session, graph, taken, node, share))
    order = {state: place for place, state in enumerate(_REASONED)}
    unachieved = sorted((n for n in taken.nodes if n["state"] in order), key=lambda n: order[n["state"]])
    await _each(unachieved[:REASONS_LIMIT], lambda node: _take_reasons(session, graph, taken, node))
    return taken


async def _each(nodes: list[Wire], work: Callable[[Wire], Awaitable[None]]) -> None:
    for start in range(0, len(nodes), _AT_ONCE):
        await asyncio.gather(*(work(node) for node in nodes[start : start + _AT_ONCE]))


async def _take_attempts(session: "Session", graph: str, taken: Taken, node: Wire) -> None:
    found = await call(session, "workgraph/node", {"graph": graph, "node": node["slug"]})
    taken.attempts[node["slug"]] = found["attempts"]


async def _take_reasons(session: "Session", graph: str, taken: Taken, node: Wire) -> None:
    taken.reasons[node["slug"]] = await call(session, "workgraph/why", {"graph": graph, "node": node["slug"]})


async def _take_output(session: "Session", graph: str, taken: Taken, node: Wire, share: int) -> None:
    params = {"graph": graph, "node": node["slug"], "limit": share}
    try:
        answer = await call(session, "workgraph/output", params)
    except CommandRefused as refusal:
        if refusal.code != "notFound":  # tried again meanwhile: what the snapshot has of it is what there was
            raise
        kept = node["output"]
        answer = {"text": kept["text"], "next": len(kept["text"].encode()), "total": kept["total"]}
    text, shown, total = answer["text"], answer["next"], answer["total"]
    if _is_binary(text):
        taken.outputs[node["slug"]] = Printed(None, 0, total)
    elif shown >= total:
        taken.outputs[node["slug"]] = Printed(text, total, total)
    else:
        whole = PLAIN.stream().feed(harmless(text))  # what may begin a secret at the cut is held back
        taken.outputs[node["slug"]] = Printed(whole, shown, total)


def _is_binary(text: str) -> bool:
    """Bytes that nobody would read: a NUL, or more than one character in ten that is none."""
    strange = sum(c == "\ufffd" or (c < " " and c not in "\n\r\t\x1b\b\f") for c in text)
    return "\0" in text or strange > len(text) / 10


async def _take_events(session: "Session", graph: str, taken: Taken) -> None:
    position: int | None = 0
    while position is not None:
        params = {"graph": graph, "after": position, "limit": 1000, "kinds": _KINDS}
        answer = await call(session, "workgraph/history", params)
        for event in answer["events"]:
            _note(taken, event)
        position = answer.get("next")


def _note(taken: Taken, event: Wire) -> None:
    kind, payload, node = event["kind"], event["payload"], event.get("node", "")
    if kind in _QUEUED:
        taken.queued.setdefault(node, []).append(event["at"])
    elif kind == "attempt_stopping":
        taken.stopping.setdefault((node, payload["role"], payload["number"]), event["at"])
    elif kind == "ask_answered":
        taken.answered[payload["ask"]] = event["at"]
