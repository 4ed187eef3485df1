"""The clients that docs/protocol.md and docs/how-to/scripts.md show do what the pages say."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.documented import block
from tests.kit.workspaces import Workspace


def environment(workspace: Workspace) -> dict[str, str]:
    """With `graphd` on the PATH."""
    return {**workspace.environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("page", ["docs/protocol.md", "docs/how-to/scripts.md"])
def test_the_clients_are_short(page: str) -> None:
    assert len([line for line in block(page, "python").splitlines() if line.strip()]) <= 20
    assert len(block(page, "sh").splitlines()) <= 20


def test_the_python_client_goes_on_when_the_daemon_is_killed(workspace: Workspace) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", block("docs/protocol.md", "python")],
        cwd=workspace.root,
        env=environment(workspace),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    with client:
        first = client.stdout.readline()
        while "running" not in first:
            first = client.stdout.readline()
            assert first, client.stderr.read() if client.stderr else ""
        for pid in workspace.daemons():
            os.kill(pid, signal.SIGKILL)
        rest, errors = client.communicate(timeout=60)
    lines = [first, *rest.splitlines()]
    assert client.returncode == 0, errors
    assert lines[-1] == "complete"
    revs = [int(line.split()[0]) for line in lines[:-1]]
    assert revs == sorted(set(revs))
    workspace.graphd("stop", "--cancel")


def test_the_shell_client_sees_its_graph_end(workspace: Workspace) -> None:
    ran = subprocess.run(
        ["sh", "-c", block("docs/protocol.md", "sh")],
        cwd=workspace.root,
        env=environment(workspace),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout == '"status":"complete"\n', ran.stderr
    workspace.graphd("stop", "--cancel")


def test_the_script_ends_with_its_graph(workspace: Workspace) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", block("docs/how-to/scripts.md", "python")],
        cwd=workspace.root,
        env=environment(workspace),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert " complete " in ran.stdout.splitlines()[-1]
    workspace.graphd("stop", "--cancel")
