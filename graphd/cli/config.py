"""`graphd config where | get | set | check`: the settings files, and what they come to."""

import json
import re
from pathlib import Path
from typing import Any, Final

import click

from graphd.base.failpoints import failpoint
from graphd.base.text import t
from graphd.cli.exits import OK, USAGE, CommandEnded, CommandRefused
from graphd.cli.options import Group, colour, command, json_option, print_json, table
from graphd.cli.talk import root_of
from graphd.cli.words import harmless

Wire = dict[str, Any]
FILE: Final = "settings.json"


@click.group("config", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def config_command() -> None:
    """Show, change and check the settings: the user's file, then the workspace's, which may only lower limits.

    Examples:
      graphd config get
      graphd config set concurrency 4
    """


def files(workspace: Path | None) -> tuple[Path, Path]:
    """The user's settings file, and the workspace's."""
    from graphd.client.paths import config_folder

    return Path(config_folder()) / FILE, Path(root_of(workspace)) / ".agents" / FILE


# ---- where, check -------------------------------------------------------------------------------------------------


@command("where")
@json_option("[{source, path, exists}]")
def where_command(as_json: bool, workspace: Path | None) -> None:
    """Say where the settings files lie.

    Examples:
      graphd config where
    """
    user, ours = files(workspace)
    rows = [{"source": "user", "path": str(user), "exists": user.is_file()},
            {"source": "workspace", "path": str(ours), "exists": ours.is_file()}]  # fmt: skip
    if as_json:
        print_json(rows)
        return
    table([[str(row["source"]), str(row["path"]), "" if row["exists"] else "(not there)"] for row in rows])


@command("check")
@json_option("[{path, line, message, hint}]")
def check_command(as_json: bool, workspace: Path | None) -> None:
    """Check both files. Exit code 2 where one can't be used.

    Examples:
      graphd config check
    """
    both = files(workspace)
    found = [trouble for path in both if (trouble := _trouble(path, both))]
    if as_json:
        print_json(found)
    for row in [] if as_json else found:
        click.echo(f"{row['path']}:{row['line']}: {harmless(row['message'])}\n    {harmless(row['hint'])}")
    if not found and not as_json:
        click.echo(click.style("✓", fg="green") + " " + t("the settings are in order"), color=colour())
    raise CommandEnded(USAGE if found else OK)


def _trouble(path: Path, both: tuple[Path, Path]) -> Wire | None:
    """What is wrong with one of the two files."""
    from graphd.daemon.settings import SettingsRefused, load_settings

    nowhere = path.parent / "no-such-file"
    try:
        load_settings(path, nowhere) if path == both[0] else load_settings(nowhere, path)
    except SettingsRefused as refusal:
        return {"path": str(path), "line": refusal.line, "message": refusal.message, "hint": refusal.hint}
    return None


# ---- get ----------------------------------------------------------------------------------------------------------


@command("get")
@click.argument("key", required=False)
@json_option("{key: {value, source, default}}, or one of them,")
def get_command(key: str | None, as_json: bool, workspace: Path | None) -> None:
    """Print the setting KEY as it is in force, or all of them with where each comes from.

    Examples:
      graphd config get
      graphd config get concurrency
    """
    from graphd.daemon.settings import SettingsRefused

    try:
        rows = _rows(*files(workspace))
    except SettingsRefused as refusal:
        raise CommandRefused("usage", f"{refusal.path}:{refusal.line}: {refusal.message}", refusal.hint) from None
    if key is not None and key not in rows:
        raise _unknown(key, list(rows))
    if as_json:
        print_json(rows if key is None else rows[key])
    elif key is not None:
        click.echo(_shown(rows[key]["value"]))
    else:
        table([[name, _shown(row["value"]), row["source"]] for name, row in rows.items()], ["KEY", "VALUE", "FROM"])


def _rows(user: Path, ours: Path) -> Wire:
    """Every plain setting, and what the files say of agents and workers. Raises SettingsRefused."""
    from graphd.daemon.agent_settings import changed_rows
    from graphd.daemon.settings import KEYS, Settings, load_settings, read_rows

    default, alone, both = Settings(), load_settings(user, user.parent / "no-such-file"), load_settings(user, ours)
    set_by_user = {row.name for row in read_rows(user)}
    rows: Wire = {}
    for item in KEYS:
        value, before = getattr(both, item.field), getattr(alone, item.field)
        source = "workspace" if value != before else "user" if item.path in set_by_user else "default"
        rows[item.path] = {"value": value, "source": source, "default": getattr(default, item.field)}
    for source, path in (("user", user), ("workspace", ours)):
        for name, value in changed_rows(read_rows(path)).items():
            rows[name] = {"value": value, "source": source, "default": None}
    return rows


def _shown(value: Any) -> str:
    return harmless(value) if isinstance(value, str) else json.dumps(value)


def _unknown(key: str, known: list[str]) -> CommandRefused:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1)
    hint = t("did you mean {name}?", name=near[0]) if near else t("graphd config get lists the keys")
    return CommandRefused("usage", t("there is no setting {key}", key=key), hint)


