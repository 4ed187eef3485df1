"""What an attempt changed: git trees with a temporary index, and nothing of the repository touched."""

import subprocess
from pathlib import Path

import pytest

from graphd.children.trees import CHANGED_LIMIT_BYTES, NoPatch, patch, take_end, take_start


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    ran = subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True)
    return ran.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "below").mkdir(parents=True)
    git(root, "init", "-q")
    for name in ("kept", "changed", "gone", "below/moved"):
        (root / name).write_text(f"{name}\n")
    (root / ".gitignore").write_text("ignored\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "attempt"
    made.mkdir()
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(root: Path) -> None:
    (root / "changed").write_text("changed\nmore\n")
    (root / "gone").unlink()
    (root / "new file").write_text("new\n")
    (root / "ignored").write_text("secret\n")


def test_a_patch_has_changed_new_and_deleted_files_and_none_that_is_ignored(repository: Path, folder: Path) -> None:
    (repository / "mine").write_text("was there before\n")
    take_start(folder, repository / "below")
    before = contents(repository / ".git")
    change(repository)
    take_end(folder)
    found = patch(folder, is_live=False)
    heads = [line.removeprefix("diff --git a/") for line in found.splitlines() if line.startswith("diff ")]
    assert heads == ["changed b/changed", "gone b/gone", "new file b/new file"]
    assert "+more" in found
    assert "secret" not in found
    assert contents(repository / ".git") == before, "neither index nor objects of the user are written"
    assert git(repository, "stash", "list") == ""


def test_no_hook_of_the_repository_is_run(repository: Path, folder: Path, tmp_path: Path) -> None:
    for name in ("post-index-change", "reference-transaction"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        hook.chmod(0o755)
    take_start(folder, repository)
    change(repository)
    take_end(folder)
    assert "+more" in patch(folder, is_live=False)
    assert list(tmp_path.glob("ran-*")) == []


def test_a_folder_with_a_name_of_two_lines_has_no_tree_and_says_so(tmp_path: Path, folder: Path) -> None:
    root = tmp_path / "one\ntwo"
    root.mkdir()
    git(root, "init", "-q")
    take_start(folder, root)
    with pytest.raises(NoPatch, match="more than one line"):
        patch(folder, is_live=True)


def test_the_patch_takes_the_work_back(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    change(repository)
    take_end(folder)
    text = patch(folder, is_live=False)
    subprocess.run(["git", "-C", str(repository), "apply", "--reverse"], input=text, text=True, check=True)
    assert git(repository, "status", "--short") == ""


def test_what_the_agent_commits_is_in_it_and_what_was_staged_before_is_not(repository: Path, folder: Path) -> None:
    (repository / "staged").write_text("by a person\n")
    git(repository, "add", "staged")
    take_start(folder, repository)
    change(repository)
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "second")
    take_end(folder)
    found = patch(folder, is_live=False)
    assert "+more" in found
    assert "by a person" not in found


def test_while_it_runs_it_is_compared_with_now_and_nothing_stays_of_that(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    assert patch(folder, is_live=True) == ""
    change(repository)
    before = contents(folder)
    assert "+more" in patch(folder, is_live=True)
    assert contents(folder) == before


def test_the_end_is_taken_once(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    take_end(folder)
    change(repository)
    take_end(folder)
    assert patch(folder, is_live=False) == ""


def test_half_a_note_is_none_and_is_written_again(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    (folder / "trees" / "end").write_text('{"tree": "12')
    change(repository)
    with pytest.raises(NoPatch, match="no git tree of its end: none was kept"):
        patch(folder, is_live=False)
    take_end(folder)
    assert "+more" in patch(folder, is_live=False)


def test_a_repository_without_a_commit(tmp_path: Path, folder: Path) -> None:
    root = tmp_path / "empty"
    git(tmp_path, "init", "-q", str(root))
    take_start(folder, root)
    (root / "a").write_text("first\n")
    take_end(folder)
    assert "+first" in patch(folder, is_live=False)


def test_a_work_tree_of_its_own(repository: Path, tmp_path: Path, folder: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "second"))
    take_start(folder, tmp_path / "second")
    change(tmp_path / "second")
    take_end(folder)
    assert "+more" in patch(folder, is_live=False)
    assert git(repository, "status", "--short") == ""


def test_names_that_are_no_utf_8(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    with open(bytes(repository) + b"/n\xff", "w") as odd:
        odd.write("odd\n")
    take_end(folder)
    assert "+odd" in patch(folder, is_live=False)


def test_no_filter_and_no_hook_of_the_repository_is_run(repository: Path, folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=mine diff=mine\n")
    for name in ("filter.mine.clean", "core.fsmonitor", "diff.mine.textconv", "diff.external", "core.hooksPath"):
        git(repository, "config", name, str(program))
    git(repository, "config", "filter.mine.required", "true")
    take_start(folder, repository)
    change(repository)
    take_end(folder)
    assert "+more" in patch(folder, is_live=False)
    assert not (tmp_path / "ran").exists()


def test_outside_of_git_it_is_refused(tmp_path: Path, folder: Path) -> None:
    take_start(folder, tmp_path)
    take_end(folder)
    with pytest.raises(NoPatch, match="no git tree of its start: .*not a git repository") as refusal:
        patch(folder, is_live=False)
    assert refusal.value.code == "notSupported"


def test_nothing_was_taken(folder: Path) -> None:
    take_end(folder)
    with pytest.raises(NoPatch, match="none was kept"):
        patch(folder, is_live=False)


def test_too_much_is_not_taken(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    with (repository / "large").open("wb") as large:
        large.truncate(CHANGED_LIMIT_BYTES + 1)
    for is_live in (True, False):
        take_end(folder)
        with pytest.raises(NoPatch, match="more than 64 MiB are changed"):
            patch(folder, is_live=is_live)


def test_a_patch_that_fits_in_no_answer(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    (repository / "long").write_text("0123456789abcdef\n" * 600_000)
    take_end(folder)
    with pytest.raises(NoPatch, match="larger than 8 MiB") as refusal:
        patch(folder, is_live=False)
    assert refusal.value.code == "tooLarge"


def test_the_repository_is_gone(repository: Path, folder: Path) -> None:
    take_start(folder, repository)
    take_end(folder)
    (repository / ".git").rename(repository / ".got")
    with pytest.raises(NoPatch, match="git can't compare its trees"):
        patch(folder, is_live=False)
