"""Explicit run is consent for exactly the bytes that were read (spec execution.md, Trust 1).

The last bytes of a file that this user ran lie under the state folder, `ran/<hash of the real path>`. If a file differs
from them, a person at a terminal sees the difference and is asked once; without a terminal, or with `--yes`, it starts
at once.
"""

import contextlib
import hashlib
import os
import tempfile
from difflib import unified_diff
from pathlib import Path

import click

from graphd.base.failpoints import failpoint
from graphd.cli.exits import CommandRefused
from graphd.cli.options import colour
from graphd.cli.words import harmless

_DIFF_LINES = 200


def last_run(state: Path, file: Path) -> Path:
    """Where the last bytes of `file` are kept."""
    name = hashlib.sha256(os.fsencode(file.resolve()), usedforsecurity=False).hexdigest()[:32]
    return state / "ran" / name


def ask_if_changed(state: Path, file: Path, content: bytes, *, may_ask: bool) -> None:
    """Let the user look at what changed since the last run of `file`. Raises CommandRefused `untrusted` for a no."""
    kept = last_run(state, file)
    before = kept.read_bytes() if kept.is_file() else None
    if before is None or before == content or not may_ask:
        return
    click.echo(f"{file} changed since you last ran it:", err=True)
    for line in _difference(before, content):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(click.style(line, fg=style), err=True, color=colour())
    if not click.confirm("run it", default=True, err=True):
        raise CommandRefused("untrusted", "not run", f"graphd run {file} asks again; --yes starts at once")


def _difference(before: bytes, after: bytes) -> list[str]:
    old, new = (harmless(raw.decode(errors="replace")).splitlines() for raw in (before, after))
    lines = list(unified_diff(old, new, "last run", "now", lineterm=""))
    return (
        lines if len(lines) <= _DIFF_LINES else [*lines[:_DIFF_LINES], f"… and {len(lines) - _DIFF_LINES} more lines"]
    )


def remember(state: Path, file: Path, content: bytes) -> None:
    """Keep `content` as the last bytes of `file` that were run. Trouble is no reason to fail a run that began."""
    kept = last_run(state, file)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=kept.parent)
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
        failpoint("consent.rename.before")
        Path(temporary).replace(kept)
        failpoint("consent.rename.after")
