"""The whole state of a workspace as plain data (spec model.md). Changed in place, only by `evolve`, through a `Tape`.

Times are ms since the epoch, for display. Ids are node ids (`gn-…`); people see slugs.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from graphd.core.definition import Budget, Terms
from graphd.core.definition import Definition as Definition
from graphd.core.definition import Retry as Retry
from graphd_protocol.states import (
    AskKind,
    AskState,
    AttemptOutcome,
    AttemptState,
    DeliveryKind,
    FailureClass,
    GraphStatus,
    NodeState,
    Outcome,
    Role,
    SkipReason,
    StopReason,
    StopVerb,
    Verdict,
)


@dataclass(slots=True)
class Output:
    """A captured result: at most 64 KiB inline, the rest in the attempt's `output` file."""

    text: str
    total_bytes: int
    media_type: str
    is_cut: bool = False


@dataclass(slots=True)
class Failure:
    """Why a node failed: class, reason for people, and the attempt (`slug@n`) where there was one."""

    failure_class: FailureClass
    reason: str
    attempt: str | None = None


@dataclass(slots=True)
class Spent:
    """What was used. `cost_usd` None means unknown."""

    tokens: int = 0
    cost_usd: float | None = 0.0
    wall_ms: int = 0


@dataclass(slots=True)
class Node:
    """One outcome to achieve. `items`, `dependants`, `unsettled` and `rank` are derived from the plan."""

    id: str
    definition: Definition
    index: int
    needs: tuple[str, ...]
    required: bool
    state: NodeState = "waiting"
    attempts: int = 0  # counted worker attempts
    last_number: int = 0  # numbers run per node and are never reused
    rounds: int = 0
    retries: int = 0  # automatic ones since the last verb that reset the node
    lost_in_row: int = 0
    put_back_in_row: int = 0
    output: Output | None = None
    failure: Failure | None = None
    skip: SkipReason | None = None
    cancel_reason: str | None = None
    blocked_by: str | None = None
    child_session: str | None = None
    not_before: int | None = None
    candidate: Output | None = None  # of the last round, while its check is awaited
    gaps: str | None = None  # what the last check found missing
    evidence: tuple[dict[str, Any], ...] = ()
    role_numbers: dict[str, int] | None = None  # of attempts that are no worker's
    changed_at: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    spent: Spent = field(default_factory=Spent)
    verdict: Verdict | None = None  # of a gate
    revisions: int = 0  # how often this gate sent work back
    findings: str | None = None  # of the gate that sent it back: told to the next attempts
    wake_at: int | None = None  # when what it waits for is due, or has taken too long
    signal: str | None = None  # JSON of a signal that came before it waited
    is_approved: bool = False
    width: int | None = None  # how many items the list of this `for_each` node has
    items: list[str] = field(default_factory=list)  # ids of the nodes that this `for_each` node made, in item order
    dependants: list[str] = field(default_factory=list)
    unsettled: int = 0
    rank: tuple[int, int, int] = (0, 0, 0)
    defined_in: int | None = None  # the plan version that last defined it; None: the one it was installed with
    removed_in: int | None = None  # the plan version that removed it; its id is never used again
    after_stop: Literal["waiting", "cancelled"] | None = None  # a replan's wish, due when its tree is proven empty

    @property
    def slug(self) -> str:
        """What people call the node."""
        return self.definition.slug

    @property
    def is_settled(self) -> bool:
        """Achieved, skipped, cancelled, or failed and not required (model.md, Node)."""
        return self.state in ("achieved", "skipped", "cancelled") or (self.state == "failed" and not self.required)


@dataclass(slots=True)
class Identity:
    """Who a process is: a pid alone is nobody (reliability.md §2.1)."""

    boot_id: str
    pid_namespace: str
    pid: int
    start_time: int
    keeper_pid: int = 0


@dataclass(slots=True, frozen=True)
class Clock:
    """An attempt's working time, in ms: what it may use, how often that was extended, and how long it stood still.

    `unattended` counts the extensions since a person last had a say; `counted_until` is up to when waiting for people
    is in `person_ms` (ms since the epoch).
    """

    allowed_ms: int
    extensions: int = 0
    unattended: int = 0
    person_ms: int = 0
    provider_ms: int = 0
    counted_until: int | None = None

    @property
    def total_ms(self) -> int:
        """From its start to its deadline, on a clock that stops in sleep."""
        return self.allowed_ms + self.person_ms + self.provider_ms


