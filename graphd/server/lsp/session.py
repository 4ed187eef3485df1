"""One editor, as its connection sees it: the life of its language server, what it is owed, what waits for its writer.

Answers `initialize` before pygls is loaded; what comes meanwhile waits in order. `shutdown` and `exit` concern this
connection alone. Source: spec protocol.md; architecture.md, The connection; research sidecar.md §2.
"""

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol

from graphd.base.catalogue import localised
from graphd.core.events import Change
from graphd.core.model import State
from graphd.daemon.log import log
from graphd.server import frames
from graphd.server.errors import error_object, where
from graphd.server.lsp.capabilities import Client
from graphd.server.routes import Call

if TYPE_CHECKING:
    from graphd.server.lsp.desk import Desk
    from graphd.server.lsp.glue import EditorServer

Json = dict[str, Any]
BACKLOG_LIMIT: Final = 256
SERVED: Final = frozenset(
    {
        "textDocument/completion",
        "textDocument/hover",
        "textDocument/definition",
        "textDocument/references",
        "textDocument/documentHighlight",
        "textDocument/prepareRename",
        "textDocument/rename",
        "textDocument/documentSymbol",
        "textDocument/foldingRange",
        "textDocument/codeAction",
        "textDocument/codeLens",
        "textDocument/inlayHint",
        "textDocument/diagnostic",
        "workspace/executeCommand",
    }
)
"""Requests that a handler in `desk` answers; a test compares."""
NOTICED: Final = frozenset(
    {
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "textDocument/didSave",
        "workspace/didChangeWatchedFiles",
    }
)
"""Notifications that do something; any other is ignored before anything decodes it."""
KNOWN: Final = SERVED | {"shutdown"}
"""What is refused as too early before `initialize`."""


_loaded: list[Any] = []
"""The modules `glue` and `desk`, once an editor had them loaded; shared by all that come later."""


