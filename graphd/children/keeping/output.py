"""What one terminal printed, as a file that anybody may read at any time.

The offset of its first byte (8 bytes, little endian), then what was printed; at twice the limit its last part becomes
a new file, by a rename. It is no protocol: what a full disk does not take is lost.
"""
# ruff: noqa: PTH104, PTH108, SIM105

from __future__ import annotations

import os
import struct

from graphd.children.keeping.points import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

OFFSET: Final = struct.Struct("<Q")
ROOM: Final = 1 << 16
"""A file is not made anew for less."""


class Output:
    """The file `terminal.<id>`. OSError where it can't be made, and never after that."""

    def __init__(self, terminal: str, limit: int) -> None:
        self._name = f"terminal.{terminal}"
        self._limit = max(limit, 1)
        self._first = self._size = 0
        self._fd = _file(self._name, 0)

    def take(self, part: bytes) -> None:
        """Append, and keep the file within its bounds."""
        if self._fd < 0:
            return
        try:
            self._size += os.write(self._fd, part)
            if self._size > 2 * max(self._limit, ROOM):
                self._shorten()
        except OSError:
            pass

    def remove(self) -> None:
        """Nobody asks for it any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            try:
                os.unlink(self._name)
            except OSError:
                pass

    def _shorten(self) -> None:
        """The last `limit` bytes become the file."""
        cut = self._size - self._limit
        tail = os.pread(self._fd, self._limit, OFFSET.size + cut)
        fd = _file(self._name + ".new", self._first + cut)
        try:
            os.write(fd, tail)
            failpoint("keeper.shorten.before")
            os.rename(self._name + ".new", self._name)
            failpoint("keeper.shorten.after")
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self._first, self._size = fd, self._first + cut, len(tail)


def _file(name: str, first: int) -> int:
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, OFFSET.pack(first))
    except OSError:
        os.close(fd)
        raise
    return fd
