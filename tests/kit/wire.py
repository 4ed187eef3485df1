"""A client that speaks the wire and nothing else, and a daemon in memory behind a real server.

`Client` can send what no honest client would. `InMemoryDaemon` decides with the real core and commits to memory
alone; its commits take a turn of the loop, as those of a disk do, with tentative state standing in memory
meanwhile.
"""

import asyncio
import contextlib
import itertools
import json
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from graphd.base.clock import Clock, SystemClock
from graphd.base.refusal import Refused
from graphd.children.profiles.choosing import Agents
from graphd.core.commands import AttemptEnded, AttemptIdentified, Capacity, Command, Done, Request, Tick
from graphd.core.decide import decide
from graphd.core.events import AttemptKey, Change, Event
from graphd.core.model import Attempt, Identity, Output, State
from graphd.core.schedule import schedule
from graphd.core.tape import Tape
from graphd.daemon.agent_settings import SettingsRefused
from graphd.server.service import Server

T = TypeVar("T")
Wire = dict[str, Any]
ANSWER_S = 10.0


# ---- a client -----------------------------------------------------------------------------------------------------


class WireError(Exception):
    """The answer to a request is an error."""

    def __init__(self, error: Wire) -> None:
        super().__init__(error["message"])
        self.error = error
        self.number: int = error["code"]
        self.data: Wire = error.get("data", {})


def frame(message: Any) -> bytes:
    """A frame around a message, or around bytes as they are."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Client:
    """One connection. Answers and notifications are read when they are asked for, never before."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self.notifications: deque[tuple[str, Wire]] = deque()
        self.answers: dict[Any, Wire] = {}

    @classmethod
    async def connect(cls, path: Path | str, *, hello: bool = True, **params: Any) -> "Client":
        """Connect, and say hello unless told otherwise."""
        client = cls(*await asyncio.open_unix_connection(str(path), limit=32 * 1024 * 1024))
        if hello:
            await client.call("graphd/hello", hello_params(**params))
        return client

    async def send(self, raw: bytes) -> None:
        """Bytes as they are."""
        self._writer.write(raw)
        await self._writer.drain()

    async def request(self, method: str, params: Any = None, *, number: Any = None) -> Any:
        """Send a request; returns its id."""
        number = next(self._ids) if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        await self.send(frame(message if params is None else {**message, "params": params}))
        return number

    async def answer(self, number: Any) -> Wire:
        """The whole answer to a request; notifications that come before it are kept."""
        async with asyncio.timeout(ANSWER_S):
            while number not in self.answers:
                self._keep(await self.read())
        return self.answers.pop(number)

    async def call(self, method: str, params: Any = None) -> Any:
        """The result of a request. Raises WireError."""
        answer = await self.answer(await self.request(method, params))
        if "error" in answer:
            raise WireError(answer["error"])
        return answer["result"]

    async def refused(self, method: str, params: Any = None) -> Wire:
        """The error of a request, which has to be one."""
        answer = await self.answer(await self.request(method, params))
        error: Wire = answer["error"]
        return error

    async def next(self, method: str | None = None) -> Wire:
        """The params of the next notification (of this method)."""
        async with asyncio.timeout(ANSWER_S):
            while True:
                while self.notifications:
                    name, params = self.notifications.popleft()
                    if method is None or name == method:
                        return params
                self._keep(await self.read())

    def _keep(self, message: Wire) -> None:
        if "method" in message:
            self.notifications.append((message["method"], message.get("params", {})))
        else:
            assert message["id"] not in self.answers, f"two answers to {message['id']}"
            self.answers[message["id"]] = message

    async def read(self) -> Wire:
        """The next message, whatever it is. EOFError at the end."""
        header = await self._reader.readuntil(b"\r\n\r\n")
        length = int(header.partition(b":")[2])
        message: Wire = json.loads(await self._reader.readexactly(length))
        return message

    async def rest(self) -> list[Wire]:
        """Every message up to the end of the connection."""
        messages = []
        async with asyncio.timeout(ANSWER_S):
            with contextlib.suppress(EOFError, ConnectionError):
                while True:
                    messages.append(await self.read())
        return messages

    def half_close(self) -> None:
        """Send no more."""
        self._writer.write_eof()

    async def close(self) -> None:
        """Leave."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def hello_params(**changes: Any) -> Wire:
    """The params of an ordinary hello, with changes."""
    return {"client": {"name": "test", "version": "1"}, "protocol": [1, 1], **changes}


class Folded:
    """Folds `changed` to snapshots by hand, and fails where a chain breaks. Independent of the client's own fold."""

    def __init__(self) -> None:
        self.graphs: dict[str, Wire] = {}
        self.cleared: dict[str, Wire] = {}
        self.revs: dict[str, int] = {}

    def take(self, changed: Wire) -> None:
        """Fold one value."""
        graph = changed["graph"]
        if "cleared" in changed:
            self.graphs.pop(graph, None)
            self.cleared[graph] = changed["cleared"]
            return
        assert changed["from"] == (0 if changed.get("full") else self.revs[graph]), "the chain broke"
        assert changed["rev"] >= changed["from"]
        before = {} if changed.get("full") else self.graphs[graph]
        held = {node["slug"]: node for node in before.get("nodes", [])}
        history = before.get("history", [])
        proposals = changed.get("proposals", before.get("proposals", []))
        held |= {node["slug"]: node for node in changed["nodes"]}
        self.revs[graph] = changed["rev"]
        self.graphs[graph] = {
            **changed["header"],
            "nodes": list(held.values()),
            "asks": changed.get("asks", before.get("asks", [])),
            **({"proposals": proposals} if proposals else {}),
            "history": [*history, *changed["history"]][-64:],
        }


