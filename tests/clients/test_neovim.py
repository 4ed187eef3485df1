"""A workflow file in a real Neovim: mended, run from its lens, watched, changed while it runs."""

import time
from collections.abc import Callable

import pytest

from tests.kit.neovim import GATED, Neovim, workflow
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
FIX = """
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == 'write wait for wat' end })
"""


def test_a_broken_workflow_is_mended_by_a_quick_fix(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    path = workflow(room, GATED.replace("needs: [wait]", "needs: [wat]"))
    editor.edit(path)
    editor.becomes("#vim.diagnostic.get(0) == 1")
    assert "wat" in editor.lua("return vim.diagnostic.get(0)[1].message")
    editor.command("call cursor(4, 25)")
    editor.lua(FIX)
    editor.becomes("vim.api.nvim_buf_get_lines(0, 3, 4, false)[1]:find('needs: [wait]', 1, true) ~= nil")
    editor.becomes("#vim.diagnostic.get(0) == 0")


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


def test_states_are_shown_once_where_inlay_hints_are_on(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.command("Graphd run")
    editor.sees("running")
    editor.lua("vim.lsp.inlay_hint.enable(true)")
    (room.root / "go").touch()
    editor.until(lambda: editor.screen().count("achieved") == 2)
    marks = "#vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('graphd.states'), 0, -1, {})"
    assert editor.lua(f"return {marks}") == 0


def test_a_run_writes_the_file_first(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.sees("title: Gated Run")
    editor.command("call setline(1, 'title: Renamed')")
    editor.command("Graphd run")
    editor.told("saved flow.yaml")
    editor.told("started Renamed")


def test_a_running_graph_takes_the_changed_file_once_it_was_accepted(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    path = workflow(room)
    editor.edit(path)
    editor.command("Graphd run")
    editor.sees("running")
    editor.command("call append(3, \"  - { id: extra, run: 'echo more' }\")")
    editor.command("Graphd apply")
    editor.sees("What this does to the running graph", "+ extra", "a: accept")
    time.sleep(0.8)
    assert ":Graphd asks" not in editor.messages(), "who proposed it is not told of it"
    assert "extra" not in room.graphd("status", "@last").stdout
    editor.keys("a")
    editor.told("the plan is changed")
    editor.until(lambda: "extra" in room.graphd("status", "@last").stdout)
    editor.command("Graphd apply")
    editor.told("nothing in the plan has changed")


def test_a_proposal_can_wait(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.command("Graphd run")
    editor.sees("running")
    editor.command("call append(3, \"  - { id: extra, run: 'echo more' }\")")
    editor.command("Graphd apply")
    editor.sees("+ extra")
    editor.keys("q")
    editor.command("Graphd dismiss")
    editor.told("the proposal is dismissed")
    assert "extra" not in room.graphd("status", "@last").stdout
