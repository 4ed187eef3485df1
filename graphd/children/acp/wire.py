"""Lines of an agent's stdout as messages: what is no message is noise, never an error.

Agents print log lines on stdout, cut UTF-8, send lone surrogates, numbers beyond 64 bits and batches. All of it gets
through to a message that the database and every client can hold. Source: research agents.md §2, §9.
"""

import json
import re
from typing import Any, Final

LINE_LIMIT: Final = 16 << 20
"""Bytes of one line that are read. A longer one can't be a message of use; a request in it is refused by its head."""
NOISE_LIMIT: Final = 2000
_ODD: Final = re.compile(rb"\\u[dD][89a-fA-F]|\d{19}|\d[eE]\+?\d{3}|\\u0000|NaN|Infinity")
_LONE: Final = re.compile("[\ud800-\udfff]")
_HEAD: Final = re.compile(rb'"id"\s*:\s*(-?\d{1,15}|"[^"\\]{1,200}")')
_METHOD: Final = re.compile(rb'"method"\s*:\s*"')


def messages(line: bytes) -> list[dict[str, Any]]:
    """The messages of a line: one, those of a batch, or none."""
    value = value_of(line)
    found = value if isinstance(value, list) else [value]
    return [message for message in found if isinstance(message, dict) and ("method" in message or "id" in message)]


def value_of(line: bytes) -> Any:
    """The object or array that a line is, made so that the database and every client can hold it; else None."""
    if line.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return _even(value, 100) if _ODD.search(line) else value


def overlong_request(line: bytes) -> str | None:
    """The id, as JSON, of the request that a line of LINE_LIMIT bytes begins with; None when it begins with none."""
    if len(line) < LINE_LIMIT:
        return None
    head = line[:400]
    found = _HEAD.search(head)
    return found[1].decode() if found and _METHOD.search(head) else None


def noise(line: bytes) -> str:
    """What is shown of a line that is no message."""
    return line[:NOISE_LIMIT].decode("utf-8", "replace").replace("\0", "\ufffd").strip()


def key_of(id_value: Any) -> str:
    """A JSON-RPC id as compact JSON."""
    return json.dumps(id_value, separators=(",", ":"))


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Any) -> str | None:
    """The value where it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def bounded(value: Any, limit: int = 64 << 10) -> Any:
    """A JSON value, or what its text begins with where that is longer than `limit` characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= limit else text[:limit] + "…"


def _even(value: Any, depth: int) -> Any:
    """Without lone surrogates, NUL, numbers that 64 bits don't hold and depth beyond sense."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value).replace("\0", "\ufffd")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if depth == 0:
        return None
    if isinstance(value, list):
        return [_even(item, depth - 1) for item in value]
    return {_even(key, 1): _even(item, depth - 1) for key, item in value.items()}
