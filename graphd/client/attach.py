"""Find or start the daemon of a workspace and say hello. Standard library alone.

Source: spec protocol.md, Daemon, socket, lock.

A start races with other starts; the daemon's own lock decides. Clients remove nothing: a socket file that a
dead daemon left is replaced by the next one, under its lock.
"""
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH123, SIM105
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import time

from graphd import __version__
from graphd.client.frames import FrameBroken, FrameReader, frame
from graphd.client.greeting import PROTOCOL_RANGE, Greeting
from graphd.client.paths import (
    LOCK,
    LOG,
    STARTING,
    AttachFailure,
    check_private,
    connect_beside,
    make_state_folder,
    state_folder,
)
from graphd.client.starting import BUSY, READY, DaemonNotReady, Patience, log_tail, start_daemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATIENCE_S = 10.0
STARTER_PATIENCE_S = 3.0  # after this a client no longer leaves the start to the one that holds `starting`
HELLO_ID = "graphd-attach"  # text, so that no client's own ids meet it


class AttachRefused(AttachFailure):
    """The daemon answered hello with a refusal, or what listens there is none of ours."""

    code = "protocolMismatch"


class DaemonUnreachable(AttachFailure):
    """No daemon, and none may be started; or one that does not answer in time."""


class DaemonStartFailure(AttachFailure):
    """The daemon was started and ended before it was ready; the message shows the last lines of its log."""


class Attached:
    """A greeted connection.

    Blocking `connection`, the `hello` result, and `rest`, bytes read beyond the reply.
    """

    __slots__ = ("connection", "folder", "hello", "rest", "workspace")

    def __init__(
        self, connection: socket.socket, *, hello: dict[str, Any], rest: bytes, workspace: str, folder: str
    ) -> None:
        self.connection = connection
        self.hello = hello
        self.rest = rest
        self.workspace = workspace
        self.folder = folder


class _Gone(Exception):
    """Nobody listens, or the connection ended before the hello was answered: start one."""


class _Crowded(Exception):
    """A daemon lives but takes no connection at this moment: only wait."""


def attach(
    workspace: str,
    greeting: Greeting,
    *,
    may_start: bool = True,
    patience_s: float = PATIENCE_S,
    is_given_up: Callable[[], bool] = lambda: False,
) -> Attached:
    """Connect to the daemon of `workspace` (a real path), starting it where there is none, and say hello.

    Inside an attempt (`GRAPHD_ATTEMPT` set) it waits for the daemon that the keepers start again, and starts
    none. Blocks for at most `patience_s`; `is_given_up` is asked several times a second. Raises
    `AttachFailure`s.
    """
    is_child = bool(os.environ.get("GRAPHD_ATTEMPT"))
    starts = may_start and not is_child
    folder = make_state_folder(workspace) if starts else state_folder(workspace)
    search = _Search(workspace, folder, Patience(patience_s, is_given_up))
    while True:
        try:
            return search.greet(greeting)
        except _Crowded:
            pass
        except _Gone:
            if starts:
                search.start()
            elif not is_child:
                raise DaemonUnreachable(
                    f"no daemon serves {workspace}", "Leave out --no-start, or run: graphd daemon --start"
                ) from None
        search.back_off()


