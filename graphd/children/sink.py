"""The captured stdout of one attempt: a bounded file that a crash leaves usable.

`stdout.<n>` holds the bytes of stdout from offset n on. At twice the limit the last part goes to a file of its own,
which is complete before it has its name; of several files the one with the highest n counts. So a fold that begins
again takes the bytes that are there and skips them in the journal.
"""

import errno
import os
from pathlib import Path
from typing import BinaryIO

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.children.environment import sync_folder


class CaptureShort(Exception):
    """The journal was trimmed beyond what is captured: bytes are gone (a power cut)."""


class Sink:
    """Takes bytes of stdout in order and keeps the last `limit_bytes` at least. `end` is the offset behind them."""

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        parts = sorted((int(path.suffix[1:]), path) for path in folder.glob("stdout.*") if path.suffix[1:].isdecimal())
        for _, path in parts[:-1]:
            path.unlink()
        self._start, self._path = parts[-1] if parts else (0, folder / "stdout.0")
        self._path.touch(mode=0o600)
        self.end = self._start + self._path.stat().st_size
        self._is_named = False  # durably

    def demand(self, out_bytes: int) -> None:
        """CaptureShort when less than `out_bytes` of stdout was captured."""
        if self.end < out_bytes:
            raise CaptureShort(
                t("{captured} of {wanted} bytes of stdout were captured", captured=self.end, wanted=out_bytes)
            )

    def take(self, offset: int, part: bytes) -> None:
        """Append what of `part`, which begins at `offset`, is not there yet."""
        new = part[max(0, self.end - offset) :]
        if not new:
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            written = os.pwrite(fd, new, self.end - self._start)  # over what a failed write may have left
            if written < len(new):
                raise OSError(errno.ENOSPC, "no room for captured output")
            os.ftruncate(fd, self.end - self._start + len(new))
        finally:
            os.close(fd)
        self.end += len(new)
        if self.end - self._start > 2 * self._limit_bytes:
            self._shorten()

    def sync(self) -> None:
        """Make it durable, and its name where it is not."""
        with self._path.open("ab") as file:
            os.fsync(file.fileno())
        if not self._is_named:
            sync_folder(self._folder)
            self._is_named = True

    def last_line(self, limit_bytes: int) -> bytes | None:
        """The last line that is not blank, stripped; None when there is none, or it is longer than `limit_bytes`."""
        start = max(self._start, self.end - limit_bytes)
        with self._path.open("rb") as file:
            file.seek(start - self._start)
            tail = file.read().rstrip()
        at = tail.rfind(b"\n")
        return None if not tail or (at < 0 and start > 0) else tail[at + 1 :].strip()

    def keep_as(self, path: Path) -> None:
        """Make `path` of the last `limit_bytes` at most, all or nothing. Durable; for an empty one its absence is."""
        self._copy_tail(path)

    def _shorten(self) -> None:
        start = self.end - self._limit_bytes
        path = self._folder / f"stdout.{start}"
        self._copy_tail(path)
        self._path.unlink()
        self._start, self._path, self._is_named = start, path, True

    def _copy_tail(self, path: Path) -> None:
        temporary = path.with_name(path.name + ".new")
        with self._path.open("rb") as source, temporary.open("wb") as target:
            temporary.chmod(0o600)
            source.seek(max(self._start, self.end - self._limit_bytes) - self._start)
            _copy(source, target)
            target.flush()
            if self.end:
                os.fsync(target.fileno())
        failpoint("sink.rename.before")
        temporary.rename(path)
        failpoint("sink.rename.after")
        if self.end:
            sync_folder(self._folder)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while part := source.read(1 << 20):
        target.write(part)
