"""The keeper itself: claims an attempt, keeps its tree, stdio and journal, writes its record, waits to be collected.

Order of a start: flock on `lock`, rename `intent` to `claimed`, bind `socket`, fork the agent behind a gate, write
`keeper.json`, open the gate. So where there is no `keeper.json` no line of the agent ran. All imports are made before
it spawns. Source: execution.md, One attempt, The keeper; research pitfalls.md and reliability.md §2.1.
"""
# pathlib and contextlib would cost each keeper their import, so:
# ruff: noqa: PTH104, PTH115, PTH116, PTH123, SIM105

from __future__ import annotations

import fcntl
import os
import resource  # noqa: F401  wait4 imports it, at its first call: our library may be gone by then
import time

from graphd.base.plain_json import decode, encode
from graphd.children.keeping.agent import Agent
from graphd.children.keeping.calls import take
from graphd.children.keeping.files import ERR_NOTE, NOTE, OUT, TERMINAL_NOTE, VERSION, ErrRing, Journal, sync, write_new
from graphd.children.keeping.loop import READ, WRITE, Loop
from graphd.children.keeping.peers import Peer, Peers
from graphd.children.keeping.points import arm, failpoint
from graphd.children.keeping.session import SessionLock
from graphd.children.keeping.sibling import become_subreaper, start_sibling
from graphd.children.keeping.terminals import Terminals
from graphd.children.keeping.tree import Seen, below, glance_below, look_at, signal_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, Final
else:
    import _signal as signal

CHUNK: Final = 1 << 16
DRAIN_S: Final = 2.0
FIRST_ATTACH_S: Final = 10.0
KILL_EVERY_S: Final = 0.02
TREE_EVERY_S: Final = 5.0
DISK_RETRY_S: Final = 1.0
FREE_NOTES: Final = 1 << 16  # so many stderr notes at once; after that one per CHUNK, so that they stay bounded
WALL: Final = 0x40000000  # __WALL: children too that tell of their end by another signal than SIGCHLD, or none


