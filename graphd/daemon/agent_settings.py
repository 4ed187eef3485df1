"""The settings `agents.<name>{…}` and `workers.<name>{…}`: their keys, their checks, and what they come to.

Each row changes one value of a shipped profile or worker; an agent of another name is a new profile, which needs driver
and command. An unknown key is an error with a suggestion. Source: execution.md, Settings.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.profiles import PERMISSIONS, PROFILES, THINKING, TIERS, WORKERS, Headless, Profile, Worker

GROUPS: Final = ("agents", "workers")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_PLAIN: Final = Headless("plain")


class SettingsRefused(Exception):
    """A settings file can't be used. `line` is 1-based."""

    def __init__(self, path: Path, line: int, message: str, hint: str) -> None:
        super().__init__(f"{path}:{line}: {message}; {hint}")
        self.path = path
        self.line = line
        self.message = message
        self.hint = hint


@dataclass(slots=True, frozen=True)
class Row:
    """One value of a settings file, and where it stands."""

    file: Path
    path: tuple[str, ...]
    value: Any
    line: int

    @property
    def name(self) -> str:
        """As people write it."""
        return ".".join(self.path)

    @property
    def is_whole(self) -> bool:
        """It names an agent or a worker; a row of its own says each of its values."""
        return len(self.path) == 2 and isinstance(self.value, dict)

    def refused(self, message: str, hint: str) -> SettingsRefused:
        """The refusal of this row."""
        return SettingsRefused(self.file, self.line, message, hint)

    def known(self, word: Any, names: Collection[str], what: Callable[[str], str]) -> str:
        """`word`, which must be one of `names`. Raises SettingsRefused with what it may have meant."""
        if isinstance(word, str) and word in names:
            return word
        near = difflib.get_close_matches(word, names, 1) if isinstance(word, str) else []
        listed = t("there are {names}", names=", ".join(names))
        raise self.refused(what(str(word)), t("did you mean {name}?", name=near[0]) if near else listed)

    def agent(self, word: Any, profiles: Mapping[str, Profile]) -> str:
        """`word`, which must name an agent: a shell takes a script, never a prompt."""
        names = [profile.name for profile in profiles.values() if profile.driver != "shell"]
        return self.known(word, names, lambda word: t("there is no agent {name}", name=word))


class _Misfit(Exception):
    """What the value must be, for people."""


@dataclass(slots=True, frozen=True)
class Field:
    """One key of an agent or a worker: the field that it changes, and how its value is read."""

    name: str
    field: str
    read: Callable[[Any], Any]
    is_secret: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Misfit(t("a text that is not empty"))
    return value


def _text_or_null(value: Any) -> str | None:
    return None if value is None else _text(value)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word and "\0" not in word for word in value):
        raise _Misfit(t("a list of texts"))
    return tuple(value)


def _command(value: Any) -> tuple[str, ...]:
    words = _words(value)
    if not words:
        raise _Misfit(t("a list of texts, the program first"))
    return words


def _variables(value: Any) -> tuple[str, ...]:
    if not all(_VARIABLE.match(name) for name in _words(value)):
        raise _Misfit(t("a list of names of variables"))
    return tuple(value)


