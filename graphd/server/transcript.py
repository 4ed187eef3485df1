"""What an attempt printed, read from its journal for people: stdout and stderr in the order in which they came.

Cursors name a record and the bytes of it that were shown; they outlive daemons. Source: spec protocol.md (`observe`);
execution.md, The keeper (formats in `graphd.children.keeping.files`).
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphd.base.redaction import PLAIN
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.children.journal import read_err
from graphd.children.keeping.files import ERR_NOTE, HEADER, MAGIC, NOTE, OUT, RECORD
from graphd.children.results import ERR_LIMIT
from graphd.server.project import Wire

READ_LIMIT_BYTES: Final = 1024 * 1024
ITEM_LIMIT_BYTES: Final = 64 * 1024


@dataclass(slots=True, frozen=True)
class Printed:
    """A page of what was printed, and where to go on."""

    items: list[Wire]
    cursor: str


@dataclass(slots=True, frozen=True)
class _Record:
    at: int
    kind: int
    monotonic_ns: int
    payload: bytes


def read_printed(folder: Path, cursor: str | None, *, limit: int, started_at: int, is_live: bool) -> Printed:
    """At most `limit` items after `cursor`. A missing journal is an empty one. Raises Refused `cursorInvalid`."""
    start, skip = _parse(cursor)
    try:
        fd = os.open(folder / "journal", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Printed([], f"{start}:{skip}")
    try:
        base, first_ns, records, end = _records(fd, start)
    finally:
        os.close(fd)
    if start < base:
        skip = 0
    return _redacted(_Page(folder, started_at, first_ns, is_live=is_live).fill(records, end, skip, limit))


def _redacted(printed: Printed) -> Printed:
    """Without secrets, also over the borders of items; over those of pages only where the shape is whole in one."""
    stream = PLAIN.stream()
    for item in printed.items:
        item["text"] = stream.feed(item["text"])
    if rest := stream.end():
        printed.items[-1]["text"] += rest
    return Printed([item for item in printed.items if item["text"]], printed.cursor)


def _parse(cursor: str | None) -> tuple[int, int]:
    at, _, skip = (cursor or "0:0").partition(":")
    if not (at.isdecimal() and skip.isdecimal() and len(at) <= 18 and len(skip) <= 18):
        raise Refused("cursorInvalid", t("this is no cursor of observe"), t("begin without one"))
    return int(at), int(skip)


def _records(fd: int, start: int) -> tuple[int, int, list[_Record], int]:
    """(base, time of the first record, whole records from `start` on, where they end)."""
    head = os.pread(fd, HEADER.size, 0)
    if len(head) < HEADER.size or not head.startswith(MAGIC):
        return 0, 0, [], start
    base = HEADER.unpack(head)[2]
    first = os.pread(fd, RECORD.size, HEADER.size)
    first_ns = RECORD.unpack(first)[3] if len(first) == RECORD.size else 0
    position = max(start, base)
    raw = os.pread(fd, READ_LIMIT_BYTES, HEADER.size + position - base)
    records: list[_Record] = []
    at = 0
    while at + RECORD.size <= len(raw):
        _, kind, length, monotonic_ns = RECORD.unpack_from(raw, at)
        payload = raw[at + RECORD.size : at + RECORD.size + length]
        if len(payload) < length:
            if records or length < READ_LIMIT_BYTES // 2:
                break
            payload = os.pread(fd, length, HEADER.size + position - base + at + RECORD.size)
            if len(payload) < length:
                break
        records.append(_Record(position + at, kind, monotonic_ns, payload))
        at += RECORD.size + length
    return base, first_ns, records, position + at


class _Page:
    def __init__(self, folder: Path, started_at: int, first_ns: int, *, is_live: bool) -> None:
        self._folder = folder
        self._started_at = started_at
        self._first_ns = first_ns
        self._is_live = is_live
        self._items: list[Wire] = []
        self._carried = b""

    def fill(self, records: list[_Record], end: int, skip: int, limit: int) -> Printed:
        """Turn records into items; a character that is not whole yet waits for its rest while the attempt lives."""
        for index, record in enumerate(records):
            payload = self._text_of(record)
            shown = skip
            while shown < len(payload):
                if len(self._items) >= limit:
                    return Printed(self._items, f"{record.at}:{shown}")
                piece = payload[shown : shown + ITEM_LIMIT_BYTES]
                is_last = index == len(records) - 1 and shown + len(piece) == len(payload)
                dangling = _dangling(piece) if not (is_last and not self._is_live) else 0
                if is_last and dangling:
                    self._add(record, piece[: len(piece) - dangling])
                    return Printed(self._items, f"{record.at}:{shown + len(piece) - dangling}")
                if dangling and dangling == len(piece):
                    self._carried += piece
                elif dangling and shown + len(piece) == len(payload):
                    self._add(record, piece[:-dangling])
                    self._carried = piece[-dangling:]
                else:
                    self._add(record, piece[: len(piece) - dangling])
                    shown -= dangling
                shown += len(piece)
            skip = 0
        return Printed(self._items, f"{end}:0")

    def _add(self, record: _Record, piece: bytes) -> None:
        text = (self._carried + piece).decode(errors="replace")
        self._carried = b""
        if text:
            at = self._started_at + max(0, record.monotonic_ns - self._first_ns) // 1_000_000
            self._items.append({"kind": "text", "at": at, "text": text})

    def _text_of(self, record: _Record) -> bytes:
        if record.kind == OUT:
            return record.payload
        if record.kind == NOTE and record.payload[:1] == b"e" and len(record.payload) == ERR_NOTE.size:
            _, offset, length = ERR_NOTE.unpack(record.payload)
            return self._stderr(offset, length)
        return b""

    def _stderr(self, offset: int, length: int) -> bytes:
        """These bytes of stderr, where its ring still holds them."""
        return read_err(self._folder, offset, length, total=offset + length, limit_bytes=ERR_LIMIT)


def _dangling(piece: bytes) -> int:
    """How many bytes at the end begin a character that is not whole yet."""
    for back in range(1, min(4, len(piece) + 1)):
        byte = piece[-back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0
