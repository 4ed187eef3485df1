"""Files of an attempt's folder as the keeper writes them: the journal, the stderr ring, durable JSON.

Formats (version 1, little endian): the journal is a header and records. Offsets are absolute: they count the bytes of
all records since the first, and a trim moves the base, never an offset. Source: execution.md, The keeper.
"""

from __future__ import annotations

import errno
import os
import struct
import time

from graphd.base.plain_json import encode
from graphd.children.keeping.points import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

VERSION: Final = 1
MAGIC: Final = b"GRAPHDJ"
HEADER: Final = struct.Struct("<7sBQQQQ")
"""Magic, version, base, `in` records before it, `out` bytes before it, trimmed up to."""
RECORD: Final = struct.Struct("<BBIQ")
"""Version, kind, length, monotonic ns; then `length` bytes."""
OUT: Final = ord("o")
IN: Final = ord("i")
NOTE: Final = ord("n")
TERMINAL_NOTE: Final = b"t"
"""What a note of a terminal begins with; JSON follows: {id, event, …}."""
ERR_NOTE: Final = struct.Struct("<cQI")
"""`e`, offset in the whole of stderr, length: where these bytes of stderr fell among the other records."""


def sync(name: str) -> None:
    """Make the content of a file, or the names in a folder, durable."""
    fd = os.open(name, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_new(name: str, content: Any, *, is_durable: bool = True) -> None:
    """Write `<name>.new`, and fsync it where it must outlive a power cut; the caller renames it."""
    fd = os.open(name + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, encode(content) + b"\n")
        if is_durable:
            os.fsync(fd)
    finally:
        os.close(fd)


class ErrRing:
    """stderr, bounded: its last `limit_bytes`, each byte at its offset modulo the limit. Loses bytes, never blocks."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.total_bytes = 0
        self.fd = os.open("err", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)

    def write(self, part: bytes) -> None:
        """Take at most `limit_bytes`. What a full disk refuses is lost here; protocol bytes never are."""
        at = self.total_bytes % self.limit_bytes
        first = part[: self.limit_bytes - at]
        self.total_bytes += len(part)
        try:
            os.pwrite(self.fd, first, at)
            os.pwrite(self.fd, part[len(first) :], 0)
        except OSError:
            return


class Journal:
    """The one append-only file of both directions."""

    def __init__(self) -> None:
        self.fd = os.open("journal", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self.base = self.end = self.in_count = self.out_bytes = 0
        self.before = (0, 0, 0, 0)  # base, in records and out bytes before it, trimmed up to
        os.write(self.fd, HEADER.pack(MAGIC, VERSION, *self.before))

    @property
    def size_bytes(self) -> int:
        """Bytes of records in the file."""
        return self.end - self.base

    def append(self, kind: int, payload: bytes) -> None:
        """Write one whole record, or raise OSError with the file as it was: a torn record is cut off again."""
        record = RECORD.pack(VERSION, kind, len(payload), time.monotonic_ns()) + payload
        at = HEADER.size + self.size_bytes
        try:
            failpoint("keeper.append.before")
            if os.pwrite(self.fd, record, at) != len(record):
                raise OSError(errno.ENOSPC, "short write")
            failpoint("keeper.append.after")
        except OSError:
            os.ftruncate(self.fd, at)
            raise
        self.end += len(record)
        self.in_count += kind == IN
        self.out_bytes += len(payload) if kind == OUT else 0

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes of records from the absolute `offset`."""
        return os.pread(self.fd, min(size, self.end - offset), HEADER.size + offset - self.base)

    def trim(self, up_to: int) -> None:
        """Drop the whole records that end at or below `up_to`. OSError leaves everything as it was."""
        before = self._counted(up_to)
        fd = os.open("journal.new", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, HEADER.pack(MAGIC, VERSION, *before))
            position = before[0]
            while position < self.end:
                part = self.read(position, 1 << 20)
                if os.write(fd, part) != len(part):
                    raise OSError(errno.ENOSPC, "short write")
                position += len(part)
            os.fsync(fd)
            failpoint("keeper.trim.before")
            os.rename("journal.new", "journal")  # noqa: PTH104  pathlib costs its start
            failpoint("keeper.trim.after")
        except OSError:
            os.close(fd)
            raise
        os.close(self.fd)
        self.fd, self.base, self.before = fd, before[0], before
        sync(".")

    def _counted(self, up_to: int) -> tuple[int, int, int, int]:
        """The header of a journal that begins with the first record which does not end at or below `up_to`."""
        at, ins, outs, _ = self.before
        while at < up_to:
            _, kind, length, _ = RECORD.unpack(self.read(at, RECORD.size))
            if at + RECORD.size + length > up_to:
                break
            at += RECORD.size + length
            ins += kind == IN
            outs += length if kind == OUT else 0
        return (at, ins, outs, up_to)
