"""Who a process is, and the proof that an attempt's tree is dead.

A pid alone is nobody: identity is boot, PID namespace, pid and start time. An attempt's processes are found by
session, by recorded descendants and by the cookie in their environment; the cookie is lossy (`env -i`). Unreadable is
unknown, not dead. Source: execution.md, Proof of death; research reliability.md §2.1.
"""

import contextlib
import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.children.keeping.tree import Seen, below, look_at, look_at_all, signal_exactly
from graphd.core.model import Identity

COOKIE: Final = b"GRAPHD_ATTEMPT="
KILL_ROUNDS: Final = 50

spawning = threading.Lock()
"""Held from a fork of ours until its pid is in `keepers`."""
keepers: set[int] = set()
"""Pids of the keepers that are children of this process and watched by its loop."""
abandoned: set[int] = set()
"""Pids of keepers that this process let go: they live on, and are reaped here if it outlives them."""


@dataclass(slots=True, frozen=True)
class Dead:
    """Nothing of the attempt is alive."""


@dataclass(slots=True, frozen=True)
class Alive:
    """These processes of it are alive."""

    pids: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Unknown:
    """It can't be said. `pids` are those that could not be looked into."""

    reason: str
    pids: tuple[int, ...] = ()


Proof = Dead | Alive | Unknown


def boot_id() -> str:
    """The kernel's name for this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> str:
    """The PID namespace of this process; pids of another one can't be looked up here."""
    return str(Path("/proc/self/ns/pid").readlink())


def start_time(pid: int) -> int | None:
    """When the process started, in clock ticks since the boot; None when there is none."""
    seen = look_at(pid)
    return seen.start_time if seen else None


def is_locked(folder: Path) -> bool:
    """Somebody holds the folder's `lock`: its keeper lives."""
    return is_held(folder / "lock")


