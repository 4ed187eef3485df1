"""Named points on both sides of every effect, where a test can crash, freeze or fail the program.

Off (the default) a failpoint is one dict look-up. `GRAPHD_FAILPOINT=name[:hit[:action]]` arms one: at the given hit (1
is the first) the action is taken: `kill` (SIGKILL to this process, the default), `raise` (OSError), `sleep` (one
second) or `stop` (SIGSTOP). `GRAPHD_FAILPOINT_LOG=FILE` appends each hit as a line `pid name`; that is how the sweep
learns its list. `GRAPHD_FAILPOINT_ONCE=FILE` lets an armed point act in the first process alone that makes that file:
the daemon that a keeper starts again would die at the same point for ever. In process, `hook` replaces the action: the
pair sweep raises from it. Source: research reliability.md §4; issue 2 item 9.
"""

import os
import signal
import time
from collections.abc import Callable

_armed: dict[str, tuple[int, str]] = {}
_hits: dict[str, int] = {}
_log_fd: int | None = None
_once: str | None = None
_hook: Callable[[str], None] | None = None
_is_watched = False  # any of the above: all that is looked at where no test runs


def arm_from_environment() -> None:
    """Read the two variables; called once at the start of a process of ours."""
    global _log_fd, _once
    _armed.clear()
    _hits.clear()
    for part in filter(None, os.environ.get("GRAPHD_FAILPOINT", "").split(",")):
        name, _, rest = part.partition(":")
        hit, _, action = rest.partition(":")
        _armed[name] = (int(hit or 1), action or "kill")
    _once = os.environ.get("GRAPHD_FAILPOINT_ONCE")
    path = os.environ.get("GRAPHD_FAILPOINT_LOG")
    _log_fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if path else None
    _look_again()


def hook_in(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every point that is passed, before anything else is done there; None ends that."""
    global _hook
    _hook = hook
    _look_again()


def _look_again() -> None:
    global _is_watched
    _is_watched = bool(_armed) or _hook is not None or _log_fd is not None


def failpoint(name: str) -> None:
    """Pass the point `name`; does nothing unless a test armed it."""
    if _is_watched:
        _pass(name)


def _pass(name: str) -> None:
    if _hook is not None:
        _hook(name)
    if _log_fd is not None:
        os.write(_log_fd, f"{os.getpid()} {name}\n".encode())
    if name in _armed:
        _act(name)


def _is_first() -> bool:
    if _once is None:
        return True
    try:
        os.close(os.open(_once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _act(name: str) -> None:
    wanted, action = _armed[name]
    _hits[name] = _hits.get(name, 0) + 1
    if _hits[name] != wanted or not _is_first():
        return
    if action == "raise":
        raise OSError(f"failpoint {name}")
    if action == "sleep":
        time.sleep(1)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


arm_from_environment()
