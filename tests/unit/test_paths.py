"""Which workspace is meant, where its state lies, and that the light modules stay light."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphd_protocol
from graphd.client import greeting
from graphd.client.greeting import Greeting, environment_snapshot, locale_of
from graphd.client.paths import (
    AttachFailure,
    WorkspaceRefused,
    config_folder,
    find_workspace,
    make_state_folder,
    state_folder,
    workspace_in_frame,
)
from graphd.server import place
from graphd_protocol.model import HelloParams


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRAPHD_WORKSPACE", "GRAPHD_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def test_the_order_is_flag_environment_frame_and_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, variable, client, here = (made(tmp_path / name) for name in ("flag", "variable", "client", "here"))
    hello = {"method": "graphd/hello", "params": {"workspace": str(client)}}
    monkeypatch.setenv("GRAPHD_WORKSPACE", str(variable))

    assert find_workspace(flag, first_frame=hello, cwd=here).root == str(flag)
    assert find_workspace(first_frame=hello, cwd=here).root == str(variable)
    monkeypatch.delenv("GRAPHD_WORKSPACE")
    assert find_workspace(first_frame=hello, cwd=here).root == str(client)
    assert find_workspace(first_frame={"method": "x"}, cwd=here).root == str(here)
    monkeypatch.chdir(here)
    assert find_workspace().root == str(here)


def test_the_nearest_agents_folder_wins_over_a_git_root(tmp_path: Path) -> None:
    made(tmp_path / "a/.agents")
    made(tmp_path / "a/b/.git")
    deep = made(tmp_path / "a/b/c")

    assert find_workspace(deep).root == str(tmp_path / "a")
    made(tmp_path / "a/b/.agents")
    assert find_workspace(deep).root == str(tmp_path / "a/b")
    made(deep / ".agents")
    assert find_workspace(deep).root == str(deep)


def test_a_git_file_marks_a_worktree(tmp_path: Path) -> None:
    made(tmp_path / "repo/.git")
    tree = made(tmp_path / "repo/trees/one/src")
    (tmp_path / "repo/trees/one/.git").write_text("gitdir: elsewhere")

    assert find_workspace(tree).root == str(tmp_path / "repo/trees/one")
    assert find_workspace(tmp_path / "repo/trees").root == str(tmp_path / "repo")


def test_the_home_directory_counts_only_when_it_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made(home / ".agents")
    made(home / ".git")
    project = made(home / "project")

    assert find_workspace(cwd=project).root == str(project)
    assert find_workspace(project).root == str(project)
    assert find_workspace(home).root == str(home)


def test_links_are_one_workspace(tmp_path: Path) -> None:
    made(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert find_workspace(tmp_path / "link").root == str(tmp_path / "real")
    assert state_folder(tmp_path / "link") == state_folder(tmp_path / "real")


def test_a_missing_folder_and_a_file_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(WorkspaceRefused, match="no folder"):
            find_workspace(tmp_path / name)


def test_a_removed_current_directory_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = made(tmp_path / "gone")
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorkspaceRefused, match="current directory"):
        find_workspace()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused_by_name(tmp_path: Path) -> None:
    os.chown(made(tmp_path / "theirs"), 12345, 12345)
    with pytest.raises(WorkspaceRefused, match="another user"):
        find_workspace(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"rootUri": "file:///a/b%20c"}, "/a/b c"),
        ({"rootUri": "file://localhost/a"}, "/a"),
        ({"rootUri": None, "workspaceFolders": [{"uri": "file:///x", "name": "x"}, {"uri": "file:///y"}]}, "/x"),
        ({"rootUri": "file:///a", "workspaceFolders": [{"uri": "file:///x"}]}, "/a"),
        ({"rootPath": "/old"}, "/old"),
        ({"rootUri": "file:///%E4%BB%93%E5%BA%93"}, "/仓库"),
        ({"rootUri": "vscode-remote://ssh/a"}, None),
        ({"rootUri": "file://elsewhere/a"}, None),
        ({"rootUri": "file:///a%00b"}, None),
        ({"rootUri": 3, "workspaceFolders": "no"}, None),
        ({"workspaceFolders": []}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_folder_that_initialize_names(params: Any, found: str | None) -> None:
    assert workspace_in_frame({"method": "initialize", "params": params}) == found


def test_the_state_folder_is_a_hash_below_the_configured_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(state_folder(tmp_path))

    assert folder.parent == tmp_path / "state"
    assert len(folder.name) == 16
    assert set(folder.name) <= set("0123456789abcdef")
    assert not folder.exists()

    monkeypatch.delenv("GRAPHD_STATE_DIR")
    assert Path(state_folder(tmp_path)).parent == tmp_path / "home/.local/state/graphd"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert Path(state_folder(tmp_path)).parent == tmp_path / "home/.local/state/graphd"
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert Path(state_folder(tmp_path)).parent == Path("/xdg/graphd")


def test_the_daemon_looks_in_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring layers do not import each other, so each has its own few lines: they are held together here."""
    for variables in (
        {},
        {"GRAPHD_STATE_DIR": "", "XDG_STATE_HOME": "relative"},
        {"GRAPHD_STATE_DIR": "", "XDG_STATE_HOME": "/x"},
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert place.state_folder(tmp_path) == Path(state_folder(tmp_path))
    for variables in ({}, {"XDG_CONFIG_HOME": "/x"}, {"GRAPHD_CONFIG_DIR": "/mine"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert place.config_folder() == Path(config_folder())


def test_the_configuration_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_folder() == str(tmp_path / "home/.config/graphd")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert config_folder() == "/xdg/graphd"
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", "/mine")
    assert config_folder() == "/mine"


def test_the_state_folder_is_made_private_and_an_open_one_is_refused(tmp_path: Path) -> None:
    folder = Path(make_state_folder(tmp_path))

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    folder.chmod(0o777)
    with pytest.raises(AttachFailure, match="not private"):
        make_state_folder(tmp_path)


def test_a_state_folder_that_cannot_be_made_is_a_named_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blocked").touch()
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "blocked"))
    with pytest.raises(AttachFailure, match="cannot be used"):
        make_state_folder(tmp_path)


def test_hello_is_what_the_wire_model_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("GRAPHD_TOKEN_FILE", str(tmp_path / "token"))
    params = Greeting("test", is_interactive=True, owner="parent").params(str(tmp_path))

    read = HelloParams.model_validate(params)

    assert read.client.pid == os.getpid()
    assert read.attempt_token == "s3cret"
    assert read.owner is not None
    assert read.owner.id == "parent"
    assert set(params) <= {field.alias for field in HelloParams.model_fields.values()}
    assert greeting.PROTOCOL_RANGE == (graphd_protocol.PROTOCOL_MIN, graphd_protocol.PROTOCOL_MAX)


def test_the_environment_is_an_allow_list_and_only_text() -> None:
    given = {
        "PATH": "/bin", "LC_ALL": "C", "XDG_DATA_HOME": "/x", "https_proxy": "p", "CURL_CA_BUNDLE": "c",
        "AWS_SECRET_ACCESS_KEY": "no", "GRAPHD_ATTEMPT": "no", "LD_PRELOAD": "no", "TZ": "\udcff",
    }  # fmt: skip

    assert set(environment_snapshot(given)) == {"PATH", "LC_ALL", "XDG_DATA_HOME", "https_proxy", "CURL_CA_BUNDLE"}


@pytest.mark.parametrize(
    ("environment", "tag"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LC_ALL": "C", "LANG": "de_DE"}, "en"),
        ({}, None),
        ({"LANG": "sr_RS@latin"}, "sr-RS"),
    ],
)
def test_the_locale_is_a_tag(environment: dict[str, str], tag: str | None) -> None:
    assert locale_of(environment) == tag


def test_attaching_and_piping_import_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import graphd.client.attach, graphd.client.pipe;"
        "print(*sorted(set(sys.modules) - before))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    ours = {name for name in printed if name.startswith("graphd")}
    light = {"attach", "pipe", "paths", "frames", "greeting", "plain_socket", "starting"}
    base = {"graphd.base"} | {f"graphd.base.{name}" for name in ("digest", "plain_json", "record", "versions")}
    assert ours == {"graphd", "graphd.client"} | base | {f"graphd.client.{name}" for name in light}
    assert {name.partition(".")[0] for name in printed} - {"graphd"} <= sys.stdlib_module_names
    costly = {"asyncio", "pathlib", "subprocess", "typing", "dataclasses", "json", "re", "enum", "socket", "hashlib"}
    assert not costly & set(printed)


def test_the_public_names_are_there() -> None:
    import graphd.client

    for name in graphd.client.__all__:
        assert getattr(graphd.client, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = graphd.client.nothing
