"""What a person does in VS Code with our extension: a real workbench, a real extension host, a real daemon."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clients.conftest import serving, workflow
from tests.kit.agents import AgentWorkspace, asks
from tests.kit.vscode import Code, Window
from tests.kit.waiting import until
from tests.kit.workspaces import Workspace

pytestmark = [pytest.mark.editors, pytest.mark.timeout(180)]
Open = Callable[..., Window]

BUILD = """title: Build and report
nodes:
  - { id: prepare, run: echo ready }
  - { id: lint, needs: [prepare], run: until test -e go; do sleep 0.1; done }
  - { id: tests, needs: [prepare], run: 'for i in 1 2 3; do echo test $i; done' }
  - { id: docs, needs: [prepare], run: 'test -e docs || exit 3' }
  - { id: report, needs: [lint, tests], run: cat "$GRAPHD_INPUT_DIR"/* }
  - { id: publish, needs: [report, docs], run: echo published }
"""


@pytest.fixture(scope="module")
def code() -> Iterator[Code]:
    """The server of this module: its default agent asks, then says that it is done."""
    for made in serving():
        AgentWorkspace(made.workspace, [asks(), {"say": "done"}])
        yield made


def is_running(window: Window, name: str) -> None:
    window.see(window.row(re.compile(f"^{name}, running")))


def read(project: Workspace, *words: str) -> Any:
    return json.loads(project.graphd(*words, "--json").stdout)


def graph_of(project: Workspace) -> str:
    return str(read(project, "status", "@last")["graphs"][0]["id"])


def test_a_broken_workflow_is_mended_by_a_quick_fix(open_window: Open, project: Workspace) -> None:
    path = workflow(
        project, "broken.yaml", "nodes:\n  - { id: lint, run: echo 1 }\n  - { id: last, needs: [lnt], run: echo 2 }\n"
    )
    window = open_window(path)
    window.see(window.page.locator(".squiggly-error"))
    window.editor().get_by_text("lnt").first.click()
    window.page.keyboard.press("ControlOrMeta+.")
    window.see(window.page.locator(".action-widget .monaco-list-row").filter(has_text="lint"))
    window.picture("quick-fix")
    window.page.keyboard.press("Enter")
    window.gone(window.page.locator(".squiggly-error"))
    window.page.keyboard.press("ControlOrMeta+s")
    until(lambda: "needs: [lint]" in path.read_text())


def test_a_run_from_a_lens_shows_in_tree_hints_and_panel(open_window: Open, project: Workspace) -> None:
    path = workflow(project, "build.yaml", BUILD)
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run"))
    window.editor().click()
    window.page.keyboard.press("ControlOrMeta+Home")
    window.page.keyboard.type("# edited\n")
    window.lens("Run").click()
    is_running(window, "lint")
    assert path.read_text().startswith("# edited\n"), "it is saved before it is run"
    window.see(window.row(re.compile("^docs, failed")))
    window.see(window.status(re.compile(r"[34]/6")))
    window.see(window.editor().get_by_text(re.compile("achieved")).first)
    window.command("graphd: Open Graph to the Side")
    window.see(window.panel().locator("g.node.running[data-node=lint]"))
    window.see(window.panel().locator("g.node.failed[data-node=docs]"))
    window.picture("run-dark")
    before = window.node("publish").element_handle()
    (project.root / "go").touch()
    window.see(window.panel().locator("g.node.achieved[data-node=report]"))
    window.see(window.row(re.compile("^report, achieved")))
    assert before.evaluate("node => node.isConnected"), "the drawing was not made anew"
    window.picture("done-dark")
    window.command("Preferences: Toggle between Light/Dark Themes")
    window.see(window.page.locator(".monaco-workbench.vs"))
    window.node("lint").focus()
    window.page.keyboard.press("ArrowRight")
    window.see(window.panel().locator("g[data-node=tests]:focus"))
    window.picture("done-light")
    window.page.keyboard.press("Enter")
    window.see(window.tab("tests@1.txt"))
    window.see(window.editor().get_by_text("test 3"))


def test_an_ask_is_answered_with_a_scope_and_gone_when_answered_elsewhere(
    open_window: Open, project: Workspace
) -> None:
    path = workflow(project, "agent.yaml", "nodes:\n  - { id: build, worker: build, prompt: Do it }\n")
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run")).click()
    message = window.see(window.message("build asks"))
    window.picture("ask")
    window.see(window.row(re.compile("^build, running")))
    message.get_by_role("link", name="More…").click()
    window.see(window.page.locator(".quick-input-list .monaco-list-row").filter(has_text="covers"))
    window.picture("ask-scopes")
    window.pick("for the rest of this attempt")
    window.gone(window.message("build asks"))
    window.see(window.row(re.compile("^build, achieved")))
    window.see(window.lens("Run")).click()
    window.see(window.message("build asks"))
    (ask,) = read(project, "ask")
    project.graphd("answer", ask["id"], "allow")
    window.gone(window.message("build asks"))


def test_output_is_followed_while_it_grows(open_window: Open, project: Workspace) -> None:
    text = (
        "nodes:\n  - { id: talk, run: 'echo first; until test -e go; do sleep 0.1; done; seq 200; echo last line' }\n"
    )
    path = workflow(project, "talk.yaml", text)
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run")).click()
    is_running(window, "talk")
    window.see(window.row(re.compile("^talk, running"))).click()
    window.see(window.tab("talk@1.txt"))
    window.see(window.editor().get_by_text("first"))
    (project.root / "go").touch()
    window.see(window.editor().get_by_text("last line"))
    window.picture("output")


def test_pause_resume_retry_and_cancel(open_window: Open, project: Workspace) -> None:
    workflow(project, "build.yaml", BUILD)
    window = open_window()
    window.show_view()
    window.command("graphd: Run Workflow…")
    window.pick("build")
    is_running(window, "lint")
    window.see(window.row(re.compile("^docs, failed")))
    window.command("graphd: Pause Graph")
    window.see(window.row(re.compile("^Build and report, user paused")))
    window.command("graphd: Resume Graph")
    window.see(window.row(re.compile("^Build and report, active")))
    (project.root / "docs").touch()
    window.command("graphd: Retry Node")
    window.see(window.row(re.compile("^docs, achieved")))
    window.row(re.compile("^docs, achieved")).hover()
    window.picture("steered")
    window.command("graphd: Cancel Graph…")
    dialog = window.see(window.page.locator(".monaco-dialog-box"))
    window.picture("cancel")
    dialog.get_by_role("button", name="Cancel the Graph").click()
    window.see(window.row(re.compile("^Build and report, cancelled")))


def test_an_edited_file_is_applied_to_the_running_graph(open_window: Open, project: Workspace) -> None:
    path = workflow(
        project, "grow.yaml", "title: Grow\nnodes:\n  - { id: hold, run: until test -e go; do sleep 0.1; done }\n"
    )
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run")).click()
    is_running(window, "hold")
    window.editor().click()
    window.page.keyboard.press("ControlOrMeta+End")
    window.page.keyboard.type("  - { id: more, needs: [hold], run: echo more }")
    window.see(window.lens("Apply to the running graph")).click()
    dialog = window.see(window.page.locator(".monaco-dialog-box"))
    window.see(dialog.get_by_text("+ more"))
    window.picture("apply")
    dialog.get_by_role("button", name="Apply").click()
    window.see(window.row(re.compile("^more, waiting")))
    (project.root / "go").touch()
    window.see(window.row(re.compile("^more, achieved")))


def test_a_window_that_is_opened_again_shows_what_went_on(open_window: Open, project: Workspace) -> None:
    path = workflow(project, "build.yaml", BUILD)
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run")).click()
    is_running(window, "lint")
    window.command("graphd: Open Graph to the Side")
    window.see(window.node("publish"))
    window.reopen(graph_of(project))
    window.show_view()
    (project.root / "go").touch()
    window.see(window.panel().locator("g.node.achieved[data-node=report]"), timeout_ms=60_000)
    window.see(window.row(re.compile("^Build and report, complete")))
    window.picture("reopened")


def test_the_view_heals_after_the_daemon_was_killed(open_window: Open, project: Workspace) -> None:
    path = workflow(project, "build.yaml", BUILD)
    window = open_window(path)
    window.show_view()
    window.see(window.lens("Run")).click()
    is_running(window, "lint")
    (pid,) = project.daemons()
    os.kill(pid, signal.SIGKILL)
    window.see(window.page.get_by_text("Reconnecting to graphd…"))
    is_running(window, "lint")
    window.picture("reconnecting")
    window.gone(window.page.get_by_text("Reconnecting to graphd…"))
    (project.root / "go").touch()
    window.see(window.row(re.compile("^report, achieved")))
    window.see(window.lens("Retry what failed"))
