"""Wire models of `workgraph/signal`: something happened outside. Source: spec protocol.md; workflow.md, Node."""

from typing import Any

from pydantic import Field

from graphd_protocol.bases import Wire


class SignalParams(Wire):
    """`workgraph/signal`: to every live graph that has a wait for this name."""

    name: str = Field(min_length=1, max_length=128)
    payload: Any = None
    """Any JSON value of at most 64 KiB: the output of what it wakes."""
    idempotency_key: str | None = Field(default=None, max_length=200)
    """A second signal with this key changes nothing and is answered like the first."""


class Signalled(Wire):
    """One node that waits."""

    graph: str
    node: str


class SignalResult(Wire):
    """Who heard it."""

    woke: list[Signalled] = Field(default=[], json_schema_extra={"alwaysThere": True})
    kept: list[Signalled] = []
    """Nodes that do not wait yet: it is kept for each of them."""
