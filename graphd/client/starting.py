"""Start a daemon and wait until it says that it is ready. Standard library alone.

Source: spec protocol.md, Daemon, socket, lock.

The daemon gets the write end of a pipe (`--ready-fd N`) and writes one line of JSON to it, then closes it:
`{"ready": true, "pid": …, "socket": …}` once it listens; `{"busy": true}` when another daemon holds the lock;
`{"failed": "message", "hint": "…"}` for a refusal with a name. An end without a line means that it died.

The caller may have threads and an event loop, so it never forks: `launch.py` is spawned and forks twice. For
tests, `GRAPHD_DAEMON_ARGV` (a JSON list) replaces the interpreter and `-m graphd.server`; nothing else about
the start changes.
"""
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH123, SIM105
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the numbers; the package makes enumerations of them
import fcntl
import os
import select
import sys
import time

from graphd.base.plain_json import decode
from graphd.base.record import newer_recorded
from graphd.client.paths import LOG, AttachFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from graphd.base.record import DaemonRecord

READY = "ready"
BUSY = "busy"
TAIL_LINES = 12
_READY_FD = 3
_LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
_RESET_SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGCHLD,
    signal.SIGPIPE,
)


class DaemonNotReady(AttachFailure):
    """The daemon was started and did not say within the patience that it is ready; it may come yet."""


class WorkspaceTaken(AttachFailure):
    """The graphs kept for this path belong to another folder, `was`; the one there now is `is_now`."""

    code = "storeUnavailable"

    def __init__(self, message: str, hint: str, was: str, is_now: str) -> None:
        super().__init__(message, hint)
        self.was = was
        self.is_now = is_now


class Patience:
    """How long there is to go: `patience_s` from now, or nothing once `is_given_up` says so."""

    __slots__ = ("_deadline", "_is_given_up")

    def __init__(self, patience_s: float, is_given_up: Callable[[], bool] = lambda: False) -> None:
        self._deadline = time.monotonic() + patience_s
        self._is_given_up = is_given_up

    def left_s(self) -> float:
        """Seconds left, 0 at the end."""
        return 0.0 if self._is_given_up() else max(0.0, self._deadline - time.monotonic())

    def slice_s(self) -> float:
        """The longest single wait before asking again, above 0."""
        return min(0.25, max(0.001, self.left_s()))


def daemon_argv(workspace: str) -> list[str]:
    """The command line of the daemon of `workspace`, without `--ready-fd`.

    A keeper starts it again by the same.
    """
    replaced = os.environ.get("GRAPHD_DAEMON_ARGV")
    command = decode(replaced.encode()) if replaced else [sys.executable, "-P", "-m", "graphd.server"]
    return [*command, "--workspace", workspace]


def start_daemon(workspace: str, folder: str, patience: Patience) -> str:
    """Start a daemon and return `READY` or `BUSY`, as it says.

    Raises `AttachFailure` (`DaemonNotReady`) when it fails, dies or takes too long.

    The daemon is nobody's child and has a session of its own. Where a newer one served the workspace before and
    still exists, that one is started: two versions on one machine do not replace each other for ever.
    """
    record = None if os.environ.get("GRAPHD_DAEMON_ARGV") else newer_recorded(folder)
    if record is not None:
        try:
            return _start(workspace, folder, patience, record)
        except DaemonNotReady:
            raise
        except AttachFailure as failure:
            if isinstance(failure, WorkspaceTaken):
                raise
    return _start(workspace, folder, patience, None)


def _start(workspace: str, folder: str, patience: Patience, record: DaemonRecord | None) -> str:
    argv = daemon_argv(workspace) if record is None else [*record.argv, "--workspace", workspace]
    environment = _environment()
    if record is not None:
        environment = record.environment(environment)
    log_start = _size(os.path.join(folder, LOG))
    read_end, write_end = os.pipe()
    try:
        try:
            high = fcntl.fcntl(write_end, fcntl.F_DUPFD_CLOEXEC, 10)  # above the numbers that the spawn moves about
        finally:
            os.close(write_end)
        try:
            _launch([*argv, "--ready-fd", str(_READY_FD)], environment, folder, high)
        finally:
            os.close(high)
        line = _read_line(read_end, patience)
    finally:
        os.close(read_end)
    return _understand(line, folder, log_start)


def log_tail(folder: str, since: int = 0) -> str:
    """The last lines of the daemon's log written from byte `since` on, each on a line of its own."""
    try:
        with open(os.path.join(folder, LOG), "rb") as log:
            log.seek(max(since, log.seek(0, os.SEEK_END) - 8192))
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "".join(f"\n    {line[:500]}" for line in lines[-TAIL_LINES:])


def _launch(argv: list[str], environment: dict[str, str], folder: str, ready_fd: int) -> None:
    log = os.path.join(folder, LOG)
    log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", _LAUNCHER, *argv],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, log_flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, ready_fd, _READY_FD),
            ],
            setsigmask=[],
            setsigdef=_RESET_SIGNALS,
        )
    except OSError as error:
        raise AttachFailure(f"{sys.executable} cannot be started with the log {log}: {error.strerror}") from error
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:  # the caller's process ignores SIGCHLD, or its event loop was faster
        pass


def _environment() -> dict[str, str]:
    """Ours: children get the environment of whoever sets their graph.

    Relative folders are made absolute: the cwd will be `/`.
    """
    environment = dict(os.environ)
    for name in ("GRAPHD_STATE_DIR", "GRAPHD_CONFIG_DIR"):
        if environment.get(name):
            environment[name] = os.path.abspath(environment[name])
    return environment


def _read_line(read_end: int, patience: Patience) -> bytes:
    poller = select.poll()
    poller.register(read_end, select.POLLIN)
    said = b""
    while b"\n" not in said:
        if not poller.poll(patience.slice_s() * 1000):
            if not patience.left_s():
                raise DaemonNotReady("the daemon was started and is not ready yet", "Try again in a moment.")
            continue
        chunk = os.read(read_end, 65536)
        if not chunk:
            break
        said += chunk
    return said


def _understand(line: bytes, folder: str, log_start: int) -> str:
    message: Any = None
    try:
        message = decode(line)
    except ValueError:
        pass
    if isinstance(message, dict):
        if message.get("ready") is True:
            return READY
        if message.get("busy") is True:
            return BUSY
        moved = message.get("moved")
        if isinstance(moved, list) and len(moved) == 2:
            raise WorkspaceTaken(str(message["failed"]), str(message.get("hint", "")), str(moved[0]), str(moved[1]))
        if "failed" in message:
            raise AttachFailure(str(message["failed"]), str(message.get("hint", "")), str(message.get("code", "")))
    tail = log_tail(folder, log_start) or " it wrote nothing to its log"
    raise AttachFailure(
        f"the daemon ended before it was ready:{tail}",
        f"Its log: {os.path.join(folder, LOG)}. Or run: graphd doctor.",
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
