"""Follow graphs over daemon restarts: reattach, subscribe again from the rev held, go on.

Source: spec product.md and protocol.md.

A daemon that dies is started again by the keepers of its children after a second, so a follower whose graph
has running nodes leaves them that moment; else it starts the daemon itself. A daemon that was told to stop is
not started again.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from graphd.client.attach import DaemonStartFailure, DaemonUnreachable
from graphd.client.mirror import ChainBroken, Mirror
from graphd.client.paths import AttachFailure
from graphd.client.session import ConnectionLost, Session

PATIENCE_S = 60.0
START_FAILURES_BORNE = 3
KEEPERS_MOMENT_S = 3.0  # they start the daemon after 1 s (execution.md, Left alone)

OpenSession: TypeAlias = Callable[[bool], Awaitable[Session]]
"""Opens a session; the argument says whether it may start the daemon."""

UpdateKind: TypeAlias = Literal["changed", "cleared", "restarted", "lost", "activity", "output", "notice"]


@dataclass(frozen=True, slots=True)
class Update:
    """One thing that a follower sees.

    `changed` and `cleared`: `snapshot` is the graph after the change (None once cleared), `params` the
    `workgraph/changed` value. `lost`: the connection ended and is being made again. `restarted`: it is made
    again with another daemon process; `adopted` counts the nodes that ran before and still run in the same
    attempt. `activity`, `output`, `notice`: `params` as on the wire.
    """

    kind: UpdateKind
    graph: str | None
    snapshot: dict[str, Any] | None
    params: dict[str, Any]
    adopted: int | None = None

    @property
    def operation(self) -> str:
        """The verb that changed the graph, or `checkpoint`; "" for what is no change."""
        return str(self.params.get("operation", "")) if self.kind in ("changed", "cleared") else ""

    @property
    def is_restarted(self) -> bool:
        """Another daemon process answers from here on."""
        return self.kind == "restarted"


async def follow(
    open_session: OpenSession,
    graph: str | None = None,
    *,
    activity: bool = False,
    output: tuple[tuple[str, str], ...] = (),
    patience_s: float = PATIENCE_S,
) -> AsyncGenerator[Update]:
    """Updates of one graph, or of all where `graph` is None, from its whole value on.

    Ends after `cleared` of that one graph.

    `output` names (graph, node) pairs whose live output is wanted. Raises `ConnectionLost` when the daemon
    was told to stop, the last `AttachFailure` after `patience_s` without one, and `RemoteRefused` when the
    graph is not known.
    """
    follower = _Follower(
        open_session, graph, {"activity": activity, "output": [{"graph": g, "node": n} for g, n in output]}
    )
    session = await open_session(True)
    while True:
        try:
            async with aclosing(follower.updates(session)) as updates:
                async for update in updates:
                    yield update
                    if update.kind == "cleared" and graph is not None:
                        return
        except ConnectionLost:
            pass
        finally:
            await session.close()
        if session.stopping and not session.stopping.get("reconnect", True):
            raise ConnectionLost(f"the daemon was stopped: {session.stopping.get('reason', '')}", session.stopping)
        yield follower.mark("lost")
        session = await follower.reopen(patience_s)


class _Follower:
    """What outlives a session: the mirror, the store it is of, and who answered last."""

    def __init__(self, open_session: OpenSession, graph: str | None, wishes: dict[str, Any]) -> None:
        self._open_session = open_session
        self._graph = graph
        self._wishes = {name: value for name, value in wishes.items() if value}
        self._mirror = Mirror()
        self._store: str | None = None
        self._subscription: str | None = None
        self._daemon: tuple[Any, ...] | None = None
        self._key = graph  # what was asked for may be a prefix; the answer has the id

    def mark(self, kind: UpdateKind, adopted: int | None = None) -> Update:
        return Update(kind, self._key, self._mirror.graphs.get(self._key or ""), {}, adopted)

    async def updates(self, session: Session) -> AsyncGenerator[Update]:
        """All updates of one session, those of its subscription first; ends with its connection."""
        before = self._running()
        answered = _identity(session)
        values = await self._subscribe(session)
        if self._daemon not in (None, answered):
            adopted = len(before & self._running())
            yield self.mark("restarted", adopted)
        self._daemon = answered
        for update in values:
            yield update
        async with aclosing(session.notifications()) as notifications:
            async for method, params in notifications:
                for update in await self._take(session, method, params):
                    yield update

    async def reopen(self, patience_s: float) -> Session:
        """Another session, within `patience_s`. Raises the last `AttachFailure`."""
        begun = time.monotonic()
        leave_to_keepers_s = KEEPERS_MOMENT_S if self._running() else 0.0
        pause_s, start_failures = 0.05, 0
        while True:
            may_start = time.monotonic() - begun >= leave_to_keepers_s
            try:
                return await self._open_session(may_start)
            except AttachFailure as failure:
                start_failures += isinstance(failure, DaemonStartFailure)
                is_hopeless = not isinstance(failure, DaemonUnreachable | DaemonStartFailure)
                if is_hopeless or start_failures >= START_FAILURES_BORNE or time.monotonic() - begun > patience_s:
                    raise
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, no secret
            pause_s = min(1.0, pause_s * 1.5)

    async def _subscribe(self, session: Session, *, anew: bool = False) -> list[Update]:
        params: dict[str, Any] = dict(self._wishes)
        if self._graph is not None:
            params["graphs"] = [self._key]
        if self._store is not None and not anew:
            params |= {"since": self._mirror.revs(), "store": self._store}
        result = await session.call("workgraph/subscribe", params)
        self._store, self._subscription = result["store"], result["subscription"]
        updates = []
        for value in result["graphs"]:
            if self._graph is not None:
                self._key = str(value["graph"])
            updates += self._fold(value)
        return updates

    async def _take(self, session: Session, method: str, params: dict[str, Any]) -> list[Update]:
        if method == "workgraph/changed":
            if self._graph is not None and params.get("graph") != self._key:
                return []
            try:
                return self._fold(params)
            except ChainBroken as broken:
                if params["rev"] <= broken.held:  # sent before a newer subscription, whose value holds it
                    return []
                await session.call("workgraph/unsubscribe", {"subscription": self._subscription})
                return await self._subscribe(session, anew=True)
        kinds: dict[str, UpdateKind] = {
            "workgraph/activity": "activity", "workgraph/output": "output", "graphd/notice": "notice",
        }  # fmt: skip
        if method not in kinds:
            return []
        key = params.get("graph", self._key)
        return [Update(kinds[method], key, self._mirror.graphs.get(key or ""), params)]

    def _fold(self, value: dict[str, Any]) -> list[Update]:
        graph = self._mirror.apply(value)
        kind: UpdateKind = "cleared" if graph in self._mirror.cleared else "changed"
        return [Update(kind, graph, self._mirror.graphs.get(graph), value)]

    def _running(self) -> frozenset[tuple[str, str, int]]:
        return frozenset(
            (graph, node["slug"], node["attempts"])
            for graph, snapshot in self._mirror.graphs.items()
            for node in snapshot["nodes"]
            if node["state"] == "running"
        )


def _identity(session: Session) -> tuple[Any, ...]:
    daemon = session.hello.get("daemon") or {}
    return daemon.get("epoch"), daemon.get("pid"), daemon.get("startedAt")