@dataclass(slots=True)
class Attempt:
    """The n-th try of a node: the durable child-run record. Its key is (node id, role, number)."""

    graph: str
    node: str
    role: Role
    number: int
    worker: str
    profile: str
    environment: str | None
    started_at: int
    state: AttemptState = "starting"
    stop_reason: StopReason | None = None
    outcome: AttemptOutcome | None = None
    failure_class: FailureClass | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    failing: Failure | None = None  # why its end is wanted, where its turn failed
    identity: Identity | None = None
    child_session: str | None = None
    resumes: int | None = None
    cursor: int = 0
    deadline_at: int | None = None
    clock: Clock | None = None  # None: from before there were soft deadlines
    limit: Budget | None = None  # the rest of the graph's budget, where it was admitted with that alone
    stuck_pids: tuple[int, ...] = ()
    ended_at: int | None = None
    spent: Spent = field(default_factory=Spent)
    is_counted: bool = True

    @property
    def key(self) -> tuple[str, str, int]:
        """Unique within the graph."""
        return (self.node, self.role, self.number)

    @property
    def cookie(self) -> str:
        """Names it within a store; behind the store's id it is the value of GRAPHD_ATTEMPT in its processes."""
        return f"{self.graph}/{self.folder}"

    @property
    def folder(self) -> str:
        """Its folder's name below the graph's (execution.md, Secrets and text)."""
        role = "" if self.role == "worker" else f".{self.role}"
        return f"{self.node}{role}@{self.number}"


@dataclass(slots=True)
class Ask:
    """A question that waits for an answer; answered once, by compare-and-set (execution.md, People).

    `key` is the agent's own id of its request. `spent_by` is the attempt that got the answer: one that reached nobody
    serves the next attempt once, for the same action.
    """

    id: str
    kind: AskKind
    title: str
    action: dict[str, Any]
    action_hash: str
    options: tuple[dict[str, str], ...]
    opened_at: int
    node: str | None = None
    attempt: int | None = None
    scopes: tuple[str, ...] = ("once",)
    deadline_at: int | None = None
    default: str | None = None
    state: AskState = "open"
    answered_by: str | None = None
    option: str | None = None
    text: str | None = None
    role: Role | None = None
    key: str | None = None
    scope: str | None = None
    comment: str | None = None
    spent_by: int | None = None
    is_revoked: bool | None = None


class Talking(NamedTuple):
    """How far an attempt's journal was read, and the number of the next line for its agent. No part of the log."""

    cursor: tuple[int, int]
    next_seq: int


@dataclass(slots=True)
class Delivery:
    """A result that waits for its owner's acknowledgement."""

    id: str
    owner: str
    graph: str
    kind: DeliveryKind
    text: str
    created_at: int
    node: str | None = None
    is_acknowledged: bool = False


@dataclass(slots=True)
class Stopping:
    """A wish to stop that outlives a crash (model.md, Verbs)."""

    verb: StopVerb
    by: str
    at: int
    reason: str | None = None


@dataclass(slots=True)
class Limits:
    """Bounds of one graph."""

    concurrency: int = 5
    max_nodes: int = 100
    attempts_per_node: int = 5
    rounds_per_attempt: int = 3
    replans: int = 3
    timeout_extensions: int = 20


@dataclass(slots=True)
class Source:
    """Where a plan came from; `sha256` covers the exact bytes that were read."""

    kind: str  # workflow, file, text, nodes
    name: str | None = None
    path: str | None = None
    sha256: str | None = None


@dataclass(slots=True)
class HistoryEntry:
    """One line of the last 64 that every snapshot carries."""

    at: int
    rev: int
    kind: str
    node: str | None = None
    detail: str | None = None


@dataclass(slots=True, frozen=True)
class Cooling:
    """A provider's rest, in ms since the epoch. `since`: when the trouble began that went on without a pause."""

    since: int
    until: int
    reason: str


HISTORY_CAP = 64


