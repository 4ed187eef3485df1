"""Git, read alone: what a work tree looks like. Short, bounded, repeatable commands that lock nothing and ask nobody.

A repository's own settings and hooks could have git run programs: those are off. Source: execution.md, Drivers (git).
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.children.identity import keepers, spawning

LIMIT_S: Final = 10.0
_SAFE: Final = (
    "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=false",
    "--no-optional-locks", "--no-pager",
)  # fmt: skip
_QUIET: Final = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
}  # fmt: skip
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class GitFailed(Exception):
    """Git is not there, took too long, or this is no work tree; the message is git's own."""


def git(folder: Path, *words: str, stdin: str = "", environment: Mapping[str, str] = _NOTHING) -> str:
    """What `git WORDS` prints in `folder`. GitFailed. Blocks for at most LIMIT_S.

    `stdin` and what is answered are in UTF-8; file names that are not come back as they went. `environment` is added.
    """
    program = shutil.which("git")
    if program is None:
        raise GitFailed("git is not on the PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = (program, *_SAFE, "-C", str(folder), *words)
    try:
        process = _spawned(words, {**kept, **_QUIET, **environment})
        out, err = _heard(process, stdin.encode("utf-8", "surrogateescape"))
    except (subprocess.TimeoutExpired, OSError) as trouble:
        raise GitFailed(str(trouble)) from trouble
    if process.returncode != 0:
        raise GitFailed(err.decode("utf-8", "replace").strip()[:500] or f"git ended with {process.returncode}")
    return out.decode("utf-8", "surrogateescape")


def _spawned(words: tuple[str, ...], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Among the keepers while it runs: every other child of a daemon is a stranger, and is ended."""
    with spawning:
        failpoint("git.spawn.before")
        process = subprocess.Popen(  # noqa: S603  # our own words; nothing of a child's is among them
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        failpoint("git.spawn.after")
        keepers.add(process.pid)
    return process


def _heard(process: "subprocess.Popen[bytes]", stdin: bytes) -> tuple[bytes, bytes]:
    """What it wrote on stdout and stderr, to its end. subprocess.TimeoutExpired."""
    try:
        return process.communicate(stdin, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        failpoint("git.kill.before")
        process.kill()
        failpoint("git.kill.after")
        process.communicate()
        raise
    finally:
        keepers.discard(process.pid)


def printable(text: str) -> str:
    """What git said, for people: bytes that are no UTF-8 are shown as such."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
