"""A subscription is a cursor: no gaps, one frame in flight for who does not read, the same value in the end."""

import asyncio
import gc
import socket
import time
import weakref
from typing import Any

import orjson
import pytest

from graphd.core.commands import Cancel, Clear
from graphd.server import feeds
from graphd.server.connection import Connection
from graphd_protocol import model as wire
from tests.kit.wire import Client, Folded, Served, WireError, frame, hello_params, nodes, refused_by, serving


async def set_graph(served: Served, client: Client, *rows: Any, **params: Any) -> str:
    result = await client.call("workgraph/set", {"nodes": nodes(*rows), "title": "t", **params})
    return str(result["graph"])


async def drain(client: Client, folded: Folded, until_rev: int, graph: str) -> int:
    """Fold until this rev; returns how many notifications it took."""
    count = 0
    while folded.revs.get(graph, 0) < until_rev:
        changed = await client.next("workgraph/changed")
        wire.Changed.model_validate(changed, by_name=False)
        folded.take(changed)
        count += 1
    return count


async def test_subscribe_starts_from_the_whole_value_and_goes_on_without_a_gap() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await set_graph(served, client, "a", ("b", ["a"]))
        folded = Folded()
        answer = wire.SubscribeResult.model_validate(result := await client.call("workgraph/subscribe"), by_name=False)
        assert answer.store == "store-1"
        for value in result["graphs"]:
            assert value["full"]
            folded.take(value)
        await served.daemon.end_all(graph)
        final = served.daemon.state.graphs[graph].rev
        await drain(client, folded, final, graph)
        status = await client.call("workgraph/status", {"graph": graph})
        assert folded.graphs[graph] == status
        assert status["status"] == "complete"
        await client.close()


async def test_fast_slow_and_deaf_subscribers_end_with_the_same_value() -> None:
    """And the deaf one costs one frame in flight, whatever happens meanwhile."""
    async with serving(commit_turns=2) as served:
        steerer, fast = await served.client(), await served.client()
        names = [f"n{i}" for i in range(150)]
        graph = await set_graph(served, steerer, *names, limits={"maxNodes": 200, "concurrency": 64})
        deaf, slow = subscribed(served, "deaf"), subscribed(served, "slow")
        fast_view = Folded()
        for value in (await fast.call("workgraph/subscribe"))["graphs"]:
            fast_view.take(value)
        slow_reading = asyncio.create_task(asyncio.to_thread(read_all, slow, graph, "complete", pause_s=0.001))
        worst = 0
        while await served.daemon.end_one(graph, text="x" * 4000) is not None:
            await asyncio.sleep(0)
            rows = [row for row in served.connections if row["client"] == "deaf"]
            worst = max(worst, *(row["framesInFlight"] for row in rows))
        assert worst == 1
        fast_count = await drain(fast, fast_view, served.daemon.state.graphs[graph].rev, graph)
        slow_view, slow_count = await slow_reading
        deaf_view, deaf_count = await asyncio.to_thread(read_all, deaf, graph, "complete")
        print(f"notifications: fast {fast_count}, slow {slow_count}, deaf {deaf_count}")
        assert deaf_count < fast_count, "a client that reads late gets fewer and larger deltas"
        status = await steerer.call("workgraph/status", {"graph": graph})
        for view in (fast_view, slow_view, deaf_view):
            assert view.graphs[graph] == {**status, "nodes": view.graphs[graph]["nodes"]}
            assert {n["slug"]: n for n in view.graphs[graph]["nodes"]} == {n["slug"]: n for n in status["nodes"]}
        deaf.close()
        slow.close()
        await steerer.close()
        await fast.close()


