"""The command line as people use it: real programs, a real daemon, real exit codes."""

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from graphd.cli.main import run_command

Wire = dict[str, Any]
BLOCKED = "nodes:\n  - { id: bad, run: exit 3, required: true }\n  - { id: after, needs: [bad], run: echo no }\n"
PARTLY = """\
nodes:
  - { id: bad, run: exit 3 }
  - { id: good, run: echo 1 }
  - { id: end, needs: [bad, good], run: echo 2 }
"""


class House:
    """A workspace with state of its own, and the command line in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "workspace"
        self.started: list[subprocess.Popen[str]] = []
        self.err = ""
        (self.folder / ".agents" / "workflows").mkdir(parents=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")}
        self.env = keep | {
            "GRAPHD_STATE_DIR": str(folder / "state"), "GRAPHD_CONFIG_DIR": str(folder / "config"),
            "TERM": "xterm", "COLUMNS": "100", "LINES": "30", "NO_COLOR": "1",
        }  # fmt: skip

    def start(self, *words: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "graphd", *words], cwd=self.folder, env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.started.append(process)
        return process

    def ask(self, *words: str, code: int = 0, text: str | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "graphd", *words], cwd=self.folder, env=self.env, capture_output=True,
            text=True, timeout=60, input=text,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.err = done.stderr
        return done.stdout

    def json(self, *words: str, code: int = 0) -> Any:
        """The same in this process, which is quicker."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.env, clear=True),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            assert run_command([*words, "--json"]) == code, f"{words}\n{out.getvalue()}{err.getvalue()}"
        return json.loads(out.getvalue())

    def workflow(self, name: str, text: str) -> str:
        (self.folder / ".agents" / "workflows" / f"{name}.yaml").write_text(text)
        return name

    def detached(self, *words: str) -> str:
        return str(self.json("run", "--detach", *words)["graph"])

    def until(self, state: str, count: int = 1) -> Wire:
        """Wait until the only graph has so many nodes in this state."""
        deadline = time.monotonic() + 20
        while True:
            graphs = self.json("status")["graphs"]
            if graphs and graphs[0]["counts"].get(state, 0) >= count:
                return dict(graphs[0])
            assert time.monotonic() < deadline, f"never {count} {state}: {graphs}"
            time.sleep(0.05)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    place = House(tmp_path)
    yield place
    place.ask("stop", "--cancel")
    for process in place.started:
        process.kill()
        process.communicate()


def finished(process: "subprocess.Popen[str]", code: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=40)
    assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"
    return out, err


# ---- running, and how it ends --------------------------------------------------------------------------------------


def test_stdout_holds_the_result_and_nothing_else(house: House) -> None:
    out = house.ask("run", "--sh", "echo one", "--sh", "echo two", "--then", 'cat "$GRAPHD_INPUT_DIR"/*')

    assert out == "one\ntwo\n"
    assert "achieved" in house.err
    assert re.search(r"^  graphd output --graph \S+$", house.err, re.MULTILINE)


def test_a_required_failure_is_one_and_every_pasted_line_works(house: House) -> None:
    house.ask("run", house.workflow("w", BLOCKED), code=1)

    pasted = [line.split()[1:] for line in house.err.splitlines() if line.startswith("  graphd ")]
    assert [words[0] for words in pasted] == ["why", "retry"]
    assert "exit" in house.ask(*pasted[0])
    house.ask(*pasted[1])
    house.ask("watch", "@last", code=1)


def test_failures_of_optional_nodes_count_unless_they_are_allowed(house: House) -> None:
    name = house.workflow("w", PARTLY)

    assert house.ask("run", name, code=1) == "2\n"
    house.ask("run", name, "--allow-failures")
    house.ask("watch", "@last", "--allow-failures")
    house.ask("watch", "@last", code=1)


def test_a_bad_file_is_two_and_starts_nothing(house: House) -> None:
    file = house.folder / "bad.yaml"
    file.write_text("nodes:\n  - { id: a, run: 'true', nees: [b] }\n")

    house.ask("run", "bad.yaml", code=2)
    assert re.match(r"bad\.yaml:2:\d+: error ", house.err)
    assert re.match(r"bad\.yaml:2:\d+: error .*\n  \S", house.ask("validate", "bad.yaml", code=2))
    assert house.json("status")["graphs"] == []
    assert house.json("run", "bad.yaml", code=2)["error"]["code"] == "invalidPlan"


