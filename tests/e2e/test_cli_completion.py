"""Completion as a shell asks for it, the PATH of clients that no shell started, and logs that follow."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.workspaces import Workspace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    found = Workspace(tmp_path)
    (found.root / ".agents" / "workflows").mkdir(parents=True)
    try:
        yield found
    finally:
        found.end()


def ask(place: Workspace, *words: str, code: int = 0, **extra: str) -> str:
    done = place.graphd(*words, timeout_s=60, **extra)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def completed(place: Workspace, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    line = " ".join(["graphd", *words])
    extra = {"_GRAPHD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-m", "graphd"], cwd=place.root, env={**place.environment, **extra}, capture_output=True,
        text=True, timeout=30, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stderr == ""
    pairs = [item.partition(",") for item in done.stdout.splitlines() if item]
    return ["(a file)" if kind == "file" else value for kind, _, value in pairs]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(place: Workspace, shell: str) -> None:
    script = ask(place, "completion", shell)
    assert "_GRAPHD_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script.encode(), check=True, timeout=20)
    assert place.daemons() == []


def test_without_a_daemon_commands_and_options_are_offered_and_none_is_started(place: Workspace) -> None:
    assert completed(place, "wa") == ["watch"]
    assert {"export", "import", "purge", "config"} <= set(completed(place, ""))
    assert "--json" in completed(place, "status", "--")
    assert completed(place, "config", "") == ["check", "get", "set", "where"]
    assert completed(place, "watch", "") == []
    assert completed(place, "run", "") == ["(a file)"]
    assert place.daemons() == []


def test_with_a_daemon_names_are_offered(place: Workspace) -> None:
    (place.root / ".agents" / "workflows" / "deploy.yaml").write_text(
        "nodes:\n  - { id: lint, run: 'true' }\n  - { id: link, needs: [lint], run: 'true' }\n"
    )
    graph = json.loads(ask(place, "run", "deploy", "--detach", "--json"))["graph"]
    ask(place, "watch", graph)
    assert {"deploy", "checkup"} <= set(completed(place, "run", ""))
    assert completed(place, "run", "dep") == ["deploy", "(a file)"]
    assert completed(place, "watch", "") == ["deploy", "@last", graph]
    assert completed(place, "logs", "--graph", graph, "li") == ["lint", "link"]
    assert completed(place, "export", graph[:8]) == [graph]
    assert len(completed(place, "output", "")) == 0, "which graph? none is live"


def test_a_daemon_that_hangs_costs_a_moment(place: Workspace) -> None:
    import signal

    ask(place, "daemon", "--start")
    (pid,) = place.daemons()
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert completed(place, "watch", "") == []
        assert time.monotonic() - begun < 6
    finally:
        os.kill(pid, signal.SIGCONT)


# ---- the environment of who no shell started ----------------------------------------------------------------------


def path_in_node(place: Workspace, **extra: str) -> list[str]:
    environment = {name: value for name, value in place.environment.items() if name != "TERM"} | extra
    done = subprocess.run(
        [sys.executable, "-m", "graphd", "run", "--sh", 'printf %s "$PATH"'], cwd=place.root, env=environment,
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return done.stdout.strip().split(":")


def test_who_has_no_terminal_gets_the_login_shells_path(place: Workspace) -> None:
    home = place.base / "home"
    home.mkdir()
    (home / ".profile").write_text(f"echo noise; echo run >> {place.oracle}; export PATH=/opt/login:$PATH\n")
    who = {"HOME": str(home), "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}

    assert path_in_node(place, **who)[0] == "/opt/login"
    assert path_in_node(place, **who)[0] == "/opt/login"
    assert place.lines() == ["run"], "one run of the shell a daemon"
    assert "/opt/login" not in path_in_node(place, TERM="xterm", **who)


# ---- show, logs, timeouts, help -----------------------------------------------------------------------------------


def test_logs_follow_what_is_printed_and_end_with_the_attempt(place: Workspace) -> None:
    wait = f"while [ ! -e {place.base}/go ]; do sleep 0.05; done"
    script = f"for i in 1 2 3; do echo line $i; sleep 0.3; done; {wait}; echo last"
    ask(place, "run", "--detach", "--sh", f": talk; {script}")
    node = "node"
    while True:
        snapshot = json.loads(ask(place, "status", "@last", "--json"))["graphs"][0]
        node = snapshot["nodes"][0]["slug"]
        if snapshot["nodes"][0]["state"] == "running":
            break
    following = place.start("logs", node, "-f", "--graph", "@last")
    assert following.stdout is not None
    assert [following.stdout.readline() for _ in range(3)] == ["line 1\n", "line 2\n", "line 3\n"]
    (place.base / "go").touch()
    out, err = following.communicate(timeout=20)
    assert (out, err, following.returncode) == ("last\n", "", 0)


def test_logs_follow_over_a_restart_of_the_daemon(place: Workspace) -> None:
    wait = f"while [ ! -e {place.base}/go ]; do sleep 0.05; done"
    ask(place, "run", "--detach", "--sh", f"echo one; {wait}; echo two")
    while json.loads(ask(place, "status", "@last", "--json"))["graphs"][0]["counts"].get("running") != 1:
        pass
    following = place.start("logs", "echo", "-f", "--graph", "@last")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    ask(place, "stop")
    (place.base / "go").touch()
    out, _ = following.communicate(timeout=30)
    assert (out, following.returncode) == ("two\n", 0)


def test_show_draws_layers(place: Workspace) -> None:
    ask(place, "run", "--sh", "echo a", "--sh", "true", "--then", "echo c")
    text = ask(place, "show", "@last")
    first, second = text.split("layer 2")
    assert "echo " in first
    assert "true" in first
    assert "echo-2" in second
    found = json.loads(ask(place, "show", "@last", "--json"))
    assert found["layers"] == [["echo", "sh-true"], ["echo-2"]]
    assert found["text"].strip() == text.strip()


def test_a_timeout_counts_from_the_commands_start(place: Workspace) -> None:
    begun = time.monotonic()
    done = place.graphd("run", "--sh", "sleep 30", "--timeout", "1s")
    assert done.returncode == 124
    assert "the graph goes on" in done.stderr
    assert time.monotonic() - begun < 10
    ask(place, "cancel", "--wait")


def test_connect_says_that_it_can_leave_the_start_to_others(place: Workspace) -> None:
    assert "--no-start" in ask(place, "connect", "--help")
    done = place.graphd("connect", "--no-start", "--workspace", str(place.root))
    assert done.returncode == 5
    assert "graphd daemon --start" in done.stderr
    assert place.daemons() == []
