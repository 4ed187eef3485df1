"""The messages that we send to an ACP agent, as data. The writer numbers the requests.

Schema: Agent Client Protocol, version 1. `mcpServers` is always there: agents refuse a session without it.
"""

import json
from typing import Any, Final

from graphd import __version__
from graphd.children.driver import Order
from graphd.core.talk import Line

PROTOCOL_VERSION: Final = 1
METHOD_NOT_FOUND: Final = -32601
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
NOT_FOUND: Final = -32002
TAKEN_BACK: Final = -32800

TERMINAL_ASK: Final = "terminal:"
"""Before the id of a request, in the key of the ask whether its command may be run."""
ALLOW: Final = "allow"

NUDGE_REJECT: Final = (
    "Something you asked for was not allowed, and your turn ended there. Go on without it: finish what can be done "
    "another way, and end with your result. If nothing more can be done, say what is missing and why."
)
NUDGE_EMPTY: Final = "Your turn ended without a result. End with your result as your last message."
NUDGE_CONTRACT: Final = (
    "Your last message is not the result that was asked for. End with one message that is nothing but JSON which fits "
    "this JSON Schema:\n"
)
CONTINUE: Final = "Your turn was cut off by a limit. Go on where you stopped, and end with your result."
GO_ON: Final = "You were interrupted. Look at what is already done, go on from there, and end with your result."


def initialize(*, reads_files: bool, writes_files: bool, runs_commands: bool) -> Line:
    """The first line: what we do for the agent."""
    capabilities = {"fs": {"readTextFile": reads_files, "writeTextFile": writes_files}, "terminal": runs_commands}
    client = {"name": "graphd", "title": "graphd", "version": __version__}
    return _request("initialize", protocolVersion=PROTOCOL_VERSION, clientCapabilities=capabilities, clientInfo=client)


def new_session(order: Order) -> Line:
    """A fresh session in the order's folder, with our MCP server where it can be started."""
    return _request("session/new", **_place(order))


def restore_session(how: str, session: str, order: Order) -> Line:
    """`how` is resume or load. The folder is the same as at its beginning: agents look for sessions by it."""
    return _request(f"session/{how}", sessionId=session, **_place(order))


def list_sessions(order: Order, cursor: str | None) -> Line:
    """The sessions that the agent knows of in this folder, a page at a time."""
    return _request("session/list", cwd=str(order.cwd), **({"cursor": cursor} if cursor else {}))


def set_mode(session: str, mode: str) -> Line:
    """The mode, for agents with modes."""
    return _request("session/set_mode", sessionId=session, modeId=mode)


def set_model(session: str, model: str) -> Line:
    """The model, for agents with a list of models."""
    return _request("session/set_model", sessionId=session, modelId=model)


def set_option(session: str, option: str, value: str) -> Line:
    """A session's configuration option."""
    return _request("session/set_config_option", sessionId=session, configId=option, value=value)


def prompt(session: str, text: str) -> Line:
    """A turn."""
    return _request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


def cancel(session: str) -> Line:
    """Stop the turn. A notification: the answer is the turn's end."""
    return Line({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})


def close_session(session: str) -> Line:
    """End the session. An agent that knows no such method says so, which harms nothing."""
    return _request("session/close", sessionId=session)


def reply(key: str, result: dict[str, Any]) -> Line:
    """The answer to a request of the agent; `key` is its id as JSON."""
    return Line({"jsonrpc": "2.0", "id": json.loads(key), "result": result})


def refusal(key: str, code: int, message: str) -> Line:
    """The error that answers a request of the agent."""
    return Line({"jsonrpc": "2.0", "id": json.loads(key), "error": {"code": code, "message": message}})


def outcome(key: str, option: str | None) -> Line:
    """The answer to a permission request: the chosen option's id, None for cancelled. For a command of a terminal it
    is the word to go on, or the refusal of its request.
    """
    if key.startswith(TERMINAL_ASK):
        if option == ALLOW:
            return control("allow", key=key)
        return refusal(key.removeprefix(TERMINAL_ASK), INVALID_PARAMS, "this command may not be run here")
    chosen = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    return reply(key, {"outcome": chosen})


def control(what: str, **params: Any) -> Line:
    """A line for the keeper, which its agent never gets: start, kill or release a terminal. `allow` is for the fold."""
    return Line({"jsonrpc": "2.0", "method": f"graphd/terminal/{what}", "params": params})


def _request(method: str, **params: Any) -> Line:
    return Line({"jsonrpc": "2.0", "method": method, "params": params}, is_request=True)


def _place(order: Order) -> dict[str, Any]:
    servers = []
    if order.mcp_argv:
        env = [{"name": name, "value": value} for name, value in order.mcp_env]
        servers = [{"name": "graphd", "command": order.mcp_argv[0], "args": list(order.mcp_argv[1:]), "env": env}]
    return {"cwd": str(order.cwd), "mcpServers": servers}
