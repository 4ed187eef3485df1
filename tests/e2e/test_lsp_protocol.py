"""What a language server is asked that no honest editor asks, and what its neighbours notice of it: nothing.

Each row of the research on stock pygls (sidecar.md §2) is a test here, through our own server.
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
from graphd.server.lsp.capabilities import Client as EditorCapabilities
from graphd.server.lsp.capabilities import answer_to_initialize
from graphd.server.lsp.desk import Desk
from graphd.server.lsp.glue import EditorGone
from graphd.server.lsp.session import NOTICED, SERVED
from tests.kit.lsp import FULL, Editor, converter, editor, workflow
from tests.kit.wire import Client, Served, Wire, WireError, frame, nodes, serving

PLACE: Wire = {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": 0, "character": 0}}


async def refused(client: Client, method: str, params: Any = None) -> Wire:
    with pytest.raises(WireError) as refusal:
        await client.call(method, params)
    return refusal.value.error


# ---- initialize ---------------------------------------------------------------------------------------------------


async def test_initialize_first_is_a_greeting_with_the_facts_of_the_hello() -> None:
    async with serving() as served:
        greeted = await Client.connect(served.path, hello=False)
        hello = await greeted.call("graphd/hello", {"client": {"name": "x", "version": "1"}, "protocol": [1, 1]})
        client = await Editor.connect(served.path, hello=False)
        result = await client.initialize(clientInfo={"name": "Some Editor", "version": "3"})
        assert result["capabilities"]["experimental"]["workgraph"] == hello
        assert [row["client"] for row in served.connections] == ["x", "Some Editor"]
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()
        await greeted.close()


async def test_initialize_after_a_hello_keeps_what_the_hello_said() -> None:
    async with serving() as served:
        client = await Editor.connect(served.path, hello=True, env={"PATH": "/bin"}, owner={"id": "agent:x"})
        result = await client.initialize(clientInfo={"name": "Some Editor"}, rootUri="file:///elsewhere")
        assert result["capabilities"]["experimental"]["workgraph"]["principal"] == "agent"
        assert [row["client"] for row in served.connections] == ["Some Editor"]
        await client.close()


async def test_nothing_heavy_is_loaded_before_the_answer(tmp_path: Any) -> None:
    program = (
        "import sys, asyncio; import graphd.server.connection, graphd.server.service\n"
        "heavy = {'pygls', 'lsprotocol', 'cattrs', 'attr', 'attrs', 'pydantic', 'yaml', 'watchfiles'}\n"
        "bad = heavy & set(sys.modules)\n"
        "assert not bad, bad"
    )
    running = await asyncio.create_subprocess_exec(
        __import__("sys").executable, "-c", program, stderr=asyncio.subprocess.PIPE
    )
    _, trouble = await running.communicate()
    assert running.returncode == 0, trouble.decode()


def test_the_hand_written_answer_is_what_lsp_says() -> None:
    pulling = {**FULL, "textDocument": {**FULL["textDocument"], "diagnostic": {}}}
    for capabilities in ({}, FULL, pulling):
        answer = answer_to_initialize(EditorCapabilities({"capabilities": capabilities}), {"protocol": 1})
        read = converter()
        typed = read.structure(answer, types.InitializeResult)
        assert read.unstructure(typed) == answer


async def test_every_promised_feature_has_a_handler() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        desk = desk_of(served)
        assert {method for method in SERVED | NOTICED if desk.route(method) is None} == set()
        for method in SERVED:
            assert inspect.iscoroutinefunction(desk.route(method)), f"{method} would block every client"
        await client.close()


def desk_of(served: Served, index: int = 0) -> Desk:
    """The desk behind a connection."""
    session = list(served.server._served)[index]._lsp
    assert session is not None
    assert session._desk is not None
    return session._desk


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [
        ({}, "utf-16"),
        ({"general": {"positionEncodings": ["utf-8", "utf-16"]}}, "utf-8"),
        ({"general": {"positionEncodings": ["utf-7", "utf-32"]}}, "utf-32"),
        ({"general": {"positionEncodings": []}}, "utf-16"),
        ({"general": None}, "utf-16"),
        ({"general": {"positionEncodings": "utf-8"}}, "utf-16"),
    ],
)
def test_the_editors_own_order_of_encodings_decides(capabilities: Wire, chosen: str) -> None:
    assert EditorCapabilities({"capabilities": capabilities}).encoding == chosen


@pytest.mark.parametrize(
    "params",
    [
        [],
        "x",
        {"capabilities": 1},
        {"clientInfo": "x"},
        {"clientInfo": {}},
        {"processId": "1"},
        {"rootUri": 1},
        {"workspaceFolders": {}},
        {"locale": 1},
    ],
)
async def test_initialize_that_does_not_fit_is_refused_and_may_be_sent_again(params: Any) -> None:
    async with serving() as served:
        client = await Editor.connect(served.path, hello=False)
        error = await refused(client, "initialize", params)
        assert error["code"] == -32602
        assert error["data"]["fields"]
        await client.initialize()
        await client.close()


async def test_whose_workspace_an_editor_names() -> None:
    async with serving() as served:
        root = served.daemon.workspace
        (root / "sub" / "deeper").mkdir(parents=True)
        (root / "own" / ".agents").mkdir(parents=True)
        (root / "spaced name").mkdir()
        link = root / "link"
        link.symlink_to(root / "sub")
        for named, is_ours in {
            root: True,
            root / "sub" / "deeper": True,
            root / "spaced name": True,
            link: True,
            root / "own": False,
            root / "own" / "x": False,
            root.parent: False,
        }.items():
            for said in ({"rootUri": named.as_uri()}, {"workspaceFolders": [{"uri": named.as_uri(), "name": "x"}]}):
                client = await Editor.connect(served.path, hello=False)
                if is_ours:
                    await client.initialize(**said)
                else:
                    error = await refused(client, "initialize", {"capabilities": {}, **said})
                    assert error["data"]["code"] == "notFound"
                await client.close()
            plain = await Client.connect(served.path, hello=False)
            params = {"client": {"name": "x", "version": "1"}, "protocol": [1, 1], "workspace": str(named)}
            if is_ours:
                await plain.call("graphd/hello", params)
            else:
                assert (await refused(plain, "graphd/hello", params))["data"]["code"] == "notFound"
            await plain.close()


# ---- the life of one editor's server ------------------------------------------------------------------------------


async def test_before_initialize_the_methods_of_lsp_wait_for_it() -> None:
    async with serving() as served:
        client = await Client.connect(served.path, hello=False)
        assert (await refused(client, "textDocument/hover", PLACE))["code"] == -32002
        assert (await refused(client, "workgraph/list", {}))["code"] == -32002
        await client.call("graphd/hello", {"client": {"name": "x", "version": "1"}, "protocol": [1, 1]})
        assert (await refused(client, "textDocument/hover", PLACE))["code"] == -32002
        assert (await refused(client, "shutdown"))["code"] == -32002
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()


async def test_initialize_once() -> None:
    async with serving() as served:
        client = await editor(served)
        assert (await refused(client, "initialize", {"capabilities": {}}))["code"] == -32600
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
            assert (await refused(client, method, params))["code"] == -32600
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


# ---- one answer to each request, whatever it looks like -----------------------------------------------------------


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
        error = await refused(client, "textDocument/hover", PLACE)
        assert error["code"] == -32603
        assert error["message"] == "internal error (KeyError)"
        assert "secret" not in json.dumps(error)
        await client.close()


# ---- cancelling ---------------------------------------------------------------------------------------------------


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


# ---- what is left over --------------------------------------------------------------------------------------------


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
            error = await refused(client, "textDocument/hover", PLACE)
            assert error["code"] == -32603
            assert "/some/where" not in json.dumps(error)
        assert await client.call("workgraph/list", {}) == {"graphs": []}
        await client.close()


# ---- pygls --------------------------------------------------------------------------------------------------------


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
