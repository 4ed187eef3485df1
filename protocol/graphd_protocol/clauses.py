"""Wire models of what a node asks for beside its work, and of what a graph is set under.

As in a workflow file, in camelCase. Source: spec workflow.md, Graph and Node.
"""

from typing import Literal

from pydantic import Field

from graphd_protocol.bases import Wire


class Gate(Wire):
    """The node's output is a verdict; REVISE sends the path from `revise` back."""

    revise: str | None = None
    max_revisions: int = Field(default=2, ge=0, le=100)


class Verify(Wire):
    """How a result is checked: a command, or a worker with criteria."""

    run: str | None = None
    worker: str | None = None
    criteria: str = ""


class Approval(Wire):
    """A person is asked before the node takes a slot."""

    prompt: str = ""
    default: Literal["allow", "deny"] | None = None
    """The answer where nobody can be asked."""


class Wait(Wire):
    """The node has no worker: it settles at a time (`until`), or by a signal."""

    until: str | None = None
    signal: str | None = None
    timeout_s: float | None = None


class ForEach(Wire):
    """One node per item of a list."""

    source: str = Field(alias="in")
    name: str = Field(alias="as")
    max: int = Field(default=50, ge=1, le=10_000)


class Item(Wire):
    """A node that a `forEach` node made: whose, which (from 1), and the item as JSON."""

    of: str
    index: int
    value: str


class Review(Wire):
    """The node's place in a review."""

    phase: Literal["design", "diff"]
    implementation_node_id: str | None = None
    verification_node_id: str | None = None


class Budget(Wire):
    """What a graph may use over its life; what is left out is not bounded."""

    tokens: int | None = Field(default=None, ge=1)
    cost_usd: float | None = Field(default=None, ge=0)
    wall_seconds: float | None = Field(default=None, gt=0)


class Pruned(Wire):
    """A node that is taken out of a workflow at its start, and why."""

    node: str
    reason: str


class Terms(Wire):
    """What a graph was set under, beside limits and budget."""

    mode: Literal["standard", "deep"] = "standard"
    admission: str | None = None
    """SHA-256 of the brief that a deep run started from."""
    on_required_failure: Literal["drain", "stop"] = "drain"
    isolation: Literal["none", "graph", "node"] = "none"
    on_shared_tree: Literal["notice", "serialise"] = "notice"
    final_check: bool = False
    pruned: list[Pruned] = []
