"""The commands that an agent has run by us: each in a session of its own below this keeper, its output in a file.

A control line of the journal (`in`, never given to the agent) starts, kills or releases one: it is there before
anything is done, and compare-and-append has it done once, over any number of daemons. What became of it is a note: `t`
and JSON {id, event: started, failed or exited, …}. What it prints, stdout and stderr as they come, is a file of its own
(`keeping.output`). Source: execution.md, The keeper.
"""

from __future__ import annotations

import os

from graphd.base.plain_json import decode
from graphd.children.keeping.agent import CHUNK, become
from graphd.children.keeping.loop import READ
from graphd.children.keeping.output import Output
from graphd.children.keeping.points import failpoint
from graphd.children.keeping.tree import Seen, below, look_at, look_at_all, signal_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, Final

    from graphd.children.keeping.keeper import Keeper
else:
    import _signal as signal

CONTROL: Final = b'{"jsonrpc":"2.0","method":"graphd/terminal/'
"""What a line begins with that is for the keeper, and not for its agent."""
KILL_EVERY_S: Final = 0.02
LAST_CHUNKS: Final = 32
"""So many are read at its exit: a pipe holds 1 MiB at most, and others may go on writing."""


class Terminal:
    """One command: forked behind a gate, its one pipe, its output. `exec_error` says why it never ran."""

    def __init__(self, params: dict[str, Any], launch: dict[str, Any]) -> None:
        """Fork it. OSError where that can't be done."""
        self.id: str = params["id"]
        self.is_over = self.is_released = False
        self.exec_error: str | None = None
        self.output = Output(self.id, int(params["limitBytes"]))
        runs = {**launch, "argv": params["argv"], "cwd": params["cwd"], "env": {**launch["env"], **dict(params["env"])}}
        fds: list[int] = []
        try:
            for _ in range(3):
                fds += os.pipe()
            fds.append(os.open("/dev/null", os.O_RDONLY))
            self.out_fd, out, gate, self._gate, self._failure, failed, null = fds
            failpoint("keeper.terminal.before")
            self.pid = os.fork()
            if self.pid == 0:
                become(runs, (null, out, out), gate=gate, failed=failed)
            failpoint("keeper.terminal.after")
        except OSError:
            for fd in fds:
                os.close(fd)
            self.output.remove()
            raise
        for fd in (out, gate, failed, null):
            os.close(fd)
        seen = look_at(self.pid)
        self.start_time = seen.start_time if seen else 0

    def let_go(self) -> None:
        """Open the gate: it is on record who it is. Returns when it runs or could not."""
        try:
            os.write(self._gate, b"!")
            self.exec_error = os.read(self._failure, 1000).decode("utf-8", "replace") or None
        except OSError as trouble:  # killed at the gate
            self.exec_error = str(trouble.strerror)
        os.close(self._gate)
        os.close(self._failure)
        os.set_blocking(self.out_fd, False)

    def keep(self) -> bool | None:
        """Keep one chunk of what it printed; None where there is none now, False at its end."""
        if self.out_fd < 0:
            return None
        try:
            part = os.read(self.out_fd, CHUNK)
        except BlockingIOError:
            return None
        self.output.take(part)
        return bool(part)


class Terminals:
    """All terminals of one keeper, until they have exited and are released."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._known: dict[str, Terminal] = {}

    def take(self, line: bytes) -> None:
        """Do what a control line says; it is in the journal. What is known already, or not at all, changes nothing."""
        message = decode(line)
        what, params = message["method"].rpartition("/")[2], message["params"]
        terminal = self._known.get(params.get("id", ""))
        if what == "start" and terminal is None:
            self._start(params)
        elif what == "kill" and terminal is not None:
            self._terminate(terminal)
        elif what == "release" and terminal is not None:
            terminal.is_released = True
            terminal.output.remove()
            self._terminate(terminal)
            self._forget(terminal)

    def reaped(self, pid: int, code: int) -> None:
        """A child of the keeper is gone; where it was a terminal, what it had printed is kept before that is told."""
        for terminal in list(self._known.values()):
            if terminal.pid == pid and not terminal.is_over:
                terminal.is_over = True
                self._drain(terminal, LAST_CHUNKS)
                if terminal.exec_error is None:
                    self._note(terminal, "exited", code=code if code >= 0 else None, signal=max(-code, 0) or None)
                self._forget(terminal)

    def _start(self, params: dict[str, Any]) -> None:
        """Fork it, record that it is ours, let it go, say how that went."""
        keeper = self._keeper
        try:
            terminal = Terminal(params, keeper.launch)
        except OSError as trouble:
            keeper.note_terminal(params["id"], "failed", message=str(trouble.strerror))
            return
        self._known[terminal.id] = terminal
        keeper.tree_at = 0.0
        keeper.note_tree()
        terminal.let_go()
        keeper.loop.watch(terminal.out_fd, READ, lambda _mask: self._drain(terminal, 1))
        if terminal.exec_error is None:
            self._note(terminal, "started", pid=terminal.pid)
        else:
            self._note(terminal, "failed", message=terminal.exec_error)
            terminal.is_released = True
            terminal.output.remove()

    def _drain(self, terminal: Terminal, chunks: int) -> None:
        """Keep what it printed, so many chunks at most. A pipe at its end is watched no more."""
        for _ in range(chunks):
            kept = terminal.keep()
            if kept is False:
                self._close(terminal)
            if not kept:
                return

    def _terminate(self, terminal: Terminal) -> None:
        """TERM, and CONT so that stopped ones take it; KILL after the grace."""
        members = self._members(terminal)
        for number in (signal.SIGTERM, signal.SIGCONT):
            for seen in members:
                signal_exactly(seen, number, failpoint)
        if members:
            self._keeper.loop.after(f"kill {terminal.id}", self._keeper.launch["graceS"], lambda: self._kill(terminal))

    def _kill(self, terminal: Terminal) -> None:
        """KILL, again until nothing of it is left."""
        members = self._members(terminal)
        for seen in members:
            signal_exactly(seen, signal.SIGKILL, failpoint)
        if members:
            self._keeper.loop.after(f"kill {terminal.id}", KILL_EVERY_S, lambda: self._kill(terminal))

    def _members(self, terminal: Terminal) -> list[Seen]:
        """Who is alive of it: it, what is below it, and what is left of its session below us."""
        everything = look_at_all()
        if any(seen.pid == terminal.pid and seen.start_time != terminal.start_time for seen in everything):
            return []  # its number is another's, which is given only when nobody is left in its session
        ours = below([os.getpid()], everything)
        down = {seen.pid for seen in below([terminal.pid], everything)} if not terminal.is_over else set()
        return [seen for seen in ours if seen.pid in down or terminal.pid in (seen.pid, seen.session)]

    def _forget(self, terminal: Terminal) -> None:
        """It has exited and was released: nothing of it is asked for any more."""
        if terminal.is_over and terminal.is_released:
            self._close(terminal)
            self._known.pop(terminal.id, None)

    def _close(self, terminal: Terminal) -> None:
        if terminal.out_fd >= 0:
            self._keeper.loop.unwatch(terminal.out_fd)
            os.close(terminal.out_fd)
            terminal.out_fd = -1

    def _note(self, terminal: Terminal, event: str, **facts: Any) -> None:
        self._keeper.note_terminal(terminal.id, event, **facts)
