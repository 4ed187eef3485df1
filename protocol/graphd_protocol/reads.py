"""Wire models of what shows graphs and their past, and of subscriptions. Source: spec protocol.md, Methods."""

from typing import Any, Literal

from pydantic import Field

from graphd_protocol.states import AttemptState, GraphStatus, Role
from graphd_protocol.values import Ask, Attempt, Delivery, Event, Header, HistoryEntry, Node, Wire


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
    """Left out: all, later ones too."""
    since: dict[str, int] | None = None
    """The rev held of each graph, after a lost connection."""
    store: str | None = None
    """The store that these revs are of."""
    activity: bool = False
    output: list[NodeRef] = []


class Tombstone(Wire):
    """What is left of a graph that was cleared."""

    id: str
    rev: int


class Changed(Wire):
    """`workgraph/changed`: all that changed after `from`, up to `rev`."""

    operation: str
    graph: str
    from_: int = Field(alias="from")
    """The rev that the client holds."""
    rev: int
    header: Header | None = None
    nodes: list[Node] | None = None
    """Whole nodes that changed: merge them by slug."""
    asks: list[Ask] | None = None
    proposals: list[dict[str, Any]] | None = None
    history: list[HistoryEntry] | None = None
    """Entries since `from`."""
    full: bool | None = None
    """`nodes` holds every node: forget what is held."""
    cleared: Tombstone | None = None
    """The graph is gone."""


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
    next: int
    """The offset to go on from: what the bytes of `text` say only where they are valid UTF-8."""
    total: int
    media_type: str


class DiffParams(Wire):
    """`workgraph/diff`: what an attempt changed; without `attempt` the last one."""

    graph: str | None = None
    node: str
    attempt: int | None = None


class HoldResult(Wire):
    """How to open the session that is held: a program's words, and where it has to stand.

    Whoever starts it locks `sessionLock` (flock, exclusive) before, and hands the descriptor on to it: the node then
    waits for the program's end, whatever becomes of this connection.
    """

    child_session: str
    cwd: str
    argv: list[str]
    session_lock: str | None = None


class RanBeside(Wire):
    """An attempt of another node that ran in the same tree at the same time: a patch may hold its changes too."""

    graph: str
    node: str
    attempt: int


class DiffResult(Wire):
    """A patch as `git apply` takes it, binary files apart, which it only names; `""` where nothing changed."""

    patch: str
    shared: list[RanBeside]


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