def subscribed(served: Served, name: str) -> socket.socket:
    """A connection that has asked for everything and read nothing."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(served.path))
    params = hello_params(client={"name": name, "version": "1"})
    sock.sendall(frame({"jsonrpc": "2.0", "id": 1, "method": "graphd/hello", "params": params}))
    sock.sendall(frame({"jsonrpc": "2.0", "id": 2, "method": "workgraph/subscribe"}))
    return sock


def read_all(sock: socket.socket, graph: str, status: str, *, pause_s: float = 0) -> tuple[Folded, int]:
    """Read, with pauses, until the graph has this status; the folded value, and how many notifications it took."""
    sock.settimeout(10)
    raw, folded, count = b"", Folded(), 0

    def more() -> bytes:
        time.sleep(pause_s)
        return sock.recv(4096)

    while folded.graphs.get(graph, {}).get("status") != status:
        while b"\r\n\r\n" not in raw:
            raw += more()
        header, _, raw = raw.partition(b"\r\n\r\n")
        length = int(header.partition(b":")[2])
        while len(raw) < length:
            raw += more()
        message, raw = orjson.loads(raw[:length]), raw[length:]
        if message.get("id") == 2:
            for value in message["result"]["graphs"]:
                folded.take(value)
        elif message.get("method") == "workgraph/changed":
            count += 1
            folded.take(message["params"])
    return folded, count


async def test_equal_cursors_share_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    original = feeds.GraphFeed._changed

    def counted(self: Any, *args: Any) -> Any:
        built.append("x")
        return original(self, *args)

    async with serving() as served:
        clients = [await served.client() for _ in range(8)]
        graph = await set_graph(served, clients[0], "a")
        monkeypatch.setattr(feeds.GraphFeed, "_changed", counted)
        for client in clients:
            await client.call("workgraph/subscribe")
        assert len(built) == 1
        built.clear()
        await served.daemon.end_all(graph)
        for client in clients:
            assert (await client.next("workgraph/changed"))["rev"] == served.daemon.state.graphs[graph].rev
        assert len(built) == 1
        for client in clients:
            await client.close()


async def test_since_is_a_delta_the_whole_value_or_the_tombstone() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await set_graph(served, client, "a", "b", ("c", ["a"]))
        gone = await set_graph(served, client, "x")
        await served.daemon.end_one(graph)
        rev = served.daemon.state.graphs[graph].rev
        await served.daemon.run(Cancel(gone))
        await served.daemon.end_all(gone)
        await served.daemon.run(Clear(gone))
        assert gone not in served.daemon.state.graphs

        async def since(**params: Any) -> dict[str, Any]:
            result = await client.call("workgraph/subscribe", params)
            wire.SubscribeResult.model_validate(result, by_name=False)
            await client.call("workgraph/unsubscribe", {"subscription": result["subscription"]})
            return {value["graph"]: value for value in result["graphs"]}

        delta = (await since(since={graph: rev - 1}, store="store-1"))[graph]
        assert "full" not in delta
        assert delta["from"] == rev - 1
        assert 0 < len(delta["nodes"]) < 3
        assert (await since(since={graph: rev}))[graph]["nodes"] == []
        assert (await since(since={graph: rev + 5}))[graph]["full"]
        assert (await since(since={graph: rev - 1}, store="another"))[graph]["full"]
        assert (await since(since={gone: 1}))[gone]["cleared"]["id"] == gone
        assert (await since(since={"never-was": 7}))["never-was"]["cleared"]["rev"] == 0
        assert (await since(graphs=[gone]))[gone]["operation"] == "clear"
        assert gone not in await since()
        with pytest.raises(WireError) as refusal:
            await client.call("workgraph/subscribe", {"graphs": ["nothing-like-it"]})
        assert refused_by(refusal.value) == "notFound"
        await client.close()


async def test_new_and_cleared_graphs_are_told_to_who_watches_all() -> None:
    async with serving() as served:
        client, other = await served.client(), await served.client()
        first = await set_graph(served, other, "a")
        await client.call("workgraph/subscribe")
        only = await other.call("workgraph/subscribe", {"graphs": [first[:13]]})
        assert [value["graph"] for value in only["graphs"]] == [first]
        graph = await set_graph(served, other, "b", start=False)
        value = await client.next("workgraph/changed")
        assert (value["graph"], value["full"], value["operation"]) == (graph, True, "set")
        await other.call("workgraph/cancel", {"graph": graph})
        assert (await client.next("workgraph/changed"))["operation"] == "cancel"
        await other.call("workgraph/clear", {"graph": graph})
        value = await client.next("workgraph/changed")
        assert value["cleared"] == {"id": graph, "rev": served.daemon.state.tombstones[graph]}
        await served.daemon.end_all(first)
        assert (await other.next("workgraph/changed"))["graph"] == first
        assert not other.notifications
        await client.close()
        await other.close()


async def test_the_answer_to_subscribe_precedes_its_first_notification() -> None:
    async with serving(commit_turns=3) as served:
        client = await served.client()
        graph = await set_graph(served, client, *(f"n{i}" for i in range(30)))
        working = asyncio.create_task(served.daemon.end_all(graph))
        for _ in range(6):
            number = await client.request("workgraph/subscribe", {"graphs": [graph]})
            folded = Folded()
            while True:  # messages in the order in which they came
                message = await client.read()
                if message.get("id") == number:
                    folded.take(message["result"]["graphs"][0])
                    break
            first = await client.next("workgraph/changed") if folded.graphs[graph]["status"] == "active" else None
            if first is not None:
                folded.take(first)
            name = message["result"]["subscription"]
            await client.call("workgraph/unsubscribe", {"subscription": name})
            client.notifications.clear()
        await working
        await client.close()


async def test_two_subscriptions_of_one_connection_share_its_chain() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await set_graph(served, client, "a", "b", "c")
        folded = Folded()
        for value in (await client.call("workgraph/subscribe"))["graphs"]:
            folded.take(value)
        await served.daemon.end_one(graph)
        folded.take(await client.next("workgraph/changed"))
        for value in (await client.call("workgraph/subscribe", {"graphs": [graph]}))["graphs"]:
            folded.take(value)
        await served.daemon.end_one(graph)
        folded.take(await client.next("workgraph/changed"))
        await client.call("workgraph/list")
        assert not client.notifications, "each change comes once"
        await client.close()


async def test_activity_is_the_latest_and_bounded_in_rate() -> None:
    async with serving() as served:
        client, plain = await served.client(), await served.client()
        graph = await set_graph(served, client, "a")
        node = next(iter(served.daemon.state.graphs[graph].nodes))
        await client.call("workgraph/subscribe", {"activity": True})
        await plain.call("workgraph/subscribe")
        began = asyncio.get_running_loop().time()
        for count in range(40):
            served.daemon.last_lines[(graph, node)] = f"line {count}"
            served.daemon.set_phase(graph, node, "working")
            await asyncio.sleep(0.01)
        rows: list[dict[str, Any]] = []
        while not rows or rows[-1]["lastLine"] != "line 39":
            params = await client.next("workgraph/activity")
            wire.Activity.model_validate(params, by_name=False)
            rows += params["nodes"]
        took_s = asyncio.get_running_loop().time() - began
        assert len(rows) <= took_s / 0.1 + 2
        await plain.call("workgraph/list")
        assert not plain.notifications
        await client.close()
        await plain.close()


async def test_output_comes_where_asked_for_and_says_what_a_slow_client_missed() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await set_graph(served, client, "a", "b")
        by_slug = {n.slug: n.id for n in served.daemon.state.graphs[graph].nodes.values()}
        await client.call("workgraph/subscribe", {"output": [{"graph": graph, "node": "a"}]})
        text = "grün " * 3
        raw = text.encode()
        for at in range(0, len(raw), 3):
            served.daemon.print(graph, by_slug["a"], raw[at : at + 3], offset=at)
            served.daemon.print(graph, by_slug["b"], b"other")
            await asyncio.sleep(0)
        got = ""
        while len(got) < len(text):
            chunk = await client.next("workgraph/output")
            wire.OutputChunk.model_validate(chunk, by_name=False)
            assert chunk["node"] == "a"
            got += chunk["text"]
        assert got == text
        served.daemon.print(graph, by_slug["a"], b"x" * 200_000, offset=1000)
        chunk = await client.next("workgraph/output")
        assert chunk["skipped"] == 200_000 - 65_536
        assert len(chunk["text"]) == 65_536
        await client.close()


async def test_many_large_graphs_fit_into_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.server.subscriptions.ANSWER_LIMIT_BYTES", 20_000)
    monkeypatch.setattr(feeds, "VALUE_LIMIT_BYTES", 60_000)
    async with serving() as served:
        client = await served.client()
        graphs = [await set_graph(served, client, *(f"n{i}" for i in range(40))) for _ in range(4)]
        for graph in graphs:
            while await served.daemon.end_one(graph, text="y" * 4000) is not None:
                pass
        folded = Folded()
        values = (await client.call("workgraph/subscribe"))["graphs"]
        assert len(values) < 4, "the rest follows in frames of its own"
        for value in values:
            folded.take(value)
        while len(folded.graphs) < 4:
            folded.take(await client.next("workgraph/changed"))
        for graph in graphs:
            outputs = [node["output"] for node in folded.graphs[graph]["nodes"]]
            assert all(len(o["text"]) <= 256 and o["isCut"] and o["total"] == 4000 for o in outputs)
        await client.close()


async def test_a_listener_in_trouble_never_reaches_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client = await served.client()
        await client.call("workgraph/subscribe")

        def broken(*args: Any) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(feeds.Feeds, "frame", broken)
        graph = await set_graph(served, client, "a")
        assert served.daemon.state.graphs[graph].rev > 0
        await client.close()


async def test_connections_are_collected_when_their_clients_left() -> None:
    async with serving() as served:
        client = await served.client()
        await client.call("workgraph/subscribe")
        watched = [weakref.ref(connection) for connection in served.server._served]
        assert isinstance(watched[0](), Connection)
        await client.close()
        for _ in range(100):
            gc.collect()
            if watched[0]() is None:
                break
            await asyncio.sleep(0.01)
        assert watched[0]() is None
