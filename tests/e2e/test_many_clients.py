"""Fifty at once, and one that is served as if alone whatever the others do."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphd.client.frames import frame
from graphd.server.hello import CONNECTION_LIMIT
from tests.kit.raw_wire import ROOT, DaemonProcess, RawClient, daemon_process, request_body
from tests.kit.wire import Client

CLIENTS = 50
EACH = 20
SAMPLES = 800
ROUNDS = 8


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon_process(tmp_path_factory.mktemp("many")) as running:
        yield running


@pytest.fixture(scope="module")
def graph(daemon: DaemonProcess) -> str:
    """A graph of 200 nodes that stands still."""
    rows = [{"slug": f"n{i}", "spec": "lorem ipsum " * 20, "needs": [f"n{i - 1}"] if i else []} for i in range(200)]
    client = daemon.client()
    plan = {"title": "big", "nodes": rows, "start": False, "limits": {"maxNodes": 200}}
    made = str(client.call("workgraph/set", plan)["graph"])
    client.close()
    return made


async def test_50_clients_with_20_interleaved_requests_each_get_their_own_answers(
    daemon: DaemonProcess, graph: str
) -> None:
    """The same ids on every connection, reads and mutations, slow ones and fast ones, all sent before any is read."""
    assert CONNECTION_LIMIT >= CLIENTS + 4
    clients = [await Client.connect(daemon.path, client={"name": f"c{i}", "version": "1"}) for i in range(CLIENTS)]
    wanted: list[dict[int, Any]] = [{} for _ in clients]
    for number in range(EACH):
        for i, client in enumerate(clients):
            method, params, seen = one_request(i, number, graph)
            await client.send(frame(request_body(number, method, params)))
            wanted[i][number] = seen
    for i, client in enumerate(clients):
        for number, seen in wanted[i].items():
            answer = await client.answer(number)
            assert seen(answer), (i, number, answer)
        assert not client.notifications
        assert not client.answers
    titles = [row["title"] for row in (await clients[0].call("workgraph/list", {"limit": 100}))["graphs"]]
    assert sorted(title for title in titles if title.startswith("of ")) == sorted(f"of {i}" for i in range(CLIENTS))
    for client in clients:
        await client.close()


def one_request(i: int, number: int, graph: str) -> tuple[str, Any, Any]:
    """A request of client `i`, and what its answer must fulfil."""
    match number % 5:
        case 0 if number == 0:
            plan = {"title": f"of {i}", "nodes": [{"slug": f"own-{i}", "spec": "true"}], "start": False}
            return "workgraph/set", plan, lambda answer: answer["result"]["rev"] == 1
        case 0 | 1:
            return "workgraph/list", {"limit": 1 + i % 7}, lambda answer: "graphs" in answer["result"]
        case 2:
            node = f"n{(i * 7 + number) % 200}"
            params = {"graph": graph, "node": node}
            return "workgraph/node", params, lambda answer: answer["result"]["node"]["slug"] == node
        case 3:
            missing = f"missing-{i}-{number}"
            params = {"graph": graph, "node": missing}
            return "workgraph/node", params, lambda answer: missing in answer["error"]["message"]
        case _:
            return "workgraph/status", {"graph": graph}, lambda answer: answer["result"]["id"] == graph


TROUBLE = textwrap.dedent(
    """
    import json, subprocess, sys
    from graphd.client.frames import FrameReader, frame
    from tests.kit.raw_wire import RawClient, request_body
    path, workspace, graph = sys.argv[1:]
    status = request_body(1, "workgraph/status", {"graph": graph})

    deaf = RawClient(path, name="C, which never reads")
    deaf.call("workgraph/subscribe")
    piping = [sys.executable, "-m", "graphd", "connect", "--workspace", workspace]
    killed = subprocess.Popen(piping, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    killed.stdin.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(status), status))
    killed.stdin.flush()
    assert killed.stdout.read(1) == b"C"
    print("ready", flush=True)
    sys.stdin.readline()
    leaving = RawClient(path, hello=False)
    leaving.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    leaving.call("shutdown")
    leaving.send(b'{"jsonrpc":"2.0","method":"exit"}')
    leaving.close()
    killed.kill()
    killed.wait()
    killed.stdin.close(), killed.stdout.close()
    for number in range(10):
        deaf.send(request_body(number, "workgraph/status", {"graph": graph}))
    flood = RawClient(path, name="D, which pipelines")
    flood.socket.sendall(b"".join(frame(request_body(number, "workgraph/status", {"graph": graph}))
                                  for number in range(100)))
    received, ends = [], b'"id":99,'
    while ends not in b"".join(received[-2:]):
        received.append(flood.socket.recv(1 << 20))
    print("done", flush=True)
    sys.stdin.readline()
    reader = FrameReader()
    answers = [json.loads(body) for body in reader.feed(b"".join(received))]
    assert [answer["id"] for answer in answers] == list(range(len(answers))), "in order, and none is lost"
    assert len(answers) >= 99
    flood.close(), deaf.close()
    """
)


Asked = tuple[float, float]
"""One request: µs on the clock, and µs of the daemon's CPU meanwhile, which is what it did for whomever."""


