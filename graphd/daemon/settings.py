"""Settings: the user's file, then the workspace's, which may only choose and lower (execution.md, Settings).

An unknown key or a value of the wrong type is an error with its line, and the last good settings stay.
"""

import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphd.base.text import said, t
from graphd.children.profiles import Models
from graphd.children.profiles.choosing import Agents
from graphd.daemon.agent_settings import GROUPS, Row, with_agents, with_workers
from graphd.daemon.agent_settings import SettingsRefused as SettingsRefused
from graphd.daemon.permission_rules import read_rules


@dataclass(slots=True, frozen=True)
class Settings:
    """What is in force. Units are in the names."""

    concurrency: int = 8
    memory_mb: int = 0  # 0: three quarters of the machine's
    linger_s: float = 900
    idle_minutes: float = 30
    settle_s: float = 30
    ask_parent_s: float = 120
    keepers_restart_daemon: bool = True
    detached_asks: str = "wait"
    denied: tuple[str, ...] = ()  # rules of `core.policy`, as are the next two
    asked: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    retention_days: int = 30
    transcript_mb: int = 64
    workspace_mb: int = 4096
    locale: str = ""
    log_level: str = "info"
    default_agent: str = ""
    advanced_model: str = ""
    standard_model: str = ""
    agents: Agents = field(default_factory=Agents)  # all that is said of agents, workers and models, put together


def memory_mb(settings: Settings) -> int:
    """The memory that agents may take together: what is set, else three quarters of the machine's."""
    return settings.memory_mb or int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 // 1024**2)


@dataclass(slots=True, frozen=True)
class Key:
    """One settings key: its field, its type, its bounds, and what the workspace's file may do with it."""

    path: str
    field: str
    kind: type
    low: float = 0
    high: float = 1e9
    workspace: str = "nothing"  # nothing, lower, choose, add
    choices: tuple[str, ...] = ()


KEYS: tuple[Key, ...] = (
    Key("concurrency", "concurrency", int, 1, 256, "lower"),
    Key("memoryMb", "memory_mb", int, 1, 1e7, "lower"),
    Key("lingerSeconds", "linger_s", float, 0, 1e7),
    Key("idleMinutes", "idle_minutes", float, 0, 1e6),
    Key("settleSeconds", "settle_s", float, 0, 3600),
    Key("askParentSeconds", "ask_parent_s", float, 0, 86_400),
    Key("keepersRestartDaemon", "keepers_restart_daemon", bool),
    Key("asks.detached", "detached_asks", str, workspace="lower", choices=("wait", "deny")),
    Key("permissions.deny", "denied", list, workspace="add"),
    Key("permissions.ask", "asked", list),
    Key("permissions.allow", "allowed", list),
    Key("retention.days", "retention_days", int, 0, 36_500, "lower"),
    Key("retention.transcriptMb", "transcript_mb", int, 1, 1e6, "lower"),
    Key("retention.workspaceMb", "workspace_mb", int, 1, 1e7, "lower"),
    Key("locale", "locale", str),
    Key("defaultAgent", "default_agent", str, workspace="choose"),
    Key("dag.model.advanced", "advanced_model", str, workspace="choose"),
    Key("dag.model.standard", "standard_model", str, workspace="choose"),
    Key("log.level", "log_level", str, choices=("debug", "info", "warning", "error")),
)
_BY_PATH = {key.path: key for key in KEYS}


def load_settings(user_file: Path, workspace_file: Path) -> Settings:
    """Read both files. Raises SettingsRefused; a missing file says nothing."""
    return combined(read_rows(user_file), read_rows(workspace_file), user_file)


def combined(users: list[Row], workspaces: list[Row], user_file: Path) -> Settings:
    """What the rows of both files come to. Raises SettingsRefused."""
    settings = Settings()
    for row in users:
        if row.path[0] not in GROUPS:
            settings = replace(settings, **{key_of(row).field: _checked(row)})
    for row in workspaces:
        if row.path[0] == "agents":
            raise _not_the_workspaces(row, user_file)
        if row.path[0] not in GROUPS:
            settings = _lowered(settings, row, user_file)
    return replace(settings, agents=_agents(settings, users, workspaces, user_file))


def _lowered(settings: Settings, row: Row, user_file: Path) -> Settings:
    key, value = key_of(row), _checked(row)
    held: Any = memory_mb(settings) if key.field == "memory_mb" else getattr(settings, key.field)
    if key.workspace == "nothing":
        raise _not_the_workspaces(row, user_file)
    if key.workspace == "add":
        both: Any = tuple(dict.fromkeys((*held, *value)))
        return replace(settings, **{key.field: both})
    is_lower = value == "deny" if key.choices else key.workspace == "choose" or value <= held
    return replace(settings, **{key.field: value}) if is_lower else settings


