"""Strict LSP base framing without IO: bytes in, frames out; anything that is not our framing breaks the connection.

Only `Content-Length` and `Content-Type` headers, header ≤ 4 KiB, body ≤ 16 MiB, depth ≤ 64, numbers within 64 bits.
Sources: spec protocol.md (Limits; Daemon, socket, lock), research security.md §3.1, sidecar.md §2.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from graphd.base.text import t
from graphd_protocol.errors import ERROR_CODES, INVALID_REQUEST, PARSE_ERROR

HEADER_LIMIT_BYTES: Final = 4096
BODY_LIMIT_BYTES: Final = 16 * 1024 * 1024
DEPTH_LIMIT: Final = 64
BODY_LIMIT_S: Final = 30.0
LENGTH_LIMIT: Final = 8
"""Digits of a Content-Length."""

STRING_ID_LIMIT: Final = 256
NUMBER_LIMIT: Final = 2**63

_END: Final = b"\r\n\r\n"
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_ESCAPED: Final = rb"(?s)\\."  # these two are compiled with the first body that needs them
_STRING: Final = rb'"[^"]*"'
_LARGE_NUMBER: Final = re.compile(rb"[0-9]{19}|[0-9][eE]\+?[0-9]{2}")


class FramingBroken(Exception):
    """These bytes are not our framing: the connection has to close.

    `answer` is a last error to send, where one is due.
    """

    def __init__(self, reason: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class Frame(NamedTuple):
    """One body as it came, not yet looked at."""

    body: bytes


class Message(NamedTuple):
    """One JSON-RPC message.

    `is_request` has an id and wants exactly one answer; `trouble` is why it can't be served. `answer` is the whole
    message where it answers a request of ours.
    """

    id: int | str | None
    method: str | None
    params: Any
    is_request: bool
    trouble: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None


class FrameReader:
    """Cuts a byte stream into frames. Feed it whatever arrives; it holds one incomplete frame at most."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None

    @property
    def is_midway(self) -> bool:
        """A frame has begun and is not whole: the rest is due within BODY_LIMIT_S."""
        return self._wanted is not None or bool(self._buffer)

    def feed(self, chunk: bytes) -> list[Frame]:
        """All frames that are whole now. Raises FramingBroken, after which the stream can't be read on."""
        self._buffer += chunk
        frames = []
        while (body := self._next()) is not None:
            frames.append(Frame(body))
        return frames

    def _next(self) -> bytes | None:
        if self._wanted is None and not self._read_header():
            return None
        if self._wanted is None or len(self._buffer) < self._wanted:
            return None
        body = bytes(self._buffer[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = None
        return body

    def _read_header(self) -> bool:
        end = self._buffer.find(_END, 0, HEADER_LIMIT_BYTES)
        if end < 0:
            self._check_beginning()
            return False
        self._wanted = _content_length(bytes(self._buffer[:end]))
        del self._buffer[: end + len(_END)]
        return True

    def _check_beginning(self) -> None:
        """Refuse foreign bytes at once: an HTTP verb or a TLS hello need not send 4 KiB to be known as such."""
        if len(self._buffer) >= HEADER_LIMIT_BYTES:
            raise FramingBroken("header over 4 KiB")
        for name in (b"content-length:", b"content-type:"):
            if name.startswith(self._buffer[: len(name)].lower()):
                return
        if self._buffer:
            raise FramingBroken("not our framing")


def first_of(seen: bytes) -> tuple[Frame, int] | None:
    """The first frame of bytes that are only looked at, and its size with its header; None where it is not whole.

    Raises FramingBroken where a reader would.
    """
    whole = FrameReader().feed(seen)
    return (whole[0], seen.index(_END) + len(_END) + len(whole[0].body)) if whole else None


def _content_length(header: bytes) -> int:
    length: int | None = None
    names = set()
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name not in (b"content-length", b"content-type") or name in names or b"\n" in line:
            raise FramingBroken("not our framing")
        names.add(name)
        if name == b"content-length":
            length = _length_of(value)
    if length is None:
        raise FramingBroken("no Content-Length")
    return length


def _length_of(value: bytes) -> int:
    digits = value.strip(b" \t")
    if not digits.isdigit():
        raise FramingBroken("bad Content-Length")
    if len(digits) > LENGTH_LIMIT or int(digits) > BODY_LIMIT_BYTES:
        facts = {"code": "tooLarge", "hint": t("a frame holds at most 16 MiB"), "retryable": False}
        raise FramingBroken(
            "body over 16 MiB",
            {"code": ERROR_CODES["tooLarge"], "message": t("frame too large"), "data": facts},
        )
    return int(digits)


def encode(message: Any) -> bytes:
    """One frame with this message, or with these bytes of JSON."""
    body = message if isinstance(message, bytes) else _orjson().dumps(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def is_too_deep(body: bytes) -> bool:
    """Nested deeper than DEPTH_LIMIT, found by deletions at C speed, before anything parses it."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_LIMIT:
        return False
    if b"\\" in body:
        body = re.sub(_ESCAPED, b"", body)
    brackets = re.sub(_STRING, b"", body.translate(None, _NOT_BRACKETS)).translate(_SQUARE)
    for _ in range(DEPTH_LIMIT):
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            return False  # done, or unbalanced: then the parser says so
        brackets = shorter
    return bool(brackets)


@cache
def _orjson() -> Any:
    """With the first message that the server reads: its import brings uuid, platform and dataclasses."""
    import orjson

    return orjson


def decode(body: bytes, parse: Callable[[bytes], Any] | None = None) -> Message:
    """Read one body. Never raises: what is wrong with it is the message's `trouble`, an error object to answer with.

    `parse` reads the JSON in orjson's place; it raises ValueError.
    """
    if is_too_deep(body):
        return _bad(PARSE_ERROR, t("nested deeper than {limit}", limit=DEPTH_LIMIT))
    try:
        value = (parse or _orjson().loads)(body)
    except ValueError:
        return _bad(PARSE_ERROR, t("not valid JSON"))
    if not isinstance(value, dict):
        return _bad(INVALID_REQUEST, t("a message is one JSON object; batches are not served"))
    message = _envelope(value)
    if message.trouble is None and _LARGE_NUMBER.search(body) and _has_large_number(value):
        return _bad(INVALID_REQUEST, t("a number is beyond 64 bits"), message)
    return message


def _envelope(value: dict[str, Any]) -> Message:
    method = value.get("method")
    if "id" not in value and isinstance(method, str):
        return Message(None, method if value.get("jsonrpc") == "2.0" else None, value.get("params", {}), False)
    if "method" not in value and ("result" in value or "error" in value):
        return Message(None, None, None, False, answer=value if value.get("jsonrpc") == "2.0" else None)
    number = value.get("id")
    is_id = type(number) is int and abs(number) < NUMBER_LIMIT
    if not is_id and not (isinstance(number, str) and len(number) <= STRING_ID_LIMIT):
        return _bad(INVALID_REQUEST, t("an id is a 64-bit integer or a string of at most 256 characters"))
    message = Message(number, method if isinstance(method, str) else None, value.get("params", {}), True)
    if value.get("jsonrpc") != "2.0":
        return _bad(INVALID_REQUEST, t('jsonrpc must be "2.0"'), message)
    if message.method is None:
        return _bad(INVALID_REQUEST, t("method must be a string"), message)
    return message


def _bad(code: int, text: str, message: Message | None = None) -> Message:
    if message is not None and not message.is_request:
        return Message(None, None, None, False)
    return Message(message.id if message else None, None, None, True, {"code": code, "message": text})


def _has_large_number(value: Any) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, int | float) and not -NUMBER_LIMIT <= item < NUMBER_LIMIT:
            return True
    return False
