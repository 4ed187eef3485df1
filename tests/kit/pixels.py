"""Reads the colours of a PNG, as browsers write them: 8 bits, RGB or RGBA, not interlaced."""

import struct
import zlib
from pathlib import Path


def rows_of(file: Path) -> tuple[int, list[bytes]]:
    """Bytes a pixel, and the unfiltered rows."""
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed, width, height, step = 8, b"", 0, 0, 0
    while at < len(content):
        (length,), kind = struct.unpack_from(">I", content, at), content[at + 4 : at + 8]
        body = content[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            step = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    flat, stride = zlib.decompress(packed), width * step
    rows: list[bytes] = []
    for number in range(height):
        begin = number * (stride + 1)
        before = rows[-1] if rows else bytes(stride)
        rows.append(_unfiltered(flat[begin], flat[begin + 1 : begin + 1 + stride], before, step))
    return step, rows


def _unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    row = bytearray(line)
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        row[at] = (row[at] + (0, left, up, (left + up) // 2, _nearest(left, up, corner))[kind]) & 255
    return bytes(row)


def _nearest(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def colour_at(file: Path, x: int, y: int) -> tuple[int, int, int]:
    """Red, green and blue of one pixel."""
    step, rows = rows_of(file)
    red, green, blue = rows[y][x * step : x * step + 3]
    return red, green, blue
