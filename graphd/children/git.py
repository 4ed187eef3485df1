"""Git, read alone: what a work tree looks like. Short, bounded, repeatable commands that lock nothing and ask nobody.

A repository's own settings could have git run programs: those are turned off. Source: execution.md, Drivers (git).
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from graphd.base.failpoints import failpoint

LIMIT_S: Final = 10.0
_SAFE: Final = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-optional-locks", "--no-pager")
_QUIET: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}


class GitFailed(Exception):
    """Git is not there, took too long, or this is no work tree; the message is git's own."""


def git(folder: Path, *words: str) -> str:
    """What `git WORDS` prints in `folder`. GitFailed. Blocks for at most LIMIT_S."""
    program = shutil.which("git")
    if program is None:
        raise GitFailed("git is not on the PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        failpoint("git.spawn.before")
        ran = subprocess.run(  # noqa: S603  # our own words; nothing of a child's is among them
            [program, *_SAFE, "-C", str(folder), *words], env={**kept, **_QUIET}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        failpoint("git.spawn.after")
    except (subprocess.TimeoutExpired, OSError) as trouble:
        raise GitFailed(str(trouble)) from trouble
    if ran.returncode != 0:
        raise GitFailed(ran.stderr.decode("utf-8", "replace").strip()[:500] or f"git ended with {ran.returncode}")
    return ran.stdout.decode("utf-8", "replace")
