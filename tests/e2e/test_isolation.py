"""Bad input and bad neighbours at a real daemon: each costs its own connection at most, and every request one answer.

`tests/e2e/test_isolation_rows.py` says which row of the research is shown by which test, here and elsewhere.
"""

import inspect
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphd.client.attach import AttachRefused, DaemonUnreachable, attach
from graphd.client.frames import frame
from graphd.client.greeting import Greeting
from graphd.server.routes import all_routes
from tests.kit.raw_wire import HELLO, ROOT, DaemonProcess, RawClient, daemon_process, request_body
from tests.kit.wire import nodes, serving

LIST = b'"jsonrpc":"2.0","method":"workgraph/list"'
INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
Answer = tuple[Any, int | None]  # the id, and the code where it is an error


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """One daemon for the whole module: what one test does to it the next would notice."""
    with daemon_process(tmp_path_factory.mktemp("isolation")) as running:
        yield running


@pytest.fixture
def neighbour(daemon: DaemonProcess) -> Iterator[RawClient]:
    """A client that was there before and is served as well afterwards."""
    client = daemon.client(name="neighbour")
    yield client
    assert "graphs" in client.call("workgraph/list", {"limit": 1})
    client.close()


def rest(client: RawClient) -> list[dict[str, Any]]:
    """Every message up to the end, however it ends; TimeoutError where it does not."""
    messages = []
    try:
        while True:
            messages.append(json.loads(client.take()))
    except (EOFError, ConnectionError):
        return messages


def request(body: bytes) -> bytes:
    """A framed `workgraph/list` with these members beside it."""
    return frame(b"{" + LIST + b"," + body + b"}")


