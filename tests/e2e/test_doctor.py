"""`graphd doctor`: every check is there, each can fail, says what to do then, and decides the exit code."""

import json
import os
from pathlib import Path
from typing import Any

from tests.kit.workspaces import Workspace

CHECKS = {
    "python", "state folder", "daemon", "store", "tables", "lock", "disk", "settings", "agents", "login shell",
    "keepers", "stuck", "starts",
}  # fmt: skip


def checks(workspace: Workspace, code: int, **extra: str) -> dict[str, dict[str, Any]]:
    workspace.environment |= extra
    done = workspace.graphd("doctor", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)}


def test_a_healthy_house_passes_every_check(workspace: Workspace) -> None:
    found = checks(workspace, 0, SHELL="/bin/sh")
    assert set(found) == CHECKS
    assert [check for check in found.values() if not (check["ok"] and check["detail"] and not check["fix"])] == []
    assert found["keepers"]["detail"] == "0 run"
    printed = workspace.graphd("doctor").stdout
    assert printed.count("✓") == len(CHECKS)


def test_settings_that_are_not_in_force_are_told_with_their_line(workspace: Workspace) -> None:
    workspace.settings('{"concurrency": 3,\n "agents": {"clod": {"memMb": 3}}}')
    found = checks(workspace, 1)
    assert [name for name, check in found.items() if not check["ok"]] == ["settings"]
    assert ":2: there is no agent clod" in found["settings"]["detail"]
    assert "a new agent needs driver and command" in found["settings"]["fix"]
    workspace.settings("{}")
    for _ in range(20):  # the daemon hears of the file a moment after it was written
        if "✗" not in workspace.graphd("doctor").stdout:
            break
    assert checks(workspace, 0)["settings"]["ok"]


def test_a_login_shell_that_says_nothing_is_told(workspace: Workspace) -> None:
    shell = workspace.base / "shell"
    shell.write_text("#!/bin/sh\nexit 1\n")
    shell.chmod(0o755)
    found = checks(workspace, 1, SHELL=str(shell))
    assert not found["login shell"]["ok"]
    assert f"try {shell} -l -c env" in found["login shell"]["fix"]
    assert checks(workspace, 0, SHELL=str(workspace.base / "no-shell"))["login shell"]["ok"]


def test_agents_that_are_installed_are_named(workspace: Workspace) -> None:
    program = workspace.base / "bin" / "gemini"
    program.parent.mkdir()
    program.touch(mode=0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    assert "gemini" in checks(workspace, 0, PATH=path, TERM="xterm", SHELL="/bin/sh")["agents"]["detail"]


def test_a_lock_that_nobody_knows_is_a_keeper_too_many(workspace: Workspace) -> None:
    import fcntl

    checks(workspace, 0, SHELL="/bin/sh")
    folder: Path = workspace.folder / "attempts" / "0197" / "gn-x@1"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = checks(workspace, 1, SHELL="/bin/sh")
    assert found["keepers"]["detail"] == "1 run, 1 of them for no attempt: 0197/gn-x@1"
