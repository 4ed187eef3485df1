"""LSP base framing, both ways, without IO. Standard library alone.

Source: spec protocol.md, first line and Limits.
"""

from __future__ import annotations

HEADER_LIMIT_BYTES = 4096
BODY_LIMIT_BYTES = 16 * 1024 * 1024


class FrameBroken(Exception):
    """The bytes are not our framing."""


def frame(body: bytes) -> bytes:
    """One frame around a JSON body."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Cuts a stream into bodies. `rest` holds what is not yet a whole frame."""

    def __init__(self, *, body_limit_bytes: int = BODY_LIMIT_BYTES) -> None:
        self.rest = bytearray()
        self._limit_bytes = body_limit_bytes
        self._length: int | None = None  # of the body that `rest` starts with, once its header is read

    def feed(self, chunk: bytes) -> list[bytes]:
        """All bodies that `chunk` completes, in order.

        Raises `FrameBroken`; the stream is then of no more use.
        """
        self.push(chunk)
        bodies = []
        while (body := self.take()) is not None:
            bodies.append(body)
        return bodies

    def push(self, chunk: bytes) -> None:
        """Add bytes for `take`."""
        self.rest += chunk

    def take(self) -> bytes | None:
        """The next whole body among what was fed, or None. Raises `FrameBroken`."""
        if self._length is None:
            end = self.rest.find(b"\r\n\r\n", 0, HEADER_LIMIT_BYTES + 4)
            if end < 0:
                self._check_unfinished_header()
                return None
            self._length = self._length_in(bytes(self.rest[:end]))
            del self.rest[: end + 4]
        if len(self.rest) < self._length:
            return None
        body = bytes(self.rest[: self._length])
        del self.rest[: self._length]
        self._length = None
        return body

    def _check_unfinished_header(self) -> None:
        if len(self.rest) > HEADER_LIMIT_BYTES:
            raise FrameBroken(f"a header longer than {HEADER_LIMIT_BYTES} bytes")
        start = bytes(self.rest[:8]).lower()
        if start and not b"content-".startswith(start):
            raise FrameBroken("no Content-Length header")

    def _length_in(self, header: bytes) -> int:
        length = None
        for line in header.split(b"\r\n"):
            name, colon, value = line.partition(b":")
            if not colon:
                raise FrameBroken("a header line without a colon")
            if name.strip().lower() == b"content-length":
                if length is not None or not value.strip().isdigit():
                    raise FrameBroken("a bad Content-Length")
                length = int(value)
        if length is None or length > self._limit_bytes:
            raise FrameBroken("no Content-Length, or one over the limit")
        return length
