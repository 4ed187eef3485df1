"""Events, changes and effects: what the core returns. Events are past tense, effects imperative."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphd.base.refusal import Refused as Refused
from graphd_protocol.states import ActorKind

AttemptKey = tuple[str, str, int]
"""(node id, role, number), unique within a graph."""


@dataclass(slots=True, frozen=True)
class Actor:
    """Who caused a change."""

    kind: ActorKind
    client: str | None = None
    attempt: str | None = None


DAEMON = Actor("daemon")


@dataclass(slots=True, frozen=True)
class Event:
    """A bounded, meaningful fact of one graph. `index` orders the events of one rev; payloads are JSON values."""

    graph: str
    rev: int
    index: int
    at: int
    kind: str
    node: str | None
    payload: dict[str, Any]
    actor: Actor


@dataclass(slots=True)
class Change:
    """One command or fact on one graph with all that it causes: exactly one rev."""

    graph: str
    rev: int
    operation: str
    events: list[Event] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes that it touched, each once."""
        return list(dict.fromkeys(e.node for e in self.events if e.node is not None))


class StartAttempt(NamedTuple):
    """Make the folder and spawn the keeper."""

    graph: str
    attempt: AttemptKey


class StopAttempt(NamedTuple):
    """End its tree; report the settlement when it is proven empty. A repeat, after a restart, says nothing anew."""

    graph: str
    attempt: AttemptKey
    is_repeat: bool = False


class RecheckAttempt(NamedTuple):
    """Look again whether a stuck tree is dead."""

    graph: str
    attempt: AttemptKey


class AdoptAttempt(NamedTuple):
    """An unsettled attempt found at a start: go by the recovery table."""

    graph: str
    attempt: AttemptKey


class CollectAttempt(NamedTuple):
    """Its settlement is committed: tell the keeper to go."""

    graph: str
    attempt: AttemptKey


class MoveDeadline(NamedTuple):
    """Its deadline is now `total_ms` after its start, on the clock that stops in sleep."""

    graph: str
    attempt: AttemptKey
    total_ms: int


class AnswerAsk(NamedTuple):
    """Tell the agent the answer to its request; the ask says which. Its line is part of the deciding transaction."""

    graph: str
    attempt: AttemptKey
    ask: str


class PromptAttempt(NamedTuple):
    """Give it its next turn, in the same session: what the last check found missing."""

    graph: str
    attempt: AttemptKey


class SendLines(NamedTuple):
    """Numbered lines were committed for its agent."""

    graph: str
    attempt: AttemptKey
    rows: tuple[tuple[int, str], ...]


class RemoveGraphFiles(NamedTuple):
    """The graph was cleared: remove its attempt folders."""

    graph: str


class WakeAt(NamedTuple):
    """Run the scheduler again at this time (ms since the epoch)."""

    at: int


Effect = (
    StartAttempt
    | StopAttempt
    | RecheckAttempt
    | AdoptAttempt
    | CollectAttempt
    | AnswerAsk
    | PromptAttempt
    | SendLines
    | MoveDeadline
    | RemoveGraphFiles
    | WakeAt
)
