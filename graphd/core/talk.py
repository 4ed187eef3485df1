"""Lines for agents: numbered and rendered in the transaction that decided them, sent after its commit, each once.

A line's number (`seq`) is also the JSON-RPC id of a request; the keeper takes a line only if its number is the number
of lines so far, so a resend is harmless and nothing is ever said twice. Source: execution.md, Exactly once over a
crash.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from graphd.core.events import AttemptKey
from graphd.core.model import State, Talking
from graphd.core.tape import Tape


class Line(NamedTuple):
    """One JSON-RPC message for an agent. A request gets its id when it is numbered."""

    message: dict[str, Any]
    is_request: bool = False


class Talk(NamedTuple):
    """What one fold step of an attempt makes durable: how far its journal was read, and the lines that it answers.

    `heard` is the number of our lines that the journal holds: these need not be kept any more.
    """

    graph: str
    attempt: AttemptKey
    cursor: tuple[int, int]
    heard: int = 0
    lines: tuple[Line, ...] = ()


class Posted(NamedTuple):
    """Rows for the outbox, and where the attempt's talk stands with them."""

    graph: str
    attempt: AttemptKey
    rows: tuple[tuple[int, str], ...]
    heard: int


def render(line: Line, seq: int) -> str:
    """The text of a line that got this number."""
    message = {"jsonrpc": "2.0", **({"id": seq} if line.is_request else {}), **line.message}
    return json.dumps(message, separators=(",", ":"))  # in ASCII: a lone surrogate is no text for the store


def post(
    state: State, tape: Tape, graph: str, attempt: AttemptKey, *, lines: Iterable[Line], first: int,
    cursor: tuple[int, int] | None = None, heard: int = 0,
) -> Posted | None:  # fmt: skip
    """Number lines behind all earlier ones, and move the cursor. `first` numbers the first line of a talk.

    None where the attempt is settled or unknown: nobody is there to be told.
    """
    known = state.graphs.get(graph)
    if known is None or attempt not in known.live:
        return None
    place = (graph, attempt)
    was = state.talks.get(place, Talking((0, -1), first))
    rows = tuple((was.next_seq + n, render(line, was.next_seq + n)) for n, line in enumerate(lines))
    now = max(was.cursor, cursor) if cursor is not None else was.cursor
    tape.put(state.talks, place, Talking(now, was.next_seq + len(rows)))
    return Posted(graph, attempt, rows, heard)
