"""Requests over a real socket: hello first, one answer each, and nobody pays for another's mistakes."""

import asyncio
import json
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.server.hello import CONNECTION_LIMIT, LIMITS, Host, greet
from graphd.server.routes import all_routes
from graphd_protocol import model as wire
from tests.kit.wire import Client, WireError, frame, hello_params, nodes, refused_by, serving


async def test_hello_is_answered_as_the_model_says() -> None:
    async with serving() as served:
        client = await served.client(hello=False)
        result = wire.HelloResult.model_validate(await client.call("graphd/hello", hello_params()), by_name=False)
        assert result.principal == "user"
        assert result.store == "store-1"
        assert result.limits.model_dump(by_alias=True) == LIMITS
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
        assert [p.name for p in served.path.parent.iterdir()] == ["socket"]
        await client.close()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"cwd": "/x", "env": {"PATH": "/bin"}, "interactive": True, "locale": "zh-CN", "attemptToken": None},
        {"owner": {"id": "agent:x", "mode": "ask"}},
        {"client": {"name": "x", "version": "1", "pid": 5}},
        {"client": {"name": "x"}},
        {"client": "x"},
        {"client": {"name": "x", "version": "1", "extra": 1}},
        {"protocol": [1]},
        {"protocol": [1, "2"]},
        {"protocol": 1},
        {"protocol": [True, 1]},
        {"protocol": None},
        {"workspace": 1},
        {"env": {"PATH": 1}},
        {"env": []},
        {"interactive": "yes"},
        {"locale": 1},
        {"owner": {}},
        {"owner": {"id": 1}},
        {"owner": {"id": "x", "mode": "maybe"}},
        {"ownr": {"id": "x"}},
        {"client": None},
    ],
)
def test_the_hand_written_hello_agrees_with_the_model(change: dict[str, Any]) -> None:
    params = hello_params(**change)
    host = Host("/w", "s", "1", 1, 1)
    try:
        wire.HelloParams.model_validate_json(json.dumps(params), strict=True, by_name=False)
        is_right = True
    except ValueError:
        is_right = False
    if is_right:
        greet(params, host)
    else:
        with pytest.raises(Exception, match="invalid params"):
            greet(params, host)


def test_an_unknown_field_of_hello_is_named_with_its_neighbour() -> None:
    with pytest.raises(Exception, match="workspce") as refusal:
        greet(hello_params(workspce="/x"), Host("/w", "s", "1", 1, 1))
    fields = refusal.value.error["data"]["fields"]  # type: ignore[attr-defined]
    assert fields[0]["path"] == "workspce"
    assert fields[0]["suggestions"] == ["workspace"]


async def test_a_later_hello_changes_what_it_names_and_no_more() -> None:
    async with serving() as served:
        client = await served.client(owner={"id": "agent:a"}, env={"PATH": "/one"})
        again = await client.call("graphd/hello", hello_params(client={"name": "second", "version": "2"}))
        assert again["principal"] == "agent"
        assert served.connections[0]["client"] == "second"
        with pytest.raises(WireError) as refusal:
            await client.call("graphd/hello", hello_params(workspace="/elsewhere"))
        assert refused_by(refusal.value) == "notFound"
        with pytest.raises(WireError) as refusal:
            await client.call("graphd/hello", hello_params(protocol=[7, 9]))
        assert refused_by(refusal.value) == "protocolMismatch"
        await client.close()


async def test_anything_before_hello_is_refused_and_the_connection_stays() -> None:
    async with serving() as served:
        client = await served.client(hello=False)
        await client.send(frame({"jsonrpc": "2.0", "method": "x/unheardOf"}))
        with pytest.raises(WireError) as refusal:
            await client.call("workgraph/list")
        assert refusal.value.number == -32002
        await client.call("graphd/hello", hello_params())
        assert await client.call("workgraph/list") == {"graphs": []}
        await client.close()


