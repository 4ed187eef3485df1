"""Where pygls is: its protocol object between whole messages from our reader and answers for our writer.

The only module, with those that it imports, that loads pygls and lsprotocol (1 to 2 s); imported in a thread once an
editor has its answer. pygls reads no socket, writes none, ends no process, and keeps no document here. Why, each
measured: research sidecar.md §1 and §2. A test holds the private names that are in use.
"""

import asyncio
import functools
import inspect
import logging
import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol

from cattrs import transform_error
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from graphd import __version__
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.daemon.log import log
from graphd.server.errors import CallRefused, ParamsRefused, error_object, where
from graphd.server.errors import field as bad_field

Json = dict[str, Any]
Handler = Callable[..., Any]
_FIELDS_LIMIT: Final = 8
_SNAKE: Final = re.compile(r"_([a-z])")

logging.getLogger("pygls").addHandler(logging.NullHandler())
logging.getLogger("pygls").propagate = False  # it logs whole messages; ours go to the daemon's own log


class EditorGone(Exception):
    """The editor left before it answered."""


class Editor(Protocol):
    """What is behind the protocol object: the session of one connection."""

    def route(self, method: str) -> Handler | None:
        """The handler of a method: `async def` for requests, `def` for notifications."""

    def answered(self, number: int | str, answer: Json) -> None:
        """A request of the editor's has its `result` or its `error`."""

    def ask_sent(self, number: str, frame: Json) -> None:
        """A request of ours wants to go out."""


@functools.cache
def shared_converter() -> Any:
    """One for all connections: it knows the types, no connection."""
    return default_converter()  # type: ignore[no-untyped-call]  # pygls leaves it bare


