"""Wire models of what changes a graph: `set` and the verbs. Source: spec protocol.md, Methods; model.md, Verbs."""

from typing import Any, Literal

from pydantic import Field

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
    """Nodes whose processes have still to end."""
    preview: Snapshot | None = None
