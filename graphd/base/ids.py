"""Ids that the daemon makes: UUIDv7 for graphs. Source: spec model.md, Ids."""

import os


def uuid7(now_ms: int) -> str:
    """A UUIDv7 of this wall time (ms since the epoch): sorts by time of making, 74 bits of it are random."""
    value = (now_ms & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
