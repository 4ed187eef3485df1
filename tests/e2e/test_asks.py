"""Asks on the wire: listed, told to everybody, answered once by whoever is first, standing until revoked."""

import asyncio
from typing import Any

import pytest

from graphd.core.commands import AgentAsk, AttemptSaid
from graphd.core.model import State
from graphd.core.policy import Leave
from graphd.server import subscriptions
from graphd.server.feeds import Feeds
from graphd.server.project import no_phase
from graphd.server.subscriptions import Subscriptions, Wish
from graphd_protocol import model as wire
from tests.kit.wire import Client, Folded, Served, WireError, nodes, refused_by, serving

OPTIONS = (
    {"id": "allow", "kind": "allow_once", "label": "Allow"},
    {"id": "reject", "kind": "reject_once", "label": "Reject"},
)


async def asking(served: Served, client: Client, *keys: str, **action: Any) -> tuple[str, list[dict[str, Any]]]:
    """A graph whose node `a` asks once for each key; the graph, and the asks as the wire shows them."""
    result = await client.call("workgraph/set", {"nodes": nodes("a", "b"), "title": "t"})
    graph = str(result["graph"])
    await served.daemon.identify(graph)
    await say(served, graph, *keys, **action)
    return graph, await client.call("workgraph/asks", {"graph": graph})


async def say(served: Served, graph: str, *keys: str, **action: Any) -> None:
    attempt = next(iter(served.daemon.state.graphs[graph].live))
    does = [{"toolKind": "fetch", "title": key, **action} for key in keys]
    asks = tuple(AgentAsk(d["title"], "permission", f"Fetch {d['title']}", d, OPTIONS) for d in does)
    await served.daemon.run(AttemptSaid(graph, attempt, Leave("edit", "/w"), asks=asks))


def answer(ask: dict[str, Any], option: str | None = "allow", **more: Any) -> dict[str, Any]:
    return {"ask": ask["id"], "actionHash": ask["actionHash"], "option": option, **more}


async def refusal(client: Client, method: str, params: dict[str, Any]) -> WireError:
    with pytest.raises(WireError) as caught:
        await client.call(method, params)
    return caught.value


async def test_asks_are_listed_and_stand_in_the_snapshot_until_they_are_answered() -> None:
    async with serving() as served:
        client = await served.client()
        graph, asks = await asking(served, client, "1", "2")
        for ask in asks:
            wire.Ask.model_validate(ask, by_name=False)
        assert [(a["title"], a["node"], a["attempt"], a["state"]) for a in asks] == [
            ("Fetch 1", "a", 1, "open"), ("Fetch 2", "a", 1, "open"),
        ]  # fmt: skip
        assert (await client.call("workgraph/status", {"graph": graph}))["asks"] == asks
        await client.call("workgraph/respond", answer(asks[0], comment="fine"))
        assert [a["id"] for a in await client.call("workgraph/asks", {})] == [asks[1]["id"]]
        (answered,) = await client.call("workgraph/asks", {"state": "answered"})
        assert (answered["answeredBy"], answered["option"], answered["comment"]) == ("test", "allow", "fine")
        await client.close()


async def test_everybody_is_told_what_came_and_what_went() -> None:
    async with serving() as served:
        asker, other = await served.client(), await served.client()
        await other.call("workgraph/subscribe")
        graph, asks = await asking(served, asker, "1")
        folded = Folded()
        told = await other.next("workgraph/asks")
        wire.AsksNotice.model_validate(told, by_name=False)
        assert told == {"opened": asks, "closed": []}
        await asker.call("workgraph/respond", answer(asks[0]))
        told = await other.next("workgraph/asks")
        assert told == {"opened": [], "closed": [{"id": asks[0]["id"], "by": "test", "answer": "allow"}]}
        await say(served, graph, "2")
        await served.daemon.end_one(graph)
        await other.next("workgraph/asks")
        for _, changed in [n for n in other.notifications if n[0] == "workgraph/changed"]:
            folded.take(changed)
        for client in (asker, other):
            await client.close()


async def test_one_that_came_and_went_before_it_was_told_is_told_as_gone() -> None:
    async with serving(commit_turns=0) as served:
        asker, other = await served.client(), await served.client()
        await other.call("workgraph/subscribe")
        graph, _ = await asking(served, asker)
        attempt = next(iter(served.daemon.state.graphs[graph].live))
        ask = AgentAsk("1", "permission", "t", {"toolKind": "edit", "paths": ["/w/x"]}, OPTIONS)
        await served.daemon.run(AttemptSaid(graph, attempt, Leave("edit", "/w"), asks=(ask,)))
        told = await other.next("workgraph/asks")
        assert (told["opened"], told["closed"][0]["by"], told["closed"][0]["answer"]) == ([], "rule edit/edit", "allow")
        for client in (asker, other):
            await client.close()


