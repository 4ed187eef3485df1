"""`graphd watch` at a real terminal: asks are shown and answered with one key, leave when answered elsewhere."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.agents import AgentWorkspace, asks
from tests.kit.workspaces import Workspace

ONE = "nodes:\n  - { id: a, worker: build, prompt: Do it }\n"
GRAPHD = (sys.executable, "-m", "graphd")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\r")


class Terminal:
    """A command at a terminal of its own, its keys, and all that it wrote."""

    def __init__(self, workspace: Workspace, *words: str, program: tuple[str, ...] = GRAPHD, **extra: str) -> None:
        master, slave = pty.openpty()
        environment = {**workspace.environment, "TERM": "xterm", "COLUMNS": "200", "LINES": "40", **extra}
        self._command = subprocess.Popen(
            [*program, *words], cwd=workspace.root, env=environment, stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True,
            preexec_fn=lambda: _take_terminal(slave),  # noqa: PLW1509  # the child is ours alone, and has no threads
        )  # fmt: skip
        os.close(slave)
        self.master = master
        self._seen = 0
        self.pid = self._command.pid
        self.text = ""
        self.raw = ""

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, wanted: str, *, within_s: float = 30) -> None:
        """Until this was written, after all that was waited for before."""
        deadline = time.monotonic() + within_s
        while (found := self.text.find(wanted, self._seen)) < 0:
            assert time.monotonic() < deadline, f"no {wanted!r} in:\n{self.text[self._seen :]}"
            self._read(0.2)
        self._seen = found + len(wanted)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        deadline = time.monotonic() + 30
        while self._command.poll() is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.1)
        self._read(0)
        return self._command.returncode

    def drain(self) -> None:
        """All that it wrote so far."""
        while select.select([self.master], [], [], 0.3)[0]:
            self._read(0)

    def close(self) -> None:
        if self._command.poll() is None:
            self._command.kill()
        self._command.wait()
        os.close(self.master)

    def _read(self, patience_s: float) -> None:
        ready, _, _ = select.select([self.master], [], [], patience_s)
        if ready:
            try:
                read = os.read(self.master, 1 << 16).decode(errors="replace")
                self.raw += read
                self.text += ESCAPES.sub("", read)
            except OSError:  # its end
                time.sleep(0.01)


def _take_terminal(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


@contextmanager
def at_terminal(
    workspace: Workspace, *words: str, program: tuple[str, ...] = GRAPHD, **extra: str
) -> Iterator[Terminal]:
    terminal = Terminal(workspace, *words, program=program, **extra)
    try:
        yield terminal
    finally:
        terminal.close()


def test_an_ask_is_shown_and_answered_with_a_key_for_the_scope_that_was_chosen(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks("/elsewhere/x"), asks("/elsewhere/y"), {"say": "done"}])
    agent.run(ONE)
    with at_terminal(workspace, "watch", "@last") as terminal:
        terminal.until("a asks: Change /elsewhere/x")
        terminal.until("s: for once")
        terminal.press("s")
        terminal.until("s: for attempt (edit /elsewhere/**)")
        terminal.press("2")  # Yes, once; the scope is ours
        assert terminal.end() == 0
    assert "\a" in terminal.text
    assert [line["outcome"]["optionId"] for line in agent.trace(did="asked")] == ["proceed_once", "proceed_once"]
    events = [event["payload"] for event in agent.history() if event["kind"] == "ask_answered"]
    assert [event.get("scope") for event in events] == ["attempt", None]


def test_an_ask_that_is_answered_elsewhere_leaves_and_the_next_one_comes(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks("/elsewhere/x"), asks("/other/y")], [{"say": "done"}])
    agent.run(ONE)
    with at_terminal(workspace, "watch", "@last") as terminal:
        terminal.until("a asks: Change /elsewhere/x")
        (ask,) = agent.asks()
        assert workspace.graphd("answer", ask["id"], "reject").returncode == 0
        terminal.until("a asks: Change /other/y")
        terminal.press("7")  # no key of this ask
        assert len(agent.asks()) == 1
        terminal.press("3")
        assert terminal.end() == 0
    assert [line["outcome"]["optionId"] for line in agent.trace(did="asked")] == ["no", "no"]


def test_ctrl_c_still_has_its_menu_while_an_ask_is_shown(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"say": "done"}])
    agent.run(ONE)
    with at_terminal(workspace, "watch", "@last") as terminal:
        terminal.until("a asks: Change")
        terminal.press("\x03")
        terminal.until("d: detach")
        terminal.press("2")  # of the menu: go on watching; no answer
        terminal.until("a asks: Change")
        assert len(agent.asks()) == 1
        terminal.press("\x03")
        terminal.until("d: detach")
        terminal.press("d")
        assert terminal.end() == 130
    assert len(agent.asks()) == 1
    assert agent.nodes()["a"]["state"] == "running"


def test_attach_reads_along_answers_and_ends_with_the_attempt(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "I begin."}, asks(), {"say": "I am done."}])
    agent.run(ONE)
    with at_terminal(workspace, "attach", "a") as terminal:
        terminal.until("a asks: Change")
        terminal.press("2")
        assert terminal.end() == 0
        assert "I begin." in terminal.text
        assert "I am done." in terminal.text
    assert [line["outcome"]["optionId"] for line in agent.trace(did="asked")] == ["proceed_once"]


def test_leaving_an_attached_node_stops_nothing(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"say": "done"}])
    agent.run(ONE)
    with at_terminal(workspace, "attach", "a") as terminal:
        terminal.until("a asks: Change")
        terminal.press("\x03")
        terminal.until("detached; a goes on")
        assert terminal.end() == 130
    assert len(agent.asks()) == 1
