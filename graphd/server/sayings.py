"""What an agent said and did, as `observe` shows it: neighbouring words joined, secrets out, a cursor to go on from.

Source: spec protocol.md (`observe`); execution.md, Secrets and text.
"""

from pathlib import Path
from typing import Any, Final

from graphd.base.redaction import PLAIN
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.children.items import FILE, read_items
from graphd.server.project import Wire
from graphd.server.transcript import Printed

READ_LIMIT_BYTES: Final = 256 * 1024
WORDS: Final = ("text", "thought")
PREFIX: Final = "i"
BEGIN: Final = f"{PREFIX}0"
"""The cursor of one that has said nothing yet."""


def has_items(folder: Path) -> bool:
    """The attempt's agent talks: its items are shown, not its bytes."""
    return (folder / FILE).exists()


def read_sayings(folder: Path, cursor: str | None, *, limit: int) -> Printed:
    """At most `limit` items after `cursor`. Raises Refused `cursorInvalid`."""
    offset = _offset(cursor)
    items, end = read_items(folder, offset, READ_LIMIT_BYTES)
    shown: list[Wire] = []
    taken = offset
    for item in items:
        row = _row(item)
        is_joined = bool(shown) and row is not None and row["kind"] in WORDS and shown[-1]["kind"] == row["kind"]
        if row is not None and not is_joined and len(shown) == limit:
            return Printed(_redacted(shown), f"{PREFIX}{taken}")
        taken += item["bytes"]
        if row is None:
            continue
        if is_joined:
            shown[-1]["text"] += row["text"]
            continue
        if shown and shown[-1]["kind"] in WORDS and not shown[-1]["text"].endswith("\n"):
            shown[-1]["text"] += "\n"
        shown.append(row)
    return Printed(_redacted(shown), f"{PREFIX}{end}")


def _offset(cursor: str | None) -> int:
    digits = (cursor or f"{PREFIX}0").removeprefix(PREFIX)
    if not digits.isdecimal() or len(digits) > 18:
        raise Refused("cursorInvalid", t("this is no cursor of observe"), t("begin without one"))
    return int(digits)


def _row(item: dict[str, Any]) -> Wire | None:
    kind, at, text = item.get("kind"), item.get("at", 0), item.get("text")
    if kind in WORDS:
        return {"kind": kind, "at": at, "text": str(text or "")}
    tool = item.get("tool")
    if kind == "tool" and isinstance(tool, dict):
        title = str(tool.get("title") or tool.get("kind") or "tool")
        return {"kind": "tool", "at": at, "tool": title, "text": f"[{tool.get('status', 'pending')}] {title}\n"}
    if kind == "plan":
        return {"kind": "plan", "at": at}
    return {"kind": "text", "at": at, "text": f"[{text}]\n"} if text else None


def _redacted(rows: list[Wire]) -> list[Wire]:
    for row in rows:
        for name in ("text", "tool"):
            if name in row:
                row[name] = PLAIN.text(row[name])
    return rows
