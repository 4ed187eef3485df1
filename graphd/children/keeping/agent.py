"""The agent under its keeper: forked behind a gate, its three pipes, what waits for its stdin."""

from __future__ import annotations

import fcntl
import os

from graphd.children.keeping.points import failpoint
from graphd.children.keeping.tree import look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal

DEFAULTS = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGQUIT,
)  # fmt: skip
CHUNK = 1 << 16


class Agent:
    """One child in its own session. Descriptors are -1 when closed; `exec_error` says why it never ran."""

    def __init__(self, launch: dict[str, Any], *, session_fd: int = -1) -> None:
        """Fork it. It waits at the gate until `let_go`; if this process dies before, it ends without having run.

        `session_fd`, the lock of its session, is the one descriptor that it inherits.
        """
        (self.out_fd, out), (self.err_fd, err) = os.pipe(), os.pipe()
        (gate, self._gate), (self._failure, failed) = os.pipe(), os.pipe()
        self.in_fd = -1
        if launch["stdin"] == "pipe":
            stdin, self.in_fd = os.pipe()
        else:
            stdin = os.open("/dev/null", os.O_RDONLY)
        self.exec_error: str | None = None
        self.waiting = bytearray()  # logged, not yet taken by its stdin
        self.closes_stdin = False
        failpoint("keeper.spawn.before")
        self.pid = os.fork()
        if self.pid == 0:
            become(launch, (stdin, out, err), gate=gate, failed=failed, session_fd=session_fd)
        failpoint("keeper.spawn.after")
        for fd in (stdin, out, err, gate, failed):
            os.close(fd)
        seen = look_at(self.pid)
        self.start_time = seen.start_time if seen else 0

    def let_go(self) -> None:
        """Open the gate: it is on record who it is. Returns when it runs or could not."""
        os.write(self._gate, b"!")
        os.close(self._gate)
        self.exec_error = os.read(self._failure, 1000).decode("utf-8", "replace") or None
        os.close(self._failure)
        for fd in (self.out_fd, self.err_fd, self.in_fd):
            if fd >= 0:
                os.set_blocking(fd, False)

    @property
    def takes_input(self) -> bool:
        """Its stdin is a pipe that is open and stays so."""
        return self.in_fd >= 0 and not self.closes_stdin

    def feed(self) -> bool:
        """Write what waits; True while more is left than the pipe takes now."""
        try:
            while self.waiting and self.in_fd >= 0:
                del self.waiting[: os.write(self.in_fd, self.waiting[:CHUNK])]
        except BlockingIOError:
            return True
        except OSError:  # it closed its stdin: the journal has the line, nobody reads it
            self.waiting.clear()
            self.closes_stdin = True
        return False

    def close_stdin(self) -> None:
        """Close the pipe now."""
        if self.in_fd >= 0:
            os.close(self.in_fd)
            self.in_fd = -1

    def read(self, fd: int, size: int) -> bytes | None:
        """One chunk of `out_fd` or `err_fd`; b"" at its end, after closing it; None when there is nothing now."""
        try:
            part = os.read(fd, size)
        except BlockingIOError:
            return None
        if not part:
            os.close(fd)
            if fd == self.out_fd:
                self.out_fd = -1
            else:
                self.err_fd = -1
        return part

    def interrupt(self) -> None:
        """SIGINT to its process group. Only while it is not reaped: its pid is its own until then."""
        try:
            failpoint("keeper.interrupt.before")
            os.killpg(self.pid, signal.SIGINT)
            failpoint("keeper.interrupt.after")
        except OSError:
            pass


def become(
    launch: dict[str, Any], stdio: tuple[int, int, int], *, gate: int, failed: int, session_fd: int = -1
) -> NoReturn:
    """In the child: own session, no inherited descriptor but its session's lock, default signals; wait at the gate,
    then exec.
    """
    try:
        if session_fd >= 0:
            fcntl.fcntl(session_fd, fcntl.F_DUPFD, 100)
        gate = fcntl.fcntl(gate, fcntl.F_DUPFD_CLOEXEC, 100)
        failed = fcntl.fcntl(failed, fcntl.F_DUPFD_CLOEXEC, 100)
        for target, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in stdio]):
            os.dup2(fd, target)
        os.closerange(3, 100)  # the lock too, and the other end of the gate
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        os.umask(launch["umask"])
        if os.read(gate, 1) != b"!":
            os._exit(125)
        os.chdir(launch["cwd"])
        os.execvpe(launch["argv"][0], launch["argv"], launch["env"])  # noqa: S606  its purpose
    except OSError as trouble:
        name = trouble.filename if isinstance(trouble.filename, str) else launch["argv"][0]  # bytes: one of PATH's
        os.write(failed, f"{name}: {trouble.strerror}".encode())
    finally:
        os._exit(127)
