"""Wire models of what leaves and enters: export, import, purge, deliveries, and the hand-over to a newer daemon.

Source: spec protocol.md, Methods; model.md, Log, snapshot, interchange.
"""

from typing import Literal

from pydantic import Field

from graphd_protocol.values import Delivery, Wire


class HandoverParams(Wire):
    """`graphd/handover`: a newer version asks for the workspace; the daemon stops, and its children go on."""

    version: str = Field(min_length=1, max_length=100)
    protocol: list[int] = Field(min_length=2, max_length=2)
    """The lowest and the highest number that the newer one speaks."""


class ExportParams(Wire):
    """`workgraph/export`."""

    graph: str | None = None
    version: Literal[1, 2] = 2
    """1 refuses what it has no words for."""


class ExportResult(Wire):
    """`workgraph/change` lines, each one JSON text."""

    lines: list[str]


class ImportParams(Wire):
    """`workgraph/import`: lines of an export; the last change counts. An active graph becomes user_paused."""

    lines: list[str] = Field(min_length=1)
    owner: str | None = None
    """Left out: the owner that the lines name."""
    new_id: bool = False
    """Make another graph of it, where its own id is taken."""
    request_id: str | None = Field(default=None, max_length=200)
    dry_run: bool = False
    settle: bool = False


class PurgeParams(Wire):
    """`workgraph/purge`: one ended graph, or all that ended so long ago."""

    graph: str | None = None
    older_than_days: float | None = Field(default=None, ge=0)
    transcripts: bool = False
    """Remove only what attempts left on the disk; the graphs stay."""


class PurgeResult(Wire):
    """What was removed."""

    graphs: list[str]
    bytes: int


class DeliveriesParams(Wire):
    """`workgraph/deliveries`: what an owner has not acknowledged yet."""

    owner: str | None = None
    after: str | None = None
    wait_ms: int = Field(default=0, ge=0, le=30_000)
    """Wait so long for one where there is none."""


class DeliveriesResult(Wire):
    """Oldest first; `next` is what to ask after."""

    deliveries: list[Delivery]
    next: str | None = None


class AcknowledgeParams(Wire):
    """`workgraph/acknowledge`: these are not sent again. Repeating it is harmless."""

    deliveries: list[str]


class AcknowledgeResult(Wire):
    """All that are acknowledged now."""

    deliveries: list[str]
