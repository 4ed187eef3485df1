"""Find or start the daemon of a workspace and say hello. Standard library alone.

Source: spec protocol.md, Daemon, socket, lock.

A start races with other starts; the daemon's own lock decides. Clients remove nothing: a socket file that a
dead daemon left is replaced by the next one, under its lock.
"""
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH123, SIM105
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import fcntl
import os
import sys
import time

from graphd import __version__
from graphd.base.plain_json import decode, encode
from graphd.base.record import newer_recorded
from graphd.base.versions import is_newer
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
from graphd.client.plain_socket import SO_PEERCRED, SOL_SOCKET, Connection
from graphd.client.starting import (
    BUSY,
    READY,
    DaemonNotReady,
    Patience,
    WorkspaceTaken,
    log_tail,
    start_daemon,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATIENCE_S = 10.0
STARTER_PATIENCE_S = 3.0  # after this a client no longer leaves the start to the one that holds `starting`
HELLO_ID = "graphd-attach"  # text, so that no client's own ids meet it
METHOD_NOT_FOUND = -32601


class AttachRefused(AttachFailure):
    """The daemon answered hello with a refusal, or what listens there is none of ours. `facts` is its `data`."""

    code = "protocolMismatch"

    def __init__(self, message: str, hint: str = "", code: str = "", facts: dict[str, Any] | None = None) -> None:
        super().__init__(message, hint, code)
        self.facts = facts or {}


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
        self, connection: Connection, *, hello: dict[str, Any], rest: bytes, workspace: str, folder: str
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
    none. A daemon of an older version is asked to hand over, and one of this version is started; an older client
    is served by a newer daemon while their protocols meet. Blocks for at most `patience_s`; `is_given_up` is asked
    several times a second. Raises `AttachFailure`s.
    """
    is_child = bool(os.environ.get("GRAPHD_ATTEMPT"))
    starts = may_start and not is_child
    folder = make_state_folder(workspace) if starts else state_folder(workspace)
    search = _Search(workspace, folder, Patience(patience_s, is_given_up))
    while True:
        try:
            attached = search.greet(greeting, may_take_over=starts)
            if not starts or not search.hands_over(attached):
                return attached
            continue
        except _Crowded:
            pass
        except _Gone:
            if starts:
                search.start()
            elif not is_child:
                raise DaemonUnreachable(f"no daemon serves {workspace}", "Run: graphd daemon --start.") from None
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
        self._kept_version = ""  # of the daemon that was asked to hand over
        self._last_trouble = "nobody listens"

    def greet(self, greeting: Greeting, *, may_take_over: bool = False) -> Attached:
        """Connect, check the peer, exchange hello. Raises `_Gone`, `_Crowded` or an `AttachFailure`.

        A daemon that speaks only older protocols is greeted in them, for nothing but to ask it to hand over.
        """
        try:
            return self._greet(greeting, PROTOCOL_RANGE)
        except AttachRefused as refusal:
            theirs = _range_in(refusal)
            if theirs is None:
                raise
            if not may_take_over or theirs[1] >= PROTOCOL_RANGE[0]:
                raise self._mismatch(refusal, theirs) from None
            attached = self._greet(greeting, theirs)
            if not self.hands_over(attached):
                attached.connection.close()
                raise self._mismatch(refusal, theirs) from None
            raise _Gone from None

    def _greet(self, greeting: Greeting, protocol: tuple[int, int]) -> Attached:
        connection = self._connect()
        try:
            result, rest = self._exchange(connection, "graphd/hello", greeting.params(self._workspace, protocol))
            result = _check_hello(result, protocol)
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return Attached(connection, hello=result, rest=rest, workspace=self._workspace, folder=self._folder)

    def hands_over(self, attached: Attached) -> bool:
        """Ask an older daemon to stop for us, and wait until it is gone. False where it is to serve us as it is.

        Its clean stop tells the keepers `leave`: nothing is killed. A release without the method is told to stop.
        """
        theirs = str((attached.hello.get("daemon") or {}).get("version", ""))
        is_child = attached.hello.get("principal") == "attempt"
        if is_child or theirs == self._kept_version or not is_newer(__version__, theirs):
            return False
        self._last_trouble = f"the older one ({theirs}) was asked to hand over"
        self._tries, self._next_start_at, self._kept_version = -1, 0.0, theirs  # asked once, whatever comes of it
        with attached.connection:
            try:
                self._ask_to_stop(attached)
                while self._receive(attached.connection):
                    pass
            except (AttachRefused, _Gone, OSError):
                pass
        return True

    def _ask_to_stop(self, attached: Attached) -> None:
        params = {"version": __version__, "protocol": list(PROTOCOL_RANGE)}
        try:
            self._exchange(attached.connection, "graphd/handover", params, attached.rest)
        except AttachRefused as refusal:
            if refusal.facts.get("number") != METHOD_NOT_FOUND:
                raise
            self._exchange(attached.connection, "graphd/stop", {"mode": "leave"})

    def _mismatch(self, refusal: AttachRefused, theirs: tuple[int, int]) -> AttachRefused:
        """Both versions, and the command that brings them together."""
        version = refusal.facts.get("version") or _version_in_lock(self._folder) or "?"
        least, most = PROTOCOL_RANGE
        message = (
            f"the daemon is graphd {version} and speaks protocol {theirs[0]} to {theirs[1]}, "
            f"this is graphd {__version__} and speaks {least} to {most}"
        )
        record = newer_recorded(self._folder)
        if theirs[0] > most:
            newer = f", or run the newer one: {record.argv[0]} -m graphd" if record else ""
            return AttachRefused(message, f"Run: pipx upgrade workgraphd{newer}.", "protocolMismatch")
        hint = "Run: graphd daemon --start (this version takes over; what runs goes on)."
        return AttachRefused(message, hint, "protocolMismatch")

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
        except WorkspaceTaken as taken:
            place = self._workspace
            taken.hint = (
                f"graphd workspace move {place} {place} keeps its graphs for the folder that is there now; "
                f"graphd workspace forget {place} begins afresh"
            )
            raise
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

    def _connect(self) -> Connection:
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

    def _exchange(
        self, connection: Connection, method: str, params: dict[str, Any], rest: bytes = b""
    ) -> tuple[Any, bytes]:
        """One request and its result; notifications before it are passed over. Raises `_Gone`, `AttachRefused`."""
        request = {"jsonrpc": "2.0", "id": HELLO_ID, "method": method, "params": params}
        frames = FrameReader()
        frames.push(rest)
        try:
            connection.sendall(frame(encode(request)))
            while True:
                while (body := frames.take()) is None:
                    frames.push(self._receive(connection))
                reply = decode(body)
                if not _is_notification(reply):
                    return _read_reply(reply), bytes(frames.rest)
        except ConnectionError as error:
            raise _Gone from error
        except (FrameBroken, ValueError) as error:
            raise AttachRefused(f"what listens on the socket does not speak our protocol: {error}") from error

    def _receive(self, connection: Connection) -> bytes:
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


def _is_notification(reply: Any) -> bool:
    if not isinstance(reply, dict):
        raise ValueError("not an answer")  # noqa: TRY004 - trouble of the wire, as in loads
    if reply.get("method") == "graphd/stopping":
        raise _Gone
    return "method" in reply and "id" not in reply


def _read_reply(reply: dict[str, Any]) -> Any:
    error = reply.get("error")
    if isinstance(error, dict):
        facts = error.get("data")
        facts = facts if isinstance(facts, dict) else {}
        raise AttachRefused(
            str(error.get("message", "the daemon refused")),
            str(facts.get("hint", "")),
            str(facts.get("code", "refused")),
            {**facts, "number": error.get("code")},
        )
    if "result" not in reply or reply.get("id") != HELLO_ID:
        raise ValueError("an answer without a result")
    return reply["result"]


def _check_hello(result: Any, protocol: tuple[int, int]) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise AttachRefused("what listens on the socket does not speak our protocol: hello without a result")
    agreed = result.get("protocol")
    if not isinstance(agreed, int) or not protocol[0] <= agreed <= protocol[1]:
        version = (result.get("daemon") or {}).get("version", "?")
        facts = {"protocol": [agreed, agreed], "version": version} if isinstance(agreed, int) else {}
        raise AttachRefused(f"the daemon ({version}) answered in protocol {agreed}", facts=facts)
    return result


def _range_in(refusal: AttachRefused) -> tuple[int, int] | None:
    """The protocols that a daemon speaks, as its refusal of ours says; None where it was refused for another reason."""
    found = refusal.facts.get("protocol")
    if refusal.code != "protocolMismatch" or not isinstance(found, list) or len(found) != 2:
        return None
    return (found[0], found[1]) if all(type(number) is int for number in found) else None


def _version_in_lock(folder: str) -> str:
    """The version that the lock's holder wrote of itself: for a message, never to decide."""
    try:
        with open(os.path.join(folder, LOCK), "rb") as lock:
            owner = decode(lock.read(200))
    except (OSError, ValueError):
        return ""
    return str(owner.get("version", "")) if isinstance(owner, dict) else ""


def _peer(connection: Connection) -> tuple[int, int] | None:
    """(pid, uid) of the other side; None where the system cannot say."""
    if SO_PEERCRED is None:
        return None
    found = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)  # struct ucred: three ints, taken apart by hand
    pid, uid = (int.from_bytes(found[at : at + 4], sys.byteorder, signed=True) for at in (0, 4))
    return pid, uid


def connect_main(argv: list[str]) -> int:
    """`graphd connect`: the byte pipe; see `graphd.client.pipe`."""
    from graphd.client.pipe import connect_main as run

    return run(argv)