class _Search:
    """One client's way to its daemon: what was tried and how long there is to go."""

    def __init__(self, workspace: str, folder: str, patience: Patience) -> None:
        self._workspace = workspace
        self._folder = folder
        self._patience = patience
        self._starts_alone_at = time.monotonic() + STARTER_PATIENCE_S
        self._next_start_at = 0.0
        self._locked_pause_s = 0.05
        self._is_locked = False
        self._tries = 0
        self._last_trouble = "nobody listens"

    def greet(self, greeting: Greeting) -> Attached:
        """Connect, check the peer, exchange hello. Raises `_Gone`, `_Crowded` or an `AttachFailure`."""
        connection = self._connect()
        try:
            result, rest = self._exchange_hello(connection, greeting)
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return Attached(connection, hello=result, rest=rest, workspace=self._workspace, folder=self._folder)

    def start(self) -> None:
        """Start a daemon unless another client does so just now. Raises `DaemonStartFailure`."""
        if time.monotonic() < self._next_start_at:
            return
        make_state_folder(self._workspace)  # again: it may have been removed under us
        starting = os.open(os.path.join(self._folder, STARTING), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(starting, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() < self._starts_alone_at:
                os.close(starting)
                self._last_trouble = "another client is starting the daemon"
                return
        try:
            if not self._is_listening():  # it may have come up between our refusal and our turn
                self._start_now()
        finally:
            os.close(starting)

    def _start_now(self) -> None:
        try:
            said = start_daemon(self._workspace, self._folder, self._patience)
        except DaemonNotReady as error:
            self._last_trouble = self._last_trouble if self._is_locked else error.message
            return
        except AttachFailure as error:
            raise DaemonStartFailure(error.message, error.hint, error.code) from error
        self._is_locked = said == BUSY
        if self._is_locked:  # each start costs a process: the lock's holder is given longer and longer
            self._next_start_at = time.monotonic() + self._locked_pause_s
            self._locked_pause_s = min(2.0, self._locked_pause_s * 2)
        if said == READY:
            self._tries = -1
        self._last_trouble = "it holds the lock but does not listen" if self._is_locked else "it was started"

    def back_off(self) -> None:
        """Wait a growing, jittered moment; not at all right after a start.

        Raises `DaemonUnreachable` at the end.
        """
        self._tries += 1
        if self._tries == 0:
            return
        spread = 0.5 + os.urandom(1)[0] / 256
        pause_s = min(0.25, 0.01 * 1.6 ** min(self._tries, 10)) * spread
        if pause_s > self._patience.left_s():
            raise DaemonUnreachable(
                f"the daemon of {self._workspace} cannot be reached: {self._last_trouble}",
                f"{self._holder_hint()} Its log: {os.path.join(self._folder, LOG)}{log_tail(self._folder)}",
            )
        time.sleep(pause_s)

    def _connect(self) -> socket.socket:
        try:
            check_private(self._folder)
            connection = connect_beside(self._folder, timeout_s=self._patience.slice_s())
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError) as error:
            raise _Gone from error
        except (BlockingIOError, TimeoutError) as error:  # its queue of connections is full
            self._last_trouble = "it takes no connections"
            raise _Crowded from error
        except OSError as error:
            raise DaemonUnreachable(f"{self._folder}/socket cannot be opened: {error.strerror}") from error
        peer = _peer(connection)
        if peer is not None and peer[1] != os.geteuid():
            connection.close()
            raise AttachRefused("another user's process listens on the socket", "Do not use it.", "unauthorised")
        return connection

    def _is_listening(self) -> bool:
        try:
            self._connect().close()
        except _Gone:
            return False
        except _Crowded:
            pass
        return True

    def _exchange_hello(self, connection: socket.socket, greeting: Greeting) -> tuple[dict[str, Any], bytes]:
        params = greeting.params(self._workspace)
        request = {"jsonrpc": "2.0", "id": HELLO_ID, "method": "graphd/hello", "params": params}
        frames = FrameReader()
        try:
            connection.sendall(frame(json.dumps(request).encode()))
            while (body := frames.take()) is None:
                frames.push(self._receive(connection))
            return _read_reply(json.loads(body)), bytes(frames.rest)
        except ConnectionError as error:
            raise _Gone from error
        except (FrameBroken, ValueError) as error:
            raise AttachRefused(f"what listens on the socket does not speak our protocol: {error}") from error

    def _receive(self, connection: socket.socket) -> bytes:
        while True:
            connection.settimeout(self._patience.slice_s())
            try:
                chunk = connection.recv(65536)
            except TimeoutError:
                if self._patience.left_s():
                    continue
                peer = _peer(connection)
                pid = peer[0] if peer else "?"
                raise DaemonUnreachable(
                    f"the daemon (pid {pid}) does not answer",
                    f"If it hangs: kill -9 {pid}; its children go on.",
                ) from None
            if not chunk:
                raise _Gone
            return chunk

    def _holder_hint(self) -> str:
        """Who says to hold the lock; a word for people, never used to decide."""
        try:
            with open(os.path.join(self._folder, LOCK), "rb") as lock:
                said = lock.read(200).decode(errors="replace").split("\n")[0].strip()
        except OSError:
            return "Run: graphd doctor."
        return f"The lock file says: {said}." if said.isprintable() and said else "Run: graphd doctor."


def _read_reply(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, dict):
        raise ValueError("not an answer to hello")
    if reply.get("method") == "graphd/stopping":
        raise _Gone
    error = reply.get("error")
    if isinstance(error, dict):
        facts = error.get("data")
        facts = facts if isinstance(facts, dict) else {}
        raise AttachRefused(
            str(error.get("message", "the daemon refused")),
            str(facts.get("hint", "")),
            str(facts.get("code", "refused")),
        )
    result = reply.get("result")
    if not isinstance(result, dict) or reply.get("id") != HELLO_ID:
        raise ValueError("an answer without a result")
    least, most = PROTOCOL_RANGE
    if not isinstance(result.get("protocol"), int) or not least <= result["protocol"] <= most:
        theirs = (result.get("daemon") or {}).get("version", "?")
        raise AttachRefused(
            f"daemon {theirs} speaks protocol {result.get('protocol')}, graphd {__version__} speaks {least} to {most}",
            "Run: graphd stop; the next command starts the daemon of this version. Running work goes on.",
        )
    return result


def _peer(connection: socket.socket) -> tuple[int, int] | None:
    """(pid, uid) of the other side; None where the system cannot say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def connect_main(argv: list[str]) -> int:
    """`graphd connect`: the byte pipe; see `graphd.client.pipe`."""
    from graphd.client.pipe import connect_main as run

    return run(argv)
