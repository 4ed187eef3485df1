"""Wire models of what waits for a person, and of what a child says. Source: spec execution.md, People; protocol.md."""

from typing import Any, Literal

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


class SubmitResultParams(Wire):
    """`workgraph/submitResult`: what the attempt made. A text, or any JSON value; the last one of a turn counts."""

    output: Any


class ReportProgressParams(Wire):
    """`workgraph/reportProgress`: for people's eyes, never for decisions."""

    text: str = Field(min_length=1, max_length=4096)


class ReportDiscoveryParams(Wire):
    """`workgraph/reportDiscovery`: work that should be done too. The same title of the same attempt is the same."""

    title: str = Field(min_length=1, max_length=200)
    spec: str = Field(min_length=1, max_length=100_000)
    needs: list[str] = Field(default=[], max_length=64)


class ReportDiscoveryResult(Wire):
    """The proposal that waits for a person, or was settled already."""

    proposal: str


class AskParentParams(Wire):
    """`workgraph/askParent`: a question to people. The same words again wait for the same answer."""

    question: str = Field(min_length=1, max_length=16_384)
    wait_ms: int | None = Field(default=None, ge=0, le=3_600_000)
    """Left out: `askParentSeconds` of the settings."""


class AskParentResult(Wire):
    """Without `answer` nobody has answered yet (`open`), or nobody will (`answered` by a rule, `withdrawn`)."""

    ask: str
    state: Literal["open", "answered", "withdrawn"]
    answer: str | None = None
    answered_by: str | None = None


class ReadInputParams(Wire):
    """`workgraph/readInput`: bytes `offset` … of one of the attempt's inputs."""

    name: str
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=16_384, ge=1, le=1_048_576)


class ReadInputResult(Wire):
    """A slice of an input; offsets are bytes, cut at character borders."""

    text: str
    offset: int
    next: int
    """The offset to go on from."""
    total: int
