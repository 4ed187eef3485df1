"""What one attempt costs, bounded so that it can't creep back: its syncs, and what its keeper imports and when."""

import asyncio
import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.base.plain_json import decode, encode
from graphd.children.keeping.peers import ANSWER, CALL, FRAME
from graphd.children.keeping.tree import below, glance_below
from graphd.children.link import Link
from graphd.children.run import KeptRun
from tests.kit.kept import STORE, Heard, make_order, raw_keeper, until

ROOT = Path(__file__).resolve().parents[2]
COSTLY = {"re", "enum", "json", "typing", "contextlib", "collections", "functools", "ctypes", "pathlib", "signal"}
WATCHED = """
import os, sys
sys.path.append({root!r})
import graphd.children.keeping.keeper as keeper

log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def counted(sync):
    def call(fd):
        os.write(log, ("sync " + os.path.basename(os.readlink("/proc/self/fd/" + str(fd))) + "\\n").encode())
        sync(fd)
    return call

def hook(event, arguments):
    if event == "import":
        os.write(log, ("import " + arguments[0] + "\\n").encode())

os.fsync, os.fdatasync = counted(os.fsync), counted(os.fdatasync)
sys.addaudithook(hook)
os._exit(keeper.main())
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where keepers that start from now on write what they sync, and what they import after their start."""
    path = tmp_path / "log"
    path.touch()
    program = tmp_path / "watched.py"
    program.write_text(WATCHED.format(root=str(ROOT), log=str(path)))
    monkeypatch.setattr("graphd.children.spawn.KEEPER", program)
    return path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what this process syncs."""
    names: list[str] = []
    for name in ("fsync", "fdatasync"):

        def counted(fd: int, sync: object = getattr(os, name)) -> None:
            names.append(os.readlink(f"/proc/self/fd/{fd}").rpartition("/")[2])
            assert callable(sync)
            sync(fd)

        monkeypatch.setattr(os, name, counted)
    return names


async def finish(tmp_path: Path, spec: str) -> tuple[str, str]:
    """One attempt from its folder to its collection; the names of its folder and of the graph's."""
    order = make_order(tmp_path, spec)
    kept = KeptRun(order, Heard())
    assert (await kept.start()).outcome == "achieved"
    await kept.collect()
    return order.folder.name, order.folder.parent.name


@pytest.mark.parametrize(
    ("spec", "by_keeper", "by_daemon"),
    [
        ("echo agent >> {log}", ["journal"], []),
        ("echo agent >> {log}; echo text", ["journal"], ["output.new", "FOLDER"]),
        ("echo agent >> {log}; echo '[1]'; echo e >&2", ["journal", "err"],
         ["stdout.0", "FOLDER", "output.new", "FOLDER"]),
    ],
)  # fmt: skip
async def test_an_attempt_syncs_what_the_recovery_table_needs_and_no_more(
    tmp_path: Path, log: Path, synced: list[str], spec: str, by_keeper: list[str], by_daemon: list[str]
) -> None:
    """In the order that the table in `attempt` gives; the agent's first line comes after the keeper's claim."""
    folder, graph = await finish(tmp_path, spec.format(log=log))
    seen = log.read_text().split("\n")
    rest = ["sync exit.json.new", f"sync {folder}", ""]
    assert seen == ["sync keeper.json", f"sync {folder}", "agent", *[f"sync {name}" for name in by_keeper], *rest]
    own = [name.replace(folder, "FOLDER") for name in synced]
    at = own.index(graph) + 1
    before, after = own[:at], own[at:]
    assert before[0] == "attempts"  # the first of this graph: its folder is new too
    assert before[-2:] == ["FOLDER", graph]  # at the last: everything is there
    assert after[-2:] == by_daemon[-2:]
    assert len(before) <= 5
    assert len(after) <= len(by_daemon)


async def test_a_second_attempt_of_a_graph_syncs_its_own_folder_alone(tmp_path: Path, synced: list[str]) -> None:
    await finish(tmp_path, "true")
    synced.clear()
    order = make_order(tmp_path, "true", folder=tmp_path / "attempts" / "0197" / "gn-e40c292c@2")
    kept = KeptRun(order, Heard())
    await kept.start()
    await kept.collect()
    assert "attempts" not in synced
    assert len(synced) <= 4


