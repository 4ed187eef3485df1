"""What a work tree looks like before a session goes on: git's word, and the files that were declared."""

import subprocess
from pathlib import Path

from graphd.children.looking import said_last, work_tree


def test_git_says_what_changed_and_declared_files_are_looked_for(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a b.md").write_text("x")
    seen = work_tree(tmp_path, ("docs/*.md", "none/**", "/etc/*"))
    assert "?? docs/" in seen
    assert seen.splitlines()[-3:] == [
        "declared docs/*.md: docs/a b.md", "declared none/**: not there", "declared /etc/*: not there",
    ]  # fmt: skip


def test_no_program_of_the_repository_is_run(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", str(tmp_path), "config", "core.fsmonitor", str(hook)], check=True)
    assert "?? hook" in work_tree(tmp_path, ())
    assert not (tmp_path / "ran").exists()


def test_many_changes_are_counted_and_outside_of_git_it_is_said(tmp_path: Path) -> None:
    assert work_tree(tmp_path, ()).startswith("(git can't say what changed: ")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for number in range(150):
        (tmp_path / f"f{number:03}").touch()
    assert work_tree(tmp_path, ()).splitlines()[-1] == "(51 more)"


def test_an_attempt_that_said_nothing_has_no_last_words(tmp_path: Path) -> None:
    assert said_last(tmp_path) == ""
