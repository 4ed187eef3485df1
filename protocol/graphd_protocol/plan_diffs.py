"""What edits change in a plan, as it is shown before and after. Source: spec protocol.md; model.md, Verbs (replan)."""

from graphd_protocol.states import NodeState
from graphd_protocol.values import Wire


class RemovedNode(Wire):
    """A node that leaves the plan, and why."""

    node: str
    reason: str


class ChangedNode(Wire):
    """A node that is defined anew."""

    node: str
    fields: list[str]
    """Which keys of it differ."""


class StoppedNode(Wire):
    """A running node whose process ends first; what it is then."""

    node: str
    then: NodeState


class MovedNode(Wire):
    """A node whose state changes at once."""

    node: str
    origin: NodeState
    state: NodeState


class PlanDiff(Wire):
    """What becomes of a plan, by slug."""

    added: list[str] = []
    changed: list[ChangedNode] = []
    removed: list[RemovedNode] = []
    stopped: list[StoppedNode] = []
    moved: list[MovedNode] = []
    kept: list[str] = []
    """At rest, and no longer in the file: what is done stays."""


class Proposal(Wire):
    """Edits that wait for acceptance; the ask of the same id holds them whole."""

    id: str
    author: str
    reason: str
    plan_version: int
    """The plan that it was made for."""
    made_at: int
    add: list[str] = []
    change: list[ChangedNode] = []
    remove: list[RemovedNode] = []
    restart: list[str] = []
    cancel_nodes: list[str] = []