# ---- set ----------------------------------------------------------------------------------------------------------


@command("set")
@click.argument("key")
@click.argument("value", required=False)
@click.option("--default", "is_default", is_flag=True, help="Take it out of the file.")
def set_command(*, key: str, value: str | None, is_default: bool, workspace: Path | None) -> None:
    """Write KEY into the user's file; with --default, take it out. The running daemon sees it at once.

    Examples:
      graphd config set concurrency 4
      graphd config set asks.detached deny
      graphd config set workers.build.agent claude
      graphd config set concurrency --default
    """
    from graphd.daemon.agent_settings import AGENT_FIELDS, GROUPS, WORKER_FIELDS
    from graphd.daemon.settings import KEYS

    if (value is None) != is_default:
        raise CommandRefused(
            "usage", t("set it to what?"), "graphd config set KEY VALUE, or graphd config set KEY --default"
        )
    kinds: dict[str, type] = {item.path: item.kind for item in KEYS}
    group, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    if group in GROUPS and name and last in (AGENT_FIELDS if group == "agents" else WORKER_FIELDS):
        kinds[key] = object  # JSON where it is JSON, else a text
    if key not in kinds:
        raise _unknown(key, list(kinds))
    from graphd.client.paths import config_folder

    path = Path(config_folder()) / FILE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    _write_checked(path, changed(text, key, None if value is None else _parsed(value, kinds[key])))


def _parsed(value: str, kind: type) -> Any:
    if kind is str:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value  # the rules say what is wrong with it


def changed(text: str, key: str, value: Any) -> str:
    """The text of a settings file with one key set, or taken out (None): order and indentation stay.

    Raises CommandRefused for a file that is no JSON object.
    """
    try:
        held = json.loads(text) if text.strip() else {}
    except ValueError as trouble:
        raise CommandRefused(
            "usage", t("the settings file is not JSON: {trouble}", trouble=str(trouble)), "graphd config check"
        ) from None
    if not isinstance(held, dict):
        raise CommandRefused("usage", t("the settings file is no JSON object"), "graphd config check")
    _change(held, key.split("."), value)
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return json.dumps(held, indent=found[1] if found else 2, ensure_ascii=False) + "\n"


def _change(held: Wire, path: list[str], value: Any) -> None:
    """Set or take out what stands at `path`; a group that is empty then goes too. Raises CommandRefused."""
    name, *below = path
    if below:
        group = held.setdefault(name, {})
        if not isinstance(group, dict):
            raise CommandRefused(
                "usage", t("{group} in the settings file is no object", group=name), "graphd config check"
            )
        _change(group, below, value)
    if value is None and (not below or not held[name]):
        held.pop(name, None)
    elif not below:
        held[name] = value


def _write_checked(path: Path, text: str) -> None:
    """Write the file, whole or not at all, if the rules take it. Raises CommandRefused."""
    from graphd.daemon.settings import SettingsRefused, load_settings

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()  # a link to somebody's dotfiles stays one
    temporary = target.with_name(f".{FILE}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        load_settings(temporary, path.parent / "no-such-file")
        failpoint("config.rename.before")
        temporary.replace(target)
        failpoint("config.rename.after")
    except SettingsRefused as refusal:
        raise CommandRefused("usage", refusal.message, refusal.hint) from None
    finally:
        temporary.unlink(missing_ok=True)


for _one in (where_command, get_command, set_command, check_command):
    config_command.add_command(_one)
