"""How an editor greets: what `initialize` is answered with, what it is refused for, which workspace it names."""

import asyncio
import inspect
from typing import Any

import pytest
from lsprotocol import types

from graphd.server.lsp.capabilities import Client as EditorCapabilities
from graphd.server.lsp.capabilities import answer_to_initialize
from graphd.server.lsp.session import NOTICED, SERVED
from tests.kit.lsp import FULL, Editor, converter, desk_of, editor
from tests.kit.wire import Client, Wire, serving


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
        error = await client.refused("initialize", params)
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
                    error = await client.refused("initialize", {"capabilities": {}, **said})
                    assert error["data"]["code"] == "notFound"
                await client.close()
            plain = await Client.connect(served.path, hello=False)
            params = {"client": {"name": "x", "version": "1"}, "protocol": [1, 1], "workspace": str(named)}
            if is_ours:
                await plain.call("graphd/hello", params)
            else:
                assert (await plain.refused("graphd/hello", params))["data"]["code"] == "notFound"
            await plain.close()
