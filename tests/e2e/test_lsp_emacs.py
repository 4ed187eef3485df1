"""A real Emacs with eglot, in batch: the strictest client about what it is sent. Its set-up is the one of the docs.

Fails, never skips, in CI; on a machine without Emacs it is skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.documented import block
from tests.kit.workspaces import Workspace

SCRIPT = Path(__file__).parents[1] / "data" / "emacs" / "eglot.el"
FLOW = """title: From Emacs
nodes:
  - { name: "🚀 wait", id: wait, run: echo through }
  - { id: last, needs: [wat], run: 'cat "$GRAPHD_INPUT_DIR"/*' }
"""


def has_eglot() -> bool:
    """Emacs and a package of eglot (not `-Q`: Debian's site-start has to run)."""
    if shutil.which("emacs") is None:
        return False
    asked = subprocess.run(
        ["emacs", "--batch", "-q", "--eval", "(require 'eglot)"], capture_output=True, timeout=60, check=False
    )
    return asked.returncode == 0


def test_a_session_of_emacs(workspace: Workspace) -> None:
    if not has_eglot():
        if os.environ.get("CI") == "true":
            pytest.fail("CI has to have emacs-nox and elpa-eglot")
        pytest.skip("no emacs with eglot here")
    (workspace.root / ".agents" / "workflows").mkdir(parents=True)
    path = workspace.root / ".agents" / "workflows" / "flow.yaml"
    path.write_text(FLOW)
    root = Path(__file__).parents[2]
    set_up = workspace.base / "init.el"
    set_up.write_text(block("docs/how-to/editors.md", "elisp"))
    program = workspace.base / "bin" / "graphd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphd "$@"\n')
    program.chmod(0o755)
    ran = subprocess.run(
        ["emacs", "--batch", "-q", "-l", str(set_up), "-l", str(SCRIPT)],
        env={
            **workspace.environment,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "WORKFLOW": str(path),
            "HOME": str(workspace.base),
            "PYTHONPATH": str(root),
            "LANG": "C.UTF-8",
        },
        cwd=workspace.root,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    steps = [line.removeprefix("OK ") for line in ran.stdout.splitlines() if line.startswith("OK ")]
    assert ran.stdout.endswith("DONE\n"), f"{steps}\n{ran.stderr[-3000:]}"
    assert steps == [
        "connected to graphd",
        "diagnostic at wat",
        "completion",
        "mended",
        "unsaved: -32076",
        "renamed",
        "definition",
        "ran",
        "actions",
        "shut down",
    ]
    assert "id: hold" in path.read_text()
    assert workspace.daemons(), "Emacs ended, the daemon did not"
