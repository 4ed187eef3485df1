"""PATH from the login shell: bounded, remembered, and nothing of it lives on."""

import os
import time
from pathlib import Path

import pytest

from graphd.children import login_shell
from graphd.children.identity import keepers
from graphd.children.login_shell import login_path, with_login_path


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_shell, "_known", {})


def home(folder: Path, profile: str) -> dict[str, str]:
    (folder / ".profile").write_text(profile)
    return {"HOME": str(folder), "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


def test_the_profile_has_its_say_whatever_it_prints(tmp_path: Path) -> None:
    environment = home(tmp_path, 'echo PATH=/wrong; echo welcome; export PATH="/opt/tools:relative:/usr/bin"')
    assert login_path(environment) == "/opt/tools:/usr/bin"
    assert with_login_path(environment)["PATH"] == "/bin:/opt/tools:/usr/bin"


def test_what_only_the_caller_has_stays_in_front(tmp_path: Path) -> None:
    environment = home(tmp_path, 'export PATH="/opt/tools:/usr/bin:/bin"')
    environment["PATH"] = "/venv/bin:/usr/bin:/bin"
    assert with_login_path(environment)["PATH"] == "/venv/bin:/opt/tools:/usr/bin:/bin"


def test_it_runs_once(tmp_path: Path) -> None:
    environment = home(tmp_path, f"echo run >> {tmp_path}/runs")
    for _ in range(3):
        login_path(environment)
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_profile_that_hangs_costs_its_limit_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_shell, "LIMIT_S", 0.3)
    environment = home(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 60")
    begun = time.monotonic()
    for _ in range(2):
        assert with_login_path(environment) == environment
    assert time.monotonic() - begun < 3
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
    assert not keepers


@pytest.mark.parametrize("shell", ["", "/no/such/shell", "sh", "/etc/passwd"])
def test_a_shell_that_is_none_changes_nothing(tmp_path: Path, shell: str) -> None:
    environment = {"HOME": str(tmp_path), "SHELL": shell, "PATH": "/usr/bin"}
    found = with_login_path(environment)
    assert found == environment or not shell, "without SHELL it is the user's own"


def test_a_shell_that_prints_no_path_changes_nothing(tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho hello\n")
    shell.chmod(0o755)
    assert login_path({"HOME": str(tmp_path), "SHELL": str(shell), "PATH": os.defpath}) is None
