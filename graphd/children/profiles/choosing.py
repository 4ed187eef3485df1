"""Which profile serves a worker, and with which model, thinking, mode and permissions.

Looks at files only to find programs. Source: execution.md, Drivers, People (an agent that does not ask may serve `full`
only).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from graphd.base.text import either, t
from graphd.children.profiles import PROFILES, TIERS, WORKERS
from graphd.children.profiles.shape import PERMISSIONS, Models, Profile, Worker
from graphd_protocol.states import Permissions

NAMED_LIMIT: Final = 3
_WHOSE: Final = t("the environment of this graph")


@dataclass(slots=True, frozen=True)
class Agents:
    """The profiles and workers in force: the shipped ones with what the settings say."""

    profiles: Mapping[str, Profile] = field(default_factory=lambda: PROFILES)
    workers: Mapping[str, Worker] = field(default_factory=lambda: WORKERS)
    default: str | None = None
    models: Models = Models()


@dataclass(slots=True, frozen=True)
class Wish:
    """What a node's own definition asks of its worker; None: what the worker has."""

    permissions: Permissions | None = None
    model: str | None = None
    thinking: str | None = None
    mode: str | None = None


@dataclass(slots=True, frozen=True)
class Terms:
    """What an agent is started with. None: it decides, or it means nothing to it."""

    permissions: Permissions | None
    model: str | None
    thinking: str | None
    mode: str | None


@dataclass(slots=True, frozen=True)
class Unserved:
    """Nothing serves a worker: why, for people, and where was looked."""

    reason: str
    searched: tuple[str, ...] = ()


def find_program(name: str, search_path: str) -> Path | None:
    """The executable `name` on `search_path` (as in PATH), or itself where it is a path."""
    if not name:
        return None
    candidates = [Path(name)] if "/" in name else [Path(part) / name for part in search_path.split(os.pathsep) if part]
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def found(profile: Profile, search_path: str) -> Path | None:
    """The agent's program, where it and what wraps it are there. One that was given a path of its own is searched on
    that PATH.
    """
    own = dict(profile.env).get("PATH", search_path)
    paths = [find_program(program, own) for program in profile.programs]
    return paths[-1] if paths and None not in paths else None


def terms(agents: Agents, profile: Profile, worker: str, wish: Wish) -> Terms:
    """The node's wishes over the worker's, in the agent's own words."""
    held = agents.workers[worker]
    permissions = wish.permissions or held.permissions
    level = wish.thinking or held.thinking
    return Terms(
        permissions=permissions,
        model=_model(agents, profile, wish.model or held.model),
        thinking=next((value for name, value in profile.thinking if name == level), None),
        mode=wish.mode or held.mode or profile.set_mode,
    )


def _model(agents: Agents, profile: Profile, wanted: str | None) -> str | None:
    """A tier becomes the settings' model of that tier, else the profile's; a name stays as it is."""
    if wanted is None or wanted not in TIERS:
        return wanted
    found: str | None = getattr(agents.models, wanted) or getattr(profile.models, wanted)
    return found


def may_not_serve(profile: Profile, permissions: Permissions | None) -> str | None:
    """Why this agent may not be started with these permissions, or None."""
    if profile.asks_permission or permissions in (None, "full"):
        return None
    return t(
        "{agent} does not ask before it acts, so it may serve permissions full only, and this asks for {permissions}",
        agent=profile.name, permissions=permissions,
    )  # fmt: skip


def homeless(profile: Profile) -> str | None:
    """That the home it is given is not there, or None."""
    home = os.path.expanduser(profile.home) if profile.home is not None else None  # noqa: PTH111 - of a text
    if home is None or Path(home).is_dir():
        return None
    return t("the home of {agent}, {home}, is no folder", agent=profile.name, home=home)


def serve(
    agents: Agents, worker: str, search_path: str, *, whose: str = _WHOSE, permissions: Permissions | None = None
) -> Profile | Unserved:
    """The profile for a worker: the one that its settings name, else the default, else the first installed.

    `permissions`: the least that any of its nodes asks for, where that is not the worker's own.
    """
    held = agents.workers.get(worker)
    if held is None:
        return Unserved(t("{worker} is no worker; there are {names}", worker=worker, names=", ".join(agents.workers)))
    wanted = permissions or held.permissions
    folders = tuple(part for part in search_path.split(os.pathsep) if part)
    named = held.agent or agents.default
    if named is not None:
        profile = agents.profiles[named]
        if found(profile, search_path) is None:
            return Unserved(_not_found(worker, profile, search_path, whose), folders)
        refusal = homeless(profile) or may_not_serve(profile, wanted)
        return profile if refusal is None else Unserved(refusal, folders)
    return _first_installed(agents, worker, search_path, whose=whose, permissions=wanted)


def _first_installed(
    agents: Agents, worker: str, search_path: str, *, whose: str, permissions: Permissions | None
) -> Profile | Unserved:
    refusals = []
    for profile in agents.profiles.values():
        if profile.driver == "shell" or found(profile, search_path) is None:
            continue
        refusal = homeless(profile) or may_not_serve(profile, permissions)
        if refusal is None:
            return profile
        refusals.append(refusal)
    folders = tuple(part for part in search_path.split(os.pathsep) if part)
    if refusals:
        return Unserved(refusals[0], folders)
    some = [profile for profile in agents.profiles.values() if profile.driver != "shell" and profile.command]
    install = either([t("{agent} ({how})", agent=p.name, how=p.install) for p in some[:NAMED_LIMIT]])
    reason = t(
        "the worker {worker} needs an agent, and none was found on PATH={path} of {whose}; install {install}",
        worker=worker, path=search_path, whose=whose, install=install,
    )  # fmt: skip
    return Unserved(reason, folders)


def _not_found(worker: str, profile: Profile, search_path: str, whose: str) -> str:
    if not profile.command:
        return t("the agent {agent} needs agents.{agent}.command in the settings", agent=profile.name)
    lacking = next(p for p in profile.programs if find_program(p, dict(profile.env).get("PATH", search_path)) is None)
    if "/" in lacking:
        return t("{program} is not there: install {install}", program=lacking, install=profile.install)
    return t(
        "the worker {worker} is served by {agent}, and its program {program} was not found on PATH={path} of {whose}; "
        "install it with {install}",
        worker=worker, agent=profile.name, program=lacking, path=search_path, whose=whose, install=profile.install,
    )  # fmt: skip


def least(permissions: list[Permissions]) -> Permissions | None:
    """The least of several; None where there is none."""
    return min(permissions, key=PERMISSIONS.index) if permissions else None