@dataclass(slots=True)
class Graph:
    """One durable dependency graph. `counts` … `open_asks`, `early`, `slotless` and `removed` are derived."""

    id: str
    title: str
    objective: str
    source: Source
    workspace: str
    created_at: int
    updated_at: int
    owner: str | None = None
    status: GraphStatus = "active"
    pause_reason: str | None = None
    paused_by: str | None = None
    pause_cause: str | None = (
        None  # stuck, lost, starts, agent, provider, usage: what has to be gone before it goes on by itself
    )
    outcome: Outcome | None = None
    stopping: Stopping | None = None
    is_finishing: bool = False
    failed_by: str | None = None  # the required node whose failure stops all (`on_required_failure: stop`)
    holding: tuple[str, ...] = ()  # ids of gates that asked for a new plan, which nobody has answered yet
    stepping: str | None = None  # the one node that may start, until it is settled
    plan_version: int = 0
    rev: int = 0
    environment: str | None = None
    delivery_node: str | None = None
    variables: dict[str, str] = field(default_factory=dict)  # inputs of the workflow, as GRAPHD_VAR_<name>
    replaces: str | None = None  # nothing of this graph starts before that one is gone
    limits: Limits = field(default_factory=Limits)
    budget: Budget | None = None
    terms: Terms = Terms()
    spent: Spent = field(default_factory=Spent)  # of all roles; the cost as far as it is known; wall time is busy time
    spent_by_role: dict[str, Spent] = field(default_factory=dict)
    cost_is_partial: bool = False
    busy_since: int | None = None  # when the first of its live attempts started
    cooling: dict[str, Cooling] = field(default_factory=dict)  # by profile, as its own attempts reported
    nodes: dict[str, Node] = field(default_factory=dict)
    attempts: dict[tuple[str, str, int], Attempt] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    live: dict[tuple[str, str, int], None] = field(default_factory=dict)  # keys of unsettled attempts
    ready: dict[str, None] = field(default_factory=dict)
    queue: list[tuple[tuple[int, int, int], str]] = field(default_factory=list)  # a heap; may hold stale entries
    open_asks: dict[str, None] = field(default_factory=dict)
    early: dict[str, None] = field(default_factory=dict)  # ready nodes that something comes before a slot for
    slotless: dict[str, None] = field(default_factory=dict)  # running nodes without attempt and slot
    last_start_at: int = 0
    replans: int = 0  # automatic ones
    removed: dict[str, None] = field(default_factory=dict)  # ids of nodes that a replan took out of the plan

    @property
    def slots_taken(self) -> int:
        """Running nodes with an attempt: one that waits, or joins its items, takes no slot."""
        return self.counts["running"] - len(self.slotless)

    @property
    def is_ended(self) -> bool:
        """Complete or cancelled."""
        return self.status in ("complete", "cancelled")

    @property
    def is_live(self) -> bool:
        """Not ended, and no wish to clear it stands."""
        return not self.is_ended and not (self.stopping is not None and self.stopping.verb == "clear")


@dataclass(slots=True)
class State:
    """All graphs of a workspace, and what the scheduler counts over them."""

    graphs: dict[str, Graph] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)  # graph id → the rev of its clearing
    running: int = 0  # slots taken
    running_by_profile: dict[str, int] = field(default_factory=dict)
    started_by_profile: dict[str, int] = field(default_factory=dict)  # when the last attempt of each started; volatile
    cooling: dict[str, Cooling] = field(default_factory=dict)  # by profile, over all graphs
    used: dict[tuple[str, tuple[str, str, int]], Spent] = field(default_factory=dict)
    """What live attempts say that they used so far: no part of the log, which has it with the settlement."""
    with_ready: dict[str, None] = field(default_factory=dict)  # ids of graphs that have a ready node
    timers: list[tuple[int, str, str]] = field(
        default_factory=list
    )  # a heap of (not before, graph, node); may be stale
    talks: dict[tuple[str, tuple[str, str, int]], Talking] = field(default_factory=dict)
    checks: dict[tuple[str, str], None] = field(default_factory=dict)  # (graph, node) whose results await a check
    are_queues_stale: bool = False  # a rollback took something back that the heaps still know
