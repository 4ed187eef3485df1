"""Where something is missing, not trusted or in another language: what a person sees then, and what is never done."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import serving, workflow
from tests.kit.vscode import Code, Window
from tests.kit.workspaces import Workspace

pytestmark = [pytest.mark.editors, pytest.mark.timeout(180)]
Open = Callable[..., Window]
OLD_DAEMON = '''#!/usr/bin/python3
"""Speaks LSP, and the protocol of another time."""
import json, sys
while header := sys.stdin.buffer.readline():
    while (line := sys.stdin.buffer.readline()).strip():
        pass
    message = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
    if message.get("method") == "exit":
        break
    if "id" in message:
        answer = {"result": {"capabilities": {}}} if message["method"] == "initialize" else {"result": None}
        if message["method"] == "graphd/hello":
            data = {"code": "protocolMismatch", "hint": "update it", "retryable": False}
            answer = {"error": {"code": -32067, "message": "this daemon speaks protocol 7 to 9", "data": data}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
'''
FLOW = "title: 检查\nnodes:\n  - { id: fails, run: exit 3 }\n  - { id: holds, run: sleep 60 }\n"


@pytest.fixture(scope="module")
def code() -> Iterator[Code]:
    """A server that asks whether folders are trusted, and has no graphd on its PATH."""
    yield from serving(is_trusting=False, path="/usr/bin:/bin")


def in_venv(project: Workspace, text: str = "") -> None:
    """Put the program where a project's own environment has it: ours, or a script."""
    program = project.root / ".venv" / "bin" / "graphd"
    program.parent.mkdir(parents=True)
    if text:
        program.write_text(text)
        program.chmod(0o755)
    else:
        program.symlink_to(Path(sys.executable).with_name("graphd"))


def test_nothing_is_run_in_a_folder_that_is_not_trusted(open_window: Open, project: Workspace) -> None:
    made = project.root / "ran"
    in_venv(project, f"#!/bin/sh\ntouch {made}\n")
    path = workflow(project, "flow.yaml", FLOW)
    window = open_window(path, security__workspace__trust__startupPrompt="never")
    window.show_view()
    window.see(window.page.get_by_role("button", name="Manage Trust"))
    window.see(window.page.locator(".statusbar-item a[aria-label*='this workspace is not trusted']"))
    window.picture("untrusted")
    assert not made.exists()
    assert not project.daemons()


def test_a_program_that_is_missing_is_named_with_the_way_to_get_it(open_window: Open, project: Workspace) -> None:
    path = workflow(project, "flow.yaml", FLOW)
    settings = project.root / ".vscode" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"graphd.path": "/bin/true"}))
    window = open_window(path, security__workspace__trust__enabled=False)
    window.show_view()
    window.see(window.page.get_by_role("button", name="Show the Install Command"))
    window.see(window.page.get_by_text("The program graphd was not found"))
    window.picture("missing")
    in_venv(project)
    window.page.get_by_role("button", name="Look Again").click()
    window.see(window.lens("Run"))
    window.see(window.page.get_by_role("button", name="Run a Workflow"))


def test_a_daemon_of_another_protocol_is_named_and_left_alone(open_window: Open, project: Workspace) -> None:
    in_venv(project, OLD_DAEMON)
    window = open_window(workflow(project, "flow.yaml", FLOW), security__workspace__trust__enabled=False)
    window.show_view()
    window.see(window.page.get_by_text("speak different protocols"))
    window.see(window.page.get_by_role("button", name="Connect Again"))
    window.see(window.page.locator(".statusbar-item a[aria-label*='this daemon speaks protocol 7 to 9 (update it)']"))


def test_a_connection_that_fails_once_is_tried_again_in_silence(open_window: Open, project: Workspace) -> None:
    ours, tried = Path(sys.executable).with_name("graphd"), project.root / "tried"
    in_venv(project, f'#!/bin/sh\ntest -e {tried} || {{ touch {tried}; exit 3; }}\nexec {ours} "$@"\n')
    window = open_window(workflow(project, "flow.yaml", FLOW), security__workspace__trust__enabled=False)
    window.see(window.lens("Run"))
    assert tried.exists()
    window.gone(window.page.locator(".notifications-toasts .notification-list-item"))


def test_everything_is_chinese_where_the_editor_is(open_window: Open, project: Workspace) -> None:
    path = workflow(project, "flow.yaml", FLOW)
    in_venv(project)
    window = open_window(path, language="zh-cn", security__workspace__trust__enabled=False)
    window.show_view()
    window.see(window.page.get_by_role("button", name="运行工作流").first)
    window.see(window.lens("运行")).click()
    window.see(window.row(re.compile("^holds, running")))
    window.see(window.message("失败：fails"))
    window.command("graphd: 在侧边打开图")
    window.see(window.panel().get_by_role("button", name="取消"))
    window.see(window.panel().get_by_text("图的文字说明"))
    window.picture("chinese")