# ---- a daemon in memory -------------------------------------------------------------------------------------------


@dataclass
class Settings:
    """The settings that the server reads."""

    agents: Agents = field(default_factory=Agents)
    concurrency: int = 8
    idle_minutes: float = 30
    settle_s: float = 5
    locale: str = ""
    ask_parent_s: float = 5
    detached_asks: str = "wait"


@dataclass
class InMemoryDaemon:
    """Fits `graphd.server.needs.Daemon`. Nodes never run: tests say what becomes of attempts."""

    folder: Path
    workspace: Path
    store_id: str = "store-1"
    epoch: int = 1
    starts: int = 1
    settings: Settings = field(default_factory=Settings)
    clock: Clock = field(default_factory=SystemClock)
    phases: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    last_lines: dict[tuple[str, str], str] = field(default_factory=dict)
    on_printed: list[Callable[[str, str, int, int, bytes], None]] = field(default_factory=list)
    on_phase: list[Callable[[str, str], None]] = field(default_factory=list)
    store_health: str = "ok"
    is_busy: bool = False
    capacity: Capacity = field(default_factory=Capacity)
    commit_turns: int = 1
    refusal: Exception | None = None
    settings_trouble: SettingsRefused | None = None
    searched: list[str] = field(default_factory=list)
    takes_results: bool = True
    held: set[tuple[str, str]] = field(default_factory=set)
    submitted: list[tuple[str, AttemptKey, bytes]] = field(default_factory=list)
    progress: list[tuple[str, AttemptKey, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = State()
        self.log: list[Event] = []
        self.lock_is_ours = True
        self._is_committing = False
        self._listeners: list[Callable[[list[Change]], None]] = []
        self._views: list[Callable[[], None]] = []
        self._turn = asyncio.Lock()

    def attended_by(self, is_attended: Callable[[], bool]) -> None:
        self.is_attended = is_attended

    def hold(self, graph: str, node: str) -> bool:
        is_free = (graph, node) not in self.held
        self.held.add((graph, node))
        return is_free

    def let_go(self, graph: str, node: str) -> None:
        self.held.discard((graph, node))

    def session_lock(self, attempt: Attempt) -> Path:
        """Nobody opens a session here."""
        return Path(f"{attempt.child_session}.lock")

    def left(self) -> None:
        """Nothing has a default here."""

    def is_lock_ours(self) -> bool:
        return self.lock_is_ours

    async def submit_result(self, graph: str, attempt: AttemptKey, content: bytes) -> bool:
        self.submitted.append((graph, attempt, content))
        return self.takes_results

    def report_progress(self, graph: str, attempt: AttemptKey, text: str) -> None:
        self.progress.append((graph, attempt, text))

    def subscribe(self, listener: Callable[[list[Change]], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def view(self, read: Callable[[State], T]) -> T:
        if not self._is_committing:
            return read(self.state)
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if not waiting.done():
                try:
                    waiting.set_result(read(self.state))
                except Exception as trouble:
                    waiting.set_exception(trouble)

        self._views.append(look)
        return await waiting

    async def execute(self, request: Request) -> Done:
        return await asyncio.shield(asyncio.ensure_future(self._execute([request])))

    async def run(self, *commands: Command) -> Done:
        """Commit commands of ours as one batch."""
        return await self._execute([Request(command) for command in commands])

    async def _execute(self, requests: list[Request]) -> Done:
        async with self._turn:
            tape, changes = Tape(), list[Change]()
            if self.refusal is not None:
                raise self.refusal
            done = Done(None, 0)
            self._is_committing = True
            try:
                for request in requests:
                    decision = decide(self.state, tape, request, self.clock.now_ms())
                    done, changes = decision.done, changes + decision.changes
                started, _ = schedule(self.state, tape, self._capacity(), self.clock.now_ms())
                changes += started
                for _ in range(self.commit_turns):
                    await asyncio.sleep(0)  # the disk: others look on while the state is tentative
            finally:
                self._is_committing = False
            self.log += [event for change in changes for event in change.events]
            if changes:
                for listener in list(self._listeners):
                    listener(changes)
            views, self._views = self._views, []
            for look in views:
                look()
            return done

    def _capacity(self) -> Capacity:
        return Capacity(concurrency=self.settings.concurrency, held=frozenset(self.held))

    def graph_of(self, request_id: str) -> str | None:
        """Request ids are not remembered here."""
        return None

    async def rehearse(self, request: Request, read: Callable[[State], T]) -> T:
        async with self._turn:
            tape = Tape()
            try:
                decide(self.state, tape, request, self.clock.now_ms())
                return read(self.state)
            finally:
                tape.rollback()
                self.state.are_queues_stale = True

    async def history(self, graph: str, after: int, limit: int, kinds: list[str] | None) -> list[Event]:
        events = [e for e in self.log if e.graph == graph and e.rev > after and (not kinds or e.kind in kinds)]
        if len(events) <= limit:
            return events
        whole = [e for e in events if e.rev < events[limit].rev]
        return whole or [e for e in events if e.rev == events[0].rev]

    async def doctor(self) -> list[str]:
        return []

    async def look_for_agents(self, search_path: str, full_workers: frozenset[str]) -> None:
        self.searched.append(search_path)

    # ---- what becomes of attempts ---------------------------------------------------------------------------------

    async def identify(self, graph: str) -> None:
        """Every attempt of a graph that starts is heard of."""
        for key in list(self.state.graphs[graph].live):
            await self.run(AttemptIdentified(graph, key, Identity("boot", "pid:[1]", 4_000_000, 1, 4_000_001)))

    async def end_one(self, graph: str, outcome: Any = "achieved", text: str = "done", **facts: Any) -> str | None:
        """The oldest live attempt ends; returns its node's slug."""
        found = self.state.graphs[graph]
        if not found.live:
            return None
        key = next(iter(found.live))
        output = Output(text, len(text.encode()), "text/plain")
        await self.run(AttemptEnded(graph, key, outcome, output=output, **facts))
        return found.nodes[key[0]].slug

    async def end_all(self, graph: str) -> None:
        """Everything runs to its end, one settlement a commit."""
        while await self.end_one(graph) is not None:
            pass

    async def tick(self) -> None:
        """Let the scheduler look."""
        await self.run(Tick())

    def set_phase(self, graph: str, node: str, phase: str) -> None:
        self.phases[(graph, node)] = (phase, self.clock.now_ms())
        for listener in self.on_phase:
            listener(graph, node)

    def print(self, graph: str, node: str, text: bytes, *, offset: int = 0, number: int = 1) -> None:
        for listener in self.on_printed:
            listener(graph, node, number, offset, text)


@dataclass
class Served:
    """A server over an in-memory daemon, and the path of its socket."""

    server: Server
    daemon: InMemoryDaemon
    path: Path

    async def client(self, *, hello: bool = True, **params: Any) -> Client:
        """One more client."""
        return await Client.connect(self.path, hello=hello, **params)

    @property
    def connections(self) -> list[Mapping[str, Any]]:
        """Health's rows."""
        return list(self.server.connections())


@contextlib.asynccontextmanager
async def serving(**changes: Any) -> AsyncIterator[Served]:
    """A server in a short temporary folder, ended and awaited at the end."""
    with tempfile.TemporaryDirectory(prefix="gd") as name:
        folder = Path(name).resolve()
        daemon = replace(InMemoryDaemon(folder=folder, workspace=folder), **changes)
        server = Server(daemon, folder=folder)
        listening = asyncio.Event()
        task = asyncio.create_task(server.run(listening.set))
        await asyncio.wait({asyncio.create_task(listening.wait()), task}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield Served(server, daemon, folder / "socket")
        finally:
            server.request_stop("the test ends")
            await task


def nodes(*rows: str | tuple[str, list[str]], **more: Any) -> list[Wire]:
    """Inline nodes: a slug, or (slug, needs)."""
    pairs = [(row, []) if isinstance(row, str) else row for row in rows]
    return [{"slug": slug, "spec": f"echo {slug}", "needs": needs, **more} for slug, needs in pairs]


def refused_by(trouble: WireError) -> str:
    """Our code in an error."""
    return str(trouble.data.get("code"))


__all__ = [
    "Client",
    "Folded",
    "InMemoryDaemon",
    "Refused",
    "Served",
    "WireError",
    "frame",
    "hello_params",
    "nodes",
    "serving",
]
