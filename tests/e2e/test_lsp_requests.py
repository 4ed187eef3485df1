"""One answer to each request of an editor, whatever it looks like, cancelled or not."""

import asyncio
import json
from typing import Any

import pytest

from graphd.server.lsp.desk import Desk
from tests.kit.lsp import PLACE, Editor, editor
from tests.kit.wire import Served, Wire, frame, nodes, serving


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/hover", {"bogus": 1}, -32602),
        ("textDocument/hover", None, -32602),
        ("textDocument/hover", [], -32602),
        ("textDocument/hover", [PLACE], -32602),
        ("textDocument/hover", "x", -32602),
        ("textDocument/hover", {**PLACE, "position": {"line": "x", "character": 0}}, -32602),
        ("textDocument/hover", {**PLACE, "textDocument": {"uri": {"jsonrpc": "2.0", "id": 9}}}, None),
        ("textDocument/hover", {**PLACE, "class": 1, "a-b": 2, "type_name": "Z", "_p": 3}, None),
        ("textDocument/hover", {**PLACE, "payload": {"jsonrpc": "2.0", "method": "exit"}}, None),
        ("textDocument/completion", {**PLACE, "context": {"triggerKind": 99}}, -32602),
        ("textDocument/nonsense", {}, -32601),
        ("x/echo", {"payload": {"jsonrpc": "2.0", "id": 1, "method": "exit"}}, -32601),
        ("$/unheardOf", {}, -32601),
        ("", {}, -32601),
        ("workspace/executeCommand", {"command": "graphd.nope"}, -32602),
        ("workspace/executeCommand", {"command": "graphd.pause", "arguments": [1]}, -32602),
        ("workspace/executeCommand", {"command": "graphd.pause", "arguments": [{"nod": "x"}]}, -32602),
        ("workspace/executeCommand", {"command": "graphd.pause", "arguments": [{"node": 1}]}, -32602),
        ("workspace/executeCommand", {"command": "graphd.pause", "arguments": [{}, {}]}, -32602),
        ("workspace/executeCommand", {"command": "graphd.pause", "arguments": [{"inputs": {}}]}, -32602),
        ("workgraph/set", {"nodes": [{"slug": "x", "spec": "y", "jsonrpc": "2.0"}]}, -32602),
    ],
)
async def test_one_answer_with_its_id(method: str, params: Any, code: int | None) -> None:
    async with serving() as served:
        client = await editor(served)
        answer = await client.answer(await client.request(method, params, number="mine"))
        assert answer["id"] == "mine"
        assert answer.get("error", {}).get("code") == code
        said = json.dumps(answer)
        assert "Traceback" not in said
        assert "site-packages" not in said
        assert ".py" not in said
        assert await client.call("textDocument/hover", PLACE) is None
        assert client.answers == {}
        assert [name for name, _ in client.notifications] == [], "no pop-ups"
        await client.close()


