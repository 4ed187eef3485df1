"""What an editor sees of a graph that runs from its file: lenses, hints, findings, progress."""

import asyncio
from pathlib import Path

from lsprotocol import types

from graphd.core.commands import Pause
from tests.kit.lsp import ALL_LINES, FLOW, FULL, Editor, converter, edited, editor, lenses, span
from tests.kit.wire import nodes, serving


async def hints(client: Editor, uri: str) -> dict[int, str]:
    """Line → hint."""
    rows = await client.of("inlayHint", uri, range=ALL_LINES)
    return {row["position"]["line"]: row["label"] for row in rows}


async def test_lenses_and_their_twins_follow_the_graph() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await lenses(client, uri) == [(0, "Run")]
        made = await client.command("graphd.run", uri=uri)
        graph = made["graph"]
        assert await lenses(client, uri) == [(0, "Pause"), (2, "Open output"), (3, "Open output")]
        await client.command("graphd.pause", uri=uri)
        assert (0, "Resume") in await lenses(client, uri)
        await client.command("graphd.resume", graph=graph)
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 1")
        shown = await lenses(client, uri)
        assert (2, "Retry") in shown
        assert (0, "Retry what failed") in shown
        found = await client.of("codeAction", uri, range=ALL_LINES, context={"diagnostics": []})
        titles = {row["title"] for row in found}
        assert {title for _, title in shown} <= titles, "every lens has a twin"
        assert "Cancel" in titles
        await client.command("graphd.cancel", uri=uri)
        assert served.daemon.state.graphs[graph].stopping is not None


async def test_hints_stand_only_on_nodes_that_say_what_runs() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await hints(client, uri) == {}
        await client.command("graphd.run", uri=uri)
        assert await hints(client, uri) == {2: "running", 3: "running"}
        await client.change(uri, {"text": FLOW.replace("make lint", "make style")})
        assert await hints(client, uri) == {3: "running"}
        served.daemon.clock = Later(served.daemon.clock.now_ms() + 125_000)
        assert await hints(client, uri) == {3: "running 2m"}


class Later:
    """A clock that stands still."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def slept_s(self) -> float:
        return 0.0


async def test_what_failed_is_told_and_refreshed_without_being_asked() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await client.diagnostics(uri) == []
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 1")
        rows = await client.diagnostics(uri)
        assert [(row["severity"], row["code"]) for row in rows] == [(3, "node.failed")]
        assert span(rows[0]["range"]) == (2, 10, 2, 14)
        assert "exit 1" in rows[0]["message"]
        asked = {method for method, _ in client.asked}
        assert {"workspace/codeLens/refresh", "workspace/inlayHint/refresh"} <= asked
        assert "workspace/diagnostic/refresh" not in asked, "it is pushed to"
        hover = await client.at("hover", uri, 2, 11)
        assert "exit 1" in hover["contents"]["value"]


async def test_a_client_that_pulls_is_not_pushed_to() -> None:
    pulls = {**FULL, "textDocument": {**FULL["textDocument"], "diagnostic": {}}}
    async with serving() as served, edited(served, "nodes: 5\n", pulls) as (client, uri):
        first = await client.of("diagnostic", uri)
        assert first["kind"] == "full"
        assert len(first["items"]) > 0
        again = await client.of("diagnostic", uri, previousResultId=first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        await client.change(uri, {"text": FLOW})
        assert (await client.of("diagnostic", uri, previousResultId=first["resultId"]))["items"] == []
        Path(uri.removeprefix("file://")).write_text(FLOW)
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        while "workspace/diagnostic/refresh" not in {method for method, _ in client.asked}:
            client._keep(await client.read())
        assert "textDocument/publishDiagnostics" not in {name for name, _ in client.notifications}


async def test_refreshes_are_throttled_and_only_for_clients_that_can() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri), edited(served, FLOW, {}) as (plain, _):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        for _ in range(40):
            await served.daemon.run(Pause(graph, "drain", "x"))
            await client.call("workgraph/resume", {"graph": graph})
        await asyncio.sleep(0.6)
        await client.call("graphd/health")
        refreshes = [method for method, _ in client.asked if method.endswith("/refresh")]
        assert 2 <= len(refreshes) <= 12
        await plain.call("graphd/health")
        assert plain.asked == []


async def test_progress_for_each_running_graph_begins_reports_and_ends() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        graph = (await client.call("workgraph/set", {"title": "Some work", "nodes": nodes("a", "b")}))["graph"]
        begin = await client.next("$/progress")
        assert client.asked[-1][0] == "window/workDoneProgress/create"
        token = client.asked[-1][1]["token"]
        assert begin["token"] == token
        assert begin["value"]["kind"] == "begin"
        assert begin["value"]["title"] == "Some work"
        await served.daemon.identify(graph)
        await served.daemon.end_all(graph)
        seen = [(await client.next("$/progress"))]
        while seen[-1]["value"]["kind"] != "end":
            seen.append(await client.next("$/progress"))
        assert {row["token"] for row in seen} == {token}
        assert seen[-1]["value"]["message"] == "complete"
        read = converter()
        for row in [begin, *seen]:
            read.structure(row, types.ProgressParams)
        await client.close()


async def test_no_progress_before_the_editor_took_the_token() -> None:
    async with serving() as served:
        client = await editor(served)
        client.answers_asks = False
        await client.at("hover", "file:///x.yaml", 0, 0)
        await client.call("workgraph/set", {"title": "x", "nodes": nodes("a")})
        await asyncio.sleep(0.1)
        await client.call("graphd/health")
        assert [method for method, _ in client.asked] == ["window/workDoneProgress/create"]
        assert "$/progress" not in {name for name, _ in client.notifications}
        await client.close()
