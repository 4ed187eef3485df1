"""What can be asked of the core: verbs of clients, and facts that the supervisor reports.

Recovery and timers are commands too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from graphd.core.definition import Budget, Terms
from graphd.core.edits import Edits
from graphd.core.events import DAEMON, Actor, AttemptKey
from graphd.core.model import Definition, Failure, Identity, Limits, Output, Source, Spent, State
from graphd.core.policy import Leave
from graphd.core.talk import Talk
from graphd_protocol.states import (
    AttemptOutcome,
    FailureClass,
    GraphStatus,
    NodeState,
    Outcome,
    Reports,
    SkipReason,
    Verdict,
)


class Set(NamedTuple):
    """A checked plan becomes a graph. `missing` maps workers that no installed agent serves to the reason."""

    graph: str
    title: str
    objective: str
    source: Source
    workspace: str
    definitions: tuple[Definition, ...]
    owner: str | None = None
    limits: Limits = Limits()
    budget: Budget | None = None
    terms: Terms = Terms()
    environment: str | None = None
    delivery_node: str | None = None
    start: bool = True
    replace: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    reports: tuple[tuple[str, Reports], ...] = ()  # worker → what the agent that serves it says of its usage


@dataclass(slots=True, frozen=True)
class ImportedNode:
    """How a node of an exported graph stood. One that was not at rest is decided anew."""

    slug: str
    state: NodeState
    rounds: int = 0
    output: Output | None = None
    failure: Failure | None = None
    skip: SkipReason | None = None
    cancel_reason: str | None = None
    removed_in: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    spent: Spent = field(default_factory=Spent)
    verdict: Verdict | None = None


class Import(NamedTuple):
    """An exported graph comes back: ended as it was, else `user_paused`."""

    graph: str
    title: str
    objective: str
    source: Source
    workspace: str
    definitions: tuple[Definition, ...]
    nodes: tuple[ImportedNode, ...]
    status: GraphStatus
    created_at: int
    plan_version: int = 1
    pause_reason: str | None = None
    outcome: Outcome | None = None
    owner: str | None = None
    limits: Limits = Limits()
    budget: Budget | None = None
    terms: Terms = Terms()
    spent: Spent = Spent()
    environment: str | None = None
    delivery_node: str | None = None


class Pause(NamedTuple):
    """Drain (running nodes finish) or stop (they go back to ready)."""

    graph: str
    mode: Literal["drain", "stop"] = "drain"
    reason: str | None = None


class Resume(NamedTuple):
    """Go on. An environment that was sent becomes the graph's; `top_up` sets the budget to what is spent and this."""

    graph: str
    environment: str | None = None
    top_up: Budget | None = None


class Step(NamedTuple):
    """Start one node (slug or id; None: the next), and pause when it is settled."""

    graph: str
    node: str | None = None


class RetryNodes(NamedTuple):
    """One node (slug or id) with what hung on it; None: all failed and blocked ones."""

    graph: str
    node: str | None = None
    environment: str | None = None


class Cancel(NamedTuple):
    """Stop all, settle the rest."""

    graph: str
    reason: str | None = None


class Clear(NamedTuple):
    """Tombstone; folders removed when empty."""

    graph: str


class Extend(NamedTuple):
    """Add nodes. `missing` maps workers that no installed agent serves to the reason."""

    graph: str
    definitions: tuple[Definition, ...]
    environment: str | None = None
    missing: tuple[tuple[str, str], ...] = ()
    reports: tuple[tuple[str, Reports], ...] = ()


class Replan(NamedTuple):
    """Edits of the plan, as one change."""

    graph: str
    edits: Edits
    reason: str | None = None
    environment: str | None = None
    missing: tuple[tuple[str, str], ...] = ()
    reports: tuple[tuple[str, Reports], ...] = ()


class Propose(NamedTuple):
    """Edits that wait for acceptance; automatic ones are carried out at once, as long as the graph's limit lasts."""

    graph: str
    edits: Edits
    author: str
    reason: str
    source: Source | None = None  # the file as it was read, where the edits are what changed in it
    is_automatic: bool = False


class Accept(NamedTuple):
    """Carry a proposal out, checked anew."""

    graph: str
    proposal: str
    environment: str | None = None
    missing: tuple[tuple[str, str], ...] = ()
    reports: tuple[tuple[str, Reports], ...] = ()


class Dismiss(NamedTuple):
    """A proposal is not wanted."""

    graph: str
    proposal: str
    reason: str | None = None


class Finish(NamedTuple):
    """Settle what has not started as skipped, drain what runs."""

    graph: str
    reason: str


class Release(NamedTuple):
    """A person declares a stuck tree dead, naming exactly its pids."""

    graph: str
    node: str
    pids: tuple[int, ...]


class ExtendTimeout(NamedTuple):
    """Move the deadline of a running node on by this much."""

    graph: str
    node: str
    by_ms: int


class Hold(NamedTuple):
    """Pause one node, so that a person can open its agent's session."""

    graph: str
    node: str


class Acknowledge(NamedTuple):
    """An owner has these deliveries of one graph."""

    graph: str
    deliveries: tuple[str, ...]


class Respond(NamedTuple):
    """An answer to an ask: one of its options, or a text where it is a question."""

    graph: str
    ask: str
    action_hash: str
    option: str | None = None
    text: str | None = None
    scope: str = "once"
    comment: str | None = None


class Signal(NamedTuple):
    """Something happened outside: wakes what waits for it. `payload` is JSON text."""

    name: str
    payload: str = "null"


class AttemptIdentified(NamedTuple):
    """Its keeper answered."""

    graph: str
    attempt: AttemptKey
    identity: Identity


