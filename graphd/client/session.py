"""The Python client: one connection, calls and notifications. A public API. Source: spec protocol.md.

`Session.open` finds or starts the daemon. It ends with its connection; `graphd.client.follow` outlives that.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Self

import orjson

from graphd.client.attach import PATIENCE_S, Attached, attach
from graphd.client.frames import FrameBroken, FrameReader, frame
from graphd.client.greeting import Greeting
from graphd.client.paths import find_workspace
from graphd.client.plain_socket import packaged

NOTIFICATIONS_HELD = 1024
"""So many unread notifications and nothing is read on (while no call waits).

The daemon then keeps only a cursor for us.
"""

_JSON_RPC_CODES = {
    -32700: "parseError",
    -32600: "invalidRequest",
    -32601: "methodNotFound",
    -32602: "invalidParams",
    -32603: "internalError",
    -32800: "requestCancelled",
}


class RemoteRefused(Exception):
    """The daemon's answer is an error.

    `code` and `number` as in protocol.md, `hint` what to do, `data` all it says.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        data = error.get("data")
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.number = int(error.get("code", 0))
        self.code = str(self.data.get("code") or _JSON_RPC_CODES.get(self.number, "unknown"))
        self.message = str(error.get("message", ""))
        self.hint = str(self.data.get("hint") or "")
        super().__init__(self.message)


class ConnectionLost(Exception):
    """The connection ended. `stopping` holds the daemon's `graphd/stopping`, where it said goodbye."""

    def __init__(self, reason: str, stopping: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.stopping = stopping


class Session:
    """One greeted connection.

    `hello` is the daemon's answer; `note` says where another workspace was taken than the folder that was named (or
    ""). One task may read `notifications`, any number may `call`.
    """

    def __init__(
        self, attached: Attached, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, note: str = ""
    ) -> None:
        self.hello: dict[str, Any] = attached.hello
        self.workspace = attached.workspace
        self.folder = attached.folder
        self.note = note
        self.stopping: dict[str, Any] | None = None
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._abandoned: set[int] = set()
        self._last_id = 0
        self._notices: deque[tuple[str, dict[str, Any]]] = deque()
        self._stirred = asyncio.Event()  # something for the one that reads notifications
        self._may_read = asyncio.Event()
        self._lost: ConnectionLost | None = None
        self._reading = asyncio.create_task(self._read(attached.rest), name="graphd session reader")

    @classmethod
    async def open(
        cls,
        *,
        workspace: Path | None = None,
        start: bool = True,
        client: str = "graphd-cli",
        interactive: bool = False,
        owner: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> Self:
        """Connect to the workspace's daemon (found as protocol.md says); start one unless `start` is False.

        Raises `AttachFailure`s: `WorkspaceRefused`, `AttachRefused`, `DaemonUnreachable`, `DaemonStartFailure`.
        """
        greeting = Greeting(client, is_interactive=interactive, owner=owner)
        attached, note = await _attach_off_the_loop(workspace, greeting, may_start=start, patience_s=patience_s)
        connection = packaged(attached.connection)
        try:
            connection.setblocking(False)
            reader, writer = await asyncio.open_unix_connection(sock=connection)
        except BaseException:
            connection.close()
            raise
        return cls(attached, reader, writer, note=note)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(self, method: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Any:
        """The result of one request.

        Raises `RemoteRefused`, `ConnectionLost`, or TimeoutError after `timeout_s`.

        A call that is cancelled or times out is cancelled at the daemon too; a mutation may have been
        committed all the same.
        """
        if self._lost:
            raise ConnectionLost(str(self._lost), self._lost.stopping)
        self._last_id += 1
        number = self._last_id
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._may_read.set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(request)
                return await answer
        except (asyncio.CancelledError, TimeoutError):
            self._abandon(number)
            raise
        finally:
            self._waiting.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen: a call that ended otherwise leaves no warning behind

    async def ends(self, *, within_s: float) -> bool:
        """Whether the connection ends in that time. A daemon that stops refuses what came too late, then leaves."""
        self._may_read.set()
        await asyncio.wait({self._reading}, timeout=within_s)
        return self._lost is not None

    async def notifications(self) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """(method, params) of each notification, in order.

        Ends with the connection, after what came before its end.
        """
        while True:
            while self._notices:
                notice = self._notices.popleft()
                self._allow_reading()
                yield notice
            if self._lost:
                return
            self._stirred.clear()
            await self._stirred.wait()

    async def close(self) -> None:
        """End the connection; calls that still wait fail with `ConnectionLost`. Safe to call again."""
        self._end("closed by this side")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            self._writer.write(frame(orjson.dumps(message)))
            await self._writer.drain()
        except OSError as error:
            self._end(f"the daemon is gone: {error}")
            raise ConnectionLost(str(self._lost), self.stopping) from error

    def _abandon(self, number: int) -> None:
        """Nobody waits for this answer any more; it may still come."""
        if self._lost:
            return
        self._abandoned.add(number)
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}
        with contextlib.suppress(OSError):
            self._writer.write(frame(orjson.dumps(cancel)))

    async def _read(self, first: bytes) -> None:
        frames, chunk = FrameReader(), first
        reason = "the daemon closed the connection"
        try:
            while True:
                for body in frames.feed(chunk):
                    self._take(orjson.loads(body))
                self._allow_reading()
                await self._may_read.wait()
                chunk = await self._reader.read(65536)
                if not chunk:
                    break
        except OSError as error:
            reason = f"the daemon is gone: {error}"
        except (FrameBroken, ValueError) as error:
            reason = f"the daemon sent what is no frame of ours: {error}"
        finally:
            self._end(reason)

    def _allow_reading(self) -> None:
        if self._waiting or len(self._notices) < NOTIFICATIONS_HELD:
            self._may_read.set()
        else:
            self._may_read.clear()

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")  # noqa: TRY004 - trouble of the wire, as in loads
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is not None:
                self._refuse_request(number)
            else:
                self._take_notification(method, message.get("params") or {})
            return
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None:
            if number not in self._abandoned:
                raise ValueError(f"an answer to nothing we asked: {message.get('error') or number}")
            self._abandoned.discard(number)
        elif not answer.done():
            if "error" in message:
                answer.set_exception(RemoteRefused(message["error"]))
            else:
                answer.set_result(message.get("result"))

    def _take_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "graphd/stopping":
            self.stopping = params
        self._notices.append((method, params))
        self._stirred.set()

    def _refuse_request(self, number: Any) -> None:
        error = {"code": -32601, "message": "this client takes no requests"}
        self._writer.write(frame(orjson.dumps({"jsonrpc": "2.0", "id": number, "error": error})))

    def _end(self, reason: str) -> None:
        if self._lost is None:
            self._lost = ConnectionLost(reason, self.stopping)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(str(self._lost), self.stopping))
        self._stirred.set()


async def _attach_off_the_loop(
    workspace: Path | None, greeting: Greeting, *, may_start: bool, patience_s: float
) -> tuple[Attached, str]:
    """`attach` in a thread, and the note of the search.

    A cancelled caller makes it give up soon, and what it still brings is closed.
    """
    given_up = False

    def work() -> tuple[Attached, str]:
        found = find_workspace(workspace)
        attached = attach(
            found.root, greeting, may_start=may_start, patience_s=patience_s, is_given_up=lambda: given_up
        )
        return attached, found.note

    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        given_up = True
        future.add_done_callback(_discard)
        raise


def _discard(future: "asyncio.Future[tuple[Attached, str]]") -> None:
    if not future.cancelled() and future.exception() is None:
        future.result()[0].connection.close()
