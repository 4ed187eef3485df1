"""Settings: the user's file, the workspace's that may only lower, and errors that name file, line and cause."""

import json
from pathlib import Path

import pytest

from graphd.daemon.settings import KEYS, Settings, SettingsRefused, load_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "user.json", tmp_path / "workspace.json"


def test_missing_files_say_nothing(files: tuple[Path, Path]) -> None:
    assert load_settings(*files) == Settings()


def test_every_key_is_read_into_its_field(files: tuple[Path, Path]) -> None:
    for key in KEYS:
        value = key.choices[-1] if key.choices else {int: 7, float: 7, bool: False, str: "x"}[key.kind]
        outer, _, inner = key.path.partition(".")
        files[0].write_text(json.dumps({outer: {inner: value}} if inner else {outer: value}))
        assert getattr(load_settings(*files), key.field) == value


def test_a_workspace_lowers_and_never_raises(files: tuple[Path, Path]) -> None:
    files[0].write_text('{"concurrency": 4}')
    files[1].write_text('{"concurrency": 2, "asks": {"detached": "deny"}}')
    assert load_settings(*files).concurrency == 2
    assert load_settings(*files).detached_asks == "deny"
    files[1].write_text('{"concurrency": 9}')
    assert load_settings(*files).concurrency == 4


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('{\n "concurency": 3}', 2, "unknown key concurency", "concurrency"),
        ('{"retention":\n {"day": 3}}', 2, "unknown key retention.day", "retention.days"),
        ('{"concurrency": "3"}', 1, "must be of type int", '"3"'),
        ('{"concurrency": 2.5}', 1, "must be of type int", "2.5"),
        ('{"concurrency": true}', 1, "must be of type int", "true"),
        ('{"concurrency": 0}', 1, "between 1 and 256", "0"),
        ('{"log": {"level": "loud"}}', 1, "one of debug", "loud"),
        ('{\n\n"agents": {}}', 3, "not in this version", "remove"),
        ("[]", 1, "must be an object", "{"),
        ('{"concurrency": }', 1, "not JSON", "syntax"),
    ],
)
def test_bad_settings_are_refused_by_line(
    files: tuple[Path, Path], text: str, line: int, message: str, hint: str
) -> None:
    files[0].write_text(text)
    with pytest.raises(SettingsRefused) as refused:
        load_settings(*files)
    assert (refused.value.line, refused.value.path) == (line, files[0])
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_workspace_may_not_set_what_is_the_users(files: tuple[Path, Path]) -> None:
    files[1].write_text('{"lingerSeconds": 1}')
    with pytest.raises(SettingsRefused, match="may not set lingerSeconds"):
        load_settings(*files)


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [key.path for key in KEYS if f"| `{key.path}` |" not in page] == []