class Keeper:
    """One attempt's process tree from its first fork to its record's collection."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.launch = launch
        self.loop = Loop()
        self.session = SessionLock()
        self.terminals = Terminals(self)
        self.phase = "running"  # running, draining, ending, ended
        self.stalled: str | None = None  # limit, disk
        self.ended_by: str | None = None  # linger, signal: who ended the tree, where it was us
        self.exit: dict[str, Any] | None = None
        self.held: list[tuple[int, bytes]] = []
        self.is_left = self.is_killing = self.was_attached = self.is_linger_over = self.is_childless = False
        self.restarts = 0
        self.alone_at = self.tree_at = 0.0
        self.err_noted = self.notes = 0

    # --- start ----------------------------------------------------------------------------------------------------

    def claim(self) -> str:
        """Win the attempt: lock it and its session, then rename. `ready`; `void` when another keeper or a recovery was
        first; `taken` when another process has the session.
        """
        failpoint("keeper.lock.before")
        self.lock_fd = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            failpoint("keeper.lock.after")
            wanted = self.launch.get("sessionLock")
            if wanted is not None and not self.session.take(wanted):
                return "taken"
            failpoint("keeper.claim.before")
            os.rename("intent", "claimed")
            failpoint("keeper.claim.after")
            return "ready"
        except OSError:
            return "void"

    def start(self) -> None:
        """Open the files, listen, spawn. SIGCHLD comes through the loop, so it is taken before the first fork."""
        wake_fd, wake = os.pipe()
        os.set_blocking(wake_fd, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self.loop.watch(wake_fd, READ, lambda _mask: self.on_signals(os.read(wake_fd, 4096)))
        self.journal = Journal()
        self.err = ErrRing(self.launch["errLimitBytes"])
        self.peers = Peers(self.loop, self.journal, store=self.launch["store"], epoch=self.launch["epoch"])
        self.peers.on_call, self.peers.on_attached, self.peers.on_alone = self.on_call, self.on_attached, self.on_alone
        self.peers.listen()
        self.agent = Agent(self.launch, session_fd=self.session.fd)
        self.write_identity()
        self.agent.let_go()
        self.watch_output()
        self.on_alone()

    def write_identity(self) -> None:
        """`keeper.json`: who we are and whom we are about to let go. Made durable with our claim: nothing ran yet."""
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot_id = file.read().strip()
        own = look_at(os.getpid())
        self.identity = {
            "v": VERSION, "bootId": boot_id, "pidNamespace": os.readlink("/proc/self/ns/pid"),
            "keeperPid": os.getpid(), "keeperStart": own.start_time if own else 0, "agentPid": self.agent.pid,
            "agentStart": self.agent.start_time, "cookie": self.launch["cookie"],
            "startedNs": time.monotonic_ns(), "startedMs": time.time_ns() // 1_000_000,
        }  # fmt: skip
        write_new("keeper.json", self.identity, is_durable=False)
        failpoint("keeper.identity.before")
        os.rename("keeper.json.new", "keeper.json")
        failpoint("keeper.identity.after")
        sync("keeper.json")
        sync(".")

    # --- what the agent says, and is told -------------------------------------------------------------------------

    def watch_output(self) -> None:
        """Read the agent's pipes, those that are open."""
        for fd, handler in ((self.agent.out_fd, self.on_out), (self.agent.err_fd, self.on_err)):
            if fd >= 0:
                self.loop.watch(fd, READ, handler)

    def on_out(self, _mask: int = 0) -> None:
        """Bytes of its stdout are in the journal before anyone is told."""
        part = self.read_pipe(self.agent.out_fd)
        if part:
            self.note_err(is_due=True)
            self.record(OUT, part)

    def on_err(self, _mask: int = 0) -> None:
        """stderr goes to a ring of its own; the journal gets a note of where it fell."""
        part = self.read_pipe(self.agent.err_fd)
        if part:
            self.err.write(part)
            self.note_err()

    def read_pipe(self, fd: int) -> bytes | None:
        """One chunk, or nothing; a pipe at its end is watched no more."""
        if fd < 0:
            return None
        part = self.agent.read(fd, min(CHUNK, self.err.limit_bytes))
        if part == b"":
            self.loop.unwatch(fd)
            if self.phase == "draining" and self.agent.out_fd < 0 and self.agent.err_fd < 0:
                self.loop.after("drain", 0, self.on_drained)
        return part

    def note_err(self, *, is_due: bool = False) -> None:
        """Note the stderr bytes that no note names yet; after FREE_NOTES only in portions, or before a record."""
        length = self.err.total_bytes - self.err_noted
        if length and (is_due or self.notes < FREE_NOTES or length >= CHUNK):
            self.notes += 1
            note = ERR_NOTE.pack(b"e", self.err_noted, length)
            self.err_noted = self.err.total_bytes
            self.record(NOTE, note)

    def record(self, kind: int, payload: bytes) -> None:
        """Append, then push. What the disk does not take is held, and the agent is read no more: never dropped."""
        self.held.append((kind, payload))
        self.write_held()
        if not self.held and self.journal.size_bytes >= self.launch["journalLimitBytes"]:
            self.stall("limit")
        self.note_tree()

    def write_held(self) -> None:
        """Write what is held; try again later what the disk refuses."""
        try:
            while self.held:
                self.journal.append(*self.held[0])
                self.held.pop(0)
        except OSError:
            self.loop.after("disk", DISK_RETRY_S, self.on_disk_due)
            self.stall("disk")
        self.peers.push()

    def on_disk_due(self) -> None:
        """The disk may have room again."""
        self.write_held()
        self.unstall()
        self.check_empty()

    def stall(self, why: str) -> None:
        """Read the agent no more, and say so."""
        if self.stalled != why:
            self.stalled = why
            self.loop.unwatch(self.agent.out_fd)
            self.loop.unwatch(self.agent.err_fd)
            self.peers.tell({"event": "stalled", "why": why, "end": self.journal.end})

    def unstall(self) -> None:
        """Read the agent again, if nothing is held and there is room."""
        if self.stalled and not self.held and self.journal.size_bytes < self.launch["journalLimitBytes"]:
            self.stalled = None
            self.watch_output()
            self.peers.tell({"event": "resumed"})

    def feed(self, _mask: int = 0) -> None:
        """Give the agent what was logged for it; close its stdin after the last of it, where that is wanted."""
        fd = self.agent.in_fd
        if fd < 0:
            return
        if self.agent.feed():
            self.loop.watch(fd, WRITE, self.feed)
            return
        self.loop.unwatch(fd)
        if self.agent.closes_stdin:
            self.agent.close_stdin()

    def note_terminal(self, terminal: str, event: str, **facts: Any) -> None:
        """What became of a terminal. After the record nobody reads on."""
        if self.phase != "ended":
            self.record(NOTE, TERMINAL_NOTE + encode({"id": terminal, "event": event, **facts}))

    # --- the end of the tree --------------------------------------------------------------------------------------

    def tree(self) -> list[Seen]:
        """Everything alive below us: as a subreaper we have all that the agent ever forked, or no child at all."""
        return [] if self.is_childless else below([os.getpid()])

    def note_tree(self) -> None:
        """Record the descendants now and then, on the back of other work: for the proof of our tree's death."""
        if time.monotonic() < self.tree_at or self.phase != "running":
            return
        self.tree_at = time.monotonic() + TREE_EVERY_S
        try:
            tree = [[seen.pid, seen.start_time, seen.session] for seen in glance_below(os.getpid())]
            write_new("tree.json", tree, is_durable=False)
            failpoint("keeper.tree.before")
            os.rename("tree.json.new", "tree.json")
            failpoint("keeper.tree.after")
        except OSError:
            pass

    def on_signals(self, numbers: bytes) -> None:
        """SIGCHLD: reap all, ours and strangers. SIGTERM (the machine goes down): end the tree, leave the record."""
        if signal.SIGTERM in numbers:
            self.end_tree("signal")
        while True:
            try:
                failpoint("keeper.reap.before")
                pid, status, usage = os.wait4(-1, os.WNOHANG | WALL)
                failpoint("keeper.reap.after")
            except ChildProcessError:
                self.is_childless = True  # and so for ever: nobody but us could fork a child of ours
                break
            if pid == 0:
                break
            if pid == self.agent.pid:
                self.on_agent_exit(os.waitstatus_to_exitcode(status), usage)
            else:
                self.terminals.reaped(pid, os.waitstatus_to_exitcode(status))
        self.check_empty()

    def on_agent_exit(self, code: int, usage: Any) -> None:
        """The end is its exit, not the end of its output: drain what is left for a moment, then end the tree."""
        self.phase = "draining"
        self.exit = {
            "v": VERSION, "code": code if code >= 0 else None, "signal": -code if code < 0 else None,
            "endedMs": time.time_ns() // 1_000_000, "execError": self.agent.exec_error,
            "wallMs": (time.monotonic_ns() - int(self.identity["startedNs"])) // 1_000_000,
            "rusage": {"userS": usage.ru_utime, "systemS": usage.ru_stime, "maxRssKb": usage.ru_maxrss},
        }  # fmt: skip
        self.loop.unwatch(self.agent.in_fd)
        self.agent.close_stdin()
        is_at_end = self.agent.out_fd < 0 and self.agent.err_fd < 0
        self.loop.after("drain", 0 if self.is_killing or is_at_end else DRAIN_S, self.on_drained)

    def on_drained(self) -> None:
        """TERM to what is left, KILL after the grace."""
        self.phase = "ending"
        if self.is_killing:
            self.kill_all()
        else:
            self.terminate_all()
        self.check_empty()

    def signal_all(self, number: int) -> int:
        """Send to everything alive below us; how many that were."""
        return sum(signal_exactly(seen, number, failpoint) for seen in self.tree())

    def terminate_all(self) -> None:
        """TERM, and CONT so that stopped ones take it; KILL after the grace."""
        if self.signal_all(signal.SIGTERM):
            self.signal_all(signal.SIGCONT)
            self.loop.after("kill", self.launch["graceS"], self.kill_all)

    def kill_all(self) -> None:
        """KILL, again and again until nothing is left: a tree may fork faster than one listing."""
        self.is_killing = True
        if self.signal_all(signal.SIGKILL) or self.phase == "ending":
            self.loop.after("kill", KILL_EVERY_S, self.kill_all)
        if self.phase == "draining":
            self.loop.after("drain", 0, self.on_drained)

    def end_tree(self, by: str) -> None:
        """Ours, not a daemon's wish."""
        if self.ended_by is None and self.phase == "running":
            self.ended_by = by
            self.terminate_all()

    def check_empty(self) -> None:
        """Nothing alive below us any more: capture what is in the pipes and write the record."""
        if self.phase != "ending" or self.held or self.tree():
            return
        self.loop.forget("kill", "disk")
        for handler in (self.on_out, self.on_err):
            for _ in range(32):  # nobody is left to write, and a pipe holds 1 MiB at most
                handler()
        self.note_err(is_due=True)
        if not self.held:
            self.write_exit()

    def write_exit(self) -> None:
        """The exit record: fsync, rename, fsync of the folder; then wait to be collected."""
        record = {
            **(self.exit or {}), "endedBy": self.ended_by, "journalEnd": self.journal.end,
            "outBytes": self.journal.out_bytes, "errBytes": self.err.total_bytes, "inCount": self.journal.in_count,
        }  # fmt: skip
        try:
            os.fsync(self.journal.fd)
            if self.err.total_bytes:
                os.fsync(self.err.fd)
            write_new("exit.json", record)
            failpoint("keeper.record.before")
            os.rename("exit.json.new", "exit.json")
            failpoint("keeper.record.after")
            sync(".")
        except OSError:
            self.loop.is_done = is_removed()  # then nobody will ever read it
            self.loop.after("disk", DISK_RETRY_S, self.on_disk_due)
            return
        self.exit, self.phase = record, "ended"
        self.peers.tell({"event": "ended", "exit": record})
        self.loop.is_done = self.is_linger_over and not self.peers.attached()

    # --- left alone -----------------------------------------------------------------------------------------------

    def on_alone(self) -> None:
        """The last connection ended, or none came yet: call the daemon back, and count the linger."""
        self.restarts, self.alone_at = 0, time.monotonic()
        linger_s = self.launch["lingerS"] if self.was_attached else max(self.launch["lingerS"], FIRST_ATTACH_S)
        self.loop.after("linger", 0 if is_removed() else linger_s, self.on_linger)
        if self.launch["restartArgv"] and not self.is_left and linger_s > 0:
            self.loop.after("restart", self.launch["restartDelaysS"][0], self.on_restart)

    def on_restart(self) -> None:
        """Start the daemon again; its own lock makes a start too many harmless."""
        self.restarts += 1
        delays = self.launch["restartDelaysS"]
        if self.restarts < len(delays):
            rest_s = self.alone_at + delays[self.restarts] - time.monotonic()
            self.loop.after("restart", rest_s, self.on_restart)
        start_sibling(self.launch["restartArgv"])

    def on_linger(self) -> None:
        """No daemon for so long: end the tree, leave the record."""
        self.is_linger_over = True
        self.loop.forget("restart")
        self.end_tree("linger")
        self.loop.is_done = self.phase == "ended"

    # --- what peers ask -------------------------------------------------------------------------------------------

    def on_attached(self, peer: Peer, call: dict[str, Any]) -> None:
        """A daemon is here."""
        self.is_left, self.was_attached, self.is_linger_over = False, True, False
        self.loop.forget("linger", "restart")
        self.peers.answer(peer, call, position=peer.position, header=self.journal.before, **self.standing())

    def on_call(self, peer: Peer, call: dict[str, Any]) -> None:
        """An attached peer asks."""
        take(self, peer, call)

    def standing(self) -> dict[str, Any]:
        """What `attach` and `status` answer."""
        return {
            **self.identity, "phase": self.phase, "stalled": self.stalled, "inCount": self.journal.in_count,
            "base": self.journal.base, "end": self.journal.end, "outBytes": self.journal.out_bytes,
            "errBytes": self.err.total_bytes, "exit": self.exit if self.phase == "ended" else None,
        }  # fmt: skip


def is_removed() -> bool:
    """Our folder was deleted under us: nobody can ever attach."""
    return os.stat(".").st_nlink == 0


def main() -> int:
    """Read the launch spec whole, claim the attempt, start it, serve it."""
    spec = b""
    while part := os.read(0, CHUNK):
        spec += part
    try:
        launch = decode(spec)  # cut short when who started us died: then nothing is claimed
    except ValueError:
        return 1
    launch["umask"] = os.umask(0o077)
    arm(launch["failpoints"])
    become_subreaper()
    keeper = Keeper(launch)
    word = keeper.claim()
    if word != "ready":
        os.write(1, word.encode() + b"\n")
        return 0
    keeper.start()
    try:
        os.write(1, b"ready\n")
    except OSError:
        pass  # who started us is gone: whoever comes next attaches
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    keeper.loop.run()
    return 0
