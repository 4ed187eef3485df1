"""The byte pipe of `graphd connect`: stdin and stdout to the daemon's socket. Standard library alone.

Source: spec protocol.md.

It finds or starts the daemon, says `graphd/hello` with an id of its own and keeps that one answer; from then
on it forwards bytes both ways and understands none. A client's own `graphd/hello` is forwarded like anything
else: a later hello on a connection is allowed and answered. Nothing reaches stdout that did not come from the
daemon.
"""
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH123, SIM105
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import os
import select
import stat
import sys

from graphd.base.plain_json import decode
from graphd.client.attach import Attached, attach
from graphd.client.frames import FrameBroken, FrameReader
from graphd.client.greeting import Greeting
from graphd.client.paths import AttachFailure, WorkspaceRefused, find_workspace
from graphd.client.plain_socket import SHUT_WR

CHUNK_BYTES = 65536
USAGE = "usage: graphd connect [--workspace DIR] [--no-start]"


def connect_main(argv: list[str]) -> int:
    """Run the pipe.

    Returns the exit code: 0 at a clean end, 5 without a daemon, 2 for a bad call, 130 on Ctrl-C.
    """
    try:
        workspace, may_start = _read_arguments(argv)
    except ValueError as error:
        return _complain(f"{error}\n{USAGE}", 2)
    try:
        return _run(workspace, may_start=may_start)
    except AttachFailure as error:
        return _complain(f"{error.message}\n{error.hint}".rstrip(), error.exit_code)
    except KeyboardInterrupt:
        return 130


def _run(workspace: str | None, *, may_start: bool) -> int:
    first, message = b"", None
    if not workspace and not os.environ.get("GRAPHD_WORKSPACE"):
        first, message = _read_first_frame()
        if not first:
            return 0  # the client went away without a word: no reason to start a daemon
    try:
        found = find_workspace(workspace, first_frame=message)
    except WorkspaceRefused as error:
        return _complain(f"{error.message}\n{error.hint}", error.exit_code)
    if found.note:
        _complain(found.note, 0)
    attached = attach(found.root, Greeting("graphd-connect"), may_start=may_start)
    with attached.connection:
        return _Pump(attached, first).run()


def _read_arguments(argv: list[str]) -> tuple[str | None, bool]:
    workspace, may_start, rest = None, True, list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--no-start":
            may_start = False
        elif word == "--workspace" and rest:
            workspace = rest.pop(0)
        elif word.startswith("--workspace="):
            workspace = word.partition("=")[2]
        else:
            raise ValueError(
                f"graphd connect does not know {word!r}" if word != "--workspace" else "--workspace needs a DIR"
            )
    return workspace, may_start


def _read_first_frame() -> tuple[bytes, object]:
    """All bytes read so far, and the message that they start with: None where it is none.

    Then the daemon may judge them.
    """
    frames, raw = FrameReader(), bytearray()
    try:
        while (body := frames.take()) is None:
            chunk = _read(0)
            if not chunk:
                return bytes(raw), None
            raw += chunk
            frames.push(chunk)
        return bytes(raw), decode(body)
    except (FrameBroken, ValueError, RecursionError):
        return bytes(raw), None


class _Pump:
    """Both directions, with at most one chunk in hand each: a slow reader slows its writer."""

    def __init__(self, attached: Attached, first: bytes) -> None:
        self._socket = attached.connection
        self._socket.setblocking(False)
        self._to_daemon: bytes | memoryview = memoryview(first)
        self._to_client: bytes | memoryview = memoryview(attached.rest)
        self._is_stdin_open = True
        self._is_daemon_open = True
        # What stdout takes without blocking once writable. It is never set non-blocking: others share it.
        self._out_bytes = CHUNK_BYTES if _is_file(1) else select.PIPE_BUF

    def run(self) -> int:
        """Forward until the daemon's side ends, or nobody reads ours."""
        try:
            while self._is_daemon_open or self._to_client:
                self._turn()
        except BrokenPipeError:  # the client stopped reading: its end, not a failure
            return 0
        except ConnectionResetError:
            return _complain("the connection to the daemon was lost", 5)
        return 0

    def _turn(self) -> None:
        events = self._wait()
        if events.get(1, 0) & (select.POLLERR | select.POLLNVAL | select.POLLHUP):
            raise BrokenPipeError
        if self._to_client and events.get(1):
            self._to_client = self._to_client[os.write(1, self._to_client[: self._out_bytes]) :]
        if self._is_stdin_open and events.get(0):
            self._take_from_client()
        if events.get(self._socket.fileno()):
            self._exchange()

    def _wait(self) -> dict[int, int]:
        poller = select.poll()
        poller.register(1, select.POLLOUT if self._to_client else 0)  # 0: its errors are told all the same
        if self._is_stdin_open and not self._to_daemon:
            poller.register(0, select.POLLIN)
        of_socket = (select.POLLOUT if self._to_daemon else 0) | (select.POLLIN if not self._to_client else 0)
        if self._is_daemon_open and of_socket:
            poller.register(self._socket, of_socket)
        return dict(poller.poll())

    def _take_from_client(self) -> None:
        self._to_daemon = memoryview(_read(0))
        if not self._to_daemon:
            self._is_stdin_open = False
            try:
                self._socket.shutdown(SHUT_WR)
            except OSError:  # the daemon closed first; its last bytes may still be ours to read
                pass

    def _exchange(self) -> None:
        if self._to_daemon:
            try:
                self._to_daemon = self._to_daemon[self._socket.send(self._to_daemon[:CHUNK_BYTES]) :]
            except BlockingIOError:
                pass
            except BrokenPipeError:  # it reads no more, but may have said why
                self._to_daemon, self._is_stdin_open = b"", False
        if not self._to_client:
            try:
                chunk = self._socket.recv(CHUNK_BYTES)
            except BlockingIOError:
                return
            self._to_client = memoryview(chunk)
            self._is_daemon_open = bool(chunk)


def _read(fd: int) -> bytes:
    """Some bytes, b"" at the end or where there is no such descriptor."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except OSError:
        return b""


def _is_file(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False


def _complain(text: str, exit_code: int) -> int:
    try:
        os.write(2, f"graphd: {text}\n".encode(errors="replace"))
    except OSError:
        pass
    return exit_code


if __name__ == "__main__":
    sys.exit(connect_main(sys.argv[1:]))
