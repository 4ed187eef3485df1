"""The life of one editor's server, from before `initialize` to what is left over; its neighbours notice nothing.

Each row of the research on stock pygls (sidecar.md §2) is a test here or in `test_lsp_requests`.
"""

import asyncio
import gc
import inspect
import json
import weakref
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from graphd.core.commands import Pause
from graphd.server.connection import Connection
from graphd.server.lsp import session as session_module
from graphd.server.lsp.glue import EditorGone
from tests.kit.lsp import PLACE, Editor, converter, editor, workflow
from tests.kit.wire import Client, frame, nodes, serving


async def test_before_initialize_the_methods_of_lsp_wait_for_it() -> None:
    async with serving() as served:
        client = await Client.connect(served.path, hello=False)
        assert (await client.refused("textDocument/hover", PLACE))["code"] == -32002
        assert (await client.refused("workgraph/list", {}))["code"] == -32002
        await client.call("graphd/hello", {"client": {"name": "x", "version": "1"}, "protocol": [1, 1]})
        assert (await client.refused("textDocument/hover", PLACE))["code"] == -32002
        assert (await client.refused("shutdown"))["code"] == -32002
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()


async def test_initialize_once() -> None:
    async with serving() as served:
        client = await editor(served)
        assert (await client.refused("initialize", {"capabilities": {}}))["code"] == -32600
        assert await client.at("hover", "file:///x.yaml", 0, 0) is None
        await client.close()


async def test_it_works_without_initialized() -> None:
    async with serving() as served:
        client = await Editor.connect(served.path, hello=False)
        await client.call("initialize", {"capabilities": {}})
        assert await client.call("textDocument/hover", PLACE) is None
        await client.close()


async def test_shutdown_then_exit_end_this_connection_alone() -> None:
    async with serving() as served:
        neighbour = await editor(served)
        client = await editor(served)
        assert await client.call("shutdown") is None
        for method, params in (("textDocument/hover", PLACE), ("workgraph/list", {}), ("initialize", {})):
            assert (await client.refused(method, params))["code"] == -32600
        await client.tell("exit")
        assert await client.rest() == []
        assert await neighbour.at("hover", "file:///x.yaml", 0, 0) is None
        assert len(served.connections) == 1
        await neighbour.close()