def warm() -> None:
    """Have the code for the messages that editors send most generated here, in the thread that imports us."""
    place = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}
    span = {"start": place["position"], "end": place["position"]}
    for method, params in (
        (types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": {"uri": "", "languageId": "", "version": 0, "text": ""}}),
        (types.TEXT_DOCUMENT_DID_CHANGE, {"textDocument": {"uri": "", "version": 0}, "contentChanges": [{"text": ""}]}),
        (types.TEXT_DOCUMENT_HOVER, place),
        (types.TEXT_DOCUMENT_COMPLETION, place),
        (types.TEXT_DOCUMENT_CODE_LENS, place),
        (types.TEXT_DOCUMENT_INLAY_HINT, {**place, "range": span}),
        (types.TEXT_DOCUMENT_CODE_ACTION, {**place, "range": span, "context": {"diagnostics": []}}),
        (types.WORKSPACE_EXECUTE_COMMAND, {"command": ""}),
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        shared_converter().structure(message, types.METHOD_TO_TYPES[method][0])


class EditorProtocol(LanguageServerProtocol):
    """pygls' protocol without its caches, its built-in handlers and its writer."""

    _server: "EditorServer"

    # pygls caches both by method and by self, which keeps dead connections alive: here without a cache.
    def get_message_type(self, method: str) -> Any:  # type: ignore[override]  # a plain method, as said above
        """The type of a request or notification."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> Any:  # type: ignore[override]  # a plain method, as said above
        """The type of an answer."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    def lsp_exit(self, *args: object) -> Any:
        """Ends nothing: an editor's `exit` is its connection's business, never the process's."""

    def _register_builtin_features(self) -> None:
        """None: lifecycle and documents are ours."""

    def _get_handler(self, feature_name: str) -> Any:
        return self._server.handler(feature_name)

    def _send(self, message: Any) -> None:
        if message:
            self._server.sent(message)

    _send_data = _send  # type: ignore[assignment]  # pygls' name for it


class EditorServer(LanguageServer):
    """One editor's server object. `take` is all that it hears."""

    protocol: EditorProtocol

    def __init__(self, editor: Editor) -> None:
        super().__init__("graphd", __version__, protocol_cls=EditorProtocol, converter_factory=shared_converter)
        self._editor: Editor | None = editor

    # ---- in -------------------------------------------------------------------------------------------------------

    def take(self, message: Json) -> None:
        """One whole top-level message. A request is answered whatever it looks like; never raises."""
        number: Any = message.get("id")
        is_request = "method" in message and number is not None
        try:
            structured = self.protocol.structure_message(message)
        except JsonRpcException as trouble:
            if is_request:
                self._answer(number, {"error": _params_refused(trouble).error})
            elif "method" not in message:
                self._fail(number, trouble)
            else:
                log("lsp_notice_refused", method=message["method"])
            return
        if "method" not in message and not isinstance(self.protocol._request_futures.get(number), Future):
            return  # an answer to what nobody waits for any more, or to a request of the editor's own
        self.protocol.handle_message(structured)

    def handler(self, method: str) -> Any:
        """As pygls wants it: raises where there is none."""
        found = self._editor.route(method) if self._editor is not None else None
        if found is None:
            raise JsonRpcMethodNotFound.of(method)
        return functools.partial(_guarded, found) if inspect.iscoroutinefunction(found) else found

    def cancel(self, number: int | str) -> None:
        """The editor's request is no longer wanted."""
        future = self.protocol._request_futures.pop(number, None)
        if future is not None:
            future.cancel()

    # ---- out ------------------------------------------------------------------------------------------------------

    def sent(self, data: Any) -> None:
        """What pygls wants to write: answers go to their requests, requests of ours to the editor."""
        if self._editor is None:
            return
        if hasattr(data, "method"):
            params = {"params": data.params} if data.params is not None else {}
            self._editor.ask_sent(data.id, {"jsonrpc": "2.0", "id": data.id, "method": data.method, **params})
        elif isinstance(data, types.ResponseErrorMessage):
            self._answer(data.id, {"error": _plain(data.error)})
        else:
            self._answer(data.id, {"result": data.result})  # our handlers give JSON values, never lsprotocol's objects

    async def ask(self, method: str, params: Json | None) -> Any:
        """A request to the editor; its result, typed. Raises EditorGone, or JsonRpcException where it refuses."""
        future = self.protocol.send_request(method, params)
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._forget(future)

    def _answer(self, number: Any, answer: Json) -> None:
        if self._editor is not None:
            self._editor.answered(number, answer)

    def _fail(self, number: Any, trouble: Exception) -> None:
        future = self.protocol._request_futures.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(trouble)

    def _forget(self, future: Any) -> None:
        futures = self.protocol._request_futures
        for number in [key for key, value in futures.items() if value is future]:
            del futures[number]
            self.protocol._result_types.pop(number, None)

    # ---- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The connection ends: handlers are cancelled, and what we asked the editor fails."""
        self._editor = None
        futures, self.protocol._request_futures = self.protocol._request_futures, {}
        for future in futures.values():
            if isinstance(future, asyncio.Future):
                future.cancel()
            elif not future.done():
                future.set_exception(EditorGone())

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log, never as a pop-up in somebody's editor."""
        if not isinstance(error, JsonRpcException):
            log("lsp_trouble", **where(error))


async def _guarded(handler: Handler, params: Any) -> Any:
    """A refusal as its error; anything else as its class alone."""
    try:
        return await handler(params)
    except (CallRefused, Refused) as refusal:
        raise _refused(error_object(refusal)) from None
    except Exception as trouble:  # noqa: BLE001 -- every request gets exactly one answer, without a path in it
        log("lsp_request_failed", **where(trouble))
        raise _refused(error_object(trouble)) from None


def _refused(error: Json) -> JsonRpcException:
    return JsonRpcException(error["message"], error["code"], error.get("data"))


def _plain(error: Any) -> Json:
    """An error object as it may leave: pygls puts tracebacks into `data`, ours is a map with a code."""
    plain: Json = {"code": error.code, "message": error.message}
    return {**plain, "data": error.data} if isinstance(error.data, dict) and "traceback" not in error.data else plain


def _params_refused(trouble: JsonRpcException) -> ParamsRefused:
    """What lsprotocol says of params that don't fit, as all our -32602 say it."""
    cause = trouble.__cause__
    lines = transform_error(cause)[:_FIELDS_LIMIT] if cause is not None else []
    fields = []
    for line in lines or ["invalid value @ $.params"]:
        message, _, path = line.partition(" @ ")
        name = _SNAKE.sub(lambda match: match[1].upper(), path.removeprefix("$.params").lstrip("."))
        expected = message.partition("expected ")[2] or t("what LSP says")
        got = t("nothing") if "missing" in message else t("other")
        fields.append(bad_field(name, message, expected=expected, got=got))
    return ParamsRefused(fields)
