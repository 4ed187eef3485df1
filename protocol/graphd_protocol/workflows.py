"""Wire models of workflow files and of the agents that they name. Source: spec protocol.md, Methods."""

from typing import Any, Literal

from graphd_protocol.values import Diagnostic, Wire


class WorkflowParams(Wire):
    """A workflow by its file or its text."""

    file: str | None = None
    text: str | None = None
    inputs: dict[str, Any] = {}


class ValidateResult(Wire):
    """`workgraph/validate`."""

    diagnostics: list[Diagnostic]


class ExplainResult(Wire):
    """`workgraph/explain`: the compiled nodes, layer by layer."""

    title: str
    objective: str
    config: dict[str, Any] | None = None
    """What the graph has beside its nodes, where it is not at its default; in the words of a workflow file."""
    nodes: list[dict[str, Any]]
    """The same for nodes, everything written out."""
    waves: list[list[str]]
    """What can run together."""
    warnings: list[Diagnostic]


class DeclaredInput(Wire):
    """An input that a workflow takes; without a default it must be given."""

    type: str
    description: str
    default: Any = None
    enum: list[Any] = []


class WorkflowEntry(Wire):
    """One workflow that can be run by name."""

    name: str
    title: str
    path: str
    source: Literal["workspace", "user", "bundled"]
    shadows: list[str]
    """Files of the same name that this one stands before."""
    inputs: dict[str, DeclaredInput]
    is_valid: bool


class AgentsParams(Wire):
    """`workgraph/agents`. Programs are started with `probe` alone, which asks each for its version and capabilities."""

    probe: bool = False


class AgentEntry(Wire):
    """One profile."""

    name: str
    driver: str
    installed: bool
    version: str | None = None
    path: str | None = None
    searched: list[str]
    """Folders of PATH that were looked through."""
    capabilities: dict[str, Any] | None = None
    """What it answered to `initialize`, where it was asked."""
    reports: Literal["tokens", "cost", "both", "none", "not_applicable"] = "none"
    """What it tells of its usage."""
    install: str = ""
    login: str = ""
    standing: Literal["tested", "documented"] = "documented"
    """Whether it runs in our continuous tests, or was only measured and written down."""
    measured: str | None = None
    """The version that the profile was measured with."""
    workers: list[str] = []
    """Workers that it serves now, for this caller."""
    problems: list[str]
