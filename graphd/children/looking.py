"""Before a session goes on: what the work tree looks like now, and what the session said last.

History is no proof of effects, so both are told to whoever goes on. Source: execution.md, Recovery.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from graphd.children.driver import Order
from graphd.children.git import GitFailed, git, printable
from graphd.children.items import FILE, read_items
from graphd.children.telling import told_again, told_of_before

LINES_LIMIT: Final = 100
FOUND_LIMIT: Final = 20
SAID_BYTES: Final = 12 << 10


def look_again(order: Order) -> Order:
    """The order with what a session that goes on, or one that replaces it, is told. Blocks for git, at most seconds."""
    before = order.before
    if before is None:
        return order
    tree = work_tree(order.cwd, before.contract.artifacts)
    told = told_again(cause=before.cause, tree=tree, contract=before.contract, reader=before.reader)
    return replace(order, interrupted=told, summary=told_of_before(told, said_last(before.folder)))


def work_tree(folder: Path, artifacts: tuple[str, ...]) -> str:
    """What git says of a folder, and which declared files are there."""
    try:
        said = printable(git(folder, "status", "--short", "--branch", "--untracked-files=normal", "--", "."))
        lines = said.splitlines()
        left = len(lines) - LINES_LIMIT
        lines = ["git status:", *lines[:LINES_LIMIT], *([f"({left} more)"] if left > 0 else [])]
    except GitFailed as trouble:
        lines = [f"(git can't say what changed: {trouble})"]
    return "\n".join([*lines, *(_artifact(folder, pattern) for pattern in artifacts)])


def _artifact(folder: Path, pattern: str) -> str:
    """A declared file, or what its glob finds."""
    try:
        found = [path.relative_to(folder).as_posix() for path in islice(_matches(folder, pattern), FOUND_LIMIT)]
    except (OSError, ValueError, NotImplementedError):  # no such pattern for pathlib
        found = []
    return f"declared {pattern}: " + (", ".join(found) if found else "not there")


def _matches(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in folder.glob(pattern) if path.is_file())


def said_last(folder: Path) -> str:
    """The end of what an attempt said and did, as its items have it; empty where it said nothing."""
    try:
        offset = max(0, (folder / FILE).stat().st_size - 2 * SAID_BYTES)
        items, _ = read_items(folder, offset, 2 * SAID_BYTES)
    except OSError:
        return ""
    text = "".join(_words(item) for item in items).strip()
    return text.encode("utf-8", "replace")[-SAID_BYTES:].decode("utf-8", "ignore")


def _words(item: dict[str, Any]) -> str:
    kind, tool = item.get("kind"), item.get("tool")
    if kind == "text":
        return str(item.get("text") or "")
    if kind == "tool" and isinstance(tool, dict):
        return f"\n[tool {tool.get('status', 'pending')}] {tool.get('title') or tool.get('kind') or ''}\n"
    return ""
