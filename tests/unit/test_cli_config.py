"""`graphd config`: where the files lie, what is in force, and a change that is checked before it is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphd.cli import config
from graphd.cli.exits import CommandRefused
from graphd.cli.main import run_command


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "w" / ".agents").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("GRAPHD_WORKSPACE", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run_command(["config", *words]) == code
    found = capsys.readouterr()
    return found.out + (found.err if code else "")


def in_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return json.loads(run(capsys, *words, "--json", code=code))


def test_where_names_both_files(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = in_json(capsys, "where")
    assert [(row["source"], row["exists"]) for row in rows] == [("user", False), ("workspace", False)]
    assert [row["path"] for row in rows] == [
        str(house / "config" / "settings.json"), str(house / "w" / ".agents" / "settings.json"),
    ]  # fmt: skip
    assert "(not there)" in run(capsys, "where")


def test_set_writes_and_get_says_where_from(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "set", "concurrency", "4")
    run(capsys, "set", "asks.detached", "deny")
    (house / "w" / ".agents" / "settings.json").write_text('{"concurrency": 2}')

    assert json.loads((house / "config" / "settings.json").read_text()) == {
        "concurrency": 4, "asks": {"detached": "deny"},
    }  # fmt: skip
    found = in_json(capsys, "get")
    assert found["concurrency"] == {"value": 2, "source": "workspace", "default": 8}
    assert found["asks.detached"]["source"] == "user"
    assert found["idleMinutes"] == {"value": 30, "source": "default", "default": 30}
    assert run(capsys, "get", "concurrency") == "2\n"
    assert run(capsys, "get", "asks.detached") == "deny\n"
    assert "idleMinutes" in run(capsys, "get")

    run(capsys, "set", "permissions.allow", '["execute:make *"]')
    assert json.loads(run(capsys, "get", "permissions.allow")) == ["execute:make *"]
    assert "no tool kind" in run(capsys, "set", "permissions.deny", '["rm *"]', code=2)
    assert "a list of at most" in run(capsys, "set", "permissions.deny", "fetch", code=2)
    run(capsys, "set", "permissions.allow", "--default")

    run(capsys, "set", "asks.detached", "--default")
    assert json.loads((house / "config" / "settings.json").read_text()) == {"concurrency": 4}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["concurrency", "many"], "must be of type int"), (["concurrency", "1000"], "between"),
        (["asks.detached", "never"], "one of wait, deny"), (["concurency", "1"], "did you mean concurrency"),
        (["nothing-like-it", "1"], "lists the keys"), (["concurrency"], "set it to what"),
        (["concurrency", "1", "--default"], "set it to what"), (["keepersRestartDaemon", "1"], "type bool"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_and_the_file_stays(
    house: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    run(capsys, "set", "concurrency", "4")
    before = (house / "config" / "settings.json").read_bytes()
    assert told in run(capsys, "set", *words, code=2)
    assert (house / "config" / "settings.json").read_bytes() == before
    assert [path.name for path in (house / "config").iterdir()] == ["settings.json"]


def test_check_names_file_line_and_what_to_do(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in order" in run(capsys, "check")
    ours = house / "w" / ".agents" / "settings.json"
    ours.write_text('{\n  "lingerSeconds": 1\n}')
    (row,) = in_json(capsys, "check", code=2)
    assert (row["path"], row["line"]) == (str(ours), 2)
    assert "a workspace may not set lingerSeconds" in run(capsys, "check", code=2)
    assert "a workspace may not set" in run(capsys, "get", code=2)


def test_order_indentation_and_links_stay(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dotfiles = house / "dotfiles.json"
    dotfiles.write_text('{\n\t"log": {"level": "debug"},\n\t"concurrency": 3\n}\n')
    (house / "config").mkdir()
    (house / "config" / "settings.json").symlink_to(dotfiles)
    run(capsys, "set", "concurrency", "5")
    assert dotfiles.read_text() == '{\n\t"log": {\n\t\t"level": "debug"\n\t},\n\t"concurrency": 5\n}\n'
    assert (house / "config" / "settings.json").is_symlink()


@pytest.mark.parametrize("text", ["{", "[]", '{"asks": 3}'])
def test_a_file_that_cannot_be_changed_is_left_alone(text: str) -> None:
    with pytest.raises(CommandRefused):
        config.changed(text, "asks.detached", "deny")
    assert json.loads(config.changed("", "asks.detached", None)) == {}
