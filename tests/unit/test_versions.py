"""Which version is newer, and what `daemon.json` says to start."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd import __version__
from graphd.base import record
from graphd.base.versions import is_newer

ORDER = ["nonsense", "0.0.9", "0.1.dev1", "0.1a1.dev2", "0.1a1", "0.1a2", "0.1b1", "0.1rc1", "0.1.0", "0.1.post1",
         "0.1.1", "0.2", "0.10.0", "1.0", "2024.1"]  # fmt: skip


def test_versions_are_ordered_as_the_package_index_orders_them() -> None:
    for place, version in enumerate(ORDER):
        assert [is_newer(other, version) for other in ORDER] == [i > place for i in range(len(ORDER))], version


@pytest.mark.parametrize(("one", "other"), [("0.1", "0.1.0"), ("v1.0", "1.0.0"), ("1.0+local", "1.0"), ("x", "y")])
def test_the_same_version_is_not_newer(one: str, other: str) -> None:
    assert not is_newer(one, other)
    assert not is_newer(other, one)


def other_package(folder: Path) -> str:
    package = folder / "other" / "graphd"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return str(package)


def written(folder: Path, **changes: Any) -> None:
    value = {"version": "99.0", "argv": [sys.executable, "-m", "x"], "package": other_package(folder)} | changes
    (folder / record.FILE).write_text(json.dumps(value))


def test_a_newer_daemon_that_exists_is_the_one_to_start(tmp_path: Path) -> None:
    written(tmp_path, pythonPath="p")
    found = record.newer_recorded(str(tmp_path))
    assert found is not None
    assert (found.version, found.argv) == ("99.0", [sys.executable, "-m", "x"])
    assert found.environment({"A": "1", "PYTHONPATH": "mine"}) == {"A": "1", "PYTHONPATH": "p"}
    assert not record.write_record(str(tmp_path), [sys.executable], (1, 1))
    found.python_path = None
    assert found.environment({"PYTHONPATH": "mine"}) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "0.0.1"}, {"version": __version__}, {"version": 9}, {"argv": []}, {"argv": ["python"]},
        {"argv": [1]}, {"argv": ["/no/such/python"]}, {"package": "/no/such/folder"}, {"package": None},
        {"pythonPath": 1}, {"package": record.own_package()}, {"argv": ["/bin/sh\0"]},
    ],
)  # fmt: skip
def test_anything_else_in_it_starts_nothing_and_is_written_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    written(tmp_path, **changes)
    assert record.newer_recorded(str(tmp_path)) is None
    assert record.write_record(str(tmp_path), [sys.executable, "-m", "ours"], (1, 1))
    kept = record.read_record(str(tmp_path))
    assert kept is not None
    assert (kept.version, kept.argv, kept.package) == (
        __version__,
        [sys.executable, "-m", "ours"],
        record.own_package(),
    )
    assert (tmp_path / record.FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\0"])
def test_a_torn_file_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / record.FILE).write_text(text)
    assert record.read_record(str(tmp_path)) is None


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    assert not record.write_record(str(tmp_path / "missing"), [sys.executable], (1, 1))
    assert not record.write_record(str(tmp_path), ["python"], (1, 1))
    assert os.listdir(tmp_path) == []