def is_held(path: Path) -> bool:
    """Some process has a lock on this file. A shared probe: two lookers don't see each other."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_identity(folder: Path) -> dict[str, Any] | None:
    """What the keeper recorded of itself and its agent; None when it had not yet, or the file is broken."""
    try:
        found = json.loads((folder / "keeper.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def identity_of(standing: dict[str, Any]) -> Identity:
    """What a keeper says of its agent when it is attached to."""
    return Identity(
        standing["bootId"], standing["pidNamespace"], standing["agentPid"], standing["agentStart"],
        standing["keeperPid"],
    )  # fmt: skip


def proof_of_death(folder: Path, cookie: str) -> Proof:
    """Whether anything of this attempt is alive, as far as this process can see. Blocks for some ms."""
    found = _survivors(folder, cookie)
    return Alive(tuple(seen.pid for seen in found)) if isinstance(found, list) and found else _proof(found)


def end_survivors(folder: Path, cookie: str, *, grace_s: float) -> Proof:
    """End what a dead keeper left: TERM, grace, KILL, looked at again. Blocks for up to `grace_s` and a second."""
    found = _survivors(folder, cookie)
    if not isinstance(found, list):
        return found
    for number in (signal.SIGTERM, signal.SIGCONT):
        for seen in found:
            _signal(seen, number)
    limit = time.monotonic() + grace_s
    while isinstance(found, list) and found and time.monotonic() < limit:
        time.sleep(0.02)
        found = _survivors(folder, cookie)
    for _ in range(KILL_ROUNDS):
        if not isinstance(found, list) or not found:
            break
        for seen in found:
            _signal(seen, signal.SIGKILL)
        time.sleep(0.02)
        found = _survivors(folder, cookie)
    return Alive(tuple(seen.pid for seen in found)) if isinstance(found, list) and found else _proof(found)


def reap_strangers(known_pids: Iterable[int] = ()) -> list[int]:
    """End and reap the children of this process that are neither keepers nor known: orphans that came to a subreaper.

    Answers their pids. Safe beside `spawn`; other children of the caller must be in `known_pids`. Looks once: what was
    killed but is not yet dead is reaped by the next call, which its SIGCHLD asks for.
    """
    own, ended = os.getpid(), []
    with spawning:
        for pid in list(abandoned):
            with contextlib.suppress(ChildProcessError):
                failpoint("identity.reap.before")
                reaped, _ = os.waitpid(pid, os.WNOHANG)
                failpoint("identity.reap.after")
                if reaped == 0:
                    continue
            abandoned.discard(pid)
        known = keepers | abandoned | set(known_pids)
        strangers = [seen for seen in look_at_all() if seen.parent == own and seen.pid not in known]
        for seen in [*strangers, *below([stranger.pid for stranger in strangers])]:
            _signal(seen, signal.SIGKILL)
        for seen in strangers:
            with contextlib.suppress(ChildProcessError):
                failpoint("identity.stranger.before")
                os.waitpid(seen.pid, 0 if seen.is_dead else os.WNOHANG)
                failpoint("identity.stranger.after")
            ended.append(seen.pid)
    return ended


def _proof(found: "list[Seen] | Unknown | Dead") -> Proof:
    return found if isinstance(found, Unknown) else Dead()


def _signal(seen: Seen, number: signal.Signals) -> None:
    failpoint("identity.signal.before")
    signal_exactly(seen, number, lambda _name: None)
    failpoint("identity.signal.after")


def _survivors(folder: Path, cookie: str) -> "list[Seen] | Unknown | Dead":
    """The live processes of an attempt whose keeper is dead; [] when all could be looked at and none is its."""
    identity = read_identity(folder)
    if is_locked(folder):
        keeper = (int(identity["keeperPid"]),) if identity else ()
        return Unknown(t("its keeper holds its lock"), keeper)
    if identity is not None:
        if identity["bootId"] != boot_id():
            return Dead()
        if identity["pidNamespace"] != pid_namespace():
            return Unknown(t("it ran in another PID namespace, {namespace}", namespace=identity["pidNamespace"]))
    everything = [seen for seen in look_at_all() if seen.pid != os.getpid()]
    ours = {seen.pid: seen for seen in _recorded(folder, identity, everything)}
    unreadable = []
    for seen in everything:
        if seen.is_dead or seen.pid in ours:
            continue
        found = _cookie(seen.pid)
        if cookie and found == cookie:  # "" would be everybody who has none
            ours[seen.pid] = seen
        elif found is None and identity is not None and seen.start_time >= identity["keeperStart"]:
            unreadable.append(seen.pid)  # what is older than the attempt can't be of it
    ours |= {seen.pid: seen for seen in below(ours, everything)}
    if not ours and unreadable:
        return Unknown(t("the environment of processes of ours can't be read"), tuple(unreadable))
    return [seen for seen in ours.values() if not seen.is_dead]


def _recorded(folder: Path, identity: dict[str, Any] | None, everything: list[Seen]) -> list[Seen]:
    """Those in the sessions of the recorded processes, and these themselves."""
    recorded: dict[int, int] = {}
    sessions: set[int] = set()
    with contextlib.suppress(OSError, ValueError):
        for pid, start, session in json.loads((folder / "tree.json").read_bytes()):
            recorded[pid] = start
            sessions.add(session)
    if identity is not None:
        recorded[identity["agentPid"]] = identity["agentStart"]
        sessions.add(identity["agentPid"])
    starts = {seen.pid: seen.start_time for seen in everything}
    # A session's number is not given again while anyone is in it. So a leader of another start means that ours is gone.
    sessions = {number for number in sessions if starts.get(number) in (None, recorded.get(number))}
    return [
        seen
        for seen in everything
        if not seen.is_dead and (recorded.get(seen.pid) == seen.start_time or seen.session in sessions)
    ]


def _cookie(pid: int) -> str | None:
    """The attempt that a process says it is of; "" for none; None when a process of our user can't be looked into."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return None if _is_ours(pid) else ""
    except OSError:
        return ""
    for part in environment.split(b"\0"):
        if part.startswith(COOKIE):
            return part[len(COOKIE) :].decode("utf-8", "replace")
    return ""


def _is_ours(pid: int) -> bool:
    """Its real user is ours. `/proc/PID` itself is root's where a process is not dumpable."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    uids = next((line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")), [])
    return str(os.getuid()) in uids
