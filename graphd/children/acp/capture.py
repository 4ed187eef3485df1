"""A turn's result: its last message, or the JSON in it where a contract wants JSON.

Text is not parsed for more than that: agents write other things than the answer into it, and an exact result comes by
`submit_result`. Source: execution.md, How a turn ends; research agents.md §3.
"""

import re
from pathlib import Path
from typing import Final

from graphd.children.acp.state import Captured, Turn
from graphd.children.environment import write_private
from graphd.children.results import INLINE_LIMIT, inline, is_json
from graphd.core.model import Output

_FENCED: Final = re.compile(r"^[ \t]*```[A-Za-z0-9_-]*[ \t]*\n(.*?)\n[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def last_message(turn: Turn) -> str:
    """The last message with words in it, stripped; empty where there is none."""
    return "".join(turn.parts).strip() or "".join(turn.before).strip()


def as_json(message: str) -> str | None:
    """The JSON object or array that a message is or ends with: all of it, its last fenced block, its last line."""
    fenced = _FENCED.findall(message)
    candidates = [message, *reversed(fenced), message.rpartition("\n")[2]]
    return next((found.strip() for found in candidates if is_json(found.strip().encode("utf-8", "replace"))), None)


def capture(turn: Turn, round_number: int, *, is_contracted: bool) -> Captured | None:
    """The result of a turn; None where it lacks what was asked for. A contract is checked elsewhere, here only that
    there is JSON to check.
    """
    message = last_message(turn)
    found = as_json(message) if is_contracted else (message if is_json(message.encode("utf-8", "replace")) else None)
    if found is None and is_contracted and not turn.has_submitted:
        return None
    if not message and not turn.has_submitted:
        return None
    text = found if found is not None else message
    total = len(text.encode("utf-8", "replace"))
    return Captured(round_number, text, total, "text/plain" if found is None else "application/json")


def submitted_path(folder: Path, seq: int) -> Path:
    """Where the result lies that was handed in during the turn of the prompt `seq`."""
    return folder / f"submitted.{seq}"


def is_handed_in(folder: Path, seq: int) -> bool:
    """A result came by `submit_result` while that turn ran. After its end no file of that name is made any more."""
    return submitted_path(folder, seq).exists()


def handed_in(folder: Path, seq: int, round_number: int) -> Captured:
    """The result that was handed in, whatever the last message says. Blocks for a read of the page cache."""
    content = submitted_path(folder, seq).read_bytes()
    media_type = "application/json" if is_json(content) else "text/plain"
    return Captured(round_number, content.decode("utf-8", "replace"), len(content), media_type)


def output_of(captured: Captured) -> Output:
    """As the database takes it."""
    content = captured.text.encode("utf-8", "replace")
    return inline(content[:INLINE_LIMIT], captured.total_bytes, captured.media_type)


def keep(folder: Path, captured: Captured, name: str) -> None:
    """Write the whole result to a file of the attempt, durably. Blocks."""
    write_private(folder / f"{name}.new", captured.text.encode("utf-8", "replace"), becomes=folder / name)