def test_cancel_ends_a_watched_run_with_three(house: House) -> None:
    run = house.start("run", "--sh", "sleep 60", "--sh", "sleep 61")
    house.until("running", 2)
    house.ask("watch", "--timeout", "0.2s", code=124)
    house.ask("cancel", "--wait")

    finished(run, 3)
    assert house.json("processes") == []


def test_clear_ends_a_watched_run_with_three_and_leaves_no_graph(house: House) -> None:
    graph = house.detached("--sh", "sleep 60")
    watch = house.start("watch", graph)
    house.until("running")
    assert watch.stderr is not None
    while "running" not in watch.stderr.readline():
        pass
    house.ask("clear", graph)

    finished(watch, 3)
    assert house.json("status")["graphs"] == []


def test_a_pause_ends_a_watched_run_with_seven_and_resume_goes_on(house: House) -> None:
    run = house.start("run", "--sh", "sleep 60")
    house.until("running")
    house.ask("pause", "--stop")
    _, err = finished(run, 7)

    pasted = err.splitlines()[-1].split()[1:]
    assert pasted[0] == "resume"
    house.ask(*pasted)
    house.ask("pause")
    house.ask("finish", "--reason", "enough", code=0)


def test_a_timeout_is_124_and_the_graph_goes_on(house: House) -> None:
    house.ask("run", "--sh", "sleep 2; echo done", "--timeout", "0.5s", code=124)

    house.ask("watch", "@last")
    assert house.ask("output", "-g", "@last") == "done\n"


def test_ctrl_c_without_a_terminal_detaches(house: House) -> None:
    run = house.start("run", "--sh", "sleep 30")
    assert run.stderr is not None
    while "running" not in run.stderr.readline():
        pass
    run.send_signal(signal.SIGINT)

    finished(run, 130)
    assert house.json("status")["graphs"][0]["status"] == "active"


