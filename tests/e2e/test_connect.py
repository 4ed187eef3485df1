"""`graphd connect` is a byte pipe that finds its daemon, changes no byte and shares nobody's fate."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphd.client.frames import FrameReader, frame
from tests.kit.fake_daemons import REPOSITORY, FakeDaemons, daemons, is_alive

__all__ = ["daemons"]
CODE = "import sys; from graphd.client.attach import connect_main; sys.exit(connect_main(sys.argv[1:]))"
COMMAND = [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); {CODE}"]


def request(number: int | str, method: str, params: dict[str, Any] | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
    return frame(json.dumps(message).encode())


def run(given: bytes, *flags: str, cwd: Path | None = None) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, the frames on stdout (all of it must be frames), and stderr."""
    ended = subprocess.run([*COMMAND, *flags], input=given, capture_output=True, cwd=cwd, timeout=30, check=False)
    frames = FrameReader()
    answers = [json.loads(body) for body in frames.feed(ended.stdout)]
    assert not frames.rest
    return ended.returncode, answers, ended.stderr.decode()


def test_it_starts_the_daemon_of_the_current_directory_and_forwards(daemons: FakeDaemons) -> None:
    code, answers, stderr = run(request(1, "test/echo", {"text": "ü\0"}), cwd=daemons.workspace)

    assert (code, stderr) == (0, "")
    assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {"text": "ü\0"}}]
    assert len(daemons.live()) == 1


def test_its_own_hello_is_kept_and_a_clients_hello_is_answered(daemons: FakeDaemons) -> None:
    hello = request(1, "graphd/hello", {"client": {"name": "editor"}, "workspace": str(daemons.workspace)})

    code, answers, _ = run(hello, cwd=daemons.root)

    assert code == 0
    assert [answer["id"] for answer in answers] == [1]
    assert answers[0]["result"]["heard"]["client"] == {"name": "editor"}
    assert answers[0]["result"]["workspace"] == str(daemons.workspace)


def test_initialize_names_the_workspace(daemons: FakeDaemons) -> None:
    first = request(1, "initialize", {"rootUri": daemons.workspace.as_uri()})

    _, answers, _ = run(first + request(2, "test/echo"), cwd=daemons.root)

    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["workspace"] == str(daemons.workspace)


@pytest.mark.parametrize("flags", [["--workspace", "{}"], ["--workspace={}"]])
def test_a_flag_needs_no_first_frame(daemons: FakeDaemons, flags: list[str]) -> None:
    flags = [flag.format(daemons.workspace) for flag in flags]
    with subprocess.Popen([*COMMAND, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=daemons.root) as piped:
        while not daemons.live():
            time.sleep(0.01)
        assert piped.communicate(b"", timeout=10)[0] == b""
    assert piped.returncode == 0


def test_a_client_that_says_nothing_starts_nothing(daemons: FakeDaemons) -> None:
    assert run(b"", cwd=daemons.workspace) == (0, [], "")
    assert daemons.starts() == []


def test_without_a_daemon_it_says_so_and_ends_with_5(daemons: FakeDaemons) -> None:
    code, answers, stderr = run(request(1, "test/echo"), "--no-start", cwd=daemons.workspace)
    assert (code, answers) == (5, [])
    assert "no daemon serves" in stderr

    daemons.use("--die", "OSError: the disk is made of cheese")
    code, answers, stderr = run(request(1, "test/echo"), cwd=daemons.workspace)
    assert (code, answers) == (5, [])
    assert "made of cheese" in stderr


@pytest.mark.parametrize("flags", [["--workspace"], ["--nonsense"], ["--workspace=/nowhere/at/all"]])
def test_a_bad_call_ends_with_2(daemons: FakeDaemons, flags: list[str]) -> None:
    code, answers, stderr = run(request(1, "test/echo"), *flags, cwd=daemons.workspace)

    assert (code, answers) == (2, [])
    assert stderr.startswith("graphd: ")


def test_half_close_brings_the_answers_still_due(daemons: FakeDaemons) -> None:
    slow = [request(number, "test/echo", {"delayS": 0.1}) for number in range(5)]

    code, answers, _ = run(b"".join(slow), cwd=daemons.workspace)

    assert code == 0
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3, 4]


def test_1000_pipelined_frames_of_all_sizes_come_back_in_order(daemons: FakeDaemons) -> None:
    sizes = random.Random(7)
    texts = ["\x00ÿ\u2028😀" * int(sizes.paretovariate(0.8)) for _ in range(1000)]
    texts = [text[:100_000] for text in texts]

    _, answers, _ = run(
        b"".join(request(number, "test/echo", {"text": text}) for number, text in enumerate(texts)),
        cwd=daemons.workspace,
    )

    assert [answer["id"] for answer in answers] == list(range(1000))
    assert [answer["result"]["text"] for answer in answers] == texts


def test_bytes_that_are_no_frame_are_left_to_the_daemon(daemons: FakeDaemons) -> None:
    code, answers, stderr = run(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", cwd=daemons.workspace)

    assert answers == []
    assert code in (0, 5)
    assert "Traceback" not in stderr
    assert len(daemons.live()) == 1


def test_a_reader_that_goes_away_ends_it_quietly(daemons: FakeDaemons) -> None:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=daemons.workspace
    ) as piped:
        assert piped.stdin
        assert piped.stdout
        assert piped.stderr
        piped.stdin.write(request(1, "test/notify", {"count": 100, "pad": 10_000}))
        piped.stdin.flush()
        assert piped.stdout.read(1) == b"C"
        piped.stdout.close()
        piped.wait(timeout=5)  # though stdin is still open
        assert (piped.returncode, piped.stderr.read()) == (0, b"")
    assert len(daemons.live()) == 1


def test_a_reader_that_stalls_slows_the_daemon_and_loses_nothing(daemons: FakeDaemons) -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=daemons.workspace) as piped:
        assert piped.stdin
        assert piped.stdout
        piped.stdin.write(request(1, "test/notify", {"count": 300, "pad": 20_000}))
        piped.stdin.close()
        time.sleep(0.3)
        frames = FrameReader()
        messages = [json.loads(body) for body in frames.feed(piped.stdout.read())]
    assert [message["params"]["number"] for message in messages[:-1]] == list(range(300))
    assert messages[-1]["result"] == {"count": 300}


def test_a_daemon_that_dies_ends_the_pipe(daemons: FakeDaemons) -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=daemons.workspace) as piped:
        assert piped.stdin
        piped.stdin.write(request(1, "test/die"))
        piped.stdin.flush()
        assert piped.wait(timeout=5) == 0


def test_killing_the_whole_tree_of_connect_leaves_the_daemon(daemons: FakeDaemons) -> None:
    """As an editor ends its server: every process whose chain of parents leads to it, while the daemon starts."""
    daemons.use("--boot-s", "0.3")
    with subprocess.Popen(
        ["/bin/sh", "-c", 'while :; do sleep 60; done | "$@"', "sh", *COMMAND, "--workspace", str(daemons.workspace)],
        stdout=subprocess.DEVNULL,
    ) as shell:
        while not daemons.live():
            time.sleep(0.005)
        (daemon,) = daemons.live()
        tree = descendants(shell.pid)
        assert len(tree) >= 2
        for pid in [*tree, shell.pid]:
            os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)

    assert daemon not in tree
    assert is_alive(daemon)
    _, answers, _ = run(request(1, "test/echo"), "--no-start", cwd=daemons.workspace)
    assert len(answers) == 1
    assert daemons.starts() == [daemon]


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found