async def test_every_request_gets_exactly_one_answer() -> None:
    async with serving() as served:
        client = await served.client()
        bodies: list[tuple[bytes, Any, int | None]] = [
            (b"nonsense", None, -32700),
            (b"[]", None, -32600),
            (b'{"jsonrpc":"2.0","method":"$/nothing"}', "none", None),
            (b'{"jsonrpc":"2.0","id":"a","method":"workgraph/list"}', "a", None),
            (b'{"jsonrpc":"2.0","id":"b","method":"workgraph/list","params":null}', "b", None),
            (b'{"jsonrpc":"2.0","id":"c","method":"workgraph/list","params":[]}', "c", -32602),
            (b'{"jsonrpc":"2.0","id":"d","method":"workgraph/lst"}', "d", -32601),
            (b'{"jsonrpc":"2.0","id":"e","method":"workgraph/list","params":{"limt":1}}', "e", -32602),
            (b'{"jsonrpc":"1.0","id":"f","method":"workgraph/list"}', "f", -32600),
            (b'{"jsonrpc":"2.0","id":-5,"method":"workgraph/list"}', -5, None),
        ]
        await client.send(b"".join(frame(body) for body, _, _ in bodies))
        for _, number, code in bodies:
            if number == "none":
                continue
            answer = await client.answer(number)
            assert answer.get("error", {}).get("code") == code, answer
        client.half_close()
        assert await client.rest() == []
        await client.close()


async def test_bad_params_are_named_field_by_field() -> None:
    async with serving() as served:
        client = await served.client()
        with pytest.raises(WireError) as refusal:
            await client.call("workgraph/set", {"nodes": [{"slug": "a", "spec": 1}], "titel": "x", "start": "yes"})
        fields = {row["path"]: row for row in refusal.value.data["fields"]}
        assert set(fields) == {"nodes.0.spec", "titel", "start"}
        assert fields["titel"]["suggestions"] == ["title"]
        assert all({"path", "message", "expected", "got"} <= row.keys() for row in fields.values())
        with pytest.raises(WireError) as refusal:
            await client.call("workgraph/stauts")
        assert refusal.value.number == -32601
        assert refusal.value.data["suggestions"][0] == "workgraph/status"
        await client.close()


async def test_an_internal_error_tells_no_path_and_no_traceback() -> None:
    async with serving() as served:
        client = await served.client()
        served.daemon.refusal = ZeroDivisionError("/secret/path.py")
        with pytest.raises(WireError) as trouble:
            await client.call("workgraph/set", {"nodes": nodes("a"), "title": "x"})
        assert trouble.value.number == -32603
        assert "secret" not in json.dumps(trouble.value.error)
        served.daemon.refusal = Refused("storeUnavailable", "the disk is full", "free some space")
        with pytest.raises(WireError) as trouble:
            await client.call("workgraph/set", {"nodes": nodes("a"), "title": "x"})
        assert trouble.value.number == -32066
        assert trouble.value.data == {"code": "storeUnavailable", "hint": "free some space", "retryable": True}
        await client.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n"
        + frame({"jsonrpc": "2.0", "id": 1, "method": "graphd/stop"}),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"Content-Length: 99999999\r\n\r\n",
    ],
)
async def test_foreign_bytes_end_that_connection_alone(raw: bytes) -> None:
    async with serving() as served:
        other, bad = await served.client(), await served.client()
        await bad.send(raw)
        messages = await bad.rest()
        assert all("result" not in message for message in messages)
        assert await other.call("workgraph/list") == {"graphs": []}
        await bad.close()
        await other.close()


async def test_a_frame_that_never_ends_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.server.frames.BODY_LIMIT_S", 0.1)
    async with serving() as served:
        client, idle = await served.client(), await served.client()
        await client.send(b"Content-Length: 100\r\n\r\n{")
        assert await client.rest() == []
        await asyncio.sleep(0.15)
        assert await idle.call("workgraph/list") == {"graphs": []}, "one that says nothing may stay"
        await client.close()
        await idle.close()