def test_no_daemon_to_be_had_is_five(house: House, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = house.env
    house.env = env | {"GRAPHD_STATE_DIR": str(tmp_path / "file")}

    assert house.json("run", "--sh", "true", code=5)["error"]["message"]
    house.env = env


def test_a_daemon_that_is_told_to_stop_ends_a_watched_run_with_five(house: House) -> None:
    daemon = house.start("daemon")
    while house.json("status")["daemon"] is None:
        time.sleep(0.05)
    house.ask("daemon", code=5)
    run = house.start("run", "--sh", "sleep 60")
    house.until("running")
    house.ask("stop")

    assert daemon.wait(timeout=10) == 0
    _, err = finished(run, 5)
    pasted = err.splitlines()[-1].split()[1:]
    house.ask(*pasted, "--timeout", "0.1s", code=124)
    assert house.json("status")["graphs"][0]["counts"] == {"running": 1}


def test_a_killed_daemon_is_survived(house: House) -> None:
    oracle = house.folder / "oracle"
    script = f"echo start >> {oracle}; sleep 4; echo end"
    run = house.start("run", "--sh", script, "--sh", script, "--then", "echo all")
    house.until("running", 2)
    while not (oracle.exists() and oracle.read_text() == "start\nstart\n"):
        time.sleep(0.05)
    os.kill(house.json("status")["daemon"]["pid"], signal.SIGKILL)

    out, err = finished(run, 0)
    assert out == "all\n"
    assert "daemon restarted, 2 children adopted" in err
    assert oracle.read_text() == "start\nstart\n"


# ---- scripts -------------------------------------------------------------------------------------------------------


def test_what_is_pinned_for_scripts(house: House) -> None:
    assert house.json("status") == {"daemon": None, "graphs": []}
    path = house.ask("daemon", "--start").strip()
    assert house.ask("daemon", "--start").strip() == path
    assert Path(path).is_socket()

    started = house.json("run", "--sh", "echo hi", "--detach")
    assert started.keys() == {"graph", "rev"}
    lines = [json.loads(line) for line in house.ask("watch", started["graph"], "--json").splitlines()]
    assert {line["type"] for line in lines[:-1]} <= {"changed", "notice"}
    assert lines[-1]["type"] == "snapshot"
    assert lines[-1]["snapshot"]["status"] == "complete"

    status = house.json("status")
    assert status["daemon"].keys() == {"pid", "version", "epoch", "socket"}
    assert status["daemon"]["socket"] == path
    assert [g["id"] for g in status["graphs"]] == [started["graph"]]


def test_run_json_ends_with_the_snapshot(house: House) -> None:
    lines = [json.loads(line) for line in house.ask("run", "--sh", "echo hi", "--json").splitlines()]

    assert lines[0]["type"] == "changed"
    assert lines[-1]["snapshot"]["outcome"] == "ok"
    assert house.err == ""


def test_stdin_is_a_workflow(house: House) -> None:
    assert house.ask("run", "-", text="nodes: [{ id: a, run: echo from-stdin }]\n") == "from-stdin\n"
    assert "no problems" in house.ask("validate", "-", text="nodes: [{ id: a, run: echo }]\n")


# ---- looking -------------------------------------------------------------------------------------------------------


def test_what_can_be_seen_of_a_graph(house: House) -> None:
    house.ask("run", "--sh", "echo out; echo err >&2; echo last")

    assert house.ask("output", "-g", "@last") == "out\nlast\n"
    assert set(house.ask("logs", "echo", "-g", "@last").splitlines()) == {"out", "err", "last"}
    assert house.ask("logs", "echo@1", "-g", "@last", "-f").count("out") == 1
    assert "attempt_settled" in house.ask("history", "@last")
    assert house.ask("why", "echo", "-g", "@last")
    assert house.ask("why", "-g", "@last")
    assert "complete" in house.ask("status")
    assert "echo" in house.ask("status", "@last")
    assert "no process" in house.ask("processes")
    house.ask("logs", "nobody", "-g", "@last", code=1)
    assert house.ask("output") == "out\nlast\n", "the only graph there is needs no name"
    house.ask("run", "--sh", "echo other")
    house.ask("output", code=2)


def test_logs_follow_to_the_end(house: House) -> None:
    house.detached("--sh", "for i in 1 2 3; do echo $i; sleep 0.4; done")

    assert house.ask("logs", "for", "-f") == "1\n2\n3\n"


def test_setting_up(house: House) -> None:
    assert "graphd run hello" in house.ask("init")
    assert "Hello. It is" in house.ask("run", "hello")
    listed = house.ask("workflows")
    assert "hello" in listed
    assert "checkup" in listed
    assert "wave 2: report" in house.ask("explain", "hello")
    assert "shell" in house.ask("agents")
    assert "✗" not in house.ask("doctor")
    assert "Content-Length" in house.ask("connect", "--help")
    assert "would" in house.ask("pause", "--dry-run", house.detached("--sh", "sleep 5"))
    assert "report" in house.ask("run", "hello", "--dry-run")


# ---- at a terminal -------------------------------------------------------------------------------------------------


class Terminal:
    """A command on a pseudo-terminal: what is drawn, and keys."""

    def __init__(self, house: House, *words: str) -> None:
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(house.folder)
            os.execve(sys.executable, [sys.executable, "-m", "graphd", *words], house.env)
        self.pid = pid
        self.seen = ""

    def until(self, text: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if not self._read():
                pytest.fail(f"ended without {text!r}: {self.seen[-2000:]}")

    def _read(self) -> bool:
        if select.select([self.fd], [], [], 0.1)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return False
        return True

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def code(self) -> int:
        while self._read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_the_tree_is_drawn_and_ends_with_the_result(house: House) -> None:
    terminal = Terminal(house, "run", "--sh", "sleep 1; echo first", "--then", "echo the-end")
    terminal.until("needs sleep")
    terminal.until("the-end\r\n\r\n")

    assert terminal.code() == 0
    assert "✓ sleep" in terminal.seen
    assert "graphd output --graph" in terminal.seen


def test_ctrl_c_offers_and_twice_detaches(house: House) -> None:
    terminal = Terminal(house, "run", "--sh", "sleep 30")
    terminal.until("1 running")
    terminal.press("\x03")
    terminal.until("d: detach")
    terminal.press("\x03")

    assert terminal.code() == 130
    assert house.json("status")["graphs"][0]["status"] == "active"


@pytest.mark.parametrize(("key", "code", "status"), [("c", 3, "cancelled"), ("d", 130, "active")])
def test_ctrl_c_and_a_key(house: House, key: str, code: int, status: str) -> None:
    terminal = Terminal(house, "run", "--sh", "sleep 30")
    terminal.until("1 running")
    terminal.press("\x03")
    terminal.until("d: detach")
    terminal.press(key)

    assert terminal.code() == code
    assert house.json("status")["graphs"][0]["status"] == status


def test_chaos_keeps_every_promise(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")} | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "graphd", "demo", "--chaos", "--seed", "7"], env=env, capture_output=True, text=True,
        timeout=200, cwd=tmp_path, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"two attempts alive at once\s+0", done.stdout)
    assert list(tmp_path.iterdir()) == []
