"""The two system calls that Python has no name for: become a subreaper, and start a program as our sibling."""

import ctypes
import os
import struct
from typing import Final

from graphd.children.keeping.points import failpoint

CLONE_PARENT: Final = 0x8000
SYS_CLONE3: Final = 435  # the same on x86-64 and arm64
PR_SET_CHILD_SUBREAPER: Final = 36
LIBC: Final = ctypes.PyDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Whatever our descendants leave behind becomes our child, not init's."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_sibling(argv: list[str]) -> None:
    """Start `argv` in a session of its own as a child of our parent. Its failure is not seen here.

    A double fork would come back to us, the subreaper. With CLONE_PARENT the kernel takes no exit signal but 0. The
    caller has one thread, and nothing but async-safe calls run between clone and exec.
    """
    block = ctypes.create_string_buffer(struct.pack("<Q", CLONE_PARENT) + bytes(80), 88)
    failpoint("keeper.restart.before")
    if LIBC.syscall(SYS_CLONE3, block, 88) == 0:
        try:
            os.chdir("/")
            os.setsid()
            os.execv(argv[0], argv)  # noqa: S606  what the daemon gave us for this
        finally:
            os._exit(127)
    failpoint("keeper.restart.after")
