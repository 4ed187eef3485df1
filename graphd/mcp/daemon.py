"""Requests to the daemon, each on a connection of its own, made again while the attempt's keeper lives.

What a child says is applied once however often it is sent: a result replaces itself, a question is known by its words.
A daemon that dies is started again by the keepers, never from here. Source: execution.md, Environment.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from graphd.client.attach import Attached, AttachRefused, attach
from graphd.client.frames import FrameBroken, FrameReader, frame
from graphd.client.greeting import Greeting
from graphd.client.paths import AttachFailure, find_workspace
from graphd.mcp.serving import ToolFailed

Json = dict[str, Any]
PATIENCE_S: Final = 5.0
PAUSE_S: Final = 0.2
READ_BYTES: Final = 1 << 16


class _Stopping(Exception):
    """The daemon ends, or can write nothing now: the same request may succeed later."""


class Attempt:
    """The attempt that this process belongs to, by the file of its token."""

    def __init__(self, token_file: str) -> None:
        self._folder = Path(token_file).parent

    def call(self, method: str, params: Json) -> Json:
        """The result of a request. ToolFailed where it is refused, or the attempt is over."""
        while True:
            try:
                return self._call_once(method, params)
            except AttachRefused as refusal:
                if refusal.code == "unauthorised":
                    raise ToolFailed("this attempt is over: what it still says is dropped") from None
                trouble: Exception = refusal
            except (AttachFailure, OSError, EOFError, FrameBroken, _Stopping) as failure:
                trouble = failure
            if not self._is_kept():
                raise ToolFailed(f"the daemon is gone, and the attempt with it: {trouble}") from None
            time.sleep(PAUSE_S)

    def _is_kept(self) -> bool:
        """Its keeper lives: it holds the lock of the attempt's folder."""
        try:
            fd = os.open(self._folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _call_once(self, method: str, params: Json) -> Json:
        attached = attach(find_workspace().root, Greeting("graphd-mcp"), may_start=False, patience_s=PATIENCE_S)
        with attached.connection as connection:
            connection.settimeout(None)
            connection.sendall(
                frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
            )
            answer = _answer(attached)
        error = answer.get("error")
        if isinstance(error, dict):
            facts = error.get("data") or {}
            if facts.get("code") == "storeUnavailable":
                raise _Stopping(error.get("message"))
            hint = facts.get("hint")
            raise ToolFailed(f"{error.get('message')}" + (f" ({hint})" if hint else ""))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


def _answer(attached: Attached) -> Json:
    """The answer to the one request; notifications before it are none of ours. EOFError where none comes."""
    reader, chunk = FrameReader(), attached.rest
    while True:
        for body in reader.feed(chunk):
            message = json.loads(body)
            if message.get("id") == 1 and "method" not in message:
                return dict(message)
        chunk = attached.connection.recv(READ_BYTES)
        if not chunk:
            raise EOFError("the daemon closed the connection")
