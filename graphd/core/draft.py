"""One change in the making: emits events, each applied at once, so that every rule reads the state that the
ones before leave.
"""

from typing import Any

from graphd.base.text import Text
from graphd.core.events import Actor, Change, Effect, Event
from graphd.core.evolve import evolve
from graphd.core.model import Graph, Node, State
from graphd.core.tape import Tape


class Draft:
    """A change of one graph: one rev, whatever it causes."""

    def __init__(self, state: State, tape: Tape, graph_id: str, *, now: int, actor: Actor, operation: str) -> None:
        self.state = state
        self.tape = tape
        self.now = now
        self.actor = actor
        self.effects: list[Effect] = []
        known = state.graphs.get(graph_id)
        self.change = Change(graph_id, known.rev + 1 if known else 1, operation)

    @property
    def graph(self) -> Graph:
        """The graph as it stands after the events so far."""
        return self.state.graphs[self.change.graph]

    def emit(self, kind: str, node: Node | None = None, /, **payload: Any) -> None:
        """Add an event and apply it. A reason is logged as plain English: live and replayed state are the same."""
        if isinstance(payload.get("reason"), Text):
            payload["reason"] = str(payload["reason"])
        event = Event(
            graph=self.change.graph, rev=self.change.rev, index=len(self.change.events), at=self.now, kind=kind,
            node=node.id if node else None, payload=payload, actor=self.actor,
        )  # fmt: skip
        evolve(self.state, self.tape, event)
        self.change.events.append(event)

    def then(self, effect: Effect) -> None:
        """Carry this out after the commit."""
        self.effects.append(effect)
