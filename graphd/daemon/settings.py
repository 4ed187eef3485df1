"""Settings: the user's file, then the workspace's, which may only lower limits (execution.md, Settings).

An unknown key or a value of the wrong type is an error with its line, and the last good settings stay.
"""

import difflib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphd.base.text import said, t


class SettingsRefused(Exception):
    """A settings file can't be used. `line` is 1-based."""

    def __init__(self, path: Path, line: int, message: str, hint: str) -> None:
        super().__init__(f"{path}:{line}: {message}; {hint}")
        self.path = path
        self.line = line
        self.message = message
        self.hint = hint


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
    retention_days: int = 30
    transcript_mb: int = 64
    workspace_mb: int = 4096
    locale: str = ""
    log_level: str = "info"


@dataclass(slots=True, frozen=True)
class Key:
    """One settings key: its field, its type, its bounds, and what the workspace's file may do with it."""

    path: str
    field: str
    kind: type
    low: float = 0
    high: float = 1e9
    workspace: str = "nothing"  # nothing, lower
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
    Key("retention.days", "retention_days", int, 0, 36_500, "lower"),
    Key("retention.transcriptMb", "transcript_mb", int, 1, 1e6, "lower"),
    Key("retention.workspaceMb", "workspace_mb", int, 1, 1e7, "lower"),
    Key("locale", "locale", str),
    Key("log.level", "log_level", str, choices=("debug", "info", "warning", "error")),
)
LATER = ("agents", "workers", "defaultAgent", "dag.model")
_BY_PATH = {key.path: key for key in KEYS}


def load_settings(user_file: Path, workspace_file: Path) -> Settings:
    """Read both files. Raises SettingsRefused; a missing file says nothing."""
    settings = Settings()
    for key, value, _ in _read(user_file):
        settings = replace(settings, **{key.field: value})
    for key, value, line in _read(workspace_file):
        held = getattr(settings, key.field)
        if key.workspace == "nothing":
            hint = t("put {key} into {user_file}", key=key.path, user_file=user_file)
            raise SettingsRefused(workspace_file, line, t("a workspace may not set {key}", key=key.path), hint)
        is_lower = value == "deny" if key.choices else held == 0 or value <= held
        if is_lower:
            settings = replace(settings, **{key.field: value})
    return settings


def _read(path: Path) -> list[tuple[Key, Any, int]]:
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
    if not isinstance(value, dict):
        raise SettingsRefused(path, 1, t("the top must be an object"), t("write {…}"))
    return [_check(path, text, name, item) for name, item in _flatten(value)]


def _flatten(value: dict[str, Any]) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, item in value.items():
        is_group = any(key.path.startswith(f"{name}.") for key in KEYS)
        if isinstance(item, dict) and is_group:
            rows += [(f"{name}.{inner}", inner_value) for inner, inner_value in item.items()]
        else:
            rows.append((name, item))
    return rows


def _check(path: Path, text: str, name: str, value: Any) -> tuple[Key, Any, int]:
    line = _line_of(text, name.rpartition(".")[2])
    key = _BY_PATH.get(name)
    if key is None:
        if name in LATER:
            raise SettingsRefused(
                path,
                line,
                t("{name} is not in this version", name=name),
                t("only shell workers run in this version; remove it"),
            )
        near = difflib.get_close_matches(name, _BY_PATH, 1)
        hint = t("did you mean {name}?", name=near[0]) if near else t("known keys: {known}", known=", ".join(_BY_PATH))
        raise SettingsRefused(path, line, t("unknown key {name}", name=name), hint)
    is_number = key.kind in (int, float) and isinstance(value, int | float) and not isinstance(value, bool)
    if key.kind is int and isinstance(value, float):
        is_number = False
    if not (is_number or (key.kind in (bool, str) and isinstance(value, key.kind))):
        raise SettingsRefused(
            path,
            line,
            t("{name} must be of type {kind}", name=name, kind=key.kind.__name__),
            t("got {value}", value=json.dumps(value)),
        )
    if is_number and not key.low <= value <= key.high:
        raise SettingsRefused(
            path,
            line,
            t("{name} must be between {low:g} and {high:g}", name=name, low=key.low, high=key.high),
            t("got {value}", value=value),
        )
    if key.choices and value not in key.choices:
        raise SettingsRefused(
            path,
            line,
            t("{name} must be one of {choices}", name=name, choices=", ".join(key.choices)),
            t("got {value}", value=value),
        )
    return key, value, line


def _line_of(text: str, name: str) -> int:
    found = re.search(rf'"{re.escape(name)}"\s*:', text)
    return text.count("\n", 0, found.start()) + 1 if found else 1
