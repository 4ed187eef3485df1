"""What stands behind one editor's requests: its documents, what it is shown of running graphs, and when it hears of it.

One desk per editor; it ends with the connection. Nothing here touches a graph but through `commands`. Source: spec
protocol.md, Language features on workflow files.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pygls.exceptions import JsonRpcException

from graphd.base.catalogue import Language
from graphd.core.events import Change
from graphd.core.model import State
from graphd.daemon.log import log
from graphd.server.lsp.asks import Asker
from graphd.server.lsp.commands import Commands
from graphd.server.lsp.diagnostics import diagnostics_of
from graphd.server.lsp.documents import Document, Documents
from graphd.server.lsp.features import Features
from graphd.server.lsp.glue import EditorGone
from graphd.server.lsp.live import MINUTE_MS, LiveGraph, comes_from, live_graph, newest_from
from graphd.server.lsp.matching import Matching
from graphd.server.lsp.pace import Pace
from graphd.server.lsp.progress import Progress
from graphd.server.lsp.session import SERVED, LspSession
from graphd.server.lsp.texts import Text

if TYPE_CHECKING:
    from lsprotocol import types

    from graphd.workflows.language import Analysis

Json = dict[str, Any]
_PUBLISH: Final = "textDocument/publishDiagnostics"
TYPING_S: Final = 0.15
LIVE_S: Final = 0.25
ASK_LIMIT_S: Final = 30.0
SHOW_LIMIT_S: Final = 3600.0
SHOWING_LIMIT: Final = 8


class Desk:
    """Made once pygls is there; `route` gives its handlers."""

    def __init__(self, session: LspSession) -> None:
        self._session = session
        self.client = session.client
        self._daemon = session.around.call().daemon
        self.documents = Documents()
        self._matching = Matching(self.client.options.get("documentSelector"))
        self._asker = Asker(
            ask=session.ask, answer=lambda params: self._commands.answer(params), spawn=session.around.spawn,
            is_needed=lambda: session.around.call().subscriptions.is_empty,
        )  # fmt: skip
        self._commands = Commands(self.documents, session.around.call, show=self._show, started=self._asker.started)
        self._features = Features(self)
        self._progress: Progress | None = None
        self._live_pace = Pace(self._refresh, delay_s=0.03, interval_s=LIVE_S)
        self._typing: dict[str, Pace] = {}
        self._published: dict[str, list[Json]] = {}
        self._shown: dict[str, str | None] = {}  # open document → the graph that is shown beside it
        self._phases: dict[tuple[str, str], str | None] = {}
        self._asked: set[str] = set()
        self._showing = 0
        self._minute: asyncio.TimerHandle | None = None
        self._unwatch = session.around.watch_workflows(self._files_changed)
        self._notices: dict[str, Callable[[Any], None]] = {
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didClose": self._closed,
            "textDocument/didSave": self._saved,
            "workspace/didChangeWatchedFiles": lambda params: self._files_changed(),
        }
        if self.client.has_progress:
            self._progress = Progress(ask=session.ask, tell=session.tell, spawn=session.around.spawn)
            session.around.spawn(self._see_all)

    def route(self, method: str) -> Callable[..., Any] | None:
        """The handler of a method."""
        if method == "workspace/executeCommand":
            return self._commands.execute
        return self._features.handler(method) if method in SERVED else self._notices.get(method)

    def close(self) -> None:
        """Nothing more is told; timers end. Called at `shutdown` and at the end of the connection."""
        self._unwatch()
        self._live_pace.close()
        for pace in self._typing.values():
            pace.close()
        if self._progress is not None:
            self._progress.close()
        if self._minute is not None:
            self._minute.cancel()
        self._commands.close()

    # ---- documents ------------------------------------------------------------------------------------------------

    def _opened(self, params: "types.DidOpenTextDocumentParams") -> None:
        opened = params.text_document
        if not self._matching.is_workflow(opened.uri, opened.language_id):
            return
        document = Document(
            opened.uri,
            Text(opened.text, self.client.encoding),
            version=opened.version,
            workspace=self._daemon.workspace,
            spawn=self._session.around.spawn,
        )
        if not self.documents.open(document):
            log("lsp_too_many_documents")
            return
        self._session.around.spawn(partial(self._look_at, document))
        self._typing[document.uri] = Pace(lambda: self._publish_soon(document), delay_s=TYPING_S, interval_s=TYPING_S)
        self._publish_soon(document)

    def _changed(self, params: "types.DidChangeTextDocumentParams") -> None:
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return
        if document.change(tuple(params.content_changes), self.client.encoding, params.text_document.version):
            self._typing[document.uri].touch()
        else:
            log("lsp_change_too_large")
            self._close(document.uri)

    def _saved(self, params: "types.DidSaveTextDocumentParams") -> None:
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            document.forget()
            self._typing[document.uri].touch()

    def _closed(self, params: "types.DidCloseTextDocumentParams") -> None:
        self._close(params.text_document.uri)

    def _close(self, uri: str) -> None:
        if self.documents.close(uri) is None:
            return
        self._typing.pop(uri).close()
        self._shown.pop(uri, None)
        if self._published.pop(uri, None):
            self._session.tell(("diagnostics", uri), _PUBLISH, {"uri": uri, "diagnostics": []})

    def _files_changed(self) -> None:
        """Another file: prompts may have come or gone."""
        for document in self.documents:
            document.forget()
            self._typing[document.uri].touch()
        if self.client.pulls_diagnostics and len(self.documents):
            self._ask_refresh("workspace/diagnostic/refresh")

    # ---- what is told ---------------------------------------------------------------------------------------------

    def _publish_soon(self, document: Document) -> None:
        if not self.client.pulls_diagnostics and self.documents.get(document.uri) is document:
            self._session.around.spawn(partial(self._publish, document))

    async def _publish(self, document: Document) -> None:
        live = await self.live(document)
        version = document.version
        text, analysis = await document.analysed()
        if self.documents.get(document.uri) is not document or document.text is not text:
            return  # closed, or typed on: another one comes
        rows = self.diagnostics(document, text, analysis, live)
        if rows != self._published.get(document.uri, []) or document.uri not in self._published:
            self._published[document.uri] = rows
            params = {"uri": document.uri, "version": version, "diagnostics": rows}
            self._session.tell(("diagnostics", document.uri), _PUBLISH, params)

    def diagnostics(self, document: Document, text: Text, analysis: "Analysis", live: LiveGraph | None) -> list[Json]:
        """Diagnostics of one text, as this editor takes them."""
        return diagnostics_of(document, text, analysis, live, client=self.client, language=self.language)

    @property
    def language(self) -> Language:
        """What the editor's user reads."""
        return self._session.around.call().language

    def _refresh(self) -> None:
        """What runs has moved: lenses, hints and diagnostics that show it are old."""
        for method in ("workspace/codeLens/refresh", "workspace/inlayHint/refresh"):
            self._ask_refresh(method)
        if self.client.pulls_diagnostics:
            self._ask_refresh("workspace/diagnostic/refresh")
        for document in self.documents:
            self._publish_soon(document)

    def _ask_refresh(self, method: str) -> None:
        if self.client.refreshes[method] and method not in self._asked:
            self._asked.add(method)
            self._session.around.spawn(partial(self._refreshed, method))

    async def _refreshed(self, method: str) -> None:
        try:
            async with asyncio.timeout(ASK_LIMIT_S):
                await self._session.ask(method, None)
        except (EditorGone, JsonRpcException, ConnectionError, TimeoutError):
            pass  # it may ask by itself
        finally:
            self._asked.discard(method)

    def _show(self, uri: str) -> None:
        if self.client.shows_documents and self._showing < SHOWING_LIMIT:
            self._showing += 1
            self._session.around.spawn(partial(self._shown_document, uri))

    async def _shown_document(self, uri: str) -> None:
        try:
            async with asyncio.timeout(SHOW_LIMIT_S):
                await self._session.ask("window/showDocument", {"uri": uri, "takeFocus": True})
        except (EditorGone, JsonRpcException, ConnectionError, TimeoutError):
            pass  # the command's answer has the text
        finally:
            self._showing -= 1

    def tick_in_a_minute(self) -> None:
        """A hint shows how long something has been running: it wants to be asked for again."""
        if self._minute is None and self.client.refreshes["workspace/inlayHint/refresh"]:
            self._minute = asyncio.get_running_loop().call_later(MINUTE_MS / 1000, self._minute_passed)

    def _minute_passed(self) -> None:
        self._minute = None
        self._ask_refresh("workspace/inlayHint/refresh")

    # ---- what runs ------------------------------------------------------------------------------------------------

    async def live(self, document: Document) -> LiveGraph | None:
        """The newest graph of a document; None where there is none, or where this client may not see it."""
        path, daemon = document.path, self._daemon
        if path is None or self._session.around.call().caller.principal == "attempt":
            return None
        return await daemon.view(lambda state: live_graph(state, path, daemon.phases, daemon.last_lines))

    @property
    def now_ms(self) -> int:
        """The daemon's wall clock."""
        return self._daemon.clock.now_ms()

    async def _look_at(self, document: Document) -> None:
        path = document.path

        def read(state: State) -> str | None:
            found = newest_from(state, path) if path is not None else None
            return found.id if found is not None else None

        self._shown[document.uri] = await self._daemon.view(read)

    async def _see_all(self) -> None:
        progress = self._progress

        def read(state: State) -> None:
            for graph in state.graphs.values():
                if progress is not None:
                    progress.see(graph.id, graph)

        await self._daemon.view(read)

    def committed(self, changes: list[Change], state: State) -> None:
        """Right after a commit: note what concerns this editor; all that costs time comes later, and seldom."""
        for graph in dict.fromkeys(change.graph for change in changes):
            now = state.graphs.get(graph)
            if self._progress is not None:
                self._progress.see(graph, now)
            self._asker.see(graph, now)
            if now is None:
                is_shown = graph in self._shown.values()
            else:
                is_shown = False
                for document in self.documents:
                    if document.path is not None and comes_from(now, document.path):
                        is_shown = True
                        self._shown[document.uri] = graph
            if is_shown:
                self._live_pace.touch()

    def phase_moved(self, graph: str, node: str) -> None:
        """A phase, or only a last line, moved."""
        if graph not in self._shown.values():
            return
        phase = self._daemon.phases.get((graph, node))
        if self._phases.get((graph, node)) != (phase and phase[0]):
            self._phases[(graph, node)] = phase and phase[0]
            self._live_pace.touch()
