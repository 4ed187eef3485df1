"""Wire models of `tree` and `picture`: what clients draw, computed by the daemon. Source: spec protocol.md, Methods."""

from typing import Any, Literal

from pydantic import Field

from graphd_protocol.states import NodeState
from graphd_protocol.values import Wire


class TreeParams(Wire):
    """`workgraph/tree`: without params the graphs, with a graph its nodes, with a node too its attempts."""

    graph: str | None = None
    node: str | None = None


class TreeCommand(Wire):
    """Something that can be done with a row."""

    title: str
    command: str
    """As in `workspace/executeCommand`."""
    arguments: list[dict[str, Any]]
    enabled: bool
    """The state admits it now; a client shows others greyed."""


class TreeRow(Wire):
    """One row of a tree view. A client draws it as it stands and asks again, with what the row names, to open it."""

    id: str
    """Stable over time: `graph`, `graph/node` or `graph/node@attempt`."""
    label: str
    description: str
    icon: str
    """A codicon's name."""
    state: str
    """A graph's status, a node's state or an attempt's state."""
    collapsible: Literal["none", "collapsed", "expanded"]
    context_value: str
    """`graph.<status>`, `node.<state>`, `attempt.<state>` or `more`."""
    commands: list[TreeCommand]


class PictureParams(Wire):
    """`workgraph/picture`: a graph of more than `maxNodes` nodes is drawn around what runs and what failed."""

    graph: str | None = None
    max_nodes: int = Field(default=100, ge=1, le=500)


class PlacedNode(Wire):
    """A box: `x` and `y` are its upper left corner, in units of about a pixel."""

    id: str
    """The node's slug."""
    x: int
    y: int
    w: int
    h: int
    label: str
    state: NodeState


class DrawnEdge(Wire):
    """From a node to one that needs it, always downwards."""

    from_: str = Field(alias="from")
    to: str
    points: list[tuple[int, int]]
    """A line from the lower edge of `from` to the upper edge of `to`."""


class Picture(Wire):
    """A layered drawing, and its twin in words."""

    graph: str
    rev: int
    width: int
    height: int
    layers: list[list[str]]
    """Slugs from left to right, top layer first."""
    nodes: list[PlacedNode]
    edges: list[DrawnEdge]
    hidden: int
    """So many nodes are not drawn."""
    text: str
    """One line a node, with its state and what it needs, layer by layer: for screen readers and terminals."""
    drawing: str | None = None
    """The same in box characters, where it fits into 120 columns."""