class Surroundings(Protocol):
    """What a session needs of its connection."""

    def call(self) -> Call:
        """The surroundings of a request that is made for this client."""

    def pull_soon(self) -> None:
        """A frame waits for the writer."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that ends with the connection; not at all where that is ending."""

    def watch_workflows(self, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` after workflow or prompt files changed on the disk; gives the way to end that."""


def is_ours(method: str) -> bool:
    """A method of the route table, never LSP's."""
    return method.startswith(("workgraph/", "graphd/"))


def changes_graphs(method: str, params: Any) -> bool:
    """A request that may be with the store's writer: it is answered with its result, cancelled or not."""
    command = params.get("command") if isinstance(params, dict) else None
    return method == "workspace/executeCommand" and command != "graphd.openOutput"


class LspSession:
    """Made when an editor sends `initialize`."""

    def __init__(self, around: Surroundings, client: Client) -> None:
        self.client = client
        self.around = around
        self.is_shut = False
        self._server: EditorServer | None = None
        self._desk: Desk | None = None
        self._backlog: list[Json] = []
        self._ready = asyncio.Event()
        self._waiting: dict[int | str, asyncio.Future[Json]] = {}
        self._frames: dict[Hashable, bytes] = {}
        self._is_closed = False
        self._trouble: Json | None = None  # what every request is answered with where pygls can't be loaded
        if _loaded:
            self._begin(*_loaded)
        else:
            around.spawn(self._load)

    # ---- loading --------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        """In a thread: others are served meanwhile."""
        try:
            glue, desk = await asyncio.to_thread(_import)
            _loaded[:] = [glue, desk]
        except Exception as trouble:  # noqa: BLE001 -- a broken installation ends no connection
            log("lsp_not_loaded", **where(trouble))
            self._trouble = {"error": error_object(trouble)}
            self._backlog.clear()
            for number in list(self._waiting):
                self.answered(number, self._trouble)
            self._ready.set()
            return
        if not self._is_closed:
            self._begin(glue, desk)

    def _begin(self, glue: Any, desk: Any) -> None:
        self._server = glue.EditorServer(self)
        self._desk = desk.Desk(self)
        backlog, self._backlog = self._backlog, []
        for message in backlog:
            self._server.take(message)
        self._ready.set()

    async def room(self) -> None:
        """Wait while too much waits for the loading."""
        if len(self._backlog) >= BACKLOG_LIMIT:
            await self._ready.wait()

    # ---- what the editor says -------------------------------------------------------------------------------------

    def request(self, number: int | str, method: str, params: Any) -> "asyncio.Future[Json]":
        """Serve a request; gives its `result` or `error` to come."""
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        if self._trouble is not None:
            future.set_result(self._trouble)
            return future
        self._waiting[number] = future
        self._take({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    def cancel(self, number: int | str) -> None:
        """Serve it no longer; nobody waits for its answer."""
        self._waiting.pop(number, None)
        self._backlog = [message for message in self._backlog if message.get("id") != number or "method" not in message]
        if self._server is not None:
            self._server.cancel(number)

    def notice(self, method: str, params: Any) -> None:
        """A notification."""
        if not self.is_shut and method in NOTICED:
            self._take({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, message: Json) -> None:
        """The editor's answer to a request of ours."""
        if self._server is not None and isinstance(message.get("id"), int | str):
            self._server.take(message)

    def shut(self) -> None:
        """`shutdown`: what is being served is answered, nothing new is, and nothing more is told unasked."""
        self.is_shut = True
        self._frames.clear()
        if self._desk is not None:
            self._desk.close()

    def close(self) -> None:
        """The connection has ended."""
        self._is_closed = True
        if self._desk is not None:
            self._desk.close()
        if self._server is not None:
            self._server.close()
        self._server = self._desk = None
        self._frames.clear()
        self._backlog.clear()
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()

    def _take(self, message: Json) -> None:
        if self._server is not None:
            self._server.take(message)
        elif not self._is_closed and self._trouble is None:
            self._backlog.append(message)

    # ---- what the editor is told ----------------------------------------------------------------------------------

    def route(self, method: str) -> Callable[..., Any] | None:
        """For `glue.Editor`."""
        return self._desk.route(method) if self._desk is not None else None

    def answered(self, number: int | str, answer: Json) -> None:
        """For `glue.Editor`."""
        future = self._waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def ask_sent(self, number: str, frame: Json) -> None:
        """For `glue.Editor`."""
        self._post(("ask", number), frame)

    def tell(self, key: Hashable, method: str, params: Json) -> None:
        """A notification, sent when the writer has room; a newer one of the same key takes its place."""
        self._post(key, {"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, params: Json | None) -> Any:
        """A request to the editor. Raises `glue.EditorGone`, or pygls' JsonRpcException where it refuses."""
        server = self._server
        if server is None or self.is_shut:
            raise ConnectionError("the editor has left")
        return await server.ask(method, params)

    def _post(self, key: Hashable, message: Json) -> None:
        if not self.is_shut and not self._is_closed:
            self._frames[key] = frames.encode(localised(message, self.around.call().language))
            self.around.pull_soon()

    def pull(self) -> bytes | None:
        """The next frame that waits, oldest key first."""
        if not self._frames:
            return None
        return self._frames.pop(next(iter(self._frames)))

    # ---- what happens ---------------------------------------------------------------------------------------------

    def committed(self, changes: list[Change], state: State) -> None:
        """Right after a commit."""
        if self._desk is not None and not self.is_shut:
            self._desk.committed(changes, state)

    def phase_moved(self, graph: str, node: str) -> None:
        """A volatile phase moved."""
        if self._desk is not None and not self.is_shut:
            self._desk.phase_moved(graph, node)


def _import() -> tuple[Any, Any]:
    glue = importlib.import_module("graphd.server.lsp.glue")
    desk = importlib.import_module("graphd.server.lsp.desk")
    glue.warm()
    return glue, desk
