"""Wire models of what changes a graph: `set` and the verbs. Source: spec protocol.md, Methods; model.md, Verbs."""

from typing import Any, Literal

from pydantic import Field

from graphd_protocol.clauses import Approval, Budget, ForEach, Gate, Pruned, Review, Verify, Wait
from graphd_protocol.plan_diffs import PlanDiff
from graphd_protocol.states import Permissions
from graphd_protocol.values import Limits, Retry, Snapshot, Wire


class Mutation(Wire):
    """What every mutation takes beside its own fields."""

    graph: str | None = None
    expected_rev: int | None = None
    """Refused with `conflict` where the graph is at another one."""
    expected_plan: int | None = None
    request_id: str | None = Field(default=None, max_length=200)
    """Applied once, whatever happens to the connection."""
    dry_run: bool = False
    """Answer with a `preview`, change nothing."""
    settle: bool = False
    """Answer when the last process has ended, or after a while."""


class NodeParams(Wire):
    """A node given inline to `set`."""

    slug: str
    spec: str = ""
    title: str = ""
    worker: str | None = None
    """Default: `shell`; nobody for a node that waits."""
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
    gate: Gate | None = None
    verify: Verify | None = None
    output_schema: dict[str, Any] | None = None
    approval: bool | Approval | None = None
    wait: Wait | None = None
    """A node that waits has no spec and no worker."""
    for_each: ForEach | None = None
    review: Review | None = None
    artifacts: list[str] = []
    writes: list[str] = []
    isolation: Literal["none", "graph", "node"] | None = None
    permissions: Permissions | None = None
    model: str | None = None
    thinking: Literal["low", "medium", "high", "max"] | None = None
    mode: str | None = None
    max_tool_calls: int | None = Field(default=None, ge=1, le=1_000_000)
    unattended_extensions: int | None = Field(default=None, ge=0, le=1000)


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
    budget: Budget | None = None
    """Key by key before what the workflow says; the same goes for `limits`."""
    limits: Limits | None = None
    prune: list[Pruned] = []
    """Nodes that are taken out of the workflow; what they need passes to what needed them."""
    extend: list[NodeParams] = []
    """Nodes that are added to the workflow."""
    delivery_node: str | None = None
    on_required_failure: Literal["drain", "stop"] | None = None
    isolation: Literal["none", "graph", "node"] | None = None
    on_shared_tree: Literal["notice", "serialise"] | None = None
    final_check: bool | None = None
    start: bool = True
    replace: str | None = None
    """A graph that is cleared in the same commit."""
    request_id: str | None = Field(default=None, max_length=200)
    """Applied once, whatever happens to the connection."""
    dry_run: bool = False
    settle: bool = False


class PauseParams(Mutation):
    """`workgraph/pause`."""

    mode: Literal["drain", "stop"] = "drain"
    settle_seconds: float | None = None
    reason: str | None = None


class ResumeParams(Mutation):
    """`workgraph/resume`."""

    top_up: Budget | None = None
    """The budget becomes what is spent and this, in the units that it has."""


class StepParams(Mutation):
    """`workgraph/step`: one node, by default the next in order."""

    node: str | None = None


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


class ExtendTimeoutParams(Mutation):
    """`workgraph/extendTimeout`."""

    node: str
    by_ms: int = Field(ge=1000, le=604_800_000)
    """How much longer it may work."""


class MutationResult(Wire):
    """What a mutation answers, after its commit."""

    graph: str
    rev: int
    stopping: list[str] | None = None
    """Nodes whose processes have still to end."""
    preview: Snapshot | None = None
    diff: PlanDiff | None = None
    """What edits of the plan come to; of a dry run, and of `apply`."""
    proposal: str | None = None
    """What waits to be accepted."""
