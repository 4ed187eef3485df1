"""A minimal MCP server over stdio: newline-delimited JSON-RPC, tools alone. One thread a call: a wait holds up nothing.

Schema: Model Context Protocol, revisions 2024-11-05 to 2025-06-18 (what tools need is the same in all of them).
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TextIO

from graphd import __version__

Json = dict[str, Any]
REVISIONS: Final = ("2025-06-18", "2025-03-26", "2024-11-05")
LINE_LIMIT: Final = 16 << 20
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Tool(NamedTuple):
    """A tool: `schema` is the JSON Schema of its arguments, `call` takes them. ToolFailed is told to the model."""

    name: str
    description: str
    schema: Json
    call: Callable[[Json], str]


class ToolFailed(Exception):
    """The call did not work; the message says why, and what to do."""


class McpServer:
    """Serves `tools` until its input ends."""

    def __init__(self, tools: tuple[Tool, ...], *, out: TextIO | None = None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._out = out or sys.stdout
        self._writing = threading.Lock()

    def run(self, lines: Any = None) -> None:
        """Answer every line of stdin. Calls that still run at its end are left: nobody hears them."""
        for line in sys.stdin.buffer if lines is None else lines:
            if line.strip():
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line[:LINE_LIMIT])
        except (ValueError, RecursionError):
            self._send(None, error=(PARSE_ERROR, "no JSON"))
            return
        if not isinstance(message, dict):
            self._send(None, error=(INVALID_REQUEST, "one message a line"))
            return
        number, method = message.get("id"), message.get("method")
        if number is None or not isinstance(method, str):
            return  # a notification, or an answer to nothing that we asked
        params = message.get("params")
        given = params if isinstance(params, dict) else {}
        if method == "tools/call":
            threading.Thread(target=self._call, args=(number, given), daemon=True).start()
        elif method == "initialize":
            self._send(number, result=_greeting(given))
        elif method == "tools/list":
            rows = [
                {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
                for tool in self._tools.values()
            ]
            self._send(number, result={"tools": rows})
        elif method == "ping":
            self._send(number, result={})
        else:
            self._send(number, error=(METHOD_NOT_FOUND, f"{method[:100]} is not served"))

    def _call(self, number: Any, params: Json) -> None:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            self._send(number, error=(INVALID_PARAMS, f"no tool {str(params.get('name'))[:100]}"))
            return
        try:
            text, is_error = tool.call(_arguments(params.get("arguments"), tool)), False
        except ToolFailed as failure:
            text, is_error = str(failure), True
        except Exception as trouble:  # noqa: BLE001 -- every request gets its one answer
            text, is_error = f"{tool.name} failed: {trouble}", True
        self._send(number, result={"content": [{"type": "text", "text": text}], "isError": is_error})

    def _send(self, number: Any, *, result: Json | None = None, error: tuple[int, str] | None = None) -> None:
        body: Json = {"result": result} if error is None else {"error": {"code": error[0], "message": error[1]}}
        # In ASCII: what encoding stdout has is our caller's, and a text may hold half a character.
        line = json.dumps({"jsonrpc": "2.0", "id": number, **body}) + "\n"
        with self._writing:
            self._out.write(line)
            self._out.flush()


def _greeting(params: Json) -> Json:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in REVISIONS else REVISIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "graphd", "version": __version__},
    }


def _arguments(given: Any, tool: Tool) -> Json:
    """The arguments as an object; some models send one as text. ToolFailed where a required one is missing."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    found = given if isinstance(given, dict) else {}
    missing = [name for name in tool.schema.get("required", ()) if name not in found]
    if missing:
        raise ToolFailed(f"{tool.name} needs {', '.join(missing)}")
    return found
