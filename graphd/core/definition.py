"""What a plan says of its nodes: values that never change within a plan version (spec model.md, Node; workflow.md)."""

from dataclasses import dataclass
from typing import Literal

from graphd_protocol.states import FailureClass, OnLost, Permissions


@dataclass(slots=True, frozen=True)
class Retry:
    """Automatic retries of a failed attempt: how many, after how long (doubling), for which failure classes."""

    max: int = 0
    backoff_s: float = 5
    on: tuple[FailureClass, ...] = ("exec_failed", "timeout")


@dataclass(slots=True, frozen=True)
class Gate:
    """A node whose output is a verdict. `revise` is an ancestor's slug: REVISE sends the path from it back."""

    revise: str | None = None
    max_revisions: int = 2


@dataclass(slots=True, frozen=True)
class Verify:
    """How a result is checked before it counts: a command (`run`), or a fresh child of `worker` with `criteria`."""

    run: str | None = None
    worker: str | None = None
    criteria: str = ""


@dataclass(slots=True, frozen=True)
class Wait:
    """A node without a worker: settles at a time or after a duration (`until`), or by a named signal."""

    until: str | None = None
    signal: str | None = None
    timeout_s: float | None = None


@dataclass(slots=True, frozen=True)
class ForEach:
    """One child node per item of a list: `source` as in `input_mapping`, bound to `name` in the prompt."""

    source: str
    name: str
    max: int = 50


@dataclass(slots=True, frozen=True)
class Item:
    """Marks a node that a `for_each` node made: whose, which (from 1), and the item as JSON text."""

    of: str
    index: int
    value: str


@dataclass(slots=True, frozen=True)
class Approval:
    """An ask that comes before the slot is taken; `default` (allow or deny) answers it where nobody can."""

    prompt: str = ""
    default: str | None = None


@dataclass(slots=True, frozen=True)
class Review:
    """The node's place in a review lifecycle (workflow.md, Node); the others are slugs."""

    phase: Literal["design", "diff"]
    implementation: str | None = None
    verification: str | None = None


@dataclass(slots=True, frozen=True)
class Budget:
    """What a graph may use over its life; None is no bound. `wall_ms` is time in which at least one node runs."""

    tokens: int | None = None
    cost_usd: float | None = None
    wall_ms: int | None = None


@dataclass(slots=True, frozen=True)
class Pruned:
    """A node that was taken out of a workflow at its start, and why."""

    node: str
    reason: str


@dataclass(slots=True, frozen=True)
class Terms:
    """What a graph was set under, beside limits and budget (workflow.md, Root and Graph).

    `admission` is the SHA-256 of the brief that a deep run starts from.
    """

    mode: Literal["standard", "deep"] = "standard"
    admission: str | None = None
    on_required_failure: Literal["drain", "stop"] = "drain"
    isolation: Literal["none", "graph", "node"] = "none"
    on_shared_tree: Literal["notice", "serialise"] = "notice"
    final_check: bool = False
    pruned: tuple[Pruned, ...] = ()


@dataclass(slots=True, frozen=True)
class Definition:
    """What a plan says of one node; immutable within a plan version. `needs` are slugs.

    `worker` is empty for a node that waits. `output_schema` is JSON text. What is None is the worker's or the
    profile's to say; `unattended_extensions` None means 2.
    """

    slug: str
    spec: str
    worker: str
    title: str = ""
    needs: tuple[str, ...] = ()
    condition: str | None = None
    required: bool = False
    timeout_ms: int = 600_000
    hard_timeout_ms: int | None = None
    retry: Retry = Retry()
    on_lost: OnLost = "resume"
    priority: int = 0
    input_mapping: tuple[tuple[str, str], ...] = ()
    report_to_parent: bool = False
    discovered_from: tuple[str, ...] = ()
    gate: Gate | None = None
    verify: Verify | None = None
    output_schema: str | None = None
    approval: Approval | None = None
    wait: Wait | None = None
    for_each: ForEach | None = None
    item: Item | None = None
    review: Review | None = None
    artifacts: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    isolation: Literal["none", "graph", "node"] | None = None
    permissions: Permissions | None = None
    model: str | None = None
    thinking: str | None = None
    mode: str | None = None
    max_tool_calls: int | None = None
    unattended_extensions: int | None = None

    @property
    def workers(self) -> tuple[str, ...]:
        """Whom it asks for: who works on it, and who checks that."""
        check = self.verify.worker if self.verify is not None else None
        return (self.worker,) if check is None else (self.worker, check)

    @property
    def takes_no_slot(self) -> bool:
        """It waits, or joins its items: it runs without attempt and slot (model.md, Attempt)."""
        return self.wait is not None or self.for_each is not None
