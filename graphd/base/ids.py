"""Ids that the daemon makes: UUIDv7 for graphs, UUIDv4 for stores. Source: spec model.md, Ids.

By hand: the `uuid` module asks for the platform, which costs a start more than all else of its store's id.
"""

import os


def uuid7(now_ms: int) -> str:
    """A UUIDv7 of this wall time (ms since the epoch): sorts by time of making, 74 bits of it are random."""
    value = (now_ms & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    return _formatted(value, 7)


def uuid4() -> str:
    """A UUIDv4: 122 bits of it are random."""
    return _formatted(int.from_bytes(os.urandom(16), "big"), 4)


def _formatted(value: int, version: int) -> str:
    value = value & ~(0xF << 76) | version << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
