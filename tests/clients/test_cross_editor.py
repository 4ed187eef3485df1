"""A Neovim and a VS Code window on one project: one live state, which either may steer, and nobody's exit stops."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clients.conftest import serving, workflow
from tests.kit.agents import AgentWorkspace, asks
from tests.kit.neovim import Neovim
from tests.kit.vscode import Code, Window
from tests.kit.waiting import until
from tests.kit.workspaces import Workspace

pytestmark = [pytest.mark.editors, pytest.mark.timeout(180)]
Open = Callable[..., Window]
Start = Callable[..., Neovim]

ASKING = "title: Asking\nnodes:\n  - { id: build, worker: build, prompt: Do it }\n"
GROW = """title: Grow
nodes:
  - { id: hold, run: 'until test -e go; do sleep 0.1; done; echo held' }
  - { id: last, needs: [hold], run: 'cat "$GRAPHD_INPUT_DIR"/*' }
"""
HELD = """
local found = {}
for id, held in pairs(require('graphd').graphs()) do
  local states = {}
  for slug, node in pairs(held.nodes) do
    states[slug] = node.state
  end
  found[id] = { rev = held.rev, status = held.header.status, nodes = states }
end
return found
"""
NOTING = """
states = {}
vim.api.nvim_create_autocmd('User', { pattern = 'GraphdState', callback = function(event)
  table.insert(states, event.data.state)
end })
"""


@pytest.fixture(scope="module")
def code() -> Iterator[Code]:
    """The server of this module: its agent asks twice, then goes on until it is let go."""
    for made in serving():
        go = str(made.workspace.base / "agent-go")
        AgentWorkspace(made.workspace, [asks("/elsewhere/x"), asks("/elsewhere/y"), {"until": go}, {"say": "done"}])
        yield made


@pytest.fixture
def room(project: Workspace) -> Workspace:
    """Neovims are started in the project of the window."""
    return project


def both(open_window: Open, neovim: Start, project: Workspace, text: str) -> tuple[Window, Neovim]:
    """A file that is open in both, beside the tree; its graph was started in VS Code."""
    path = workflow(project, "flow.yaml", text)
    window, editor = open_window(path), neovim()
    window.show_view()
    editor.edit(path)
    editor.command("Graphd tree")
    window.see(window.lens("Run")).click()
    return window, editor


def attached(project: Workspace) -> list[str]:
    """The pipes of editors to the daemon."""
    return [line for line in project.processes().values() if "graphd connect" in line]


def pictures(name: str, window: Window, editor: Neovim) -> None:
    """What both show now."""
    window.picture(name)
    editor.picture(name)


def told(project: Workspace) -> dict[str, Any]:
    """The graphs as a terminal sees them: rev, status, and each node's state."""
    graphs = json.loads(project.graphd("status", "@last", "--json").stdout)["graphs"]
    return {
        graph["id"]: {
            "rev": graph["rev"],
            "status": graph["status"],
            "nodes": {node["slug"]: node["state"] for node in graph["nodes"]},
        }
        for graph in graphs
    }


def drawn(window: Window) -> dict[str, Any]:
    """What the picture in the panel stands at."""
    page = window.panel()
    states = page.locator("g[data-node]").evaluate_all(
        "(nodes) => Object.fromEntries(nodes.map((node) => [node.dataset.node, node.classList[1]]))"
    )
    return {"rev": int(page.locator("#main").get_attribute("data-rev") or 0), "nodes": states}


def agree(project: Workspace, window: Window, editor: Neovim) -> None:
    """Both stand at the rev, and show the states, that a terminal sees."""

    def is_same() -> bool:
        (graph,) = (truth := told(project)).values()
        return bool(editor.lua(HELD) == truth and drawn(window) == {"rev": graph["rev"], "nodes": graph["nodes"]})

    until(is_same, said=lambda: f"{told(project)}\nNeovim: {editor.lua(HELD)}\nVS Code: {drawn(window)}")


def test_a_question_is_in_both_and_leaves_both_with_the_first_answer(
    open_window: Open, neovim: Start, project: Workspace, code: Code
) -> None:
    window, editor = both(open_window, neovim, project, ASKING)
    window.see(window.message("Change /elsewhere/x"))
    editor.sees("build  awaiting permission", "1 waits for an answer: a")
    editor.keys("a")
    editor.sees("build asks: Change /elsewhere/x", "2  Yes")
    pictures("cross-ask", window, editor)
    editor.keys("2")
    editor.told("answered")
    window.gone(window.message("Change /elsewhere/x"))
    message = window.see(window.message("Change /elsewhere/y"))
    editor.told("Change /elsewhere/y")
    editor.keys("a")
    editor.sees("╭ build asks: Change /elsewhere/y")
    message.get_by_role("link", name="Yes", exact=True).click()
    editor.told("already answered by vscode")
    editor.until(lambda: "╭" not in editor.screen(), "the question's window is taken away")
    editor.sees("id: build  running")
    window.gone(window.message("build asks"))
    window.see(window.editor().get_by_text("running"))
    pictures("cross-answered", window, editor)
    window.see(window.row(re.compile("^build, running")))
    (code.workspace.base / "agent-go").touch()
    window.see(window.row(re.compile("^build, achieved")))
    editor.sees("✓ Asking  complete")