def test_what_a_client_that_does_not_read_missed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOVED_ASKS_LIMIT", 3)
    state, hub = State(), Feeds(no_phase)
    slow = Subscriptions(hub, lambda state, graph, node: None, "store")
    slow.open(state, Wish())
    for number in range(9):
        hub.moved_asks = [("g", f"ask-{number}", number < 2)]
        slow.committed([])
    assert list(slow.moved_asks) == [("g", "ask-0"), ("g", "ask-1"), ("g", "ask-8")]
    hub.moved_asks = [("g", f"ask-{number}", True) for number in range(9)]
    slow.committed([])
    assert len(slow.moved_asks) == 9, "what is open is told, however much"


async def test_of_twenty_answers_at_once_one_counts_and_the_others_learn_whose() -> None:
    async with serving() as served:
        clients = [await served.client() for _ in range(20)]
        _, (ask,) = await asking(served, clients[0], "1")
        options = ["allow", "reject"]
        answers = [
            client.call("workgraph/respond", answer(ask, options[number % 2])) for number, client in enumerate(clients)
        ]
        results = await asyncio.gather(*answers, return_exceptions=True)
        refusals = [result for result in results if isinstance(result, WireError)]
        assert len(results) - len(refusals) == 1
        assert {refused_by(trouble) for trouble in refusals} == {"askGone"}
        assert {trouble.data["by"] for trouble in refusals} == {"test"}
        (kept,) = await clients[0].call("workgraph/asks", {"state": "answered"})
        winner = next(number for number, result in enumerate(results) if not isinstance(result, WireError))
        assert kept["option"] == options[winner % 2]
        for client in clients:
            await client.close()


async def test_an_answer_is_for_what_was_shown() -> None:
    async with serving() as served:
        client = await served.client()
        _, (ask,) = await asking(served, client, "1")
        stale = {**answer(ask), "actionHash": "0" * 64}
        assert refused_by(await refusal(client, "workgraph/respond", stale)) == "conflict"
        unknown = answer(ask, "always")
        assert refused_by(await refusal(client, "workgraph/respond", unknown)) == "notFound"
        await client.call("workgraph/respond", answer(ask))
        assert refused_by(await refusal(client, "workgraph/respond", answer(ask, "reject"))) == "askGone"
        await client.close()


async def test_an_agent_sees_what_waits_and_may_not_answer() -> None:
    async with serving() as served:
        client, agent = await served.client(), await served.client(owner={"id": "agent:x"})
        _, (ask,) = await asking(served, client, "1")
        assert len(await agent.call("workgraph/asks", {})) == 1
        for method, params in (("respond", answer(ask)), ("revoke", {"ask": ask["id"]})):
            assert refused_by(await refusal(agent, f"workgraph/{method}", params)) == "unauthorised"
        for one in (client, agent):
            await one.close()


async def test_an_ask_is_named_by_the_beginning_of_its_id() -> None:
    async with serving() as served:
        client = await served.client()
        _, asks = await asking(served, client, *(str(number) for number in range(30)))
        whole = asks[0]["id"]
        assert refused_by(await refusal(client, "workgraph/respond", {**answer(asks[0]), "ask": "zzzz"})) == "notFound"
        assert refused_by(await refusal(client, "workgraph/respond", {**answer(asks[0]), "ask": "a"})) == "notFound"
        await client.call("workgraph/respond", {**answer(asks[0]), "ask": whole.removeprefix("ask-")[:7]})
        assert len(await client.call("workgraph/asks", {})) == 29
        await client.close()


async def test_a_standing_answer_is_listed_with_what_it_covers_and_can_be_revoked() -> None:
    async with serving() as served:
        client = await served.client()
        graph, (ask,) = await asking(served, client, "1", toolKind="edit", paths=["/else/a"])
        assert (ask["scopes"], ask["rule"]) == (["once", "attempt", "graph"], "edit /else/**")
        await client.call("workgraph/respond", answer(ask, scope="graph"))
        await say(served, graph, "2", toolKind="edit", paths=["/else/b"])
        assert await client.call("workgraph/asks", {}) == []
        (standing,) = await client.call("workgraph/asks", {"state": "standing"})
        assert (standing["id"], standing["scope"]) == (ask["id"], "graph")
        await client.call("workgraph/revoke", {"ask": ask["id"]})
        assert await client.call("workgraph/asks", {"state": "standing"}) == []
        await say(served, graph, "3", toolKind="edit", paths=["/else/c"])
        assert len(await client.call("workgraph/asks", {})) == 1
        assert refused_by(await refusal(client, "workgraph/revoke", {"ask": ask["id"]})) == "notFound"
        await client.close()
