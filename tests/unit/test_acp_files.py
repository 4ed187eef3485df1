"""File requests stay inside the node's root, whatever the path; doing one twice changes nothing."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp import files


def do(root: Path, method: str, *, may_write: bool = True, **params: Any) -> dict[str, Any]:
    request = {"id": "1", "method": f"fs/{method}", "params": params}
    return files.serve(request, root, may_write=may_write).message


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\nfour")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "secret").symlink_to(tmp_path / "outside" / "secret")
    (root / "in").symlink_to(root / "sub")
    (root / "dangling").symlink_to(tmp_path / "outside" / "new")
    os.mkfifo(root / "fifo")
    return root


def test_reading_whole_and_in_parts(root: Path) -> None:
    path = str(root / "a.txt")
    assert do(root, "read_text_file", path=path)["result"] == {"content": "one\ntwo\nthree\nfour"}
    assert do(root, "read_text_file", path=path, line=2, limit=2)["result"] == {"content": "two\nthree\n"}
    assert do(root, "read_text_file", path=path, line=4)["result"] == {"content": "four"}
    assert do(root, "read_text_file", path=path, line=9)["result"] == {"content": ""}
    assert do(root, "read_text_file", path=path, limit=1)["result"] == {"content": "one\n"}
    assert do(root, "read_text_file", path=path, line=None, limit=None)["result"]["content"].startswith("one")
    assert do(root, "read_text_file", path="a.txt")["result"]["content"].startswith("one"), "as seen from the root"
    (root / "b").write_bytes(b"\xff\n")
    assert do(root, "read_text_file", path=str(root / "b"))["result"] == {"content": "\ufffd\n"}
    for odd in ({"line": -1}, {"line": "2"}, {"limit": True}):
        assert "error" in do(root, "read_text_file", path=path, **odd)


def test_many_short_lines_are_read_in_a_moment(root: Path) -> None:
    (root / "short").write_text("\n" * (files.READ_LIMIT_BYTES - 1))
    started_s = time.process_time()
    found = do(root, "read_text_file", path=str(root / "short"), line=1, limit=800_000)
    assert len(found["result"]["content"]) == 800_000
    assert time.process_time() - started_s < 2, "as long as the file is, never its square"


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "out/secret", "secret", "/etc/passwd", "sub/../../outside/secret", "fifo", "", "sub", ".",
     None, 5, "a\0b", "x" * 5000, "dangling", "missing", "a.txt/b"],
)  # fmt: skip
def test_what_is_not_a_file_inside_is_not_read(root: Path, path: Any) -> None:
    absolute = str(root / path) if isinstance(path, str) and path else path
    for asked in (path, absolute):
        reply = do(root, "read_text_file", path=asked)
        assert isinstance(reply["error"]["code"], int), reply
        assert reply["error"]["message"]


@pytest.mark.parametrize(
    "path", ["../outside/new", "out/new", "dangling", "secret", "out/deep/new", "fifo", "sub", "."]
)
def test_nothing_is_written_outside(root: Path, path: str) -> None:
    assert "error" in do(root, "write_text_file", path=str(root / path), content="x")
    assert sorted(os.listdir(root.parent / "outside")) == ["secret"]
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_writing_makes_folders_keeps_the_file_and_may_be_done_twice(root: Path) -> None:
    path = root / "new" / "deep" / "a.txt"
    for _ in range(2):
        assert do(root, "write_text_file", path=str(path), content="é")["result"] == {}
        assert path.read_text() == "é"
    kept = root / "a.txt"
    kept.chmod(0o755)
    inode = kept.stat().st_ino
    assert do(root, "write_text_file", path=str(kept), content="short")["result"] == {}
    assert (kept.read_text(), kept.stat().st_ino, kept.stat().st_mode & 0o777) == ("short", inode, 0o755)
    assert do(root, "write_text_file", path=str(root / "in" / "b"), content="")["result"] == {}
    assert (root / "sub" / "b").read_text() == "", "a symlink that stays inside is followed"
    assert "error" in do(root, "write_text_file", path=str(kept), content=5)
    assert "error" in do(root, "write_text_file", path=str(kept), content="no", may_write=False)
    assert kept.read_text() == "short"


def test_a_symlink_that_is_put_in_the_way_afterwards_is_not_followed(root: Path, monkeypatch: Any) -> None:
    """The path was resolved while `sub` was a folder; when it is opened it is a way out."""
    resolve = files._parts

    def swapped(path: Any, at: Path) -> tuple[str, ...]:
        parts = resolve(path, at)
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(root.parent / "outside")
        return parts

    monkeypatch.setattr(files, "_parts", swapped)
    assert "error" in do(root, "write_text_file", path=str(root / "sub" / "new"), content="x")
    assert os.listdir(root.parent / "outside") == ["secret"]


def test_a_reply_is_bounded(root: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(files, "READ_LIMIT_BYTES", 10)
    (root / "big").write_text("12345678\n" * 3)
    assert "in parts" in do(root, "read_text_file", path=str(root / "big"))["error"]["message"]
    assert "in parts" in do(root, "read_text_file", path=str(root / "big"), line=1, limit=2)["error"]["message"]
    assert do(root, "read_text_file", path=str(root / "big"), line=2, limit=1)["result"] == {"content": "12345678\n"}
