"""One reason why something is where it is: a code, words, and the command to type next."""

from dataclasses import dataclass

from graphd.base.text import Text
from graphd.core.commands import Capacity
from graphd.core.model import Graph, State
from graphd.server.project import Wire


@dataclass(slots=True, frozen=True)
class Surroundings:
    """What lies outside the graph: the other graphs, slots, the store, the phase of the node. `now` in ms."""

    state: State
    capacity: Capacity
    now: int
    store_health: str = "ok"
    phase: str | None = None
    phase_since: int | None = None


def why(code: str, detail: Text, command: str, *, since: int | None = None, on: str | None = None) -> Wire:
    """A reason as the wire shows it."""
    row: Wire = {"code": code, "detail": detail, "next": command}
    if since is not None:
        row["since"] = since
    if on is not None:
        row["on"] = on
    return row


def at(graph: Graph) -> str:
    """How a command names the graph."""
    return f"--graph {graph.id}"