class AgentAsk(NamedTuple):
    """A question of an agent. `key` is its own id of the request; options pass through unchanged."""

    key: str
    kind: Literal["permission", "question"]
    title: str
    action: dict[str, Any]
    options: tuple[dict[str, str], ...]


class AttemptSaid(NamedTuple):
    """One step of an attempt's fold: what its agent said that the graph has to know. `trouble`: (class, reason)."""

    graph: str
    attempt: AttemptKey
    leave: Leave
    session: str | None = None
    asks: tuple[AgentAsk, ...] = ()
    gone: tuple[str, ...] = ()
    candidate: Output | None = None
    broken: str | None = None  # why the candidate is not what its contract asks for
    trouble: tuple[FailureClass, str] | None = None
    is_unacted: bool = False  # the trouble is its provider's, and it had done nothing yet
    is_cancelled: bool = False
    used: Spent | None = None  # totals so far; `cost_usd` None: it does not say


class ChildAsk(NamedTuple):
    """An attempt asks people something, outside its protocol. `is_alone`: nobody is there, nobody is waited for."""

    graph: str
    attempt: AttemptKey
    question: str
    is_alone: bool = False


class Revoke(NamedTuple):
    """A standing answer stands no more; what it allowed already is not taken back."""

    graph: str
    ask: str


class Busy(NamedTuple):
    """The provider asked to be left alone; `retry_after_s` where it said for how long."""

    retry_after_s: float | None = None


class AttemptEnded(NamedTuple):
    """Its tree is proven empty (or never was), its result captured and fsynced."""

    graph: str
    attempt: AttemptKey
    outcome: AttemptOutcome  # what the driver saw: achieved, not_achieved, failed, lost or put_back
    failure_class: FailureClass | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    output: Output | None = None
    spent: Spent = Spent()
    busy: Busy | None = None  # why it ended: its provider
    unheard: tuple[str, ...] = ()  # keys of its questions whose answers did not reach it


class AttemptStuck(NamedTuple):
    """Its death can't be proven."""

    graph: str
    attempt: AttemptKey
    pids: tuple[int, ...]
    reason: str


class AttemptUsed(NamedTuple):
    """What it used so far: totals, never deltas. `cost_usd` None: the agent does not say."""

    graph: str
    attempt: AttemptKey
    spent: Spent


class DeadlineReached(NamedTuple):
    """Its deadline passed. `is_attended`: somebody is there who can be asked."""

    graph: str
    attempt: AttemptKey
    is_attended: bool = False


class ProfileCooling(NamedTuple):
    """An attempt's provider asks for a rest until then (ms since the epoch, jitter and Retry-After in it)."""

    graph: str
    attempt: AttemptKey
    profile: str
    until: int
    reason: str


class MachineSlept(NamedTuple):
    """The machine slept for `ms`: clocks of work stood still meanwhile, wall clocks did not."""

    ms: int


class DaemonStarted(NamedTuple):
    """First command of every daemon. `recent_starts`: starts in the last ten minutes, this one included."""

    epoch: int
    version: str
    recent_starts: int
    workspace: str | None = None  # where it lies now, for graphs that were set before it was moved


class Tick(NamedTuple):
    """A timer of ours went off: the scheduler looks again."""


Verb = (
    Set
    | Import
    | Pause
    | Resume
    | Step
    | RetryNodes
    | Cancel
    | Clear
    | Finish
    | Release
    | ExtendTimeout
    | Hold
    | Acknowledge
    | Respond
    | Revoke
    | Extend
    | Replan
    | Propose
    | Accept
    | Dismiss
)
Fact = (
    AttemptIdentified
    | AttemptSaid
    | ChildAsk
    | AttemptUsed
    | AttemptEnded
    | AttemptStuck
    | DeadlineReached
    | ProfileCooling
    | MachineSlept
    | DaemonStarted
    | Tick
)
Command = Verb | Signal | Fact


class Request(NamedTuple):
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
    talk: Talk | None = None


class Done(NamedTuple):
    """What a command answers: its graph and rev, and the nodes whose trees are yet to end."""

    graph: str | None
    rev: int
    stopping: tuple[str, ...] = ()
    preview: Any = None
    woke: tuple[tuple[str, str], ...] = ()  # (graph, slug) of what a signal woke
    kept: tuple[tuple[str, str], ...] = ()  # (graph, slug) of what it will wake


class Estimate(NamedTuple):
    """What an attempt is thought to use before any of its graph has settled."""

    tokens: int = 50_000
    cost_usd: float = 0.0


class Capacity(NamedTuple):
    """Slots that the scheduler may fill: daemon-wide, and per profile where one has a cap.

    Pairs are (profile, value); a profile that `stagger_ms` or `memory_mb_of` does not name starts at once and weighs
    nothing. `memory_mb` None bounds nothing.
    """

    concurrency: int = 8
    per_profile: tuple[tuple[str, int], ...] = ()
    profiles: tuple[tuple[str, str], ...] = (("shell", "shell"),)  # worker → profile
    can_admit: bool = True
    is_attended: bool = True  # somebody is there who could answer
    reports: tuple[tuple[str, Reports], ...] = (("shell", "not_applicable"),)
    estimates: tuple[tuple[str, Estimate], ...] = ()
    stagger_ms: tuple[tuple[str, int], ...] = ()  # between two starts of the profile
    memory_mb: int | None = None
    memory_mb_of: tuple[tuple[str, int], ...] = ()
    held: frozenset[tuple[str, str]] = frozenset()  # (graph, node id): a person has its session
    elsewhere: frozenset[tuple[str, str]] = frozenset()  # the same: another process has it, for all that is known
