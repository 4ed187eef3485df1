"""Daemons and editors that die: the view heals, the graph goes on, and nobody's exit stops anything."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.kit.neovim import Neovim, Refusal, workflow
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
HASTE = """
local defer = vim.defer_fn
waits = {}
vim.defer_fn = function(act, ms)
  table.insert(waits, ms)
  return defer(act, math.min(ms, 30))
end
"""
STATE = "require('graphd.workspace').current().state"


def kill_daemon(room: Workspace) -> None:
    for pid in room.daemons():
        os.kill(pid, signal.SIGKILL)


def watching(room: Workspace, neovim: Start) -> Neovim:
    """An editor with a running graph in its tree, which notes every state of its connection."""
    editor = neovim()
    editor.lua(
        "states = {}; vim.api.nvim_create_autocmd('User', { pattern = 'GraphdState', callback = function(event)"
        " states[#states + 1] = event.data.state end })"
    )
    editor.edit(workflow(room))
    editor.command("Graphd run")
    editor.told("started")
    editor.command("Graphd")
    editor.sees("● Gated  active, 0 of 2", "● wait")
    return editor


def test_the_view_heals_after_the_daemon_was_killed(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    kill_daemon(room)
    healing = editor.sees("reconnecting")
    assert "● Gated  active" in healing, "what was known stays drawn"
    assert "● wait" in healing
    (room.root / "go").touch()
    editor.sees("✓ Gated  complete, 2 of 2")
    editor.until(lambda: "reconnecting" not in editor.screen())
    assert editor.lua("return states")[-3:] == ["lost", "starting", "live"]
    editor.sees("achieved", "Run")  # the file's lenses and states are alive too


def test_what_was_asked_meanwhile_is_done_once_it_is_back(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    kill_daemon(room)
    editor.becomes(f"{STATE} == 'lost'")
    editor.command("Graphd pause")
    editor.told("Gated: paused")
    editor.sees("‖ Gated  user_paused")


def test_output_goes_on_over_a_restart_of_the_daemon(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    editor.command("Graphd logs wait")
    editor.sees("wait@1 · running", "begun")
    kill_daemon(room)
    (room.root / "go").touch()
    editor.sees("wait@1 · ended", "through")
    assert editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)") == ["begun", "through", ""]


def test_a_daemon_that_was_stopped_is_not_started_again_until_asked(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    room.graphd("stop")
    editor.sees("! stopped; to connect again")
    with pytest.raises(Refusal, match="to connect again: :Graphd restart"):
        editor.command("Graphd pause")
    editor.until(lambda: not room.daemons(), "the daemon ends, and stays away")
    editor.command("Graphd restart")
    editor.becomes(f"{STATE} == 'live'")
    editor.until(lambda: "stopped;" not in editor.screen())


def test_it_gives_up_after_five_losses_and_says_so(room: Workspace, neovim: Start) -> None:
    broken = room.base / "broken"
    broken.write_text("#!/bin/sh\necho no >&2\nexit 3\n")
    broken.chmod(0o755)
    editor = neovim(program=str(broken))
    editor.lua(HASTE)
    editor.command("Graphd tree")
    editor.sees("! not connected; to connect again", "graphd connect ended with 3")
    editor.told("to connect again: :Graphd restart")
    waits = [ms for ms in editor.lua("return waits") if ms in (1000, 2000, 5000)]
    assert waits == [1000, 2000, 5000, 5000]


def test_a_killed_editor_stops_nothing_and_the_next_one_sees_it(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    editor.kill()
    assert room.daemons()
    again = neovim()
    again.command("Graphd tree")
    again.sees("● Gated  active, 0 of 2", "● wait")
    again.close()
    assert room.daemons(), "leaving stops nothing either"
    (room.root / "go").touch()
    status = room.graphd("watch", "@last")
    assert status.returncode == 0, status.stdout + status.stderr


def test_what_one_editor_does_another_sees(room: Workspace, neovim: Start) -> None:
    first, second = watching(room, neovim), neovim()
    second.command("Graphd tree")
    second.sees("● Gated  active")
    first.command("Graphd pause")
    second.sees("‖ Gated  user_paused")
    second.command("Graphd resume")
    first.sees("● Gated  active")


def test_a_restart_by_hand_begins_anew_without_a_loss(room: Workspace, neovim: Start) -> None:
    editor = watching(room, neovim)
    editor.command("Graphd restart")
    editor.becomes(f"{STATE} == 'live'")
    (room.root / "go").touch()
    editor.sees("✓ Gated  complete, 2 of 2", "achieved")
    assert "lost" not in editor.lua("return states")
    assert editor.lua("return #vim.lsp.get_clients({ name = 'graphd' })") == 1


def test_what_the_person_said_of_the_client_is_kept_but_never_its_program(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua(
        "vim.lsp.config('graphd', { cmd = { 'false' }, on_init = function() begun = true end,"
        " on_attach = function() attached = true end })"
    )
    editor.edit(workflow(room))
    editor.sees("title: Gated Run")
    assert editor.lua("return { begun, attached }") == [True, True]
