"""What graphs, nodes, attempts and events look like in frames, and the base of all wire models.

camelCase by one generator; unknown fields in params are refused by name. Node references (`needs`, `node`,
`discoveredFrom`) are slugs. Times are ms since the epoch. In results a field that says nothing is left out: one whose
default here is None or an empty list, unless `alwaysThere` is said of it. Source: spec protocol.md and model.md.
"""

from typing import Any, Literal

from pydantic import Field

from graphd_protocol.bases import Wire as Wire
from graphd_protocol.clauses import Approval, Budget, ForEach, Gate, Item, Review, Terms, Verify, Wait
from graphd_protocol.states import (
    ActorKind,
    AskKind,
    AskState,
    AttemptOutcome,
    AttemptState,
    DeliveryKind,
    FailureClass,
    GraphStatus,
    NodeState,
    Outcome,
    Permissions,
    Phase,
    Role,
    SkipReason,
    StopVerb,
    Verdict,
)


class Output(Wire):
    """A node's result. In snapshots `text` is cut at 4 KiB; `workgraph/output` reads all of it."""

    text: str
    total: int
    """Bytes of the whole result."""
    media_type: str
    is_cut: bool = False


class Failure(Wire):
    """Why a node failed."""

    failure_class: FailureClass = Field(alias="class")
    reason: str
    attempt: str | None = None


class Spent(Wire):
    """What was used; `costUsd` null means unknown."""

    tokens: int = 0
    cost_usd: float | None = 0.0
    wall_ms: int = 0


class Spending(Spent):
    """What a graph used: settled attempts of every role. `wallMs` is time in which at least one node ran."""

    cost_is_partial: bool = False
    """Some cost is not known: `costUsd` is what is known of it."""
    roles: dict[str, Spent] = {}
    """The same by role; wall time is the attempts' own there."""


class Waited(Wire):
    """Seconds in which an attempt's clock stood still: for a person, and for a provider's rest."""

    person: float
    provider: float


class Retry(Wire):
    """Automatic retries."""

    max: int = Field(default=0, ge=0, le=100)
    backoff_s: float = Field(default=5, ge=0, le=86_400)
    on: list[FailureClass] = ["exec_failed", "timeout"]


class Node(Wire):
    """One node as the snapshot shows it."""

    id: str
    slug: str
    title: str
    spec: str
    worker: str
    needs: list[str]
    condition: str | None = None
    required: bool
    """Where it fails, what needs it is blocked."""
    state: NodeState
    phase: Phase | None = None
    attempts: int
    """Counted ones; numbers run on."""
    rounds: int
    output: Output | None = None
    failure: Failure | None = None
    skip: SkipReason | None = None
    cancel_reason: str | None = None
    blocked_by: str | None = None
    removed_in: int | None = None
    """The plan version that took it out of the plan; views hide it."""
    child_session: str | None = None
    discovered_from: list[str] = []
    timeout_ms: int
    retry: Retry
    report_to_parent: bool
    priority: int
    gate: Gate | None = None
    verify: Verify | None = None
    output_schema: dict[str, Any] | None = None
    approval: Approval | None = None
    wait: Wait | None = None
    for_each: ForEach | None = None
    item: Item | None = None
    review: Review | None = None
    artifacts: list[str] = []
    writes: list[str] = []
    isolation: Literal["none", "graph", "node"] | None = None
    permissions: Permissions | None = None
    model: str | None = None
    thinking: str | None = None
    mode: str | None = None
    max_tool_calls: int | None = None
    unattended_extensions: int | None = None
    verdict: Verdict | None = None
    """Of a gate."""
    findings: str | None = None
    """What the gate said that sent this work back."""
    wake_at: int | None = None
    """When what it waits for is due, or has taken too long."""
    not_before: int | None = None
    """It is tried again then."""
    changed_at: int
    """The rev of its last change."""
    started_at: int | None = None
    ended_at: int | None = None
    spent: Spent


class Stopping(Wire):
    """A stop that was wished for; `left` names the nodes whose trees are not yet proven empty."""

    verb: StopVerb
    by: str
    at: int
    left: list[str]


class HistoryEntry(Wire):
    """One line of the last 64."""

    at: int
    rev: int
    kind: str
    node: str | None = None
    detail: str | None = None


