"""What an editor can do from a workflow file, and the files that are watched for it."""

import asyncio
from pathlib import Path

import pytest

from graphd.server.hello import file_path
from tests.kit.lsp import FLOW, edited, editor, workflow
from tests.kit.wire import WireError, refused_by, serving


async def test_a_run_uses_the_saved_file() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        await client.change(uri, {"text": FLOW + "# more\n"})
        with pytest.raises(WireError) as refusal:
            await client.command("graphd.run", uri=uri)
        assert refused_by(refusal.value) == "unsavedChanges"
        assert refusal.value.number == -32076
        assert served.daemon.state.graphs == {}
        Path(uri.removeprefix("file://")).write_bytes(("\ufeff" + FLOW + "# more\n").replace("\n", "\r\n").encode())
        await client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert await client.command("graphd.run", uri=uri)


async def test_text_that_was_never_saved_does_not_run() -> None:
    async with serving() as served:
        client = await editor(served)
        for uri in ("untitled:Untitled-1", (served.daemon.workspace / ".agents/workflows/new.yaml").as_uri()):
            await client.open(uri, FLOW, language="graphd-workflow")
            with pytest.raises(WireError) as refusal:
                await client.command("graphd.run", uri=uri)
            assert refused_by(refusal.value) == "unsavedChanges"
        await client.close()


async def test_what_commands_answer_when_they_cannot() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        for name, argument, code in (
            ("graphd.pause", {"uri": uri}, "notFound"),
            ("graphd.pause", {}, "notFound"),
            ("graphd.openOutput", {"uri": uri, "node": "lint"}, "notFound"),
            ("graphd.run", {"uri": "file:///nowhere/x.yaml"}, "notFound"),
            ("graphd.run", {"graph": "019-nope"}, "notFound"),
        ):
            with pytest.raises(WireError) as refusal:
                await client.command(name, **argument)
            assert refused_by(refusal.value) == code
        await client.command("graphd.run", uri=uri)
        with pytest.raises(WireError) as refusal:
            await client.command("graphd.resume", uri=uri)
        assert refused_by(refusal.value) == "invalidTransition"


async def test_an_output_is_opened_where_the_editor_can_and_answered_as_text() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri), edited(served, FLOW, {}) as (plain, _):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, text="all is well")
        shown = await client.command("graphd.openOutput", uri=uri, node="lint")
        assert shown["text"] == "all is well"
        copy = Path(file_path(shown["uri"]) or "")
        assert copy.read_text() == "all is well"
        while "window/showDocument" not in {method for method, _ in client.asked}:
            client._keep(await client.read())
        assert ("window/showDocument", {"uri": shown["uri"], "takeFocus": True}) in client.asked
        assert (await plain.command("graphd.openOutput", graph=graph, node="lint"))["text"] == "all is well"
        await plain.call("graphd/health")
        assert plain.asked == []


async def test_a_prompt_that_appears_on_the_disk_is_noticed() -> None:
    text = "nodes:\n  - { id: a, worker: build, prompt: { file: how } }\n"
    async with serving() as served, edited(served, text) as (client, uri):
        before = await client.diagnostics(uri)
        assert before
        prompts = served.daemon.workspace / ".agents" / "prompts"
        prompts.mkdir()
        (prompts / "how.md").write_text("do it")
        async with asyncio.timeout(10):
            while await client.diagnostics(uri) == before:
                pass


async def test_files_that_the_editor_watches_count_too() -> None:
    text = "nodes:\n  - { id: a, worker: build, prompt: { file: how } }\n"
    async with serving() as served:
        prompts = served.daemon.workspace / ".agents" / "prompts"
        async with edited(served, text) as (client, uri):
            before = await client.diagnostics(uri)
            served.server._workflow_files.close()
            prompts.mkdir()
            (prompts / "how.md").write_text("do it")
            change = {"uri": (prompts / "how.md").as_uri(), "type": 1}
            await client.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
            assert await client.diagnostics(uri) != before


async def test_nothing_is_watched_without_an_editor() -> None:
    async with serving() as served:
        files = served.server._workflow_files
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        assert files._watch is not None
        await client.close()
        async with asyncio.timeout(5):
            while served.server._served:
                await asyncio.sleep(0.005)
        assert files._watch is None
        assert workflow(served.daemon.workspace, "x", FLOW).exists()
