"""Failpoints of the keeper: the syntax of graphd.base.failpoints, armed by the launch spec."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_armed: dict[str, tuple[int, str]] = {}
_hits: dict[str, int] = {}
_once = ""
_log_fd = -1


def arm(points: dict[str, str]) -> None:
    """Take `arm` and `log` as the two variables have them; who makes the file that `once` names acts, no other."""
    global _log_fd, _once
    for part in filter(None, points.get("arm", "").split(",")):
        name, _, rest = part.partition(":")
        hit, _, action = rest.partition(":")
        _armed[name] = (int(hit or 1), action or "kill")
    _once = points.get("once", "")
    if points.get("log"):
        _log_fd = os.open(points["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def failpoint(name: str) -> None:
    """Pass the point `name`; does nothing unless a test armed it."""
    if _log_fd >= 0:
        os.write(_log_fd, f"{os.getpid()} {name}\n".encode())
    if name in _armed:
        _act(name)


def _act(name: str) -> None:
    wanted, action = _armed[name]
    _hits[name] = _hits.get(name, 0) + 1
    if _hits[name] != wanted or not _is_first():
        return
    if action == "raise":
        raise OSError(errno.ENOSPC, f"failpoint {name}")
    if action == "sleep":
        time.sleep(1)
    else:
        os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)


def _is_first() -> bool:
    if not _once:
        return True
    try:
        os.close(os.open(_once, os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True
