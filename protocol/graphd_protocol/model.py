"""Wire models: what stands in frames. camelCase by one generator; unknown fields in params are refused by name.

Node references (`needs`, `node`, `discoveredFrom`) are slugs on the wire; every method takes a slug or an id. Times are
ms since the epoch. Source: spec protocol.md and model.md.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

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
    Phase,
    Role,
    SkipReason,
    StopVerb,
)


class Wire(BaseModel):
    """Base of everything on the wire."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


# ---- values -------------------------------------------------------------------------------------------------------


class Output(Wire):
    """A node's result. In snapshots `text` is cut at 4 KiB; `workgraph/output` reads all of it."""

    text: str
    total: int
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
    state: NodeState
    phase: Phase | None = None
    attempts: int
    rounds: int
    output: Output | None = None
    failure: Failure | None = None
    skip: SkipReason | None = None
    cancel_reason: str | None = None
    blocked_by: str | None = None
    child_session: str | None = None
    discovered_from: list[str] = []
    timeout_ms: int
    retry: Retry
    report_to_parent: bool
    priority: int
    not_before: int | None = None
    changed_at: int
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
    state: AskState
    answered_by: str | None = None


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
    plan_version: int
    rev: int
    counts: dict[str, int]
    spent: Spent
    limits: Limits
    workspace: str
    source: Source
    delivery_node: str | None = None
    created_at: int
    updated_at: int


class Snapshot(Header):
    """The whole value of a graph at one rev; version 2 of the interchange form."""

    nodes: list[Node]
    proposals: list[dict[str, Any]] = []
    asks: list[Ask] = []
    history: list[HistoryEntry]


class Attempt(Wire):
    """One try of a node."""

    id: str  # slug@number
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
    started_at: int
    ended_at: int | None = None
    deadline_at: int | None = None
    spent: Spent
    is_counted: bool


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


# ---- graphd/* -----------------------------------------------------------------------------------------------------


class Client(Wire):
    """Who connects."""

    name: str
    version: str
    pid: int | None = None


class Owner(Wire):
    """The parent agent that this connection speaks for."""

    id: str
    mode: Literal["auto", "ask", "off"] | None = None


class HelloParams(Wire):
    """`graphd/hello`. Read by hand in the server (it answers without pydantic); a test holds both to each other."""

    client: Client
    protocol: tuple[int, int]
    workspace: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    interactive: bool | None = None
    locale: str | None = None
    owner: Owner | None = None
    attempt_token: str | None = None


class Daemon(Wire):
    """Which daemon answers."""

    version: str
    pid: int
    started_at: int
    epoch: int


class HelloResult(Wire):
    """What was agreed."""

    protocol: int
    daemon: Daemon
    store: str
    workspace: str
    principal: Literal["attempt", "agent", "user"]
    limits: dict[str, int]


class Empty(Wire):
    """No params."""


class ConnectionHealth(Wire):
    """One connection as health shows it."""

    client: str
    principal: str
    bytes_in_flight: int
    frames_in_flight: int


class Health(Wire):
    """`graphd/health`."""

    store: Literal["ok", "full", "readOnly"]
    loop_lag_ms: float
    connections: list[ConnectionHealth]
    epoch: int
    starts: int
    pid: int
    version: str
    socket: str
    workspace: str
    rss_bytes: int


class StopParams(Wire):
    """`graphd/stop`: leave keeps the children with their keepers, cancel ends all graphs first."""

    mode: Literal["leave", "cancel"] = "leave"


class Check(Wire):
    """One line of the doctor."""

    id: str
    ok: bool
    detail: str
    fix: str = ""


# ---- workgraph/* params -------------------------------------------------------------------------------------------


class Mutation(Wire):
    """What every mutation takes beside its own fields."""

    graph: str | None = None
    expected_rev: int | None = None
    expected_plan: int | None = None
    request_id: str | None = Field(default=None, max_length=200)
    dry_run: bool = False
    settle: bool = False


class NodeParams(Wire):
    """A node given inline to `set`."""

    slug: str
    spec: str
    title: str = ""
    worker: str = "shell"
    needs: list[str] = []
    condition: str | None = None
    required: bool = True
    timeout_ms: int = Field(default=600_000, ge=1000)
    hard_timeout_ms: int | None = Field(default=None, ge=1000)
    retry: Retry = Retry()
    on_lost: Literal["resume", "pause", "fail"] = "resume"
    priority: int = Field(default=0, ge=-100, le=100)
    input_mapping: dict[str, str] = {}
    report_to_parent: bool = False


class SetParams(Wire):
    """`workgraph/set`: exactly one of workflow, file, text and nodes; `file` with `text` are a file's bytes as read.

    So a person's consent covers what was read, not what lies there a moment later (execution.md, Trust 1).
    """

    workflow: str | None = None
    file: str | None = None
    text: str | None = None
    nodes: list[NodeParams] | None = None
    objective: str | None = None
    inputs: dict[str, Any] = {}
    title: str | None = None
    owner: str | None = None
    limits: Limits | None = None
    start: bool = True
    replace: str | None = None
    request_id: str | None = Field(default=None, max_length=200)
    dry_run: bool = False
    settle: bool = False


class PauseParams(Mutation):
    """`workgraph/pause`."""

    mode: Literal["drain", "stop"] = "drain"
    settle_seconds: float | None = None
    reason: str | None = None


class ResumeParams(Mutation):
    """`workgraph/resume`."""


class RetryParams(Mutation):
    """`workgraph/retry`: one node, or all."""

    node: str | None = None
    all: bool = False


class CancelParams(Mutation):
    """`workgraph/cancel`."""

    reason: str | None = None