async def test_a_token_makes_an_attempt_and_a_wrong_one_nothing() -> None:
    async with serving() as served:
        user = await served.client()
        graph = (await user.call("workgraph/set", {"nodes": nodes("a"), "title": "x"}))["graph"]
        attempt = next(iter(served.daemon.state.graphs[graph].attempts.values()))
        folder = served.daemon.folder / "attempts" / graph / attempt.folder
        folder.mkdir(parents=True)
        (folder / "token").write_text("s3cret")
        child = await served.client(hello=False)
        with pytest.raises(WireError) as refusal:
            await child.call("graphd/hello", hello_params(attemptToken="guessed"))
        assert refused_by(refusal.value) == "unauthorised"
        assert (await child.call("graphd/hello", hello_params(attemptToken="s3cret")))["principal"] == "attempt"
        await user.close()
        await child.close()


async def test_requests_in_flight_are_bounded_and_reads_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client = await served.client()
        gate = asyncio.Event()
        original = served.daemon.history

        async def slow(*args: Any) -> Any:
            await gate.wait()
            return await original(*args)

        await client.call("workgraph/set", {"nodes": nodes("a"), "title": "x"})
        monkeypatch.setattr(served.daemon, "history", slow)
        numbers = [await client.request("workgraph/history", number=f"h{i}") for i in range(65)]
        refused = await client.answer(numbers[64])
        assert refused["error"]["data"]["code"] == "overloaded"
        await client.request("workgraph/history", number="h0")
        assert (await client.answer("h0"))["error"]["code"] == -32600, "an id that is being served"
        for number in numbers[1:64]:
            await client.send(frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}))
        for number in numbers[1:64]:
            assert (await client.answer(number))["error"]["code"] == -32800
        gate.set()
        assert "result" in await client.answer("h0")
        await client.close()


async def test_a_mutation_is_answered_with_its_result_though_cancelled() -> None:
    async with serving() as served:
        client = await served.client()
        number = await client.request("workgraph/set", {"nodes": nodes("a"), "title": "x"})
        await client.send(frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}))
        assert "result" in await client.answer(number)
        await client.close()


async def test_a_connection_beyond_the_limit_is_told_and_closed() -> None:
    async with serving() as served:
        clients = [await served.client() for _ in range(CONNECTION_LIMIT)]
        late = await served.client(hello=False)
        with pytest.raises(WireError) as refusal:
            await late.call("graphd/hello", hello_params())
        assert refused_by(refusal.value) == "overloaded"
        assert await late.rest() == []
        await clients.pop().close()
        while len(served.connections) > len(clients):
            await asyncio.sleep(0.01)
        clients.append(await served.client())
        for client in [*clients, late]:
            await client.close()


async def test_pipelined_answers_slow_the_reader_and_none_is_lost() -> None:
    async with serving() as served:
        client = await served.client()
        await client.call("workgraph/set", {"nodes": nodes(*(f"n{i}" for i in range(60))), "title": "x"})
        numbers = [await client.request("workgraph/status") for _ in range(300)]
        await asyncio.sleep(0.1)
        held = served.connections[0]["bytesInFlight"]
        assert held < 3 * 1024 * 1024
        for number in numbers:
            assert "result" in await client.answer(number)
        await client.close()


async def test_goodbye_is_the_last_frame_and_the_socket_goes() -> None:
    async with serving() as served:
        client = await served.client()
        await client.call("graphd/stop")
        last = (await client.rest())[-1]
        assert last["method"] == "graphd/stopping"
        wire.StoppingNotice.model_validate(last["params"], by_name=False)
        assert not served.path.exists()
        await client.close()


async def test_a_vanished_socket_is_bound_again_and_a_lost_lock_ends_the_daemon() -> None:
    async with serving() as served:
        first = await served.client()
        served.path.unlink()
        for _ in range(100):
            if served.path.exists():
                break
            await asyncio.sleep(0.02)
        second = await served.client()
        assert await second.call("workgraph/list") == {"graphs": []}
        served.daemon.lock_is_ours = False
        served.path.unlink()
        assert (await first.rest())[-1]["params"]["reconnect"] is True
        await first.close()
        await second.close()


