"""What can be asked of the core: verbs of clients, and facts that the supervisor reports.

Recovery and timers are commands too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from graphd.core.events import DAEMON, Actor, AttemptKey
from graphd.core.model import Definition, Identity, Limits, Output, Source, Spent, State
from graphd_protocol.states import AttemptOutcome, FailureClass


@dataclass(slots=True, frozen=True)
class Set:
    """A checked plan becomes a graph. `missing` maps workers that no installed agent serves to the reason."""

    graph: str
    title: str
    objective: str
    source: Source
    workspace: str
    definitions: tuple[Definition, ...]
    owner: str | None = None
    limits: Limits = field(default_factory=Limits)
    environment: str | None = None
    delivery_node: str | None = None
    start: bool = True
    replace: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, frozen=True)
class Pause:
    """Drain (running nodes finish) or stop (they go back to ready)."""

    graph: str
    mode: Literal["drain", "stop"] = "drain"
    reason: str | None = None


@dataclass(slots=True, frozen=True)
class Resume:
    """Go on. An environment that was sent becomes the graph's."""

    graph: str
    environment: str | None = None


@dataclass(slots=True, frozen=True)
class RetryNodes:
    """One node (slug or id) with what hung on it; None: all failed and blocked ones."""

    graph: str
    node: str | None = None
    environment: str | None = None


@dataclass(slots=True, frozen=True)
class Cancel:
    """Stop all, settle the rest."""

    graph: str
    reason: str | None = None


@dataclass(slots=True, frozen=True)
class Clear:
    """Tombstone; folders removed when empty."""

    graph: str


@dataclass(slots=True, frozen=True)
class Finish:
    """Settle what has not started as skipped, drain what runs."""

    graph: str
    reason: str


@dataclass(slots=True, frozen=True)
class Release:
    """A person declares a stuck tree dead, naming exactly its pids."""

    graph: str
    node: str
    pids: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Acknowledge:
    """An owner has these deliveries of one graph."""

    graph: str
    deliveries: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class AttemptIdentified:
    """Its keeper answered."""

    graph: str
    attempt: AttemptKey
    identity: Identity


@dataclass(slots=True, frozen=True)
class AttemptEnded:
    """Its tree is proven empty (or never was), its result captured and fsynced."""

    graph: str
    attempt: AttemptKey
    outcome: AttemptOutcome  # what the driver saw: achieved, not_achieved, failed, lost or put_back
    failure_class: FailureClass | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    output: Output | None = None
    spent: Spent = field(default_factory=Spent)


@dataclass(slots=True, frozen=True)
class AttemptStuck:
    """Its death can't be proven."""

    graph: str
    attempt: AttemptKey
    pids: tuple[int, ...]
    reason: str


@dataclass(slots=True, frozen=True)
class DeadlineReached:
    """Its hard deadline passed (for `shell` every deadline is hard)."""

    graph: str
    attempt: AttemptKey


@dataclass(slots=True, frozen=True)
class DaemonStarted:
    """First command of every daemon. `recent_starts`: starts in the last ten minutes, this one included."""

    epoch: int
    version: str
    recent_starts: int


@dataclass(slots=True, frozen=True)
class Tick:
    """A timer of ours went off: the scheduler looks again."""


Verb = Set | Pause | Resume | RetryNodes | Cancel | Clear | Finish | Release | Acknowledge
Fact = AttemptIdentified | AttemptEnded | AttemptStuck | DeadlineReached | DaemonStarted | Tick
Command = Verb | Fact


@dataclass(slots=True, frozen=True)
class Request:
    """A command with who asks, and on what condition.

    `fingerprint` is the hash of the params behind `request_id`. With `preview`, a dry run: the function reads the state
    as the command would leave it, its value is the answer's `preview`, and everything is taken back.
    """

    command: Command
    actor: Actor = DAEMON
    expected_rev: int | None = None
    expected_plan: int | None = None
    request_id: str | None = None
    fingerprint: str | None = None
    preview: Callable[[State], Any] | None = None


@dataclass(slots=True, frozen=True)
class Done:
    """What a command answers: its graph and rev, and the nodes whose trees are yet to end."""

    graph: str | None
    rev: int
    stopping: tuple[str, ...] = ()
    preview: Any = None


@dataclass(slots=True, frozen=True)
class Capacity:
    """Slots that the scheduler may fill: daemon-wide, and per profile where one has a cap."""

    concurrency: int = 8
    per_profile: tuple[tuple[str, int], ...] = ()
    profiles: tuple[tuple[str, str], ...] = (("shell", "shell"),)  # worker → profile
    can_admit: bool = True
