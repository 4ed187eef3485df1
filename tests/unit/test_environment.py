"""What of an environment is kept, how it is stored, and what children see."""

import os
from pathlib import Path

import pytest

from graphd.children import environment
from graphd.children.environment import EnvironmentMissing, child_environment, load, save, snapshot


def test_a_snapshot_holds_the_allow_list_and_nothing_else() -> None:
    given = {
        "PATH": "/bin", "LC_ALL": "C", "XDG_CACHE_HOME": "/c", "https_proxy": "p", "SSL_CERT_FILE": "/ca",
        "AWS_SECRET_ACCESS_KEY": "s", "PS1": "$", "GRAPHD_ATTEMPT": "a", "MY_KEY": "k", "TZ": "a\0b",
    }  # fmt: skip
    assert set(snapshot(given)) == {"PATH", "LC_ALL", "XDG_CACHE_HOME", "https_proxy", "SSL_CERT_FILE"}
    assert "MY_KEY" in snapshot(given, ["MY_KEY"])


def test_an_environment_is_one_private_file_named_by_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    name = save(folder, {"B": "ü", "A": "1"})
    assert save(folder, {"A": "1", "B": "ü"}) == name
    assert [path.name for path in folder.iterdir()] == [f"{name}.json"]
    assert (folder / f"{name}.json").stat().st_mode & 0o777 == 0o600
    assert load(folder, name) == {"A": "1", "B": "ü"}
    (folder / f"{name}.json").write_text("{}")
    with pytest.raises(EnvironmentMissing):
        load(folder, name)
    with pytest.raises(EnvironmentMissing):
        load(folder, "0" * 64)


def test_a_child_sees_the_graphs_environment_and_our_names(tmp_path: Path) -> None:
    found = child_environment(
        {"HOME": "/h", "GRAPHD_ATTEMPT": "forged"},
        workspace=tmp_path,
        cookie="g/n@1",
        folder=tmp_path / "a",
        variables={"x": "1", "not a name": "2"},
        own={"GRAPHD_STATE_DIR": "/s", "SECRET": "no"},
    )
    assert found == {
        "PATH": os.defpath,
        "HOME": "/h",
        "GRAPHD_STATE_DIR": "/s",
        "GRAPHD_WORKSPACE": str(tmp_path),
        "GRAPHD_ATTEMPT": "g/n@1",
        "GRAPHD_TOKEN_FILE": str(tmp_path / "a" / "token"),
        "GRAPHD_INPUT_DIR": str(tmp_path / "a" / "inputs"),
        "GRAPHD_VAR_x": "1",
    }


def test_the_keepers_environment_can_start_the_daemon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", "/c")
    monkeypatch.setenv("GRAPHD_ATTEMPT", "a")
    found = environment.keeper_environment()
    assert found["GRAPHD_CONFIG_DIR"] == "/c"
    assert "GRAPHD_ATTEMPT" not in found