async def test_no_params_at_all_is_like_empty_ones() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.send(frame({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover"}))
        error = (await client.answer(7))["error"]
        assert error["code"] == -32602
        assert [row["path"] for row in error["data"]["fields"]] == ["textDocument", "position"]
        await client.close()


async def test_bad_and_unknown_notifications_are_ignored() -> None:
    async with serving() as served:
        client = await editor(served)
        for method, params in (
            ("textDocument/didOpen", {"bogus": 1}),
            ("textDocument/didChange", None),
            (
                "textDocument/didChange",
                {"textDocument": {"uri": "file:///never-opened", "version": 1}, "contentChanges": []},
            ),
            ("x/unheardOf", {"a": {"b": 1}}),
            ("$/setTrace", {"value": "verbose"}),
            ("workspace/didChangeConfiguration", {"settings": {}}),
            ("window/workDoneProgress/cancel", {"token": "nope"}),
        ):
            await client.tell(method, params)
        assert await client.call("textDocument/hover", PLACE) is None
        assert client.notifications == client.notifications.__class__()
        await client.close()


async def test_answers_to_what_was_never_asked_are_ignored() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        for answer in (
            {"jsonrpc": "2.0", "id": 1, "result": None},
            {"jsonrpc": "2.0", "id": "nope", "error": {"code": 1, "message": "x"}},
            {"jsonrpc": "2.0", "id": None, "result": 1},
            {"jsonrpc": "2.0", "id": [1], "result": 1},
            {"id": "nope", "result": 1},
            {"jsonrpc": "2.0", "id": "nope", "result": 1, "error": {"code": 1, "message": "x"}},
        ):
            await client.send(frame(answer))
        assert await client.call("textDocument/hover", PLACE) is None
        await client.close()


async def test_a_fault_of_ours_names_its_class_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)

        def broken(self: Desk, method: str) -> Any:
            async def fail(params: Any) -> Any:
                raise KeyError("secret path /etc/x.py")

            return fail

        monkeypatch.setattr(Desk, "route", broken)
        error = await client.refused("textDocument/hover", PLACE)
        assert error["code"] == -32603
        assert error["message"] == "internal error (KeyError)"
        assert "secret" not in json.dumps(error)
        await client.close()


class Slow:
    """A handler that never ends by itself."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended_as: str | None = None

    async def __call__(self, params: Any) -> Any:
        self.began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.ended_as = "cancelled"
            raise


async def slow_editor(served: Served, monkeypatch: pytest.MonkeyPatch) -> tuple[Editor, Slow]:
    client, slow = await editor(served), Slow()
    await client.at("hover", "file:///x.yaml", 0, 0)

    async def handler(params: Any) -> Any:
        return await slow(params)

    monkeypatch.setattr(Desk, "route", lambda self, method: handler)
    return client, slow


async def test_a_cancelled_request_ends_and_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client, slow = await slow_editor(served, monkeypatch)
        number = await client.request("textDocument/hover", PLACE)
        await slow.began.wait()
        assert (await refused_id(client, number, PLACE))["code"] == -32600
        await client.tell("$/cancelRequest", {"id": number})
        assert (await client.answer(number))["error"]["code"] == -32800
        await asyncio.sleep(0.01)
        assert slow.ended_as == "cancelled"
        await client.tell("$/cancelRequest", {"id": number})
        await client.tell("$/cancelRequest", {"id": "nobody"})
        await client.tell("$/cancelRequest", {"id": [1]})
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        assert client.answers == {}
        await client.close()


async def refused_id(client: Editor, number: Any, params: Any) -> Wire:
    """A second request with an id that is being served: its refusal comes first."""
    await client.request("textDocument/hover", params, number=number)
    answer = await client.answer(number)
    error: Wire = answer["error"]
    return error


async def test_a_cancelled_command_stops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client, slow = await slow_editor(served, monkeypatch)
        number = await client.request("workspace/executeCommand", {"command": "graphd.openOutput", "arguments": []})
        await slow.began.wait()
        await client.tell("$/cancelRequest", {"id": number})
        assert (await client.answer(number))["error"]["code"] == -32800
        await asyncio.sleep(0.01)
        assert slow.ended_as == "cancelled"
        await client.close()


async def test_a_command_that_commits_is_answered_with_its_result_cancelled_or_not() -> None:
    async with serving(commit_turns=20) as served:
        client = await editor(served)
        graph = (await client.call("workgraph/set", {"title": "x", "nodes": nodes("a")}))["graph"]
        params = {"command": "graphd.pause", "arguments": [{"graph": graph}]}
        number = await client.request("workspace/executeCommand", params)
        await client.tell("$/cancelRequest", {"id": number})
        assert (await client.answer(number))["result"]["graph"] == graph
        assert served.daemon.state.graphs[graph].status == "user_paused"
        await client.close()


async def test_cancelled_while_the_server_is_being_loaded() -> None:
    async with serving() as served:
        client = await Editor.connect(served.path, hello=False)
        sent = [("initialize", {"capabilities": {}}), ("textDocument/hover", PLACE)]
        raw = [
            frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(sent)
        ]
        await client.send(b"".join(raw) + frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}))
        await client.answer(0)
        assert "id" in await client.answer(1)
        assert await client.call("textDocument/hover", PLACE) is None
        await client.close()


async def test_a_client_that_dies_ends_its_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client, slow = await slow_editor(served, monkeypatch)
        await client.request("textDocument/hover", PLACE)
        await slow.began.wait()
        await client.close()
        async with asyncio.timeout(5):
            while served.server._served:
                await asyncio.sleep(0.005)
        assert slow.ended_as == "cancelled"


async def test_slow_requests_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        client, slow = await slow_editor(served, monkeypatch)
        await client.request("textDocument/hover", PLACE)
        await slow.began.wait()
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()
