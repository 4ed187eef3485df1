"""JSON as keepers and the byte pipe read and write it: the library's scanner and encoder without the package around.

`import json` brings `re`, `enum`, `functools` and `collections`: a third of such a program's start. The two C functions
do all the work of `json.loads` and `json.dumps` and need none of these. Where a Python lacks them the package is taken.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would cost each start its import
if TYPE_CHECKING:
    from typing import Any

try:
    import _json

    class _Decoding:
        """What the scanner asks of a `json.JSONDecoder`: its defaults."""

        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int = float, int
        parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__

    _decoding: Any = _Decoding()
    _refuse: Any = None
    _scan: Any = _json.make_scanner(_decoding)
    _chunks: Any = _json.make_encoder(
        None, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
except (ImportError, AttributeError, TypeError):  # another Python than those that we know
    _scan = _chunks = None


def encode(content: Any) -> bytes:
    """As `json.dumps`, in ASCII. `content` is of dicts, lists, tuples, text, numbers, bools and None; no cycles."""
    if _chunks is None:
        import json

        return json.dumps(content).encode()
    return "".join(_chunks(content, 0)).encode()


def decode(body: bytes) -> Any:
    """As `json.loads` of UTF-8: ValueError for what is no JSON, or more than one value."""
    if _scan is None:
        import json

        return json.loads(body)
    text = body.decode().strip(" \t\n\r")
    try:
        content, end = _scan(text, 0)
    except (StopIteration, RecursionError, SystemError, ImportError, AttributeError) as trouble:
        # The scanner takes the class of its refusal from `json`: up to 3.11 it fails where that was never imported,
        # later it imports it, and our library may be gone: a keeper outlives upgrades.
        raise ValueError("no JSON") from trouble
    if end != len(text):
        raise ValueError("more than one JSON value")
    return content
