"""`graphd watch` and `run` at a real terminal: the keys that they show, and what came of each."""

import fcntl
import json
import os
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_agents_at_work import mcp
from tests.e2e.test_answers_at_a_terminal import ONE, Terminal, at_terminal
from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

SLOW = """\
nodes:
  - { id: first, run: 'echo early words; until [ -e "$GATE" ]; do sleep 0.05; done; echo late words' }
  - { id: bad, run: 'echo no such host >&2; exit 3' }
  - { id: second, needs: [first], run: echo 2 }
  - { id: third, needs: [second], run: echo 3 }
"""


class Slow:
    """A graph whose first node runs until it is let go."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.gate = workspace.base / "gate"
        text = SLOW.replace("$GATE", str(self.gate))
        (workspace.root / "w.yaml").write_text(text)
        ran = workspace.graphd("run", "w.yaml", "--yes", "--detach")
        assert ran.returncode == 0, ran.stderr

    def let_go(self) -> None:
        self.gate.touch()

    def status(self) -> dict[str, Any]:
        ran = self.workspace.graphd("status", "@last", "--json")
        return dict(json.loads(ran.stdout)["graphs"][0])


@pytest.fixture
def slow(workspace: Workspace) -> Slow:
    return Slow(workspace)


def test_keys_are_shown_and_a_node_is_chosen_opened_and_explained(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("q detach")
        terminal.until("›")
        terminal.press("G")  # none of ours
        terminal.press("\x1b[F")  # the last node
        terminal.press("r")
        terminal.until("r: third is waiting; what failed")
        terminal.press("\x1b[H")
        terminal.press("j")
        terminal.press("\r")
        terminal.until("needs")
        terminal.press("w")
        terminal.until("── why")
        terminal.press("?")
        terminal.until("n  step  (no node is ready)")
        terminal.press("?")
        terminal.press("q")
        assert terminal.end() == 130
    assert "detached; the graph goes on" in terminal.text
    assert "\x1b[?1049h" not in terminal.raw, "no alternate screen"
    assert "\x1b[?25h" in terminal.raw, "the cursor is back"
    assert slow.status()["status"] == "active"


def test_what_a_node_prints_is_followed_above_the_tree(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("q detach")
        terminal.press("o")
        terminal.until("── output first ──")
        terminal.until("early words")
        terminal.until("o stop output")
        begun = time.monotonic()
        terminal.press("q")
        assert terminal.end() == 130
    assert time.monotonic() - begun < 4, "what is followed holds nobody back"
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("q detach")
        terminal.press("o")
        terminal.until("early words")
        slow.let_go()
        terminal.until("late words")
        terminal.until("first: its output has ended")
        terminal.press("q")
        terminal.end()


def test_pausing_with_a_key_stays_steps_and_goes_on(slow: Slow) -> None:
    """Of a `run`, too: whoever steers is not put out of the tree by what they did."""
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("p pause")
        terminal.press("p")
        terminal.until("pause asked for")
        terminal.until("p resume")
        slow.let_go()
        terminal.until("n step")
        assert slow.status()["status"] == "user_paused"
        terminal.press("n")
        terminal.until("stepped second")  # lines that stay as they are, as the keys may, are not written again
        assert "✓ second" in terminal.text
        terminal.press("p")
        assert terminal.end() == 1, "bad failed"
    assert slow.status()["counts"] == {"achieved": 3, "failed": 1}


def test_leaving_a_graph_at_rest_ends_with_its_own_code_and_line(slow: Slow) -> None:
    slow.workspace.graphd("pause", "@last", "--stop", "--wait")
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("p resume")
        terminal.press("q")
        assert terminal.end() == 7
    assert "graphd resume" in terminal.text


def test_a_pipe_and_a_dumb_terminal_end_at_rest_as_ever(slow: Slow) -> None:
    slow.workspace.graphd("pause", "@last", "--stop", "--wait")
    ran = slow.workspace.graphd("watch", "@last")
    assert ran.returncode == 7
    assert "›" not in ran.stdout + ran.stderr
    slow.workspace.environment["TERM"] = "dumb"
    with at_terminal(slow.workspace, "watch", "@last", TERM="dumb") as terminal:
        assert terminal.end() == 7
    assert "\x1b" not in terminal.raw


def test_retry_of_the_chosen_node(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("✗ bad")
        terminal.press("\x1b[H")
        terminal.press("j")
        terminal.until("r retry")
        terminal.press("r")
        terminal.until("2/5")
        terminal.press("q")
        terminal.end()
    nodes = {node["slug"]: node for node in slow.status()["nodes"]}
    assert nodes["bad"]["attempts"] == 2


def test_cancel_asks_first_and_a_paste_is_no_answer(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("q detach")
        terminal.press("\x1b[200~cy\x1b[201~")
        terminal.until("what is pasted is no command")
        terminal.press("c")
        terminal.until("sure?")
        terminal.press("n")
        terminal.until("q detach")
        assert slow.status()["status"] == "active"
        terminal.press("c")
        terminal.until("sure?")
        terminal.press("y")
        assert terminal.end() == 3
    assert slow.status()["status"] == "cancelled"


def test_finish_takes_its_reason_from_a_line(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("f finish")
        terminal.press("f")
        terminal.until("it is enough because")
        terminal.press("够了q\x7f")
        terminal.until("够了▏")
        terminal.press("\r")
        terminal.until("finish asked for")
        slow.let_go()
        assert terminal.end() == 1, "bad failed"
    ran = slow.workspace.graphd("history", "@last", "--kind", "finish_requested", "--json")
    assert json.loads(ran.stdout)["payload"]["reason"] == "够了"


def test_ctrl_c_comes_before_everything_that_is_typed(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("f finish")
        terminal.press("f")
        terminal.until("it is enough because")
        terminal.press("\x03")
        terminal.until("d: detach")
        terminal.press("z")
        terminal.until("q detach")
        terminal.press("\x03")
        terminal.until("d: detach")
        terminal.press("\x03")
        assert terminal.end() == 130
    assert slow.status()["status"] == "active"


def test_a_narrow_terminal_no_colour_and_another_size_meanwhile(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last", NO_COLOR="1", COLUMNS="", LINES="") as terminal:
        resize(terminal, 15, 50)
        terminal.until("? all keys")
        resize(terminal, 30, 100)
        terminal.until("q detach  ? all keys")
        terminal.press("q")
        terminal.end()
    assert not [part for part in terminal.raw.split("\x1b[")[1:] if part[:2] in ("31", "32", "36") or "38;" in part[:4]]


def resize(terminal: Terminal, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_keys_are_named_in_chinese_for_a_chinese_reader(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last", LC_ALL="zh_CN.UTF-8") as terminal:
        terminal.until("p 暂停")
        terminal.press("n")
        terminal.until("n：没有就绪的节点")
        terminal.press("q")
        terminal.end()


def test_a_question_without_options_is_answered_on_a_line(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [mcp("ask_parent", question="Which <host>?"), {"say": "done"}])
    agent.run(ONE)
    with at_terminal(workspace, "watch", "@last") as terminal:
        terminal.until("a asks: Which <host>?   t: type the answer")
        terminal.press("t")
        terminal.until("Which <host>?:")
        terminal.press("staging 7\r")
        assert terminal.end() == 0
    (told,) = agent.trace(did="mcp", tool="ask_parent")
    assert "staging 7" in told["text"]


def test_a_proposal_is_accepted_with_a_key(workspace: Workspace) -> None:
    gate = workspace.base / "gate"
    first: list[Any] = [mcp("report_discovery", title="More", spec="Do more"), {"until": str(gate)}, {"say": "done"}]
    agent = AgentWorkspace(workspace, first, [{"say": "ok"}])
    (workspace.root / "w.yaml").write_text(ONE)
    workspace.graphd("run", "w.yaml", "--yes", "--detach")
    with at_terminal(workspace, "watch", "@last") as terminal:
        terminal.until("a accept")
        terminal.press("a")
        terminal.until("accept what")
        terminal.press("y")
        terminal.until("accept asked for")
        agent.until(lambda: len(agent.nodes()) == 2)
        gate.touch()
        assert terminal.end() == 0
    assert {node["state"] for node in agent.nodes().values()} == {"achieved"}


def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on_below(slow: Slow) -> None:
    with at_terminal(slow.workspace, "watch", "@last") as terminal:
        terminal.until("q detach")
        terminal.press("\x1a")
        until_state(terminal.pid, "T")
        terminal.drain()
        assert terminal.raw.rstrip().endswith("\x1b[?25h"), "its cursor is there for the shell"
        assert termios.tcgetattr(terminal.master)[3] & termios.ECHO
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.until("q detach")
        terminal.press("q")
        assert terminal.end() == 130


def until_state(pid: int, state: str) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_job_in_the_background_takes_no_keys_and_is_not_stopped(slow: Slow) -> None:
    """A shell of job control starts it, and waits for it."""
    slow.workspace.graphd("pause", "@last", "--stop", "--wait")
    command = f"set -m; {sys.executable} -m graphd watch @last & wait $!; echo ended with $?"
    with at_terminal(slow.workspace, program=("bash", "-c", command)) as terminal:
        terminal.until("ended with 7")
    assert "q detach" not in terminal.text
