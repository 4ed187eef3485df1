"""The extension's own session understands the golden conversations, said by a server that says what is written."""

import subprocess

import pytest

from tests.kit.editor_setup import ROOT, node
from tests.kit.golden import EXAMPLES

HOME = ROOT / "clients" / "vscode-min"


@pytest.mark.editors
def test_every_conversation_is_understood() -> None:
    paths = sorted(EXAMPLES.glob("*.jsonl"))
    ran = subprocess.run(
        [node(), "test/replay.mjs", *map(str, paths)], cwd=HOME, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = [line.split(":")[0] for line in ran.stdout.splitlines()]
    assert said == ["ok gap", *(f"ok {path.name}" for path in paths)]
