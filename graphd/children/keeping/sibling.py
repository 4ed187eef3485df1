"""The two system calls that Python has no name for: become a subreaper, and start a program as our sibling.

By the C part of `ctypes` alone: the package around it costs each keeper more than a millisecond of its start.
"""

from __future__ import annotations

import _ctypes
import os
import struct

from graphd.children.keeping.points import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

CLONE_PARENT: Final = 0x8000
SYS_CLONE3: Final = 435  # the same on x86-64 and arm64
PR_SET_CHILD_SUBREAPER: Final = 36


class _Call(_ctypes.CFuncPtr):
    """A function of the C library that answers an int, called with the interpreter's lock held."""

    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI


_own: Any = None  # the program itself, and so the C library
_prctl, _syscall = (_Call(_ctypes.dlsym(_ctypes.dlopen(_own, os.RTLD_NOW), name)) for name in ("prctl", "syscall"))


def become_subreaper() -> None:
    """Whatever our descendants leave behind becomes our child, not init's."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_sibling(argv: list[str]) -> None:
    """Start `argv` in a session of its own as a child of our parent. Its failure is not seen here.

    A double fork would come back to us, the subreaper. With CLONE_PARENT the kernel takes no exit signal but 0. The
    caller has one thread, and nothing but async-safe calls run between clone and exec.
    """
    block = struct.pack("<Q", CLONE_PARENT) + bytes(80)
    failpoint("keeper.restart.before")
    if _syscall(SYS_CLONE3, block, len(block)) == 0:
        try:
            os.chdir("/")
            os.setsid()
            os.execv(argv[0], argv)  # noqa: S606  what the daemon gave us for this
        finally:
            os._exit(127)
    failpoint("keeper.restart.after")
