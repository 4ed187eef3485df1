"""An editor that speaks LSP by hand over the socket: what it sends is what is in the test, what it hears is kept.

`Typed` answers are held to lsprotocol: whatever the server sends has to be what LSP says.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pygls.protocol import default_converter

from graphd.server.lsp.desk import Desk
from tests.kit.wire import Client, Served, Wire, frame

FULL: Wire = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "completion": {"completionItem": {"documentationFormat": ["markdown"]}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
        "rename": {"prepareSupport": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
}
"""A client that can do all but pull diagnostics."""

FLOW = """title: Ship it
nodes:
  - { id: lint, run: make lint }
  - { id: tests, run: make test }
  - { id: report, needs: [lint, tests], run: cat }
"""
ALL_LINES: Wire = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
PLACE: Wire = {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": 0, "character": 0}}


class Editor(Client):
    """One editor's connection. Requests of the server's are answered with `result` at once, and kept in `asked`."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.asked: list[tuple[str, Wire]] = []
        self.answers_asks = True
        self.result: Wire | None = None
        self._unanswered: list[Any] = []

    @classmethod
    async def connect(cls, path: Path | str, *, hello: bool = False, **params: Any) -> "Editor":
        """Connect; say hello only where told to."""
        made = await super().connect(path, hello=hello, **params)
        assert isinstance(made, Editor)
        return made

    async def initialize(self, capabilities: Wire | None = None, **params: Any) -> Wire:
        """The result of `initialize`; `initialized` follows it."""
        given = {"processId": None, "rootUri": None, "capabilities": FULL if capabilities is None else capabilities}
        result: Wire = await self.call("initialize", {**given, **params})
        await self.tell("initialized", {})
        return result

    async def tell(self, method: str, params: Any = None) -> None:
        """A notification."""
        message = {"jsonrpc": "2.0", "method": method}
        await self.send(frame(message if params is None else {**message, "params": params}))

    async def open(self, uri: str, text: str, *, language: str = "yaml", version: int = 1) -> None:
        """`didOpen`."""
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        await self.tell("textDocument/didOpen", {"textDocument": document})

    async def change(self, uri: str, *changes: Wire, version: int = 2) -> None:
        """`didChange`."""
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
        await self.tell("textDocument/didChange", params)

    async def at(self, method: str, uri: str, line: int, character: int, **more: Any) -> Any:
        """A request about a position."""
        position = {"line": line, "character": character}
        return await self.call(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position, **more})

    async def of(self, method: str, uri: str, **more: Any) -> Any:
        """A request about a document."""
        return await self.call(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})

    async def command(self, name: str, **argument: Any) -> Any:
        """`workspace/executeCommand` with one object."""
        return await self.call("workspace/executeCommand", {"command": name, "arguments": [argument]})

    async def diagnostics(self, uri: str) -> list[Wire]:
        """The next diagnostics that are published for a document."""
        while True:
            params = await self.next("textDocument/publishDiagnostics")
            if params["uri"] == uri:
                rows: list[Wire] = params["diagnostics"]
                return rows

    async def rest(self) -> list[Wire]:
        """Every message up to the end of the connection, which is closed then."""
        messages = await super().rest()
        await self.close()
        return messages

    def _keep(self, message: Wire) -> None:
        if "method" in message and "id" in message:
            self.asked.append((message["method"], message.get("params", {})))
            if self.answers_asks:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.result}
                self._writer.write(frame(json.dumps(answer).encode()))
        super()._keep(message)


async def editor(served: Served, capabilities: Wire | None = None, **params: Any) -> Editor:
    """One more editor, initialized."""
    client = await Editor.connect(served.path)
    await client.initialize(capabilities, **params)
    return client


@asynccontextmanager
async def edited(served: Served, text: str, capabilities: Wire | None = None) -> AsyncIterator[tuple[Editor, str]]:
    """An editor with one workflow file open, saved as it is."""
    path = workflow(served.daemon.workspace, "flow", text)
    client = await editor(served, capabilities)
    await client.open(path.as_uri(), text)
    try:
        yield client, path.as_uri()
    finally:
        await client.close()


def workflow(workspace: Path, name: str, text: str) -> Path:
    """Write a workflow file."""
    folder = workspace / ".agents" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def converter() -> Any:
    """lsprotocol's own, which knows every type of LSP."""
    return default_converter()  # type: ignore[no-untyped-call]  # pygls leaves it bare


def span(rows: Wire) -> tuple[int, int, int, int]:
    """A range as four numbers."""
    start, end = rows["start"], rows["end"]
    return start["line"], start["character"], end["line"], end["character"]


async def run(client: Editor, uri: str, text: str = FLOW) -> str:
    """A live graph of the file, as if it had been saved with this text."""
    path = Path(uri.removeprefix("file://"))
    before = path.read_text()
    path.write_text(text)
    graph: str = (await client.call("workgraph/set", {"file": str(path)}))["graph"]
    path.write_text(before)
    return graph


async def lenses(client: Editor, uri: str) -> list[tuple[int, str]]:
    """(line, title) of every lens."""
    rows = await client.of("codeLens", uri)
    return [(row["range"]["start"]["line"], row["command"]["title"]) for row in rows]


def desk_of(served: Served, index: int = 0) -> Desk:
    """The desk behind a connection."""
    session = list(served.server._served)[index]._lsp
    assert session is not None
    assert session._desk is not None
    return session._desk