def _not_the_workspaces(row: Row, user_file: Path) -> SettingsRefused:
    hint = t("put {key} into {user_file}", key=row.name, user_file=user_file)
    return SettingsRefused(row.file, row.line, t("a workspace may not set {key}", key=row.name), hint)


def _agents(settings: Settings, users: list[Row], workspaces: list[Row], user_file: Path) -> Agents:
    """What both files come to for workers. Raises SettingsRefused for a name that is no agent."""
    profiles = with_agents([row for row in users if row.path[0] == "agents"])
    rows = [row for row in (*users, *workspaces) if row.path[0] == "workers"]
    foreign = [
        row
        for row in workspaces
        if row.path[0] == "workers" and len(row.path) == 3 and row.path[-1] not in ("agent", "permissions")
    ]
    if foreign:
        raise _not_the_workspaces(foreign[0], user_file)
    workers = with_workers(rows, profiles, lowering=workspaces)
    for row in (*users, *workspaces):
        if row.path == ("defaultAgent",):
            row.agent(row.value, profiles)
    models = Models(settings.advanced_model or None, settings.standard_model or None)
    return Agents(profiles, workers, settings.default_agent or None, models)


def read_rows(path: Path) -> list[Row]:
    """What a settings file says, a row for each value, none of them checked. Raises SettingsRefused where it is no
    JSON object.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as trouble:
        raise SettingsRefused(
            path, 1, t("can't be read ({trouble})", trouble=said(trouble)), t("make it a readable UTF-8 file")
        ) from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as trouble:
        raise SettingsRefused(
            path, trouble.lineno, t("not JSON: {trouble}", trouble=trouble.msg), t("mend the syntax")
        ) from None
    except (ValueError, RecursionError) as trouble:  # too many digits, too many levels
        raise SettingsRefused(path, 1, t("not JSON: {trouble}", trouble=said(trouble)), t("mend the syntax")) from None
    if not isinstance(value, dict):
        raise SettingsRefused(path, 1, t("the top must be an object"), t("write {…}"))
    return [Row(path, where, item, _line_of(text, where)) for where, item in _flatten(value, ())]


def _flatten(value: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, item in value.items():
        path = (*above, name)
        dotted = ".".join(path) + "."
        is_group = any(key.path.startswith(dotted) for key in KEYS) or (path[0] in GROUPS and len(path) <= 2)
        if isinstance(item, dict) and is_group:
            if len(path) == 2 and path[0] in GROUPS:
                yield path, item  # named at all, even where nothing is said of it
            yield from _flatten(item, path)
        else:
            yield path, item


def key_of(row: Row) -> Key:
    """The key that a row of a plain setting is about. Raises SettingsRefused with what it may have meant."""
    key = _BY_PATH.get(row.name)
    if key is not None:
        return key
    known = (*_BY_PATH, *GROUPS)
    near = difflib.get_close_matches(row.name, known, 1)
    hint = t("did you mean {name}?", name=near[0]) if near else t("known keys: {known}", known=", ".join(known))
    raise row.refused(t("unknown key {name}", name=row.name), hint)


def _checked(row: Row) -> Any:
    key, value = key_of(row), row.value
    if key.kind is list:
        return read_rules(row)
    is_number = key.kind in (int, float) and isinstance(value, int | float) and not isinstance(value, bool)
    if key.kind is int and isinstance(value, float):
        is_number = False
    got = t("got {value}", value=json.dumps(value))
    if not (is_number or (key.kind in (bool, str) and isinstance(value, key.kind))):
        raise row.refused(t("{name} must be of type {kind}", name=row.name, kind=key.kind.__name__), got)
    if is_number and not key.low <= value <= key.high:
        raise row.refused(
            t("{name} must be between {low:g} and {high:g}", name=row.name, low=key.low, high=key.high), got
        )
    if key.choices and value not in key.choices:
        choices = ", ".join(key.choices)
        raise row.refused(t("{name} must be one of {choices}", name=row.name, choices=choices), got)
    return value


def _line_of(text: str, path: tuple[str, ...]) -> int:
    """Where the last name of a path stands: each behind the one above it."""
    at = 0
    for name in path:
        found = re.compile(rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:").search(text, at)
        if found is None:
            break
        at = found.start()
    return text.count("\n", 0, at) + 1