# The name, the bytes after hello, the answers that they get, and whether the connection ends by itself.
CASES: dict[str, tuple[bytes, list[Answer], bool]] = {
    "two frames in one read": (request(b'"id":1') + request(b'"id":2'), [(1, None), (2, None)], False),
    "lower-case header": (request(b'"id":1').replace(b"Content-Length", b"content-length"), [(1, None)], False),
    "no space after the colon": (request(b'"id":1').replace(b": ", b":", 1), [(1, None)], False),
    "Content-Type first": (b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + request(b'"id":1'),
                           [(1, None)], False),
    "a header of nobody's": (b"X-Origin: here\r\n" + request(b'"id":1'), [], True),
    "no params": (request(b'"id":1'), [(1, None)], False),
    "params null": (request(b'"id":1,"params":null'), [(1, None)], False),
    "params an array": (request(b'"id":1,"params":[]'), [(1, -32602)], False),
    "a nested jsonrpc key": (request(b'"id":1,"params":{"owner":{"jsonrpc":"2.0","id":9,"method":"x"}}'),
                             [(1, -32602)], False),
    "invalid UTF-8": (frame(b'{"id":1,"a":"\xff"}') + request(b'"id":2'), [(None, -32700), (2, None)], False),
    "invalid JSON": (frame(b"{") + request(b'"id":2'), [(None, -32700), (2, None)], False),
    "not an object": (frame(b"7") + request(b'"id":2'), [(None, -32600), (2, None)], False),
    "a batch": (frame(b"[{" + LIST + b',"id":1}]') + request(b'"id":2'), [(None, -32600), (2, None)], False),
    "no jsonrpc": (frame(b'{"id":1,"method":"workgraph/list"}'), [(1, -32600)], False),
    "length 0": (frame(b"") + request(b'"id":2'), [(None, -32700), (2, None)], False),
    "a negative length": (b"Content-Length: -1\r\n\r\n{}", [], True),
    "no number for a length": (b"Content-Length: ten\r\n\r\n{}", [], True),
    "a length over the cap": (b"Content-Length: 4000000000\r\n\r\n", [(None, -32079)], True),
    "a length shorter than the body": (b"Content-Length: 2\r\n\r\n{}{}", [(None, -32600)], True),
    "70 KB of header": (b"Content-Type: " + b"x" * 70_000, [], True),
    "100,000 nested arrays": (frame(b"[" * 100_000) + request(b'"id":2'), [(None, -32700), (2, None)], False),
    "a text id": (request(b'"id":"a"'), [("a", None)], False),
    "a float id": (request(b'"id":1.5'), [(None, -32600)], False),
    "a null id": (request(b'"id":null'), [(None, -32600)], False),
    "a boolean id": (request(b'"id":true'), [(None, -32600)], False),
    "an unknown request": (frame(request_body(1, "workgraph/lst")), [(1, -32601)], False),
    "an unknown notification": (frame(b'{"jsonrpc":"2.0","method":"x/y"}') + request(b'"id":2'), [(2, None)], False),
    "a cancel of nothing": (frame(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":77}}')
                            + request(b'"id":2'), [(2, None)], False),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", [], True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_its_answer_and_harms_nobody(daemon: DaemonProcess, neighbour: RawClient, name: str) -> None:
    raw, expected, ends = CASES[name]
    client = daemon.client()
    try:
        client.socket.sendall(raw)
    except ConnectionError:
        assert ends
    if not ends:
        client.socket.shutdown(socket.SHUT_WR)
    # A length that is too short leaves bytes that are not a frame: the first is answered if it came first.
    found = [(m["id"], m.get("error", {}).get("code")) for m in rest(client) if "method" not in m]
    assert found == expected or (ends and found == expected[: len(found)] and len(found) < len(expected))
    client.close()


def test_frames_may_come_byte_by_byte(daemon: DaemonProcess, neighbour: RawClient) -> None:
    client = daemon.client(hello=False)
    for byte in frame(request_body(1, "graphd/hello", HELLO)) + request(b'"id":2'):
        client.socket.sendall(bytes([byte]))
    assert [json.loads(client.take())["id"] for _ in range(2)] == [1, 2]
    client.close()


def test_a_body_that_is_shorter_than_its_length_is_the_clients_own_trouble(
    daemon: DaemonProcess, neighbour: RawClient
) -> None:
    client = daemon.client()
    client.socket.sendall(b"Content-Length: 50\r\n\r\n{}")
    assert "graphs" in neighbour.call("workgraph/list")
    client.socket.shutdown(socket.SHUT_WR)
    assert rest(client) == []
    client.close()


def test_names_of_fields_arrive_as_they_were_sent(daemon: DaemonProcess) -> None:
    client = daemon.client()
    names = ["class", "a-b", "_p", "type_name"]
    client.send(request_body(1, "workgraph/list", dict.fromkeys(names, 1)))
    error = json.loads(client.take())["error"]
    assert sorted(row["path"] for row in error["data"]["fields"]) == sorted(names)
    client.close()


def test_an_id_in_use_is_refused_and_the_first_keeps_its_answer(daemon: DaemonProcess, neighbour: RawClient) -> None:
    """The slow request waits for a tree to end; a fast one that comes later is answered first."""
    client = daemon.client()
    plan = {"title": "slow", "nodes": [{"slug": "s", "spec": "exec sleep 60"}]}
    graph = client.call("workgraph/set", plan)["graph"]
    wait = {"graph": graph, "mode": "drain", "settle": True, "settleSeconds": 30}
    client.send(request_body("same", "workgraph/pause", wait))
    client.send(request_body("same", "workgraph/list"))
    client.send(request_body("fast", "workgraph/list"))
    first, second = json.loads(client.take()), json.loads(client.take())
    assert (first["id"], first["error"]["code"]) == ("same", -32600)
    assert second["id"] == "fast"
    assert "result" in second
    neighbour.call("workgraph/cancel", {"graph": graph, "settle": True})
    last = json.loads(client.take())
    assert last["id"] == "same"
    client.close()


def test_a_client_that_dies_in_a_frame_or_before_its_answer_is_forgotten(
    daemon: DaemonProcess, neighbour: RawClient
) -> None:
    before = len(neighbour.call("graphd/health")["connections"])
    for raw in (b"Content-Len", b"Content-Length: 100\r\n\r\n{", request(b'"id":1') * 50):
        client = daemon.client()
        client.socket.sendall(raw)
        client.close()
    limit = time.monotonic() + 5
    while len(neighbour.call("graphd/health")["connections"]) > before:
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_cancelled_set_is_committed_whole_or_not_at_all(daemon: DaemonProcess) -> None:
    client, answered = daemon.client(), set()
    count = 30
    for number in range(count):
        plan = {"title": f"cancelled {number}", "nodes": nodes("a", ("b", ["a"])), "start": False}
        cancel = json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": f"c{number}"}}).encode()
        client.socket.sendall(frame(request_body(f"c{number}", "workgraph/set", plan)) + frame(cancel))
    for _ in range(count):
        answer = json.loads(client.take())
        assert "result" in answer or answer["error"]["code"] == -32800
        answered |= {answer["result"]["graph"]} if "result" in answer else set()
    found = {graph for graph, title in graphs(client).items() if title.startswith("cancelled ")}
    assert found == answered
    assert all(len(client.call("workgraph/status", {"graph": graph})["nodes"]) == 2 for graph in found)
    client.close()


def graphs(client: RawClient) -> dict[str, str]:
    """Every graph and its title."""
    found: dict[str, str] = {}
    page: dict[str, Any] = {"graphs": [], "next": None}
    while page["graphs"] or not found:
        params = {"limit": 100} | ({"after": page["next"]} if page.get("next") else {})
        page = client.call("workgraph/list", params)
        found |= {graph["id"]: graph["title"] for graph in page["graphs"]}
        if not page.get("next"):
            break
    return found


def test_a_client_that_goes_during_its_commit_loses_the_answer_and_nothing_else(
    daemon: DaemonProcess, neighbour: RawClient
) -> None:
    for number in range(20):
        plan = {"title": "gone", "nodes": nodes("a"), "start": False, "requestId": f"gone-{number}"}
        client = daemon.client()
        client.send(request_body(1, "workgraph/set", plan))
        client.close()
        again = neighbour.call("workgraph/set", plan)
        assert neighbour.call("workgraph/set", plan)["graph"] == again["graph"]
    titles = [title for title in graphs(neighbour).values() if title == "gone"]
    assert len(titles) == 20, "each was applied once"


def test_clients_with_the_same_ids_get_their_own_answers(daemon: DaemonProcess) -> None:
    plans = [{"title": f"own {i}", "nodes": nodes("a"), "start": False} for i in range(4)]
    clients = [daemon.client() for _ in plans]
    for client, plan in zip(clients, plans, strict=True):
        client.graph = client.call("workgraph/set", plan)["graph"]  # type: ignore[attr-defined] # only here
    for _ in range(10):
        for client in clients:
            client.send(request_body(7, "workgraph/status", {"graph": client.graph}))  # type: ignore[attr-defined] # as above
        for client, plan in zip(clients, plans, strict=True):
            answer = json.loads(client.take())
            assert (answer["id"], answer["result"]["title"]) == (7, plan["title"])
    for client in clients:
        client.close()


def test_exit_ends_the_connection_that_sent_it_alone(daemon: DaemonProcess, neighbour: RawClient) -> None:
    editors = [daemon.client(hello=False) for _ in range(2)]
    for editor in editors:
        assert "capabilities" in editor.call("initialize", INITIALIZE)
    leaving, staying = editors
    assert leaving.call("shutdown") is None
    leaving.send(b'{"jsonrpc":"2.0","method":"exit"}')
    assert rest(leaving) == []
    assert "graphs" in staying.call("workgraph/list")
    hasty = daemon.client(hello=False)
    hasty.call("initialize", INITIALIZE)
    hasty.send(b'{"jsonrpc":"2.0","method":"exit"}')
    rest(hasty)
    staying.call("workgraph/list")
    for client in (*editors, hasty):
        client.close()


def test_wrong_params_of_the_language_servers_own_methods_are_answered(
    daemon: DaemonProcess, neighbour: RawClient
) -> None:
    editor = daemon.client(hello=False)
    editor.send(request_body(1, "initialize", {"processId": None, "rootUri": None}))
    first = json.loads(editor.take())
    assert first["id"] == 1
    if "error" in first:
        editor.call("initialize", INITIALIZE)
    wrong: list[Any] = [{"textDocument": 5}, {}, None, []]
    for number, params in enumerate(wrong):
        editor.send(request_body(f"w{number}", "textDocument/hover", params))
    answers: dict[Any, int] = {}
    while len(answers) < 4:
        message = json.loads(editor.take())
        if "method" not in message:
            answers[message["id"]] = message["error"]["code"]
    assert set(answers.values()) <= {-32602, -32600}
    editor.close()


def test_a_cancelled_command_gets_one_answer(daemon: DaemonProcess, neighbour: RawClient) -> None:
    editor = daemon.client(hello=False)
    editor.call("initialize", INITIALIZE)
    for number in range(10):
        params = {"command": "graphd.pause", "arguments": [{"graph": "nothing"}]}
        cancel = json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": f"x{number}"}}).encode()
        asked = request_body(f"x{number}", "workspace/executeCommand", params)
        editor.socket.sendall(frame(asked) + frame(cancel))
    editor.send(request_body("last", "workgraph/list"))
    editor.socket.shutdown(socket.SHUT_WR)
    answered = Counter(message["id"] for message in rest(editor) if "method" not in message)
    assert answered == Counter([*(f"x{number}" for number in range(10)), "last"])
    editor.close()


def test_a_stalled_client_that_pipelines_100_snapshots_is_slowed_and_gets_them_all(
    daemon: DaemonProcess, neighbour: RawClient
) -> None:
    plan = {"title": "big", "nodes": big_nodes(200), "start": False, "limits": {"maxNodes": 200}}
    client = daemon.client(name="stalled")
    graph = client.call("workgraph/set", plan)["graph"]
    for number in range(100):
        client.send(request_body(number, "workgraph/status", {"graph": graph}))
    worst = 0
    for _ in range(50):
        rows = neighbour.call("graphd/health")["connections"]
        worst = max(worst, *(row["bytesInFlight"] for row in rows if row["client"] == "stalled"))
    assert 0 < worst < 2 * 1024 * 1024
    answers = [json.loads(client.take()) for _ in range(100)]
    assert [answer["id"] for answer in answers] == list(range(100))
    assert all(len(answer["result"]["nodes"]) == 200 for answer in answers)
    client.close()


def big_nodes(count: int) -> list[dict[str, Any]]:
    """Inline nodes with text in them, each needing those just before it."""
    return [
        {"slug": f"n{i}", "spec": "echo " + "lorem ipsum " * 20, "needs": [f"n{j}" for j in range(max(0, i - 3), i)]}
        for i in range(count)
    ]


async def test_30000_notifications_to_a_stalled_client_hold_one_message(tmp_path: Path) -> None:
    async with serving() as served:
        steerer = await served.client()
        graph = (await steerer.call("workgraph/set", {"nodes": nodes("a"), "title": "t"}))["graph"]
        node = next(iter(served.daemon.state.graphs[graph].nodes))
        stalled = await served.client(client={"name": "stalled", "version": "1"})
        wish = {"activity": True, "output": [{"graph": graph, "node": "a"}]}
        await stalled.request("workgraph/subscribe", wish)
        await steerer.call("workgraph/list")
        worst = 0
        for number in range(30_000):
            served.daemon.print(graph, node, b"x" * 500, offset=number * 500)
            served.daemon.set_phase(graph, node, "working")
            if number % 500 == 0:
                verb = "pause" if number % 1000 == 0 else "resume"
                await steerer.call(f"workgraph/{verb}", {"graph": graph})
                row = next(row for row in served.connections if row["client"] == "stalled")
                worst = max(worst, row["bytesInFlight"])
        assert worst < 256 * 1024, "one message at the most"
        skipped = offset = 0
        while offset < 30_000 * 500:
            chunk = await stalled.next("workgraph/output")
            skipped += chunk.get("skipped", 0)
            offset = chunk["offset"] + len(chunk["text"])
        assert skipped > 10_000_000, "what was dropped is counted"
        await steerer.close()
        await stalled.close()


def test_no_handler_can_block_the_others() -> None:
    """Handlers are coroutines, and none sends from a thread of its own."""
    for method, route in all_routes().items():
        assert inspect.iscoroutinefunction(route.handler), method
    threads = [path for path in (ROOT / "graphd/server").rglob("*.py") if ".thread(" in path.read_text()]
    assert threads == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
QUIET = ("graphd/stop", "graphd/handover", "workgraph/set")  # they end the daemon, or run what they are given
METHODS = sorted(set(all_routes()) - set(QUIET)) + ["graphd/hello", "workgraph/nothing", ""]
KEYS = st.sampled_from(["graph", "node", "limit", "after", "file", "text", "graphs", "subscription", "mode", "kinds"])
MESSAGES = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS) | JSON},
    optional={"params": st.dictionaries(KEYS, JSON, max_size=3) | JSON, "jsonrpc": st.just("2.0") | JSON},
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_every_request_gets_one_answer_and_no_answer_tells_of_the_installation(
    daemon: DaemonProcess, messages: list[dict[str, Any]]
) -> None:
    client = daemon.client()
    for number, message in enumerate(messages):
        client.send(json.dumps({"jsonrpc": "2.0", "id": f"r{number}", **message}).encode())
    client.socket.shutdown(socket.SHUT_WR)
    answers = [message for message in rest(client) if "method" not in message]
    client.close()
    ids = Counter(answer["id"] for answer in answers)
    unreadable = ids.pop(None, 0)  # NaN is no JSON: no id can be read, and one answer is due all the same
    assert set(ids.values()) <= {1}
    assert sum(ids.values()) + unreadable == len(messages)
    told = json.dumps([answer["error"] for answer in answers if "error" in answer])
    assert "Traceback" not in told
    assert "site-packages" not in told
    assert str(ROOT) not in told
    assert -32603 not in [answer["error"]["code"] for answer in answers if "error" in answer]


