"""What an agent said and did, one JSON line an item, in the attempt's folder: for people, never for decisions.

Written before the commit of the step that it belongs to: what was committed is there to be read. A step that is folded
again after a crash is not written again: each line names its place in the journal. Without secrets, also over the
borders of an agent's chunks: what may be the beginning of one is held back until it is seen whole.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from graphd.base.redaction import Redactor
from graphd.children.driver import Fact

FILE: Final = "items"
LIMIT_BYTES: Final = 64 << 20
TAIL_BYTES: Final = 64 << 10


class Items:
    """The items of one attempt, appended by its one run. Blocks for no more than a page-cache write."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._path = folder / FILE
        self._redactor = redactor
        self._stream = redactor.stream()
        self._last = _last_place(self._path)
        self._size = self._path.stat().st_size if self._last is not None else 0

    def append(self, facts: Iterable[Fact], *, at_ms: int) -> None:
        """Write the items among these facts that are not there yet; nothing any more beyond LIMIT_BYTES. OSError."""
        fresh = [f for f in facts if self._last is None or f.position > self._last]
        if not fresh or self._size > LIMIT_BYTES:
            return
        rows = [row for fact in fresh for row in self._rows(fact)]
        self._write("".join(json.dumps({"at": at_ms, **row}, ensure_ascii=False) + "\n" for row in rows))
        self._last = fresh[-1].position

    def note(self, kind: str, text: str, *, at_ms: int) -> None:
        """An item that is no fact of the journal: it stands behind what was said so far. OSError."""
        if self._size <= LIMIT_BYTES:
            row = {"place": list(self._last or (0, -1)), "at": at_ms, "kind": kind, "text": self._redactor.text(text)}
            self._write(json.dumps(row, ensure_ascii=False) + "\n")

    def _write(self, lines: str) -> None:
        content = lines.encode("utf-8", "replace")
        if content:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, content)
            finally:
                os.close(fd)
        self._size += len(content)

    def _rows(self, fact: Fact) -> list[dict[str, Any]]:
        content, place = fact.content, list(fact.position)
        is_words = fact.kind == "item" and content.get("kind") in ("text", "thought")
        if is_words:
            text = self._stream.feed(str(content.get("text") or ""))
            return [{"place": place, "kind": content["kind"], "text": text}] if text else []
        held = self._stream.end()
        rows: list[dict[str, Any]] = [{"place": place, "kind": "text", "text": held}] if held else []
        if fact.kind == "item":
            rows.append({"place": place, **redacted(content, self._redactor)})
        return rows


def redacted(value: Any, redactor: Redactor) -> Any:
    """A JSON value with the secrets in its texts taken out."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {key: redacted(inner, redactor) for key, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner, redactor) for inner in value]
    return value


def read_items(folder: Path, offset: int, limit_bytes: int) -> tuple[list[dict[str, Any]], int]:
    """(whole items from a byte offset on, the offset behind them); a torn last line waits. OSError where none is.

    Each item says in `bytes` how long its line is.
    """
    with (folder / FILE).open("rb") as file:
        file.seek(offset)
        content = file.read(limit_bytes)
        if b"\n" not in content and len(content) == limit_bytes:
            content += file.readline()
    whole = content[: content.rfind(b"\n") + 1]
    lines = whole.splitlines(keepends=True)
    return [{**(_item(line) or {}), "bytes": len(line)} for line in lines], offset + len(whole)


def _item(line: bytes) -> dict[str, Any] | None:
    try:
        item = json.loads(line)
    except ValueError:  # torn by a power cut
        return None
    return item if isinstance(item, dict) else None


def _last_place(path: Path) -> tuple[int, int] | None:
    """The place of the last whole line; None where there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        item = _item(line)
        if item is not None and isinstance(item.get("place"), list):
            return (int(item["place"][0]), int(item["place"][1]))
    return (0, -1)
