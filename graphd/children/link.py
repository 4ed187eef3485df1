"""The daemon's end of one keeper's socket: attach, events, calls. Speaks version 1 of the keeper's frames.

One task reads (`events`), any task calls while it does. Nothing is buffered beyond one frame and the socket.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.children.journal import Decoder, Header, Record
from graphd.children.keeping.files import VERSION
from graphd.children.keeping.peers import ANSWER, CALL, FRAME, JOURNAL, NOTICE, OFFSET

ANSWER_S: Final = 5.0
FRAME_LIMIT: Final = 32 << 20


class KeeperSilent(Exception):
    """Nobody answers at the socket now. Says nothing about whether the keeper lives."""


class AttachRefused(Exception):
    """The keeper does not take this daemon; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class CallRefused(Exception):
    """The keeper answered a call with a code."""

    def __init__(self, code: str, answer: dict[str, Any]) -> None:
        super().__init__(code)
        self.code = code
        self.answer = answer


class LinkLost(Exception):
    """The connection ended."""


class Link:
    """One attached connection. `standing` is the keeper's answer to the attach, `header` its journal's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._is_lost = False
        self.standing: dict[str, Any] = {}
        self.header = Header()

    @classmethod
    async def attach(
        cls, folder: Path, *, store: str, epoch: int, start: int = 0, wait_s: float | None = None
    ) -> "Link":
        """Connect and pass the fence. KeeperSilent when nobody answers in time, AttachRefused when it says no."""
        try:
            async with asyncio.timeout(ANSWER_S if wait_s is None else wait_s):
                link = cls(*await _connect(folder))
                try:
                    await link._attach(store=store, epoch=epoch, start=start)
                except BaseException:
                    await link.close()
                    raise
                return link
        except (OSError, LinkLost) as trouble:  # TimeoutError is one
            raise KeeperSilent(str(trouble) or "no answer") from trouble

    async def events(self, decoder: Decoder) -> AsyncGenerator[list[Record] | dict[str, Any], None]:
        """Records as they come, and notices. Ends with LinkLost only."""
        decoder.restart()
        while True:
            kind, body = await self._frame()
            if kind == JOURNAL:
                yield decoder.feed(body[OFFSET.size :])
            elif kind == NOTICE:
                yield json.loads(body)
            else:
                self._settle(json.loads(body))

    async def call(self, do: str, **facts: Any) -> dict[str, Any]:
        """Ask, and wait for the answer, while another task reads `events`. CallRefused or LinkLost."""
        if self._is_lost:
            raise LinkLost
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._next_id] = future
        try:
            self.post(do, **facts)
            return _checked(await future)
        finally:
            self._waiting = {key: value for key, value in self._waiting.items() if value is not future}

    def post(self, do: str, **facts: Any) -> None:
        """Ask without waiting; the answer is dropped."""
        body = json.dumps({"do": do, "id": self._next_id, **facts}).encode()
        self._next_id += 1
        self._writer.write(FRAME.pack(VERSION, CALL, len(body)) + body)

    async def last(self, do: str, *, wait_s: float = ANSWER_S) -> None:
        """Ask when nobody reads `events` any more, and wait until it is answered or the connection ends."""
        wanted = self._next_id
        with contextlib.suppress(LinkLost, OSError):
            failpoint("link.last.before")
            self.post(do)
            failpoint("link.last.after")
            async with asyncio.timeout(wait_s):
                while True:
                    kind, body = await self._frame()
                    if kind == ANSWER and json.loads(body).get("re") == wanted:
                        return

    async def close(self) -> None:
        """End the connection."""
        self._lose()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _attach(self, *, store: str, epoch: int, start: int) -> None:
        self.post("attach", v=VERSION, store=store, epoch=epoch, **{"from": start})
        kind, body = await self._frame()
        answer = json.loads(body)
        if kind != ANSWER or not answer["ok"]:
            raise AttachRefused(answer.get("code") or "unknown")
        self.standing, self.header = answer, Header(*answer["header"])

    async def _frame(self) -> tuple[int, bytes]:
        try:
            head = await self._reader.readexactly(FRAME.size)
            version, kind, length = FRAME.unpack(head)
            if version != VERSION or length > FRAME_LIMIT:
                raise LinkLost(f"frame of version {version}, {length} bytes")
            return kind, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError, LinkLost) as trouble:
            self._lose()
            raise LinkLost(str(trouble)) from trouble

    def _settle(self, answer: dict[str, Any]) -> None:
        future = self._waiting.get(answer.get("re", -1))
        if future is not None and not future.done():
            future.set_result(answer)

    def _lose(self) -> None:
        self._is_lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LinkLost())


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer["ok"]:
        raise CallRefused(str(answer["code"]), answer)
    return answer


async def _connect(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect by a name relative to the folder: its path may be longer than the 107 bytes of a socket's address.

    `/proc/self/fd` names the folder for one call; `chdir` would move every thread of the daemon.
    """
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, f"/proc/self/fd/{folder_fd}/socket")
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.geteuid():
            raise ConnectionRefusedError("the socket is another user's")
        return await asyncio.open_unix_connection(sock=sock)
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(folder_fd)
