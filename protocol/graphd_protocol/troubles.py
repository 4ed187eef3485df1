"""Wire models of what an error carries in `data`. Source: spec protocol.md, Errors."""

from typing import Any

from pydantic import ConfigDict, Field

from graphd_protocol.values import Wire


class BadField(Wire):
    """One param that does not fit."""

    path: str
    message: str
    expected: str
    got: str
    suggestions: list[str] = []


class ErrorFacts(Wire):
    """`data` of an error. Which of the facts are there depends on the code; there may be more than these."""

    model_config = ConfigDict(extra="allow")

    retryable: bool
    """The same request may succeed later."""
    code: str | None = None
    """A name from the table of errors, for all errors of ours."""
    hint: str | None = None
    """What to do, or to type, next."""
    graph: str | None = None
    node: str | None = None
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    rev: int | None = None
    plan_version: int | None = None
    suggestions: list[str] = []
    fields: list[BadField] = []
    """Of −32602."""
    graphs: list[dict[str, Any]] = []
    """Of `ambiguous`: what the name may mean, as `{id, title, status}`."""
    diagnostics: list[dict[str, Any]] = []
    """Of `invalidPlan`: for files as `validate` finds them, for inline nodes `{code, slug, message, hint}`."""
    inputs: list[str] = []
    """Of `inputMissing`."""