async def test_shutdown_at_once_is_answered_at_once() -> None:
    async with serving() as served:
        client = await Editor.connect(served.path, hello=False)
        both = frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
        await client.send(both + frame({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
        assert "result" in await client.answer(1)
        assert await client.answer(2) == {"jsonrpc": "2.0", "id": 2, "result": None}
        await client.tell("exit")
        assert await client.rest() == []


@pytest.mark.parametrize("greets", [True, False])
async def test_exit_without_shutdown_ends_this_connection_alone(greets: bool) -> None:
    async with serving() as served:
        neighbour = await served.client()
        client = await Editor.connect(served.path, hello=greets)
        await client.tell("exit")
        assert await client.rest() == []
        assert await neighbour.call("workgraph/list", {}) == {"graphs": []}
        await neighbour.close()


async def test_an_exit_does_not_wait_for_what_reads_but_for_what_commits() -> None:
    async with serving() as served:
        client = await editor(served)
        graph = (await client.call("workgraph/set", {"title": "x", "nodes": nodes("a")}))["graph"]
        waiting = await client.request("workgraph/pause", {"graph": graph, "settle": True, "settleSeconds": 0.3})
        await client.tell("exit")
        answers = {message.get("id"): message for message in await client.rest()}
        assert answers[waiting]["result"]["graph"] == graph
        assert served.daemon.state.graphs[graph].status == "user_paused"


async def test_the_end_of_the_daemon_is_told_last() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        served.server.request_stop("enough", reconnect=True)
        assert (await client.rest())[-1]["method"] == "graphd/stopping"


async def test_nothing_of_an_editor_outlives_its_connection() -> None:
    async with serving() as served:
        path = workflow(served.daemon.workspace, "flow", "nodes:\n  - { id: a, run: 'true' }\n")
        first = await editor(served)
        await first.at("hover", path.as_uri(), 0, 0)
        await first.close()
        before = len(asyncio.all_tasks())
        kept: list[weakref.ref[Any]] = []
        for _ in range(3):
            client = await editor(served)
            await client.open(path.as_uri(), path.read_text())
            await client.at("hover", path.as_uri(), 1, 10)
            await client.at("completion", path.as_uri(), 1, 10)
            connection = list(served.server._served)[-1]
            session = connection._lsp
            assert session is not None
            assert session._server is not None
            kept += [weakref.ref(thing) for thing in (connection, session, session._server, session._server.protocol)]
            assert session._desk is not None
            kept.append(weakref.ref(session._desk))
            del connection, session
            await client.close()
            del client
        async with asyncio.timeout(5):
            while served.server._served or len(asyncio.all_tasks()) > before:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        gc.collect()
        assert [thing() for thing in kept] == [None] * len(kept)


async def test_what_was_asked_of_an_editor_fails_when_it_leaves() -> None:
    async with serving() as served:
        client = await editor(served)
        client.answers_asks = False
        await client.at("hover", "file:///x.yaml", 0, 0)
        session = list(served.server._served)[0]._lsp
        assert session is not None
        asked = asyncio.create_task(session.ask("window/showDocument", {"uri": "file:///x"}))
        while not client.asked:
            client._keep(await client.read())
        await client.close()
        with pytest.raises(EditorGone):
            await asyncio.wait_for(asked, 5)


async def test_a_stalled_editor_costs_a_bounded_number_of_frames() -> None:
    """Progress and refreshes are pulled when its socket takes bytes, the newest of each alone."""
    async with serving() as served:
        neighbour = await served.client()
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        graph = (await neighbour.call("workgraph/set", {"title": "x", "nodes": nodes("a", "b", "c")}))["graph"]
        for _ in range(200):
            await served.daemon.run(Pause(graph, "drain", "x"))
            await neighbour.call("workgraph/resume", {"graph": graph})
        connection = next(item for item in served.server._served if item._lsp is not None)
        assert connection._lsp is not None
        assert len(connection._lsp._frames) <= 40
        await client.close()
        await neighbour.close()


async def test_without_pygls_every_request_is_still_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ImportError("no module in /some/where")

    monkeypatch.setattr(session_module, "_loaded", [])
    monkeypatch.setattr(session_module, "_import", broken)
    async with serving() as served:
        client = await editor(served)
        for _ in range(2):
            error = await client.refused("textDocument/hover", PLACE)
            assert error["code"] == -32603
            assert "/some/where" not in json.dumps(error)
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()


def test_the_private_names_of_pygls_that_we_stand_on() -> None:
    """One that goes, or changes its shape, is found here and not in an editor."""
    server = LanguageServer("x", "1", converter_factory=converter)
    protocol = server.protocol
    assert protocol._request_futures == {}
    assert protocol._result_types == {}
    for name, parameters in {
        "_send_data": ["self", "data"],
        "_get_handler": ["self", "feature_name"],
        "_register_builtin_features": ["self"],
        "structure_message": ["self", "data"],
        "handle_message": ["self", "message"],
        "get_message_type": ["self", "method"],
        "get_result_type": ["self", "method"],
        "send_request": ["self", "method", "params", "callback", "msg_id"],
        "lsp_exit": ["self", "args"],
    }.items():
        assert list(inspect.signature(getattr(LanguageServerProtocol, name)).parameters) == parameters, name
    assert list(inspect.signature(LanguageServer.report_server_error).parameters) == ["self", "error", "source"]
    init = inspect.signature(LanguageServer.__init__).parameters
    assert {"name", "version", "args", "kwargs"} <= set(init)
    assert types.METHOD_TO_TYPES["textDocument/hover"][0] is types.HoverRequest
    assert isinstance(Connection, type)