class Limits(Wire):
    """Bounds of one graph."""

    concurrency: int = Field(default=5, ge=1, le=64)
    max_nodes: int = Field(default=100, ge=1, le=10_000)
    attempts_per_node: int = Field(default=5, ge=1, le=100)
    rounds_per_attempt: int = Field(default=3, ge=1, le=8)
    replans: int = Field(default=3, ge=0, le=10)
    timeout_extensions: int = Field(default=20, ge=0, le=1000)


class Source(Wire):
    """Where the plan came from."""

    kind: Literal["workflow", "file", "text", "nodes"]
    name: str | None = None
    path: str | None = None
    sha256: str | None = None


class Ask(Wire):
    """A question that waits for an answer."""

    id: str
    kind: AskKind
    graph: str | None = None
    node: str | None = None
    attempt: int | None = None
    title: str
    action: dict[str, Any]
    action_hash: str
    options: list[dict[str, str]]
    scopes: list[str]
    opened_at: int
    deadline_at: int | None = None
    default: str | None = None
    """The option that the deadline brings."""
    state: AskState
    answered_by: str | None = None
    option: str | None = None
    """The answer, where it was one of the options."""
    text: str | None = None
    scope: str | None = None
    comment: str | None = None
    rule: str | None = None
    """What an answer for the attempt or the graph would cover: a tool kind and a glob."""


class Delivery(Wire):
    """A result that waits for its owner's acknowledgement."""

    id: str
    owner: str
    graph: str
    node: str | None = None
    kind: DeliveryKind
    text: str
    created_at: int


class Header(Wire):
    """A graph without its nodes."""

    id: str
    owner: str | None = None
    title: str
    objective: str
    status: GraphStatus
    pause_reason: str | None = None
    outcome: Outcome | None = None
    stopping: Stopping | None = None
    stepping: str | None = None
    """The one node that may start, until it is settled."""
    plan_version: int
    rev: int
    counts: dict[str, int]
    """How many nodes are in each state; states without any are left out."""
    spent: Spending
    limits: Limits
    budget: Budget | None = None
    terms: Terms | None = None
    """Left out where they are the usual ones."""
    workspace: str
    source: Source
    delivery_node: str | None = None
    """Its output is the graph's result."""
    created_at: int
    updated_at: int


class Snapshot(Header):
    """The whole value of a graph at one rev; version 2 of the interchange form."""

    nodes: list[Node]
    proposals: list[dict[str, Any]] = []
    """Each a `Proposal`: edits that wait for acceptance."""
    asks: list[Ask] = Field(default=[], json_schema_extra={"alwaysThere": True})
    """The open ones."""
    history: list[HistoryEntry]
    """The last 64."""


class Attempt(Wire):
    """One try of a node."""

    id: str
    """slug@number, or slug.role@number of one that is no worker's"""
    graph: str
    node: str
    role: Role
    number: int
    state: AttemptState
    outcome: AttemptOutcome | None = None
    failure_class: FailureClass | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    worker: str
    profile: str
    pid: int | None = None
    keeper_pid: int | None = None
    stuck_pids: list[int] = []
    """Processes whose death cannot be proven."""
    started_at: int
    ended_at: int | None = None
    deadline_at: int | None = None
    waited_s: Waited | None = None
    limit: Budget | None = None
    """The rest of the graph's budget, where that was all that there was for it."""
    spent: Spent
    is_counted: bool
    """It counts against `limits.attemptsPerNode`."""


class Actor(Wire):
    """Who caused an event."""

    kind: ActorKind
    client: str | None = None
    attempt: str | None = None


class Event(Wire):
    """One entry of the log."""

    graph: str
    rev: int
    index: int
    """Its place within the rev."""
    at: int
    kind: str
    node: str | None = None
    payload: dict[str, Any]
    actor: Actor


class Position(Wire):
    """Zero-based line and character, in UTF-16 code units as LSP counts."""

    line: int
    character: int


class Range(Wire):
    """From start to end, the end excluded."""

    start: Position
    end: Position


class Diagnostic(Wire):
    """What is wrong with a workflow, where, and what to do."""

    severity: Literal["error", "warning"]
    code: str
    path: str
    range: Range
    message: str
    hint: str
