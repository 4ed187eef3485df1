"""The server of one daemon: its socket, its connections, what they share, and the reasons to end.

Source: spec protocol.md, Daemon, socket, lock; Notifications.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphd import __version__
from graphd.base.text import t
from graphd.core.events import Change
from graphd.core.model import Cooling, State
from graphd.core.weather import rest_of
from graphd.daemon.log import log
from graphd.server.connection import Connection
from graphd.server.errors import where
from graphd.server.feeds import Feeds
from graphd.server.hello import CONNECTION_LIMIT, Greeting, Host
from graphd.server.lsp.watched import WorkflowFiles
from graphd.server.needs import Daemon
from graphd.server.peers import attempt_of_peer, attempt_of_token
from graphd.server.porch import Porch
from graphd.server.project import Wire

GOODBYE_S: Final = 1.0
TURN_AWAY_S: Final = 5.0
TURNED_AWAY_LIMIT: Final = 8


class Server:
    """Serves `daemon` until `request_stop`.

    Takes over from `porch`; where there is none, the socket is made in `folder`, which may be relative to where we
    stand.
    """

    def __init__(
        self,
        daemon: Daemon,
        *,
        folder: Path = Path(),
        porch: Porch | None = None,
    ) -> None:
        self.daemon = daemon
        self.feeds = Feeds(self._phase_of)
        self._porch = porch if porch is not None else _unopened(daemon, folder)
        self._listener = self._porch.listener
        self.host = self._porch.host._replace(
            by_token=lambda token: attempt_of_token(token, daemon.state, daemon.folder)
        )
        self.stop_reason: str | None = None
        self.reconnect = False
        self._stopped = asyncio.Event()
        self._served: dict[Connection, asyncio.Task[None]] = {}
        self._turned_away: set[asyncio.Task[None]] = set()
        self._waiters: dict[asyncio.Future[None], Callable[[State], bool]] = {}
        self._workflow_files = WorkflowFiles(daemon.workspace)
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stirred_at_s = asyncio.get_running_loop().time()

    # ---- life -----------------------------------------------------------------------------------------------------

    async def run(self, listening: Callable[[], None] = lambda: None) -> str:
        """Serve until asked to stop; returns the reason. `listening` is called once clients can connect."""
        unsubscribe = self.daemon.subscribe(self._committed)
        self.daemon.attended_by(self.is_attended)
        self.daemon.on_phase.append(self._phase_moved)
        self.daemon.on_printed.append(self._printed)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                if not self._porch.is_open:
                    self._porch.open(tasks)
                self._take_over()
                self._plan_idle_end()
                listening()
                await self._stopped.wait()
                await self._say_goodbye()
        finally:
            unsubscribe()
            self.daemon.on_phase.remove(self._phase_moved)
            self.daemon.on_printed.remove(self._printed)
        return self.stop_reason or "stopped"

    def _take_over(self) -> None:
        for guest in self._porch.hand_over(self._accepted, self._lock_lost):
            self._accepted(guest.sock, guest.pid, guest.greeted)
        if not self.daemon.is_lock_ours():
            self._lock_lost()  # while the house was loaded: nothing watched yet
        if self._porch.stop_reason is not None:
            self.request_stop(self._porch.stop_reason, reconnect=self._porch.reconnect)

    def request_stop(self, reason: str, *, reconnect: bool = False) -> None:
        """End, soon and cleanly. `reconnect`: clients are told that another daemon may be started."""
        if self.stop_reason is None:
            self.stop_reason, self.reconnect = reason, reconnect
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._stopped.set()

    async def _say_goodbye(self) -> None:
        self._listener.close()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        goodbyes = [connection.stop(self.stop_reason or "", reconnect=self.reconnect) for connection in self._served]
        tasks = [*self._served.values()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3 * GOODBYE_S):
                await asyncio.gather(*goodbyes)
        if tasks:
            await asyncio.wait(tasks, timeout=GOODBYE_S)
        for task in [*tasks, *self._turned_away]:
            task.cancel()

    def _lock_lost(self) -> None:
        self.request_stop(t("the state folder was taken away"), reconnect=True)

    # ---- connections ----------------------------------------------------------------------------------------------

    def _accepted(self, sock: socket.socket, pid: int | None, greeted: Greeting | None = None) -> None:
        kin = attempt_of_peer(pid, self.daemon.state) if greeted is None else None
        connection = Connection(sock, self, kin=kin, greeted=greeted)
        if self.stop_reason is not None:
            sock.close()
        elif len(self._served) < CONNECTION_LIMIT:
            self.serve(connection)
        elif len(self._turned_away) < TURNED_AWAY_LIMIT:
            task = self._tasks.create_task(_turn_away(connection))
            self._turned_away.add(task)
            task.add_done_callback(self._turned_away.discard)
        else:
            sock.close()

    def serve(self, connection: Connection) -> None:
        """Serve one more connection."""
        task = self._tasks.create_task(_served_to_its_end(connection))
        self._served[connection] = task
        task.add_done_callback(lambda _: self._left(connection))

    def _left(self, connection: Connection) -> None:
        self._served.pop(connection, None)
        if connection.caller is not None and connection.caller.is_interactive and not self.is_attended():
            self.daemon.left()
        self._stirred_at_s = asyncio.get_running_loop().time()
        self._plan_idle_end()

    def is_attended(self) -> bool:
        """Somebody is connected who can be asked: a terminal, an editor."""
        return any(c.caller is not None and c.caller.is_interactive for c in self._served)

    def greeted(self) -> None:
        """A hello was answered: what is heavy may be loaded now."""
        self._listener.watch()

    def watch_workflows(self, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` after workflow or prompt files changed on the disk; gives the way to end that."""
        return self._workflow_files.listen(stirred)

    def connections(self) -> list[Wire]:
        """One row of health per greeted connection."""
        return [
            {
                "client": connection.caller.name,
                "principal": connection.caller.principal,
                "bytesInFlight": connection.outbox.bytes_in_flight,
                "framesInFlight": connection.outbox.frames_in_flight,
            }
            for connection in self._served
            if connection.caller is not None
        ]

    # ---- what clients are told ------------------------------------------------------------------------------------

    def _committed(self, changes: list[Change]) -> None:
        """Trouble here is logged and never reaches the graph."""
        state = self.daemon.state
        self._stirred_at_s = asyncio.get_running_loop().time()
        try:
            self.feeds.note(changes, state)
            self._note_weather(state)
            for connection in self._served:
                connection.committed(changes, state)
            for waiter, is_reached in self._waiters.items():
                if not waiter.done() and is_reached(state):
                    waiter.set_result(None)
        except Exception as trouble:  # noqa: BLE001 -- a listener's trouble never reaches the graph
            log("notifying_failed", **where(trouble))

    def _note_weather(self, state: State) -> None:
        """A provider's rest shows at all nodes that wait for it, of whichever graph."""
        if self.feeds.is_cooling:
            for graph_id in state.with_ready:
                for node in state.graphs[graph_id].ready:
                    self._phase_moved(graph_id, node)

    def _phase_moved(self, graph: str, node: str) -> None:
        self.feeds.phase_moved(graph)
        for connection in self._served:
            connection.phase_moved(graph, node)

    def _printed(self, graph: str, node: str, number: int, offset: int, chunk: bytes) -> None:
        for connection in self._served:
            connection.printed(graph, node, number, offset, chunk)

    def _phase_of(self, graph: str, node: str) -> str | None:
        found = self.daemon.phases.get((graph, node))
        if found is not None:
            return found[0]
        return "cooling_down" if self._rest_of(self.daemon.state, graph, node) is not None else None

    def _rest_of(self, state: State, graph: str, node: str) -> Cooling | None:
        """The rest of its provider that keeps a ready node from its start."""
        found = state.graphs.get(graph)
        known = found.nodes.get(node) if found is not None and state.cooling else None
        if known is None or known.state != "ready":
            return None
        profile = dict(self.daemon.capacity.profiles).get(known.definition.worker)
        return rest_of(state, profile, self.daemon.clock.now_ms()) if profile is not None else None

    def activity_of(self, state: State, graph: str, node: str) -> Wire | None:
        """The activity row of a node that does something, or waits for its provider; else None."""
        found = state.graphs.get(graph)
        known = found.nodes.get(node) if found is not None else None
        if known is None:
            return None
        row: Wire = {"node": known.slug, "attempt": known.last_number}
        rest = self._rest_of(state, graph, node)
        if rest is not None:
            return row | {"phase": "cooling_down", "since": rest.since, "coolDownUntil": rest.until}
        phase = self.daemon.phases.get((graph, node))
        if phase is None or not known.last_number:
            return None
        row |= {"phase": phase[0], "since": phase[1]}
        line = self.daemon.last_lines.get((graph, node))
        return row if line is None else {**row, "lastLine": line}

    async def until(self, is_reached: Callable[[State], bool], timeout_s: float) -> bool:
        """Wait until a committed state has this; False after `timeout_s` s, or when the daemon stops."""
        if await self.daemon.view(is_reached):
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = is_reached
        try:
            if self.stop_reason is None:
                async with asyncio.timeout(timeout_s):
                    await waiter
        except TimeoutError:
            pass
        finally:
            del self._waiters[waiter]
        return await self.daemon.view(is_reached)

    # ---- idle -----------------------------------------------------------------------------------------------------

    def _plan_idle_end(self) -> None:
        """One timer while nobody is connected; none while somebody is."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if not self._served and self.stop_reason is None:
            due_s = self._stirred_at_s + self.daemon.settings.idle_minutes * 60
            self._idle_timer = asyncio.get_running_loop().call_at(due_s, self._idle_due)

    def _idle_due(self) -> None:
        self._idle_timer = None
        now_s = asyncio.get_running_loop().time()
        if self._served:
            return
        if self._has_reason_to_stay():
            self._stirred_at_s = now_s
        if now_s >= self._stirred_at_s + self.daemon.settings.idle_minutes * 60:
            self.request_stop(t("idle"), reconnect=True)
        else:
            self._plan_idle_end()

    def _has_reason_to_stay(self) -> bool:
        graphs = self.daemon.state.graphs.values()
        asks_wait = any(ask.state == "open" for graph in graphs for ask in graph.asks.values())
        return self.daemon.is_busy or asks_wait


def _unopened(daemon: Daemon, folder: Path) -> Porch:
    """For a daemon that is loaded already: nobody is greeted before there is a server."""
    host = Host(
        workspace=str(daemon.workspace),
        store=daemon.store_id,
        version=__version__,
        started_at=daemon.clock.now_ms(),
        epoch=daemon.epoch,
    )
    return Porch(host, is_ours=daemon.is_lock_ours, knows_callers=False, folder=folder)


async def _served_to_its_end(connection: Connection) -> None:
    """A fault of ours in one connection ends that one, never the others."""
    try:
        await connection.run()
    except Exception as trouble:  # noqa: BLE001 -- one connection's fault ends that one alone
        log("connection_failed", **where(trouble))


async def _turn_away(connection: Connection) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TURN_AWAY_S):
            await connection.run(is_full=True)
