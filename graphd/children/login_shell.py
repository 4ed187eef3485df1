"""PATH as the user's login shell has it, for clients that no shell started: one bounded run, remembered.

An editor started from a desktop has the desktop's PATH, which finds no agent and no tool of the user's. Nothing but
PATH is taken. Source: execution.md, Environment.
"""

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.children.identity import keepers, spawning

LIMIT_S: Final = 3.0
OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
_known: dict[tuple[str, str], str | None] = {}


def with_login_path(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with the login shell's PATH. Blocks for at most `LIMIT_S`, once per shell and home.

    Entries that only the caller has (a virtual environment, a CI's tools) stay, before the others: someone put them
    there. Where the shell says nothing in time, PATH stays as it is.
    """
    found = login_path(environment)
    if not found:
        return dict(environment)
    listed = found.split(os.pathsep)
    own = [part for part in environment.get("PATH", "").split(os.pathsep) if part and part not in listed]
    return {**environment, "PATH": os.pathsep.join([*own, *listed])}


def login_path(environment: Mapping[str, str]) -> str | None:
    """What PATH is in the login shell of the user of `environment`; None where it can't be known."""
    home = environment.get("HOME") or str(Path.home())
    shell = environment.get("SHELL") or _shell_of_user()
    key = (shell, home)
    if key not in _known:
        _known[key] = _ask(shell, {**environment, "HOME": home, "SHELL": shell})
    return _known[key]


def _shell_of_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def _ask(shell: str, environment: dict[str, str]) -> str | None:
    """One run of `env` in it. `env -0` would be exact, but PATH has no line breaks and old systems have no `-0`."""
    if not Path(shell).is_absolute() or not os.access(shell, os.X_OK):
        return None
    try:
        process = _spawned(shell, environment)
    except OSError:
        return None
    try:
        said = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        said = b""
    finally:
        _end(process)
    return _path_in(said[-OUTPUT_LIMIT_BYTES:])


def _spawned(shell: str, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Among the keepers while it runs: every other child of a daemon is a stranger, and is ended."""
    with spawning:
        failpoint("login_shell.spawn.before")
        process = subprocess.Popen(  # noqa: S603 - the user's own login shell, with a fixed command
            [shell, "-l", "-c", "command env"],
            env={"PATH": os.defpath, **environment},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        failpoint("login_shell.spawn.after")
        keepers.add(process.pid)
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Whatever it started goes with it: profiles start programs that hold the pipe open."""
    failpoint("login_shell.signal.before")
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    failpoint("login_shell.signal.after")
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    keepers.discard(process.pid)


def _path_in(said: bytes) -> str | None:
    """The value of the last `PATH=` line: profiles may print anything before."""
    lines = [line for line in said.splitlines() if line.startswith(b"PATH=")]
    if not lines:
        return None
    parts = [part for part in os.fsdecode(lines[-1][5:]).split(os.pathsep) if part.startswith("/")]
    return os.pathsep.join(parts) or None
