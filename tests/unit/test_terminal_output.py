"""What a terminal printed, as a file: bounded, readable at any time, and no trouble of the disk is the keeper's."""

import errno
import os
from pathlib import Path

import pytest

from graphd.children.acp.terminal_serving import read_output
from graphd.children.keeping.output import ROOM, Output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_bounded_and_its_end_is_what_was_printed_last(folder: Path) -> None:
    output = Output("t1", 1000)
    printed = b""
    for number in range(400):
        part = (f"{number} " + "x" * 900 + "\n").encode()
        printed += part
        output.take(part)
        assert (folder / "terminal.t1").stat().st_size <= 2 * ROOM + len(part) + 8
        assert read_output(folder / "terminal.t1", 1000) == (printed[-1000:].decode(), len(printed) > 1000)
    output.remove()
    output.remove()
    output.take(b"late")
    assert list(folder.iterdir()) == []
    assert read_output(folder / "terminal.t1", 1000) == ("", False)


@pytest.mark.parametrize("call", ["write", "rename", "pread"])
def test_a_full_disk_loses_output_and_nothing_else(folder: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output("t1", 10)
    output.take(b"first")
    descriptors = len(os.listdir("/proc/self/fd"))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, call, refuse)
        for _ in range(5):
            output.take(b"x" * ROOM)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    output.take(b"last")
    text, is_truncated = read_output(folder / "terminal.t1", 10)
    assert text.endswith("last")
    assert is_truncated or call == "write"
    output.remove()


def test_a_file_that_can_not_be_made_is_said_at_once(folder: Path) -> None:
    (folder / "terminal.t1").mkdir()
    with pytest.raises(IsADirectoryError):
        Output("t1", 10)


@pytest.mark.parametrize(
    ("printed", "limit", "expected"),
    [
        ("aé", 2, ("é", True)), ("aé", 1, ("", True)), ("aé", 3, ("aé", False)), ("é" * 3, 5, ("éé", True)),
        ("", 0, ("", False)),
    ],
)  # fmt: skip
def test_it_begins_at_a_character(folder: Path, printed: str, limit: int, expected: tuple[str, bool]) -> None:
    output = Output("t1", limit)
    output.take(printed.encode())
    assert read_output(folder / "terminal.t1", limit) == expected
    output.remove()
