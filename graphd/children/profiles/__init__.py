"""Workers, the profiles that serve them, and whether the program of one is there.

A worker is what a node asks for; a profile is how one agent program is started. Source: execution.md, Drivers (table
of built-in workers).
"""

from typing import Final

from graphd.base.text import t
from graphd.children.profiles.agents import TALKING
from graphd.children.profiles.headless import HEADLESS
from graphd.children.profiles.shape import (
    PERMISSIONS,
    THINKING,
    TIERS,
    Headless,
    Models,
    Profile,
    Weather,
    Worker,
)

__all__ = [
    "PASS_NAMES",
    "PERMISSIONS",
    "PROFILES",
    "SHELL",
    "THINKING",
    "TIERS",
    "WORKERS",
    "Headless",
    "Models",
    "Profile",
    "Weather",
    "Worker",
]

WORKERS: Final[dict[str, Worker]] = {
    **dict.fromkeys(("explore", "plan", "research"), Worker("read", "standard")),
    **dict.fromkeys(("architect", "review", "verify", "arbiter"), Worker("read", "advanced")),
    **dict.fromkeys(("build", "debug", "prototype", "synthesize"), Worker("edit", "standard")),
    "shell": Worker(None, None, agent="shell"),
}

SHELL: Final = Profile(
    name="shell", driver="shell", command=("/bin/sh",), install=t("a POSIX shell at /bin/sh"), standing="tested",
    version_flag="", mem_mb=50, reports="not_applicable", asks_permission=False, estimate=0,
)  # fmt: skip

PROFILES: Final[dict[str, Profile]] = {profile.name: profile for profile in (SHELL, *TALKING, *HEADLESS)}

PASS_NAMES: Final = frozenset(name for profile in PROFILES.values() for name in profile.pass_env)
"""Variables that shipped profiles ask for; the greeting has the same for clients, which know no profile."""