async def test_a_keeper_imports_nothing_after_its_start(tmp_path: Path, log: Path) -> None:
    """It outlives upgrades of the library that it came from: what is not there by then can't be had any more."""
    spec = f"echo out; echo err >&2; (setsid {sys.executable} -c 'import time; time.sleep(100)' &) ; sleep 0.1"
    order = make_order(tmp_path, spec, restart_argv=("/bin/true",), linger_s=30.0)
    keeper = await raw_keeper(order, restartDelaysS=[0.0, 60.0])
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    link.post("status")
    link.post("append", seq=0, line="x")
    link.post("trim", upTo=1 << 40)
    link.post("nonsense")
    await until(lambda: (order.folder / "exit.json").exists())
    await link.last("collect")
    await link.close()
    await keeper.gone()
    assert [line for line in log.read_text().splitlines() if line.startswith("import")] == []


def test_a_keeper_starts_without_the_costly_parts_of_the_library() -> None:
    program = f"import sys; sys.path.append({str(ROOT)!r}); import graphd.children.keeping.keeper; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "graphd.children.keeping.keeper" in loaded
    assert loaded & COSTLY == set()
    assert {name for name in loaded if name.startswith("graphd")} <= {
        "graphd",
        "graphd.base",
        "graphd.base.plain_json",
        "graphd.children",
    } | {name for name in loaded if name.startswith("graphd.children.keeping")}


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
CONTENT = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(CONTENT)
def test_its_json_is_the_librarys(content: object) -> None:
    assert encode(content) == json.dumps(content).encode()
    assert decode(encode(content)) == content
    assert decode(b" \n" + json.dumps(content, indent=1).encode() + b"\t") == content


NO_JSON = (
    b"",
    b" ",
    b"{",
    b'{"a":1',
    b'["\x01"]',
    b'{"a":nul}',
    b"[1,]",
    b'"\\ud8zz"',
    b"1 2",
    b"\xff",
    b"[" * 200_000,
)


def test_what_is_no_json_is_refused_whether_the_library_has_its_own_or_not() -> None:
    for body in NO_JSON:
        with pytest.raises(ValueError, match="."):
            decode(body)
    program = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from graphd.base.plain_json import decode\n"
        f"for body in {NO_JSON!r}:\n"
        "    try: print('taken', body, decode(body))\n"
        "    except ValueError: pass"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=program.encode(), capture_output=True, check=True)
    assert done.stdout == b""


def test_numbers_that_json_has_not_are_read_as_the_library_does() -> None:
    assert decode(b"[Infinity, -Infinity]") == [math.inf, -math.inf]
    assert math.isnan(decode(encode(math.nan)))


async def test_a_call_that_is_no_json_is_answered_and_the_keeper_lives_on(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100")
    keeper = await raw_keeper(order)

    def ask() -> tuple[int, dict[str, object]]:
        with socket.socket(socket.AF_UNIX) as peer:
            folder = os.open(order.folder, os.O_PATH)
            peer.connect(f"/proc/self/fd/{folder}/socket")  # the path itself may be too long
            os.close(folder)
            peer.sendall(FRAME.pack(1, CALL, 5) + b'{"a":')
            head = peer.recv(FRAME.size, socket.MSG_WAITALL)
            _, kind, length = FRAME.unpack(head)
            return kind, json.loads(peer.recv(length, socket.MSG_WAITALL))

    kind, answer = await asyncio.to_thread(ask)
    assert (kind, answer["code"]) == (ANSWER, "badCall")
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    link.post("kill")
    await until(lambda: (order.folder / "exit.json").exists())
    await link.last("collect")
    await link.close()
    await keeper.gone()


def test_a_glance_at_a_tree_sees_what_a_listing_of_everything_sees() -> None:
    program = (
        "import os, sys, threading, time\n"
        "def child(): os.fork() or time.sleep(100)\n"
        "threading.Thread(target=child, daemon=True).start()\n"
        "os.fork() or time.sleep(100)\n"
        "time.sleep(0.1); print('there', flush=True); time.sleep(100)"
    )
    argv = [sys.executable, "-W", "ignore", "-c", program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as root:
        assert root.stdout is not None
        root.stdout.readline()
        try:
            listed = {seen.pid for seen in below([root.pid])}
            assert len(listed) >= 2
            assert {seen.pid for seen in glance_below(root.pid)} == listed
        finally:
            os.killpg(root.pid, 9)
    assert glance_below(root.pid) == []
