"""Asks in an editor: on the node that asks, answered by a code action, gone when answered elsewhere; as a message."""

import asyncio
from typing import Any

from graphd.core.commands import AgentAsk, AttemptSaid
from graphd.core.policy import Leave
from tests.kit.lsp import Editor, edited, editor, span
from tests.kit.wire import ANSWER_S, Served, Wire, serving

FLOW = """nodes:
  - { id: lint, run: make lint }
  - { id: report, needs: [lint], run: cat }
"""
OPTIONS = (
    {"id": "a", "kind": "allow_once", "label": "Allow"},
    {"id": "r", "kind": "reject_once", "label": "Reject"},
)
LINT = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 5}}
REPORT = {"start": {"line": 2, "character": 3}, "end": {"line": 2, "character": 4}}


async def asked(served: Served, client: Editor, uri: str, key: str = "1") -> str:
    """A running graph of the file whose node `lint` asks; the graph."""
    graph = str((await client.command("graphd.run", uri=uri))["graph"])
    await served.daemon.identify(graph)
    await ask(served, graph, key)
    return graph


async def ask(served: Served, graph: str, key: str) -> None:
    attempt = next(iter(served.daemon.state.graphs[graph].live))
    action = {"toolKind": "edit", "title": "Change", "paths": [f"/else/{key}"]}
    question = AgentAsk(key, "permission", f"Change {key}", action, OPTIONS)
    await served.daemon.run(AttemptSaid(graph, attempt, Leave("edit", "/w"), asks=(question,)))


async def answers(client: Editor, uri: str, where: Wire = LINT) -> dict[str, Any]:
    """Title → argument of the answers that are offered here."""
    found = await client.of("codeAction", uri, range=where, context={"diagnostics": []})
    commands = [row["command"] for row in found if row.get("command")]
    return {one["title"]: one["arguments"][0] for one in commands if one["command"] == "graphd.answer"}


async def until(client: Editor, uri: str, codes: list[str]) -> list[Wire]:
    """The first diagnostics with exactly these codes."""
    async with asyncio.timeout(ANSWER_S):
        while True:
            rows = await client.diagnostics(uri)
            if [row["code"] for row in rows] == codes:
                return rows


async def test_an_ask_stands_on_its_node_until_a_code_action_answers_it() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        await asked(served, client, uri)
        (row,) = await until(client, uri, ["ask.open"])
        assert (span(row["range"]), row["severity"]) == ((1, 10, 1, 14), 2)
        assert row["message"].startswith("lint asks: Change 1: /else/1\n")
        offered = await answers(client, uri)
        assert list(offered) == [
            "Allow: Change 1", "Reject: Change 1", "Allow for this attempt (/else/**): Change 1",
            "Reject for this attempt (/else/**): Change 1", "Allow for the graph (/else/**): Change 1",
            "Reject for the graph (/else/**): Change 1",
        ]  # fmt: skip
        assert await answers(client, uri, REPORT) == {}
        await client.command("graphd.answer", **offered["Allow for the graph (/else/**): Change 1"])
        await until(client, uri, [])
        assert await answers(client, uri) == {}
        (kept,) = await client.call("workgraph/asks", {"state": "standing"})
        assert (kept["option"], kept["scope"]) == ("a", "graph")


async def test_an_ask_leaves_when_it_is_answered_elsewhere_and_stays_when_its_node_leaves_the_text() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        await asked(served, client, uri)
        await until(client, uri, ["ask.open"])
        await client.change(uri, {"text": FLOW.replace("lint", "style")})
        (row,) = await until(client, uri, ["ask.open"])
        assert span(row["range"]) == (0, 0, 0, 0)
        assert "Allow: Change 1" in await answers(client, uri, REPORT)
        other = await served.client()
        (waiting,) = await other.call("workgraph/asks", {})
        await other.call(
            "workgraph/respond", {"ask": waiting["id"], "actionHash": waiting["actionHash"], "option": "r"}
        )
        await until(client, uri, [])
        await other.close()


def messages(client: Editor) -> list[Wire]:
    return [params for method, params in client.asked if method == "window/showMessageRequest"]


async def shown(client: Editor, count: int) -> list[Wire]:
    """The messages, once there are so many."""
    async with asyncio.timeout(ANSWER_S):
        while len(messages(client)) < count:
            await client.call("workgraph/asks", {})
    return messages(client)


async def test_a_message_asks_the_one_who_started_the_graph_and_closing_it_allows_nothing() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        other = await editor(served)
        graph = await asked(served, client, uri)
        (message,) = await shown(client, 1)
        assert [action["title"] for action in message["actions"]] == ["Allow", "Reject"]
        assert "Change 1" in message["message"]
        await ask(served, graph, "2")
        await shown(client, 2)
        assert len(await client.call("workgraph/asks", {})) == 2, "null was no answer"
        await other.call("workgraph/asks", {})
        assert messages(other) == []
        await other.close()


async def test_the_chosen_action_of_a_message_is_the_answer() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        client.result = {"title": "Reject"}
        await asked(served, client, uri)
        await shown(client, 1)
        async with asyncio.timeout(ANSWER_S):
            while not (done := await client.call("workgraph/asks", {"state": "answered"})):
                pass
        assert [(one["option"], one["scope"]) for one in done] == [("r", "once")]


async def test_who_follows_asks_by_itself_gets_no_message() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        await client.call("workgraph/subscribe")
        await asked(served, client, uri)
        await until(client, uri, ["ask.open"])
        assert messages(client) == []
