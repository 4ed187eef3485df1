"""Wire models of `graphd/*`: the greeting, and the daemon itself. Source: spec protocol.md, Methods."""

from typing import Literal

from graphd_protocol.values import Wire


class Client(Wire):
    """Who connects."""

    name: str
    version: str
    pid: int | None = None


class Owner(Wire):
    """The parent agent that this connection speaks for."""

    id: str
    mode: Literal["auto", "ask", "off"] | None = None


class HelloParams(Wire):
    """`graphd/hello`. Read by hand in the server (it answers without pydantic); a test holds both to each other."""

    client: Client
    protocol: tuple[int, int]
    """The lowest and the highest number that the client speaks."""
    workspace: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    """What children of graphs set on this connection get of it is allow-listed."""
    interactive: bool | None = None
    locale: str | None = None
    owner: Owner | None = None
    attempt_token: str | None = None


class Daemon(Wire):
    """Which daemon answers."""

    version: str
    pid: int
    started_at: int
    epoch: int


class WireLimits(Wire):
    """What a connection may send at most."""

    header_bytes: int
    body_bytes: int
    depth: int
    body_seconds: int
    requests: int
    connections: int


class HelloResult(Wire):
    """What was agreed."""

    protocol: int
    daemon: Daemon
    store: str
    """The database's id: revs of another store mean nothing here."""
    workspace: str
    principal: Literal["attempt", "agent", "user"]
    limits: WireLimits


class Empty(Wire):
    """No params."""


class ConnectionHealth(Wire):
    """One connection as health shows it."""

    client: str
    principal: str
    bytes_in_flight: int
    frames_in_flight: int


class Health(Wire):
    """`graphd/health`."""

    store: Literal["ok", "full", "readOnly"]
    loop_lag_ms: float
    connections: list[ConnectionHealth]
    epoch: int
    starts: int
    pid: int
    version: str
    socket: str
    workspace: str
    rss_bytes: int


class Slots(Wire):
    """How many attempts may run at once, run, and wait for a slot."""

    limit: int
    running: int
    queued: int


class CapacityLimits(Wire):
    """Limits of the whole daemon."""

    concurrency: int


class GraphBudget(Wire):
    """What a graph may use, has used, and has set aside."""

    graph: str
    limit: dict[str, float]
    spent: dict[str, float]
    reserved: dict[str, float]


class Capacity(Wire):
    """`graphd/capacity`."""

    available: bool
    """Something more would start now."""
    reasons: list[str]
    """Why not."""
    concurrency: Slots
    limits: CapacityLimits
    budgets: list[GraphBudget]
    agents: dict[str, int]
    """How many attempts run, by profile."""


class StopParams(Wire):
    """`graphd/stop`: leave keeps the children with their keepers, cancel ends all graphs first."""

    mode: Literal["leave", "cancel"] = "leave"


class DoctorParams(Wire):
    """`graphd/doctor`: `report` adds rows that help whoever reads a bug report, free of users' text."""

    report: bool = False


class Check(Wire):
    """One line of the doctor."""

    id: str
    ok: bool
    detail: str
    fix: str = ""


class CancelRequestParams(Wire):
    """`$/cancelRequest`."""

    id: int | str
