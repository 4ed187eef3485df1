"""Where workflows are found, and what is never read."""

import os
from pathlib import Path

import pytest

from graphd.workflows import WorkflowNotFound, find, list_workflows, load, locate_file, prompt_reader
from graphd.workflows.files import WorkflowUnreadable, bundled_dir, user_config_dir
from graphd.workflows.source import MAX_BYTES

TINY = b"nodes: [{id: a, run: ls}]\n"


def put(path: Path, content: bytes = TINY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def test_the_workspace_wins_over_the_user_and_the_bundle(workspace: Path, config: Path) -> None:
    mine = put(workspace / ".agents/workflows/checkup.yaml")
    other_spelling = put(workspace / ".agents/workflows/checkup.yml")
    users = put(config / "workflows/checkup.yml")

    found = find("checkup", workspace, config)

    assert (found.source, found.path) == ("workspace", mine)
    assert found.shadows == (other_spelling, users, bundled_dir() / "checkup.yaml")
    assert found.content == TINY


def test_bundled_workflows_are_found_anywhere(workspace: Path, config: Path) -> None:
    assert find("checkup", workspace, config).source == "bundled"
    assert {"checkup", "parallel-migrate"} <= {w.name for w in list_workflows(workspace, config)}


def test_a_name_that_nobody_has_gets_a_suggestion(workspace: Path, config: Path) -> None:
    with pytest.raises(WorkflowNotFound) as caught:
        find("chekup", workspace, config)

    assert "did you mean checkup?" in caught.value.hint
    assert str(workspace) in caught.value.hint


@pytest.mark.parametrize("name", ["../ws/x", "/etc/passwd", "", ".", "..", "a/b", ".hidden", "x\0y"])
def test_a_name_is_never_a_path(workspace: Path, config: Path, name: str) -> None:
    put(workspace / ".agents/workflows/.hidden.yaml")
    put(workspace / "x.yaml")

    with pytest.raises(WorkflowNotFound):
        find(name, workspace, config)


def test_the_hash_is_of_the_bytes_that_were_read(workspace: Path, config: Path) -> None:
    path = put(workspace / ".agents/workflows/x.yaml")
    found = find("x", workspace, config)
    path.write_bytes(b"changed")

    assert load(found.content, name=found.name).sha256 == found.sha256


def test_a_fifo_or_folder_or_endless_file_does_not_hold_us(workspace: Path, config: Path) -> None:
    folder = workspace / ".agents/workflows"
    (folder / "dir.yaml").mkdir(parents=True)
    os.mkfifo(folder / "pipe.yaml")
    put(folder / "big.yaml", b"#" * (MAX_BYTES + 50))
    (folder / "zero.yaml").symlink_to("/dev/zero")

    for name in ("dir", "pipe", "zero"):
        with pytest.raises(WorkflowUnreadable):
            find(name, workspace, config)
    assert len(find("big", workspace, config).content) == MAX_BYTES + 1
    assert {"big"} == {w.name for w in list_workflows(workspace, config) if w.source == "workspace"}


def test_a_file_is_taken_by_its_path(workspace: Path) -> None:
    found = locate_file(put(workspace / "迁移 x.yaml"))

    assert (found.name, found.source) == ("迁移 x", "file")


def test_a_missing_file_names_its_neighbour(workspace: Path) -> None:
    put(workspace / "release.yaml")

    with pytest.raises(WorkflowNotFound) as caught:
        locate_file(workspace / "relese.yaml")

    assert "release.yaml" in caught.value.hint


def test_the_users_folder_follows_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", str(tmp_path))

    assert user_config_dir() == tmp_path


def test_a_prompt_is_read_once_and_frozen(workspace: Path) -> None:
    path = put(workspace / ".agents/prompts/plan.md", b"first")
    read = prompt_reader(workspace)

    assert read("plan") == b"first"
    path.write_bytes(b"second")
    assert read("plan") == b"first"
    assert read("none") is None


def test_a_prompt_outside_the_workspace_is_not_read(workspace: Path, tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.md", b"key")
    link = workspace / ".agents/prompts/leak.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    read = prompt_reader(workspace)

    assert read("leak") is None
    assert read("../../../secret") is None