class ClearParams(Mutation):
    """`workgraph/clear`."""


class FinishParams(Mutation):
    """`workgraph/finish`."""

    reason: str


class ReleaseParams(Mutation):
    """`workgraph/release`: names exactly the pids that the stuck attempt shows."""

    node: str
    pids: list[int]


class MutationResult(Wire):
    """What a mutation answers, after its commit."""

    graph: str
    rev: int
    stopping: list[str] | None = None
    preview: Snapshot | None = None


class GraphParams(Wire):
    """Names a graph by id, unique prefix, workflow name (its latest run) or `@last`."""

    graph: str | None = None


class NodeRef(Wire):
    """Names a node of a graph."""

    graph: str | None = None
    node: str


class ListParams(Wire):
    """`workgraph/list`, newest first."""

    status: GraphStatus | Literal["live"] | None = None
    owner: str | None = None
    after: str | None = None
    limit: int = Field(default=100, ge=1, le=1000)


class ListResult(Wire):
    """Headers."""

    graphs: list[Header]
    next: str | None = None


class NodeResult(Wire):
    """`workgraph/node`."""

    node: Node
    attempts: list[Attempt]
    deliveries: list[Delivery]


class SubscribeParams(Wire):
    """`workgraph/subscribe`."""

    graphs: list[str] | None = None
    since: dict[str, int] | None = None
    store: str | None = None
    activity: bool = False
    output: list[NodeRef] = []


class Changed(Wire):
    """`workgraph/changed`: all that changed after `from`, up to `rev`."""

    operation: str
    graph: str
    from_: int = Field(alias="from")
    rev: int
    header: Header | None = None
    nodes: list[Node] | None = None
    asks: list[Ask] | None = None
    proposals: list[dict[str, Any]] | None = None
    history: list[HistoryEntry] | None = None
    full: bool | None = None
    cleared: dict[str, Any] | None = None


class SubscribeResult(Wire):
    """A subscription, and the values to start from."""

    subscription: str
    store: str
    graphs: list[Changed]


class UnsubscribeParams(Wire):
    """`workgraph/unsubscribe`."""

    subscription: str


class HistoryParams(Wire):
    """`workgraph/history`: events after a rev."""

    graph: str | None = None
    after: int = 0
    limit: int = Field(default=200, ge=1, le=1000)
    kinds: list[str] | None = None


class HistoryResult(Wire):
    """Whole revs only; `next` is the rev to ask after."""

    events: list[Event]
    next: int | None = None


class Why(Wire):
    """One reason why a node or a graph is where it is, and what to type next."""

    code: str
    since: int | None = None
    on: str | None = None
    detail: str
    next: str


class OutputParams(Wire):
    """`workgraph/output`: bytes `offset` … of a captured result."""

    graph: str | None = None
    node: str
    attempt: int | None = None
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=65_536, ge=1, le=1_048_576)


class OutputResult(Wire):
    """A slice of an output; offsets are bytes, cut at character borders."""

    text: str
    offset: int
    total: int
    media_type: str


class ObserveParams(Wire):
    """`workgraph/observe`: what an attempt printed, from a cursor of an earlier answer."""

    graph: str | None = None
    node: str
    attempt: int | None = None
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=50)


class ObservedItem(Wire):
    """One piece of an attempt's life."""

    kind: Literal["text", "thought", "tool", "ask", "plan", "usage"]
    at: int
    text: str | None = None
    tool: str | None = None


class ObserveResult(Wire):
    """Items, where to go on, and whether more can come."""

    items: list[ObservedItem]
    cursor: str
    live: bool
    attempt: int


class WorkflowParams(Wire):
    """A workflow by its file or its text."""

    file: str | None = None
    text: str | None = None
    inputs: dict[str, Any] = {}


class ValidateResult(Wire):
    """`workgraph/validate`."""

    diagnostics: list[Diagnostic]


class ExplainResult(Wire):
    """`workgraph/explain`: the compiled nodes, layer by layer."""

    title: str
    objective: str
    nodes: list[dict[str, Any]]
    waves: list[list[str]]
    warnings: list[Diagnostic]


class WorkflowEntry(Wire):
    """One workflow that can be run by name."""

    name: str
    title: str
    path: str
    source: Literal["workspace", "user", "bundled"]
    shadows: list[str]
    inputs: dict[str, Any]
    is_valid: bool


class AgentEntry(Wire):
    """One profile."""

    name: str
    driver: str
    installed: bool
    version: str | None = None
    path: str | None = None
    searched: list[str] = []
    problems: list[str] = []


class ProcessEntry(Wire):
    """One process tree that we keep."""

    graph: str
    node: str | None = None
    attempt: int
    role: Role
    pid: int | None = None
    started_at: int
    rss_bytes: int
    cpu_s: float
    keeper_pid: int | None = None
    state: AttemptState


# ---- notifications ------------------------------------------------------------------------------------------------


class NodeActivity(Wire):
    """Volatile: moves no rev."""

    node: str
    attempt: int
    phase: Phase
    since: int
    last_line: str | None = None


class Activity(Wire):
    """`workgraph/activity`."""

    graph: str
    nodes: list[NodeActivity]


class OutputChunk(Wire):
    """`workgraph/output` as a notification; `skipped` says how many bytes a slow client missed."""

    graph: str
    node: str
    attempt: int
    offset: int
    text: str
    skipped: int | None = None


class Notice(Wire):
    """`graphd/notice`."""

    severity: Literal["info", "warning", "error"]
    code: str
    text: str
    hint: str = ""


class StoppingNotice(Wire):
    """`graphd/stopping`, the last frame of a connection."""

    reason: str
    reconnect: bool
