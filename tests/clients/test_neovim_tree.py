"""The tree of a real Neovim: what its keys do, where the cursor stays, and what can be read from it."""

import subprocess
from collections.abc import Callable

import pytest

from tests.kit.agents import AgentWorkspace
from tests.kit.neovim import Neovim, workflow
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
FAILING = """title: Failing
nodes:
  - { id: flaky, run: 'test -e go', required: true }
  - { id: after, needs: [flaky], run: 'echo done' }
"""
MAPPED = """
return vim.tbl_map(function(map) return map.lhs end, vim.api.nvim_buf_get_keymap(0, 'n'))
"""
GROUPS = """
return vim.tbl_map(function(mark)
  return mark[4].hl_group
end, vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true }))
"""
HERE = "vim.api.nvim_get_current_line()"


def tree(room: Workspace, neovim: Start, text: str | None = None) -> Neovim:
    """An editor with one running workflow in its tree, the cursor on the graph."""
    editor = neovim()
    editor.edit(workflow(room) if text is None else workflow(room, text))
    editor.command("Graphd run")
    editor.told("started")
    editor.command("Graphd")
    editor.sees("▾")
    return editor


def on(editor: Neovim, text: str) -> None:
    """The cursor on the row that says this."""
    editor.until(lambda: editor.lua("return vim.fn.search(..., 'w')", text) > 0, text)


def test_a_graph_is_paused_resumed_and_cancelled(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    on(editor, "Gated")
    editor.keys("p")
    editor.sees("‖ Gated  user_paused")
    editor.keys("p")
    editor.told("Pause is not possible now: user_paused")
    editor.keys("c")
    editor.sees("● Gated  active")
    editor.keys("x")
    editor.sees("Cancel Gated?", "1  Cancel it", "2  No")
    editor.keys("2")
    editor.until(lambda: "Cancel Gated?" not in editor.screen())
    assert "active" in editor.screen()
    editor.keys("x")
    editor.sees("1  Cancel it")
    editor.keys("1")
    editor.sees("✕ Gated  cancelled")


def test_a_failed_node_is_tried_again(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim, FAILING)
    editor.sees("✗ flaky  exec_failed", "flaky")
    on(editor, "after")
    editor.keys("w")
    editor.sees("Why after", "flaky")
    editor.keys("q")
    (room.root / "go").touch()
    on(editor, "flaky  exec")
    editor.keys("r")
    editor.told("flaky: tried again")
    editor.sees("✓ Failing  complete, 2 of 2")
    on(editor, "Failing")
    editor.keys("<CR>")
    on(editor, "flaky")
    editor.keys("r")
    editor.told("Retry is not possible now")


def test_rows_open_and_the_cursor_stays_on_its_row(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    on(editor, "last  needs")
    room.graphd("run", "--sh", "echo x", "--detach")
    editor.until(lambda: editor.lua("return vim.api.nvim_buf_line_count(0)") == 5)
    assert "last" in editor.lua(f"return {HERE}")
    on(editor, "● wait")
    editor.keys("l")
    editor.sees("● wait@1")
    on(editor, "wait@1")
    editor.keys("r")
    editor.told("Retry is not possible now")  # the node's, not all that failed
    on(editor, "● wait  ")
    editor.keys("h")
    editor.until(lambda: "wait@1" not in editor.screen())
    assert "● wait" in editor.lua(f"return {HERE}")


def test_output_follows_and_ends(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    on(editor, "● wait")
    editor.keys("o")
    editor.sees("wait@1 · running", "begun")
    (room.root / "go").touch()
    editor.sees("wait@1 · ended", "through")
    editor.keys("q")
    editor.sees("complete")
    on(editor, "Gated")
    editor.keys("<CR>")
    on(editor, "✓ last")
    editor.keys("o")
    editor.sees("last · result", "through")


def test_the_drawing_goes_on_with_the_graph(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    editor.keys("D")
    editor.sees("┌", "wait", "last")
    (room.root / "go").touch()
    editor.until(lambda: "GraphdAchieved" in editor.lua(GROUPS))


def test_the_keys_are_shown_and_every_one_is_there(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    mapped = set(editor.lua(MAPPED))
    editor.keys("g?")
    shown = editor.sees("Keys", "these keys")
    assert mapped == {"<CR>", "l", "h", "o", "r", "p", "c", "s", "x", "w", "d", "D", "a", ".", "R", "q", "g?"}
    assert all(f" {key} " in shown for key in mapped)


def test_all_commands_of_a_row_are_offered_those_that_are_not_possible_too(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    on(editor, "Gated")
    editor.keys(".")
    editor.sees("Pause", "Resume (not now)", "Cancel")
    editor.keys("1")
    editor.sees("‖ Gated  user_paused")


def test_a_plan_is_saved_and_run_again_and_a_signal_is_given(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim, "title: Waiting\nnodes:\n  - { id: gate, wait: { signal: shipped } }\n")
    editor.command("Graphd signal shipped")
    editor.told("shipped: 1 woken")
    editor.sees("✓ Waiting  complete")
    on(editor, "Waiting")
    editor.command("Graphd rerun")
    editor.sees("● Waiting  active", "✓ Waiting  complete")
    editor.command("wincmd l")
    editor.command("Graphd save copied")
    editor.becomes("vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'copied.yaml'")
    assert "shipped" in (room.root / ".agents" / "workflows" / "copied.yaml").read_text()


def test_what_a_node_changed_is_read_as_a_diff(room: Workspace, neovim: Start) -> None:
    (room.root / "changed").write_text("before\n")
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", str(room.root), *words], check=True)
    AgentWorkspace(room, [{"files": {"changed": "after\n"}}, {"say": "done"}])
    editor = tree(room, neovim, "title: Changing\nnodes:\n  - { id: a, worker: build, prompt: Do it }\n")
    editor.sees("✓ Changing  complete")
    on(editor, "Changing")
    editor.keys("l")
    on(editor, "✓ a")
    editor.keys("d")
    editor.sees("What a changed", "-before", "+after")
    assert editor.lua("return vim.bo.filetype") == "diff"


def test_the_graphs_are_told_on_one_line_each(room: Workspace, neovim: Start) -> None:
    editor = tree(room, neovim)
    editor.command("Graphd status")
    editor.until(lambda: editor.screen().splitlines()[-1].startswith("● Gated  active, 0 of 2"))
