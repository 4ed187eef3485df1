"""Wire models of notifications, `workgraph/changed` apart. Source: spec protocol.md, Notifications."""

from typing import Literal

from graphd_protocol.states import Phase
from graphd_protocol.values import Wire


class NodeActivity(Wire):
    """Volatile: moves no rev."""

    node: str
    attempt: int
    phase: Phase
    since: int
    last_line: str | None = None
    cool_down_until: int | None = None
    """When the rest of its provider is over."""


class Activity(Wire):
    """`workgraph/activity`."""

    graph: str
    nodes: list[NodeActivity]


class OutputChunk(Wire):
    """`workgraph/output` as a notification; `skipped` says how many bytes a slow client missed."""

    graph: str
    node: str
    attempt: int
    offset: int
    text: str
    skipped: int | None = None


class Notice(Wire):
    """`graphd/notice`."""

    severity: Literal["info", "warning", "error"]
    code: str
    text: str
    hint: str = ""


class StoppingNotice(Wire):
    """`graphd/stopping`, the last frame of a connection."""

    reason: str
    reconnect: bool
