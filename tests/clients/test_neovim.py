"""A real Neovim, a real daemon: what a person does in the editor, and what the cells of the screen say."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.neovim import CLIENT, Neovim
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
GATED = """title: Gated
nodes:
  - { id: wait, run: 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo through' }
  - { id: last, needs: [wait], run: 'cat "$GRAPHD_INPUT_DIR"/*' }
"""


def workflow(room: Workspace, text: str = GATED, name: str = "flow") -> Path:
    path = room.root / ".agents" / "workflows" / f"{name}.yaml"
    path.write_text(text)
    return path


def test_nothing_is_loaded_before_it_is_used(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    loaded = (
        "return vim.tbl_filter(function(name) return vim.startswith(name, 'graphd') end, vim.tbl_keys(package.loaded))"
    )
    assert editor.lua(loaded) == []
    assert editor.lua("return vim.fn.exists(':Graphd')") == 2
    assert editor.lua("return vim.fn.maparg('<Plug>(graphd-run)', 'n')") == "<Cmd>Graphd run<CR>"
    assert not room.daemons()


def test_a_workflow_is_run_and_watched_in_the_tree_and_in_its_file(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.sees("title: Gated Run")
    editor.command("lua vim.lsp.codelens.run()")
    editor.sees("running", "Pause")
    editor.command("Graphd")
    editor.sees("▾ ● Gated  active, 0 of 2", "● wait", "○ last  needs wait")
    (room.root / "go").touch()
    editor.sees("✓ Gated  complete, 2 of 2", "achieved")


def catalogue() -> tuple[set[str], set[str]]:
    """(what the sources say, what there is in Chinese)."""
    literal = r"'((?:[^'\\]|\\.)*)'"
    said, known = set(), set()
    for path in sorted((CLIENT / "lua" / "graphd").glob("*.lua")):
        if path.stem == "chinese":
            known |= set(re.findall(rf"^  \[{literal}\] =", path.read_text(), re.MULTILINE))
        else:
            said |= set(re.findall(rf"(?<![\w.:])t\(\s*{literal}", path.read_text()))
    return said, known


def test_every_message_is_there_in_chinese() -> None:
    said, known = catalogue()
    assert len(said) > 50
    assert known == said