async def test_mutated_streams_harm_nobody_else() -> None:
    chance = random.Random(11)
    whole = frame(hello_message()) + frame({"jsonrpc": "2.0", "id": 2, "method": "workgraph/list"})
    async with serving() as served:
        other = await served.client()
        for round_ in range(1500):  # the reader alone takes 10,000 in tests/unit/test_frames.py
            bad = await served.client(hello=False)
            raw = bytearray(whole * 2)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(1, len(raw))
                if chance.random() < 0.5:
                    raw[at] = chance.randrange(256)
                else:
                    raw[at:at] = chance.randbytes(chance.randint(1, 4))
            try:
                await bad.send(bytes(raw))
                bad.half_close()
                await bad.rest()
            except (ConnectionError, ValueError):
                pass
            await bad.close()
            if round_ % 200 == 0:
                assert await other.call("workgraph/list") == {"graphs": []}
        assert await other.call("workgraph/list") == {"graphs": []}
        await other.close()


def hello_message() -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "graphd/hello", "params": hello_params()}


async def test_principals_may_do_what_the_table_says() -> None:
    async with serving() as served:
        user = await served.client()
        agent = await served.client(owner={"id": "agent:x"})
        graph = (await user.call("workgraph/set", {"nodes": nodes("a"), "title": "x"}))["graph"]
        with pytest.raises(WireError) as refusal:
            await agent.call("workgraph/release", {"graph": graph, "node": "a", "pids": [1]})
        assert refused_by(refusal.value) == "unauthorised"
        off = await served.client(owner={"id": "agent:y", "mode": "off"})
        with pytest.raises(WireError) as refusal:
            await off.call("workgraph/set", {"nodes": nodes("a"), "title": "x"})
        assert refused_by(refusal.value) == "unauthorised"
        for client in (user, agent, off):
            await client.close()


async def test_an_attempt_reads_its_own_node_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        user = await served.client()
        graph = (await user.call("workgraph/set", {"nodes": nodes("a", "b"), "title": "x"}))["graph"]
        own = next(n.id for n in served.daemon.state.graphs[graph].nodes.values() if n.slug == "a")
        monkeypatch.setattr("graphd.server.service.attempt_of_peer", lambda pid, state: (graph, own, 1, "worker"))
        attempt = await served.client(hello=False)
        assert (await attempt.call("graphd/hello", hello_params(owner={"id": "x"})))["principal"] == "attempt"
        assert (await attempt.call("workgraph/node", {"node": "a"}))["node"]["slug"] == "a"
        allowed = set()
        for method, route in all_routes().items():
            if "attempt" in route.allowed:
                allowed.add(method)
                continue
            with pytest.raises(WireError) as refusal:
                await attempt.call(method, {})
            assert refused_by(refusal.value) == "unauthorised", method
        reads = {"workgraph/node", "workgraph/why", "workgraph/output", "workgraph/observe"}
        says = {"submitResult", "reportProgress", "reportDiscovery", "askParent", "readInput"}
        assert allowed == reads | {f"workgraph/{method}" for method in says}
        for method in reads:
            with pytest.raises(WireError) as refusal:
                await attempt.call(method, {"graph": graph, "node": "b"})
            assert refused_by(refusal.value) == "unauthorised", method
        await user.close()
        await attempt.close()


def test_every_route_has_models_and_says_what_it_does() -> None:
    for method, route in all_routes().items():
        assert hasattr(wire, route.params), method
        assert route.result is None or hasattr(wire, route.result), method
        assert route.handler.__doc__, method


def test_nothing_heavy_is_imported_before_the_first_request() -> None:
    code = (
        "import sys, graphd.server.service, graphd.server.routes\n"
        "heavy = {'pydantic', 'pygls', 'lsprotocol', 'yaml', 'rich', 'click', 'structlog', 'watchfiles'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd(), check=False)
    assert done.returncode == 0, done.stderr


async def test_a_client_that_leaves_is_forgotten() -> None:
    async with serving() as served:
        for _ in range(5):
            client: Client = await served.client()
            await client.request("workgraph/list")
            await client.close()
        for _ in range(100):
            if not served.connections:
                break
            await asyncio.sleep(0.01)
        assert served.connections == []
