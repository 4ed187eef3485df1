"""Wire models of the living plan: edits, proposals, files that are applied. Source: spec protocol.md, Methods."""

from pydantic import Field

from graphd_protocol.mutations import Mutation, NodeParams
from graphd_protocol.plan_diffs import RemovedNode
from graphd_protocol.values import Wire


class NodePatch(NodeParams):
    """A change of one node: the keys that are sent, beside the name; null puts one back to its default."""

    spec: str = ""


class ExtendParams(Mutation):
    """`workgraph/extend`."""

    nodes: list[NodeParams]


class ReplanParams(Mutation):
    """`workgraph/replan`: all of it happens as one plan version, or nothing."""

    add: list[NodeParams] = []
    change: list[NodePatch] = []
    remove: list[RemovedNode] = []
    restart: list[str] = []
    """With every node that read their output."""
    cancel_nodes: list[str] = []
    """They stay in the plan, and may be retried."""
    resume: bool = False
    """A paused graph goes on."""
    reason: str | None = Field(default=None, max_length=2000)


class ApplyParams(Mutation):
    """`workgraph/apply`: the plan in a file against the graph that was started from it; answers with a proposal."""

    file: str
    text: str | None = None
    """The bytes of the file as they were read."""


class AcceptParams(Mutation):
    """`workgraph/accept`; where `graph` is left out, in the graph that has the proposal."""

    proposal: str


class DismissParams(Mutation):
    """`workgraph/dismiss`; where `graph` is left out, in the graph that has the proposal."""

    proposal: str
    reason: str | None = Field(default=None, max_length=2000)


class SaveParams(Wire):
    """`workgraph/save`: writes `.agents/workflows/NAME.yaml` in the workspace."""

    graph: str | None = None
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    force: bool = False
    """Put it in the place of a file that is there."""
    dry_run: bool = False
    """Answer with the text, write nothing."""


class SaveResult(Wire):
    """The file, and what it says."""

    path: str
    text: str


class RerunParams(Mutation):
    """`workgraph/rerun`: the plan as the graph has it now, as a new graph."""

    start: bool = True
