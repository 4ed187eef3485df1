"""Wire models of what waits for a person: asks, answers, standing answers. Source: spec execution.md, People."""

from typing import Literal

from pydantic import Field

from graphd_protocol.values import Ask, Wire


class AsksParams(Wire):
    """`workgraph/asks`: the open ones, oldest first, unless said otherwise."""

    graph: str | None = None
    state: Literal["open", "answered", "withdrawn", "standing"] = "open"
    """`standing`: answers for an attempt or a graph that were not revoked."""


class RespondParams(Wire):
    """`workgraph/respond`: the first valid answer counts. `actionHash` binds it to what was shown."""

    ask: str
    """Its id, or the beginning of one."""
    action_hash: str
    option: str | None = None
    text: str | None = Field(default=None, max_length=16_384)
    scope: Literal["once", "attempt", "graph"] = "once"
    comment: str | None = Field(default=None, max_length=4096)
    request_id: str | None = Field(default=None, max_length=200)
    """Applied once, whatever happens to the connection."""
    dry_run: bool = False
    settle: bool = False


class RevokeParams(Wire):
    """`workgraph/revoke`: a standing answer covers nothing more."""

    ask: str
    request_id: str | None = Field(default=None, max_length=200)
    """Applied once, whatever happens to the connection."""
    dry_run: bool = False
    settle: bool = False


class AskClosed(Wire):
    """An ask that needs no answer any more. Without `by` it was withdrawn."""

    id: str
    by: str | None = None
    answer: str | None = None


class AsksNotice(Wire):
    """`workgraph/asks`: questions that came and went since the last one."""

    opened: list[Ask] = Field(default=[], json_schema_extra={"alwaysThere": True})
    closed: list[AskClosed] = Field(default=[], json_schema_extra={"alwaysThere": True})
