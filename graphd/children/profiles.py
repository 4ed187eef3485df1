"""Workers, the profiles that serve them, and whether the program of one is there.

A worker is what a node asks for; a profile is how one agent program is started. This version ships one profile that
runs: `shell`. Source: execution.md, Drivers (table of built-in workers).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from graphd.base.text import t


@dataclass(slots=True, frozen=True)
class Worker:
    """What a worker may do, and which of a profile's models it wants; None where that means nothing."""

    permissions: Literal["read", "edit"] | None
    model: Literal["standard", "advanced"] | None


@dataclass(slots=True, frozen=True)
class Profile:
    """How to start one agent program. `is_served`: this version has a driver for it."""

    name: str
    driver: str
    command: tuple[str, ...]
    is_served: bool
    install: str


WORKERS: Final[dict[str, Worker]] = {
    **dict.fromkeys(("explore", "plan", "research"), Worker("read", "standard")),
    **dict.fromkeys(("architect", "review", "verify", "arbiter"), Worker("read", "advanced")),
    **dict.fromkeys(("build", "debug", "prototype", "synthesize"), Worker("edit", "standard")),
    "shell": Worker(None, None),
}

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile("shell", "shell", ("/bin/sh",), True, t("a POSIX shell at /bin/sh")),
        Profile("opencode", "acp", ("opencode", "acp"), False, "npm install -g opencode-ai"),
        Profile("claude", "acp", ("claude-agent-acp",), False, "npm install -g @agentclientprotocol/claude-agent-acp"),
        Profile("codex", "acp", ("codex-acp",), False, "npm install -g @agentclientprotocol/codex-acp"),
        Profile("gemini", "acp", ("gemini", "--acp"), False, "npm install -g @google/gemini-cli"),
        Profile("qwen", "acp", ("qwen", "--acp"), False, "npm install -g @qwen-code/qwen-code"),
    )
}


def profile_of(worker: str) -> str | None:
    """The profile that serves a worker here; None when none does."""
    return "shell" if worker == "shell" else None


def find_program(name: str, search_path: str) -> Path | None:
    """The executable `name` on `search_path` (as in PATH), or itself where it is a path."""
    candidates = [Path(name)] if "/" in name else [Path(part) / name for part in search_path.split(os.pathsep) if part]
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


_WHOSE: Final = t("the environment of this graph")


def missing(worker: str, environment: Mapping[str, str], *, whose: str = _WHOSE) -> str | None:
    """Why nothing serves this worker, for people, or None: what to install, and which PATH, from whom, was searched."""
    if worker not in WORKERS:
        return t("{worker} is no worker; there are {names}", worker=worker, names=", ".join(WORKERS))
    if worker == "shell":
        program = PROFILES["shell"].command[0]
        if find_program(program, ""):
            return None
        return t("{program} is not there: install {install}", program=program, install=PROFILES["shell"].install)
    search_path = environment.get("PATH", os.defpath)
    later = [profile for profile in PROFILES.values() if not profile.is_served]
    present = [profile.name for profile in later if find_program(profile.command[0], search_path)]
    if present:
        found = t("found {names}, documented, not in this version", names=", ".join(present))
    else:
        found = t("no agent was found")
    names = ", ".join(profile.name for profile in later)
    return t(
        "the worker {worker} needs an agent, and this version runs none but shell ({names} are documented, "
        "not in this version); {found} on PATH={path} of {whose}",
        worker=worker, names=names, found=found, path=search_path, whose=whose,
    )  # fmt: skip