def _environment(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(_VARIABLE.match(k) and isinstance(v, str) for k, v in value.items()):
        raise _Misfit(t("an object of variables and their texts"))
    return tuple(value.items())


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Misfit(t("true or false"))
    return value


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _Misfit(t("a whole number from {low} to {high}", low=low, high=high))
        return value

    return read


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= 3600:
        raise _Misfit(t("a number of seconds from 1 to 3600"))
    return float(value)


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise _Misfit(t("one of {choices}", choices=", ".join(choices)))
        return str(value)

    return read


def _some_of(*choices: str) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        if not value or not set(_words(value)) <= set(choices):
            raise _Misfit(t("a list of some of {choices}", choices=", ".join(choices)))
        return tuple(value)

    return read


def _map_of(*names: str) -> Callable[[Any], dict[str, str]]:
    def read(value: Any) -> dict[str, str]:
        if not isinstance(value, dict) or not set(value) <= set(names) or not all(map(_is_text, value.values())):
            raise _Misfit(t("an object with texts for some of {names}", names=", ".join(names)))
        return value

    return read


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


AGENT_FIELDS: Final[dict[str, Field]] = {
    row.name: row
    for row in (
        Field("driver", "driver", _text),
        Field("command", "command", _command),
        Field("env", "env", _environment, is_secret=True),
        Field("passEnv", "pass_env", _variables),
        Field("home", "home", _text_or_null),
        Field("commandPrefix", "command_prefix", _words),
        Field("maxProcesses", "max_processes", _whole(1, 256)),
        Field("memMb", "mem_mb", _whole(1, 1_000_000)),
        Field("initTimeoutS", "init_timeout_s", _seconds),
        Field("restore", "restore", _some_of("resume", "load", "none")),
        Field("setMode", "set_mode", _text_or_null),
        Field("reports", "reports", _one_of("tokens", "cost", "both", "none")),
        Field("asksPermission", "asks_permission", _flag),
        Field("models", "models", _map_of(*TIERS)),
        Field("thinking", "thinking", _map_of(*THINKING)),
        Field("opens", "opens", _words),
        Field("estimate", "estimate", _whole(0, 1_000_000_000)),
    )
}
WORKER_FIELDS: Final[dict[str, Field]] = {
    row.name: row
    for row in (
        Field("agent", "agent", _text),
        Field("permissions", "permissions", _one_of(*PERMISSIONS)),
        Field("model", "model", _text),
        Field("thinking", "thinking", _one_of(*THINKING)),
        Field("mode", "mode", _text),
    )
}


def _value(row: Row, fields: Mapping[str, Field]) -> tuple[Field, Any]:
    """The field that a row of three names changes, and its value. Raises SettingsRefused."""
    if len(row.path) != 3:
        raise row.refused(t("{name} must be an object", name=row.name), t("write {…}"))
    found = fields[row.known(row.path[2], fields, lambda _: t("unknown key {name}", name=row.name))]
    try:
        return found, found.read(row.value)
    except _Misfit as misfit:
        shown = type(row.value).__name__ if found.is_secret else json.dumps(row.value)
        message = t("{name} must be {what}", name=row.name, what=misfit.args[0])
        raise row.refused(message, t("got {value}", value=shown)) from None


def with_agents(rows: list[Row]) -> dict[str, Profile]:
    """The shipped profiles with what the rows say, new ones behind them. Raises SettingsRefused."""
    profiles = dict(PROFILES)
    for row in rows:
        if row.is_whole:
            profiles.setdefault(row.path[1], _fresh(row))
    for row in rows:
        if row.is_whole:
            continue
        if len(row.path) > 1 and row.path[1] == "shell":
            raise row.refused(t("the agent shell can't be changed"), t("name another agent"))
        found, value = _value(row, AGENT_FIELDS)
        profile = profiles[row.path[1]]
        profiles[row.path[1]] = replace(profile, **{found.field: _merged(profile, found.field, value)})
    return profiles


def _merged(profile: Profile, field: str, value: Any) -> Any:
    """Maps are taken key by key: what a file does not name stays as it ships."""
    if field == "models":
        return replace(profile.models, **value)
    if field in ("thinking", "env"):
        return tuple((dict(getattr(profile, field)) | dict(value)).items())
    return value


def _fresh(row: Row) -> Profile:
    """A new agent, from its driver and its command. One whose program ships with a profile takes over what it is."""
    name = row.path[1]
    if not _NAME.match(name):
        raise row.refused(t("{name} can't be the name of an agent", name=name), t("use letters, digits, - and _"))
    lacking = [key for key in ("driver", "command") if key not in row.value]
    if name not in PROFILES and lacking:
        near = difflib.get_close_matches(name, PROFILES, 1)
        hint = t("a new agent needs driver and command")
        if near:
            hint = t("did you mean {name}? {more}", name=near[0], more=hint)
        raise row.refused(t("there is no agent {name}", name=name), hint)
    driver, command = row.value.get("driver"), row.value.get("command")
    program = command[0].rpartition("/")[2] if isinstance(command, list) and command and _is_text(command[0]) else ""
    alike = [p for p in PROFILES.values() if p.driver == driver and p.program == program and driver == "command"]
    made = Profile(
        name=name, driver="acp", command=(), install=t("the program that agents.{agent}.command names", agent=name),
        headless=_PLAIN if driver == "command" else None, asks_permission=driver == "acp",
        restore=("resume", "load") if driver == "acp" else ("none",), origin="settings",
    )  # fmt: skip
    return replace(alike[0], name=name, origin="settings") if alike else made


def with_workers(
    rows: list[Row], profiles: Mapping[str, Profile], *, lowering: Collection[Row] = ()
) -> dict[str, Worker]:
    """The built-in workers with what the rows say; those of `lowering` never raise permissions. SettingsRefused."""
    workers = dict(WORKERS)
    names = [name for name in WORKERS if name != "shell"]
    for row in rows:
        if len(row.path) > 1:
            row.known(row.path[1], names, lambda name: t("there is no worker {name} to set", name=name))
        if row.is_whole:
            continue
        found, value = _value(row, WORKER_FIELDS)
        held = workers[row.path[1]]
        if found.field == "agent":
            row.agent(value, profiles)
        if found.field == "permissions" and row in lowering:
            value = min(value, held.permissions or value, key=PERMISSIONS.index)
        workers[row.path[1]] = replace(held, **{found.field: value})
    return workers


def changed_rows(rows: list[Row]) -> dict[str, Any]:
    """Of rows that were taken: what is said of agents and workers, by name, secrets apart."""
    fields = {"agents": AGENT_FIELDS, "workers": WORKER_FIELDS}
    shown = {}
    for row in rows:
        if row.path[0] in GROUPS and len(row.path) == 3:
            is_secret = fields[row.path[0]][row.path[2]].is_secret
            shown[row.name] = sorted(row.value) if is_secret else row.value
    return shown
