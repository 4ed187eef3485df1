"""What a connection costs and that nothing of it stays: descriptors, threads, tasks, memory, objects."""

import asyncio
import gc
import json
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphd.client.frames import frame
from tests.kit.raw_wire import DaemonProcess, RawClient, daemon_process, request_body
from tests.kit.wire import Client, Served, nodes, serving

CYCLES = 500
EDITORS = 100
BATCHES = 5
MANY = 50
INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon_process(tmp_path_factory.mktemp("leaks")) as running:
        yield running


def leaves_at_once(daemon: DaemonProcess) -> None:
    """Connects and says nothing."""
    RawClient(daemon.path, hello=False).close()


def leaves_after_hello(daemon: DaemonProcess) -> None:
    daemon.client().close()


def leaves_with_a_subscription(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.call("workgraph/subscribe", {"activity": True})
    client.close()


def leaves_in_a_frame(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.socket.sendall(b"Content-Length: 500\r\n\r\n{")
    client.close()


def leaves_with_requests_in_flight(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.socket.sendall(b"".join(frame(request_body(n, "workgraph/list")) for n in range(20)))
    client.close()


def breaks_the_framing(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    client.close()


def half_closes(daemon: DaemonProcess) -> None:
    client = daemon.client()
    client.request("workgraph/list")
    client.socket.shutdown(socket.SHUT_WR)
    assert b"graphs" in client.take()
    client.close()


WAYS: list[Callable[[DaemonProcess], None]] = [
    leaves_at_once, leaves_after_hello, leaves_with_a_subscription, leaves_in_a_frame,
    leaves_with_requests_in_flight, breaks_the_framing, half_closes,
]  # fmt: skip


def at_rest(daemon: DaemonProcess, descriptors: int) -> int:
    """Descriptors once the last client is forgotten, or after a while."""
    limit = time.monotonic() + 5
    while len(daemon.descriptors()) > descriptors and time.monotonic() < limit:
        time.sleep(0.01)
    return len(daemon.descriptors())


def settled(daemon: DaemonProcess) -> int:
    """Descriptors when their number no longer falls."""
    counts = [len(daemon.descriptors())]
    while len(counts) < 5 or counts[-1] < counts[-5]:
        time.sleep(0.02)
        counts.append(len(daemon.descriptors()))
    return counts[-1]


def cycle(daemon: DaemonProcess, count: int) -> None:
    for number in range(count):
        WAYS[number % len(WAYS)](daemon)


def grown_kb(daemon: DaemonProcess, batch: Callable[[], None], limit_kb: int) -> list[int]:
    """What each of some batches adds to the daemon's memory, until one adds less than the limit.

    What is loaded once, and what waits for the collector, is in the first ones; a leak is in all.
    """
    grown: list[int] = []
    while len(grown) < BATCHES and (not grown or grown[-1] >= limit_kb):
        before_kb = daemon.rss_kb()
        batch()
        settled(daemon)
        grown.append(daemon.rss_kb() - before_kb)
    return grown


def test_1000_connections_leave_nothing_behind(daemon: DaemonProcess) -> None:
    watcher = daemon.client(name="watcher")
    graph = watcher.call("workgraph/set", {"title": "t", "nodes": nodes("a"), "start": False})["graph"]
    cycle(daemon, CYCLES)
    base, threads, cpu_s = settled(daemon), daemon.threads(), daemon.cpu_s()
    cycle(daemon, 2 * CYCLES)
    used_ms = (daemon.cpu_s() - cpu_s) / (2 * CYCLES) * 1000
    assert at_rest(daemon, base) <= base
    assert daemon.threads() <= threads + 1  # one that reads files is made when it is first needed
    grown = grown_kb(daemon, lambda: cycle(daemon, CYCLES), CYCLES // 4)
    print(f"{2 * CYCLES} connections: {used_ms:.2f} ms of daemon CPU each, {base} descriptors as before; then "
          f"{grown} KB for each {CYCLES}")  # fmt: skip
    assert min(grown) < CYCLES // 4
    assert at_rest(daemon, base) <= base
    rows = watcher.call("graphd/health")["connections"]
    assert [row["client"] for row in rows] == ["watcher"]
    assert watcher.call("workgraph/status", {"graph": graph})["rev"] == 1
    watcher.close()


def test_what_a_connection_costs(daemon: DaemonProcess) -> None:
    """Figures for people, with bounds that only a mistake breaks: ms of CPU and KB, once greeted and subscribed."""
    cycle(daemon, 200)
    kb, cpu_s, begun_s = daemon.rss_kb(), daemon.cpu_s(), time.perf_counter()
    clients = [daemon.client() for _ in range(MANY)]
    for client in clients:
        client.call("workgraph/subscribe")
    took_ms = (time.perf_counter() - begun_s) / MANY * 1000
    each_ms, each_kb = (daemon.cpu_s() - cpu_s) / MANY * 1000, (daemon.rss_kb() - kb) / MANY
    print(f"a connection with hello and subscribe: {took_ms:.2f} ms, {each_ms:.2f} ms of daemon CPU, {each_kb:.1f} KB")
    assert each_kb < 256
    assert each_ms < 50
    for client in clients:
        client.close()


async def test_no_task_and_no_connection_outlives_its_client() -> None:
    async with serving() as served:
        steerer = await served.client()
        await steerer.call("workgraph/set", {"nodes": nodes("a", "b"), "title": "t"})
        await asyncio.sleep(0)
        tasks = len(asyncio.all_tasks())
        watched: dict[int, list[weakref.ref[Any]]] = {}
        for number in range(60):
            client = await served.client()
            watch(served, watched)
            await disturb(client, number)
        limit = asyncio.get_running_loop().time() + 5
        while alive(watched) > 1 or len(asyncio.all_tasks()) > tasks:
            assert asyncio.get_running_loop().time() < limit, (alive(watched), asyncio.all_tasks())
            gc.collect()
            await asyncio.sleep(0.01)
        await steerer.close()


def watch(served: Served, watched: dict[int, list[weakref.ref[Any]]]) -> None:
    """Note every connection that is served and what it owns, holding none."""
    for connection in served.server._served:
        parts = (connection, connection.outbox, connection.subscriptions)
        watched[id(connection.subscriptions)] = [weakref.ref(part) for part in parts]


def alive(watched: dict[int, list[weakref.ref[Any]]]) -> int:
    """How many connections of which anything is left; the steerer's own is one."""
    return sum(any(known() is not None for known in parts) for parts in watched.values())


async def disturb(client: Client, number: int) -> None:
    """Leave in one of several ways."""
    if number % 4 == 0:
        await client.call("workgraph/subscribe", {"activity": True})
    elif number % 4 == 1:
        await client.send(b"Content-Length: 100\r\n\r\n{")
    elif number % 4 == 2:
        await client.request("workgraph/pause", {"settle": True, "settleSeconds": 20})
    else:
        await client.send(b"nonsense")
    await client.close()


def test_editors_leave_nothing_behind(daemon: DaemonProcess) -> None:
    """`initialize`, an open file, a question that is answered, and away: by exit or without a word."""
    watcher = daemon.client(name="watcher")

    def batch() -> None:
        for number in range(EDITORS):
            edit(daemon, number)

    batch()
    base, cpu_s = settled(daemon), daemon.cpu_s()
    batch()
    used_ms = (daemon.cpu_s() - cpu_s) / EDITORS * 1000
    grown = grown_kb(daemon, batch, 2 * EDITORS)
    print(f"an editor: {used_ms:.2f} ms of daemon CPU; {grown} KB for each {EDITORS}")
    assert min(grown) < 2 * EDITORS
    assert at_rest(daemon, base) <= base
    assert [row["client"] for row in watcher.call("graphd/health")["connections"]] == ["watcher"]
    watcher.close()


def edit(daemon: DaemonProcess, number: int) -> None:
    """One editor's life."""
    editor = daemon.client(hello=False)
    assert "capabilities" in editor.call("initialize", INITIALIZE)
    editor.send(b'{"jsonrpc":"2.0","method":"initialized","params":{}}')
    uri = (daemon.workspace / ".agents/workflows/a.yaml").as_uri()
    document = {"uri": uri, "languageId": "yaml", "version": 1, "text": "nodes:\n  - id: a\n    run: 'true'\n"}
    opened = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}
    editor.send(json.dumps(opened).encode())
    editor.call("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 5}})
    if number % 2:
        editor.call("shutdown")
        editor.send(b'{"jsonrpc":"2.0","method":"exit"}')
    editor.close()