def test_a_plan_that_is_changed_in_one_is_seen_in_the_other(
    open_window: Open, neovim: Start, project: Workspace
) -> None:
    window, editor = both(open_window, neovim, project, GROW)
    window.command("graphd: Open Graph to the Side")
    window.see(window.node("last"))
    editor.sees("● Grow  active, 0 of 2")
    editor.command("wincmd p")
    editor.command("call append('$', \"  - { id: more, needs: [hold], run: 'echo more' }\")")
    editor.command("Graphd apply")
    editor.sees("What this does to the running graph", "+ more")
    editor.keys("a")
    editor.told("the plan is changed")
    window.see(window.row(re.compile("^more, waiting")))
    window.see(window.node("more"))
    window.see(window.page.get_by_text("id: more"))
    agree(project, window, editor)
    pictures("cross-replanned", window, editor)
    editor.command("Graphd tree")
    editor.command("Graphd show")
    editor.sees("┌", " more ")
    window.tab("flow.yaml").click()
    window.editor().click()
    window.page.keyboard.press("ControlOrMeta+End")
    window.page.keyboard.type("  - { id: again, needs: [more], run: echo again }")
    window.see(window.lens("Apply to the running graph")).click()
    window.see(window.page.locator(".monaco-dialog-box")).get_by_role("button", name="Apply").click()
    editor.sees("○ again  needs more", "│ ○ again │")
    window.gone(window.lens("Apply to the running graph"))
    agree(project, window, editor)
    pictures("cross-replanned-back", window, editor)
    editor.command("close")
    editor.command("checktime")
    (project.root / "go").touch()
    editor.sees("✓ Grow  complete, 4 of 4", "id: more  achieved", "id: again  achieved")
    until(lambda: window.editor().get_by_text(re.compile("^achieved")).count() == 4)
    window.see(window.lens("Run"))
    agree(project, window, editor)
    pictures("cross-replanned-done", window, editor)


def test_both_leave_and_the_graph_goes_on_to_its_end(open_window: Open, neovim: Start, project: Workspace) -> None:
    window, editor = both(open_window, neovim, project, GROW)
    window.see(window.row(re.compile("^hold, running")))
    editor.sees("● hold  working")
    pictures("cross-leaving", window, editor)
    daemons, keepers = project.daemons(), project.keepers()
    editor.close()
    window.close()
    until(lambda: not attached(project), said=lambda: f"{attached(project)}")
    assert project.daemons() == daemons
    assert project.keepers() == keepers
    (project.root / "go").touch()
    until(lambda: [graph["status"] for graph in told(project).values()] == ["complete"])
    third = neovim()
    third.command("Graphd tree")
    third.sees("✓ Grow  complete, 2 of 2")
    third.picture("cross-left")


def test_both_heal_after_the_daemon_was_killed_and_agree(open_window: Open, neovim: Start, project: Workspace) -> None:
    window, editor = both(open_window, neovim, project, GROW)
    editor.lua(NOTING)
    window.see(window.row(re.compile("^hold, running")))
    window.command("graphd: Open Graph to the Side")
    window.see(window.panel().locator("g.node.running[data-node=hold]"))
    agree(project, window, editor)
    (pid,) = project.daemons()
    os.kill(pid, signal.SIGKILL)
    window.see(window.page.get_by_text("Reconnecting to graphd…"))
    window.see(window.panel().get_by_text("Reconnecting to graphd…"))
    pictures("cross-lost", window, editor)
    window.gone(window.page.get_by_text("Reconnecting to graphd…"))
    window.gone(window.panel().get_by_text("Reconnecting to graphd…"))
    editor.becomes("states[#states] == 'live'")
    assert editor.lua("return states")[0] == "lost"
    agree(project, window, editor)
    assert project.daemons() != [pid]
    (project.root / "go").touch()
    window.see(window.row(re.compile("^Grow, complete")))
    editor.sees("✓ Grow  complete, 2 of 2")
    window.see(window.lens("Run"))
    agree(project, window, editor)
    pictures("cross-healed", window, editor)
