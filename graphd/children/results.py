"""What of a captured result stands in the database and before people, and why a process ended as it did."""

import json
import re
import signal
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.journal import read_err
from graphd.core.model import Output

ERR_LIMIT: Final = 1 << 20
INLINE_LIMIT: Final = 64 << 10
REASON_LIMIT: Final = 2 << 10
CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def inline(beginning: bytes, total_bytes: int, media_type: str) -> Output:
    """The output whose first INLINE_LIMIT bytes are `beginning`."""
    return Output(_text(beginning), total_bytes, media_type, is_cut=total_bytes > len(beginning))


def exit_reason(folder: Path, exit_record: dict[str, Any]) -> str:
    """How a process ended, with the end of its stderr, for people. Blocks."""
    if exit_record.get("execError"):
        return t("could not be started: {trouble}", trouble=exit_record["execError"])
    total = exit_record["errBytes"]
    start = max(0, total - REASON_LIMIT)
    tail = read_err(folder, start, total - start, total=total, limit_bytes=ERR_LIMIT)
    said = printable(tail.decode("utf-8", "replace")).strip()
    if exit_record["signal"] is not None:
        name = _signal_name(exit_record["signal"])
        return t("ended by {signal}: {said}", signal=name, said=said) if said else t("ended by {signal}", signal=name)
    code = exit_record["code"]
    return t("exit code {code}: {said}", code=code, said=said) if said else t("exit code {code}", code=code)


def _signal_name(number: int) -> str:
    """As people write it; those for real time have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def printable(text: str) -> str:
    """Without control characters and escape sequences, newline and tab apart."""
    return CONTROL.sub("", text)


def _text(content: bytes) -> str:
    """For the database and for people: a character cut at the bound is dropped, what is no UTF-8 or NUL is replaced."""
    whole = content
    for _ in range(3):  # a character has 4 bytes at most
        try:
            return whole.decode().replace("\0", "\ufffd")
        except UnicodeDecodeError as trouble:
            if trouble.end < len(content) or len(content) < INLINE_LIMIT:
                break
            whole = whole[:-1]
    return content.decode("utf-8", "replace").replace("\0", "\ufffd")


def is_json(line: bytes) -> bool:
    """An object or an array and nothing else; a lone word, number or string is text."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
