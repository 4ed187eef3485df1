"""Process trees read from `/proc`, and signals that can't hit a reused pid. Linux; for keeper and daemon."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
else:
    import _signal as signal


class Seen:
    """One process as `/proc/PID/stat` shows it. `start_time` is in clock ticks since the boot."""

    __slots__ = ("parent", "pid", "session", "start_time", "state")

    def __init__(self, pid: int, state: str, parent: int, session: int, start_time: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.session = session
        self.start_time = start_time

    @property
    def is_dead(self) -> bool:
        """`Z` and `X` are dead: nobody can run in them, whoever has yet to reap them."""
        return self.state in ("Z", "X")


def look_at(pid: int) -> Seen | None:
    """The process `pid`, or None when there is none."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        fields = os.read(fd, 4096).rpartition(b")")[2].split()
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(fields) < 20:
        return None
    return Seen(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def glance_below(root: int) -> list[Seen]:
    """As `below`, at the cost of the tree alone; it may miss one whose sibling ends meanwhile. Never a proof."""
    alive: list[Seen] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  pathlib costs the keeper its start
                fd = os.open(f"/proc/{pid}/task/{task}/children", os.O_RDONLY)
                try:
                    todo += (children := [int(child) for child in os.read(fd, 1 << 16).split()])
                finally:
                    os.close(fd)
                alive += [seen for child in children if (seen := look_at(child)) and not seen.is_dead]
        except OSError:
            if pid == root:
                return below([root])  # a kernel without these files
    return alive


def look_at_all() -> list[Seen]:
    """Every process of this PID namespace."""
    names = os.listdir("/proc")  # noqa: PTH208  pathlib costs the keeper its start
    pids = [int(name) for name in names if name.isdigit()]
    return [seen for pid in pids if (seen := look_at(pid))]


def below(roots: Iterable[int], among: list[Seen] | None = None) -> list[Seen]:
    """Everything alive below `roots`, without them. Dead ones are walked through, not listed."""
    children: dict[int, list[Seen]] = {}
    for seen in look_at_all() if among is None else among:
        children.setdefault(seen.parent, []).append(seen)
    alive: list[Seen] = []
    todo, walked = list(roots), set()
    while todo:
        pid = todo.pop()
        if pid in walked:
            continue
        walked.add(pid)
        for seen in children.get(pid, ()):
            todo.append(seen.pid)
            if not seen.is_dead:
                alive.append(seen)
    return alive


def ancestors(pid: int) -> set[int]:
    """`pid` and the pids above it."""
    chain: set[int] = set()
    while pid > 0 and pid not in chain:
        chain.add(pid)
        seen = look_at(pid)
        pid = seen.parent if seen else 0
    return chain


def signal_exactly(target: Seen, number: int, point: Callable[[str], None]) -> bool:
    """Send `number` to this very process, by pidfd; False when it is gone. `point` passes failpoints."""
    try:
        fd = os.pidfd_open(target.pid)
    except OSError:
        return False
    try:
        found = look_at(target.pid)
        if found is None or found.start_time != target.start_time:
            return False
        point("keeper.signal.before")
        signal.pidfd_send_signal(fd, number)
        point("keeper.signal.after")
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)