def ask_on(client: RawClient, daemon: DaemonProcess, body: bytes, is_over: Callable[[], bool]) -> list[Asked]:
    """Requests one after the other, until there are enough and `is_over`."""
    taken: list[Asked] = []
    while len(taken) < SAMPLES or not is_over():
        cpu_s, begun_s = daemon.clock_s(), time.perf_counter()
        answer = client.ask(body)
        taken.append(((time.perf_counter() - begun_s) * 1e6, (daemon.clock_s() - cpu_s) * 1e6))
        assert answer.startswith(b'{"jsonrpc":"2.0","id":1,"result":')
    return taken


def test_a_client_notices_nothing_of_what_the_others_do(daemon: DaemonProcess, graph: str) -> None:
    """A leaves by shutdown and exit, B is killed, C never reads, D pipelines 100 snapshots; E goes on asking.

    Its p99 with them stays within 3 × its own without them, in the best of a few rounds: others share the machine. The
    same holds for the CPU that the daemon spends before each answer, which the neighbours on the machine don't touch.
    """
    noticing, editor = daemon.client(name="E"), daemon.client(hello=False)
    editor.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    editor.call("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}})
    body = request_body(1, "workgraph/status", {"graph": graph})
    ask_on(noticing, daemon, body, lambda: True)
    walls, cpus = list[float](), list[float]()
    while len(walls) < ROUNDS and (not walls or min(walls) > 3 or min(cpus) > 3):
        alone = ask_on(noticing, daemon, body, lambda: True)
        among = asked_among_others(noticing, daemon, body, graph)
        walls.append(p99(among, 0) / p99(alone, 0))
        cpus.append(p99(among, 1) / p99(alone, 1))
        print(
            f"E: p99 {p99(alone, 0):.0f} µs alone, {p99(among, 0):.0f} among them ({len(among)} requests); "
            f"CPU before an answer, p99 {p99(alone, 1):.0f} and {p99(among, 1):.0f} µs"
        )
    noticing.close()
    editor.close()
    assert min(walls) <= 3, walls
    assert min(cpus) <= 3, cpus


def asked_among_others(noticing: RawClient, daemon: DaemonProcess, body: bytes, graph: str) -> list[Asked]:
    """The same while the others are at it, in a process of theirs."""
    argv = [sys.executable, "-c", TROUBLE, str(daemon.path), str(daemon.workspace), graph]
    environment = {**daemon.environment, "PYTHONPATH": python_path()}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as others:
        assert others.stdin is not None
        assert others.stdout is not None
        said = others.stdout
        assert said.readline() == b"ready\n"
        others.stdin.write(b"go\n")
        others.stdin.flush()
        os.set_blocking(said.fileno(), False)
        among = ask_on(noticing, daemon, body, lambda: said.readline() == b"done\n")
        others.stdin.write(b"end\n")
        others.stdin.close()
    assert others.returncode == 0
    return among


def p99(taken: list[Asked], of: int) -> float:
    """The 99th percentile, of the clock (0) or of CPU (1)."""
    return sorted(asked[of] for asked in taken)[int(len(taken) * 0.99)]


def python_path() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "protocol"), os.environ.get("PYTHONPATH")]))