# ---- attaching ----------------------------------------------------------------------------------------------------


def test_another_users_daemon_is_refused(daemon: DaemonProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_STATE_DIR", daemon.environment["GRAPHD_STATE_DIR"])
    with monkeypatch.context() as patched:
        patched.setattr("graphd.client.attach._peer", lambda connection: (1, 12_345_678))
        with pytest.raises(AttachRefused) as refusal:
            attach(str(daemon.workspace.resolve()), Greeting("test"), may_start=False)
    assert refusal.value.code == "unauthorised"


async def test_a_client_of_another_user_is_closed_before_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        monkeypatch.setattr("graphd.server.listen.peer", lambda sock: (1, 12_345_678))
        stranger = await served.client(hello=False)
        assert await stranger.rest() == []
        monkeypatch.undo()
        assert await (own := await served.client()).call("workgraph/list") == {"graphs": []}
        await own.close()
        await stranger.close()


def test_at_the_idle_end_every_client_gets_a_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Daemons that live for a moment, and clients that come as they go: each is served by one that says hello."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_text(json.dumps({"idleMinutes": 0.002}))
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("GRAPHD_ATTEMPT", raising=False)
    pids = []
    for pause_s in (0, 0.11, 0.115, 0.12, 0.125, 0.13):
        time.sleep(pause_s)
        attached = attach(str((tmp_path / "work").resolve()), Greeting("edge"))
        pids.append(attached.hello["daemon"]["pid"])
        attached.connection.close()
    print(f"idle edge: {len(pids)} attaches, {len(set(pids))} daemons")
    limit = time.monotonic() + 10
    while Path(f"/proc/{pids[-1]}").exists():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_workspace_that_is_moved_keeps_its_clients_and_its_old_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon_process(tmp_path) as running:
        client = running.client()
        graph = client.call("workgraph/set", {"title": "t", "nodes": nodes("a"), "start": False})["graph"]
        moved = running.workspace.rename(tmp_path / "moved")
        assert client.call("workgraph/status", {"graph": graph})["title"] == "t"
        monkeypatch.setenv("GRAPHD_STATE_DIR", running.environment["GRAPHD_STATE_DIR"])
        with pytest.raises(DaemonUnreachable):
            attach(str(moved.resolve()), Greeting("test"), may_start=False)
        moved.rename(running.workspace)
        attach(str(running.workspace.resolve()), Greeting("test"), may_start=False).connection.close()
        client.close()
