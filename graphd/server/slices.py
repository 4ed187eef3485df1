"""Slices of files that a client reads in parts: bytes by offset, cut at character borders. Source: spec protocol.md."""

import os
from pathlib import Path
from typing import Any

MARGIN = 4
"""So many bytes more than a slice may have are read, for a character that would be cut."""


def read_slice(path: Path, offset: int, limit: int) -> tuple[bytes, int] | None:
    """(at most `limit` + MARGIN bytes from `offset` on, the file's size); None where it can't be read, or is a link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return os.pread(fd, limit + MARGIN, offset), os.fstat(fd).st_size
    finally:
        os.close(fd)


def slice_of(raw: bytes, *, offset: int, limit: int, total: int) -> dict[str, Any]:
    """At most `limit` bytes, fewer where a character would be cut, a whole one where even that is longer."""
    end = min(limit, len(raw))
    while 0 < end < len(raw) and raw[end] & 0xC0 == 0x80:
        end -= 1
    if end == 0 and raw:
        end = 1
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end += 1
    return {"text": raw[:end].decode(errors="replace"), "offset": offset, "next": offset + end, "total": total}
