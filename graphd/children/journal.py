"""Reads a keeper's journal: live bytes or the file, from a trim on, torn tail tolerated; and its stderr ring.

Offsets are absolute (see `keeping.files`). A cursor stands only at the end of a whole line, so what a trim left of a
record that holds a cursor is skipped up to it. Source: execution.md, Exactly once over a crash.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from graphd.base.text import t
from graphd.children.keeping.files import ERR_NOTE, HEADER, IN, MAGIC, NOTE, OUT, RECORD, VERSION

READ_SIZE: Final = 1 << 20


class JournalBroken(Exception):
    """The file is no journal, or of a version that nobody reads."""


@dataclass(slots=True, frozen=True)
class Header:
    """Where a journal begins, and how much of both directions came before."""

    base: int = 0
    in_count: int = 0
    out_bytes: int = 0
    trimmed_to: int = 0


@dataclass(slots=True, frozen=True)
class Record:
    """One entry. `offset` is where its payload begins, `end` where the record ends; `at_ns` is monotonic.

    `out_offset` counts the bytes of stdout before it, `in_seq` the lines sent before it.
    """

    kind: int
    payload: bytes
    at_ns: int
    offset: int
    out_offset: int
    in_seq: int

    @property
    def end(self) -> int:
        """Absolute offset of the byte after it."""
        return self.offset + len(self.payload)

    @property
    def err_span(self) -> tuple[int, int] | None:
        """(offset, length) in stderr, where this is a note of it."""
        if self.kind != NOTE or len(self.payload) != ERR_NOTE.size or self.payload[:1] != b"e":
            return None
        _, start, length = ERR_NOTE.unpack(self.payload)
        return (start, length)


class Decoder:
    """Bytes of records in, whole records out. `position` is the end of the last whole one."""

    def __init__(self, header: Header) -> None:
        self.position = header.base
        self._trimmed_to = header.trimmed_to
        self._out_bytes = header.out_bytes
        self._in_count = header.in_count
        self._rest = b""

    def feed(self, part: bytes) -> list[Record]:
        """The records that `part` completes."""
        buffer, at, records = self._rest + part, 0, []
        while len(buffer) - at >= RECORD.size:
            version, kind, length, at_ns = RECORD.unpack_from(buffer, at)
            if version != VERSION:
                raise JournalBroken(f"record version {version} at {self.position}")
            if len(buffer) - at < RECORD.size + length:
                break
            payload = buffer[at + RECORD.size : at + RECORD.size + length]
            at += RECORD.size + length
            records.append(self._record(kind, payload, at_ns))
        self._rest = buffer[at:]
        return records

    def restart(self) -> None:
        """Forget the torn tail: the bytes go on at `position`."""
        self._rest = b""

    def skip_to(self, record: Record) -> None:
        """`record` was taken from the file: go on behind it."""
        self.position = record.end
        self._out_bytes = record.out_offset + (len(record.payload) if record.kind == OUT else 0)
        self._in_count = record.in_seq + (record.kind == IN)
        self._rest = b""

    def _record(self, kind: int, payload: bytes, at_ns: int) -> Record:
        record = Record(kind, payload, at_ns, self.position + RECORD.size, self._out_bytes, self._in_count)
        self.position = record.end
        self._in_count += kind == IN
        self._out_bytes += len(payload) if kind == OUT else 0
        skipped = min(max(0, self._trimmed_to - record.offset), len(payload))
        if skipped:
            out = record.out_offset + (skipped if kind == OUT else 0)
            record = replace(record, payload=payload[skipped:], offset=record.offset + skipped, out_offset=out)
        return record


@dataclass(slots=True, frozen=True)
class Line:
    """A whole line of stdout without its newline. `end` is the offset after the newline: where a cursor may stand."""

    text: bytes
    end: int


class Lines:
    """Records in, whole lines of stdout out. A line longer than `limit_bytes` is cut to it, and its rest skipped."""

    def __init__(self, limit_bytes: int = 16 << 20, rest: bytes = b"") -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray(rest)

    @property
    def rest(self) -> bytes:
        """The bytes of the line that has not ended yet."""
        return bytes(self._rest)

    def feed(self, record: Record) -> list[Line]:
        """The lines that end in this `out` record."""
        lines, start = [], 0
        while (found := record.payload.find(b"\n", start)) >= 0:
            self._keep(record.payload[start:found])
            lines.append(Line(bytes(self._rest), record.offset + found + 1))
            self._rest.clear()
            start = found + 1
        self._keep(record.payload[start:])
        return lines

    def _keep(self, part: bytes) -> None:
        self._rest += part[: max(0, self._limit_bytes - len(self._rest))]


def read_header(folder: Path) -> Header:
    """The header of a folder's journal. FileNotFoundError, or JournalBroken."""
    with (folder / "journal").open("rb") as file:
        return _unpack_header(file.read(HEADER.size))


def read_records(folder: Path) -> Iterator[Record]:
    """All whole records of a folder's journal; a torn tail ends it quietly."""
    with (folder / "journal").open("rb") as file:
        decoder = Decoder(_unpack_header(file.read(HEADER.size)))
        while part := file.read(READ_SIZE):
            yield from decoder.feed(part)


def read_log(folder: Path, *, err_limit_bytes: int) -> Iterator[tuple[Literal["out", "err"], bytes]]:
    """What the process printed on both streams, in the order in which it came, as far as it is kept."""
    records = list(read_records(folder))
    spans = [span for record in records if (span := record.err_span)]
    total = max((start + length for start, length in spans), default=0)
    for record in records:
        if record.kind == OUT:
            yield "out", record.payload
        elif span := record.err_span:
            yield "err", read_err(folder, *span, total=total, limit_bytes=err_limit_bytes)


def read_err(folder: Path, start: int, length: int, *, total: int, limit_bytes: int) -> bytes:
    """Bytes of stderr from the ring: those of the span that are still there, `total` bytes having been written."""
    first = max(start, total - limit_bytes)
    length = start + length - first
    if length <= 0:
        return b""
    try:
        with (folder / "err").open("rb") as file:
            at = first % limit_bytes
            file.seek(at)
            part = file.read(min(length, limit_bytes - at))
            file.seek(0)
            return part + file.read(length - len(part) if len(part) == limit_bytes - at else 0)
    except OSError:
        return b""


def _unpack_header(content: bytes) -> Header:
    if len(content) < HEADER.size:
        raise JournalBroken(t("its header is cut short"))
    magic, version, *rest = HEADER.unpack(content)
    if magic != MAGIC or version != VERSION:
        raise JournalBroken(t("no journal of version {version}", version=VERSION))
    return Header(*rest)
