"""The methods, each over the wire: what they answer, what they refuse and how they name it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphd.children.profiles import PROFILES
from graphd.children.profiles.choosing import Agents
from graphd.core.commands import AttemptEnded, AttemptSaid, AttemptStuck
from graphd.core.policy import Leave
from graphd.server.methods import hold
from graphd_protocol import model as wire
from tests.kit.wire import Client, Served, WireError, nodes, refused_by, serving

RESULTS: dict[str, type[BaseModel]] = {
    "workgraph/set": wire.MutationResult,
    "workgraph/pause": wire.MutationResult,
    "workgraph/resume": wire.MutationResult,
    "workgraph/retry": wire.MutationResult,
    "workgraph/cancel": wire.MutationResult,
    "workgraph/clear": wire.MutationResult,
    "workgraph/finish": wire.MutationResult,
    "workgraph/release": wire.MutationResult,
    "workgraph/list": wire.ListResult,
    "workgraph/status": wire.Snapshot,
    "workgraph/node": wire.NodeResult,
    "workgraph/history": wire.HistoryResult,
    "workgraph/why": wire.Why,
    "workgraph/output": wire.OutputResult,
    "workgraph/observe": wire.ObserveResult,
    "workgraph/processes": wire.ProcessEntry,
    "workgraph/workflows": wire.WorkflowEntry,
    "workgraph/validate": wire.ValidateResult,
    "workgraph/explain": wire.ExplainResult,
    "workgraph/agents": wire.AgentEntry,
    "graphd/health": wire.Health,
    "graphd/doctor": wire.Check,
}


class Checked:
    """Calls whose results are held to their models."""

    def __init__(self, served: Served, client: Client) -> None:
        self.served = served
        self.client = client

    async def __call__(self, method: str, **params: Any) -> Any:
        method = method if "/" in method else f"workgraph/{method}"
        result = await self.client.call(method, params)
        for item in result if isinstance(result, list) else [result]:
            if method in RESULTS and item is not None:
                RESULTS[method].model_validate(item, by_name=False)
        return result

    async def refused(self, method: str, **params: Any) -> WireError:
        with pytest.raises(WireError) as refusal:
            await self(method, **params)
        return refusal.value

    async def graph(self, *rows: Any, **params: Any) -> str:
        return str((await self("set", nodes=nodes(*rows), title="t", **params))["graph"])


@pytest.fixture
async def call() -> AsyncIterator[Checked]:
    async with serving() as served:
        client = await served.client(env={"PATH": "/usr/bin:/bin", "SECRET": "x"})
        yield Checked(served, client)
        await client.close()


async def test_set_starts_inline_nodes_with_the_callers_environment(call: Checked) -> None:
    graph = await call.graph("a", ("b", ["a"]))
    snapshot = await call("status", graph=graph)
    assert [(n["slug"], n["state"], n["needs"]) for n in snapshot["nodes"]] == [
        ("a", "running", []),
        ("b", "waiting", ["a"]),
    ]
    stored = list((call.served.daemon.folder / "environments").iterdir())
    assert len(stored) == 1
    assert stored[0].stat().st_mode & 0o777 == 0o600
    assert "SECRET" not in stored[0].read_text()
    assert call.served.daemon.state.graphs[graph].environment == stored[0].stem


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"nodes": []}, "invalidPlan"),
        ({"nodes": nodes("a", "a")}, "invalidPlan"),
        ({"nodes": nodes(("a", ["b"]), ("b", ["a"]))}, "invalidPlan"),
        ({"nodes": nodes(("a", ["zz"]))}, "invalidPlan"),
        ({"nodes": nodes("a", worker="nobody")}, "invalidPlan"),
        ({"nodes": nodes("a", worker="build")}, "agentMissing"),
        ({"nodes": nodes("a"), "title": " "}, "invalidObjective"),
        ({"objective": "make it so"}, "notSupported"),
        ({"workflow": "no-such"}, "notFound"),
        ({"file": "no-such.yaml"}, "notFound"),
        ({"text": "nodes: ["}, "invalidPlan"),
        ({"nodes": nodes("a"), "replace": "no-such"}, "notFound"),
    ],
)
async def test_set_refuses_with_a_name(call: Checked, params: dict[str, Any], code: str) -> None:
    refusal = await call.refused("set", **{"title": "t", **params})
    assert refused_by(refusal) == code
    assert refusal.data["hint"]
    if code == "invalidPlan":
        assert refusal.data["diagnostics"]
    assert (await call("list"))["graphs"] == []


async def test_set_takes_exactly_one_plan(call: Checked) -> None:
    assert (await call.refused("set")).number == -32602
    assert (await call.refused("set", nodes=nodes("a"), text="x")).number == -32602


async def test_set_reads_a_workflow_by_name_file_and_text(call: Checked) -> None:
    text = "nodes:\n  - {id: one, run: 'true'}\n  - {id: two, needs: [one], run: 'true'}\n"
    folder = call.served.daemon.workspace / ".agents" / "workflows"
    folder.mkdir(parents=True)
    path = folder / "mine.yaml"
    path.write_text(text)
    sources = []
    for params in ({"workflow": "mine"}, {"file": str(path)}, {"text": text}):
        graph = (await call("set", **params))["graph"]
        sources.append((await call("status", graph=graph))["source"])
    assert [s["kind"] for s in sources] == ["workflow", "file", "text"]
    assert sources[0]["name"] == "mine"
    assert len({s["sha256"] for s in sources}) == 1
    assert (await call("status", graph="mine"))["source"]["kind"] == "file", "a name means its latest run"


async def test_missing_inputs_are_named(call: Checked) -> None:
    text = "inputs:\n  who: {type: string}\nnodes:\n  - {id: one, run: 'echo $GRAPHD_VAR_who'}\n"
    refusal = await call.refused("set", text=text)
    assert refused_by(refusal) == "inputMissing"
    assert refusal.data["inputs"] == ["who"]
    graph = (await call("set", text=text, inputs={"who": "me"}))["graph"]
    assert call.served.daemon.state.graphs[graph].variables == {"who": "me"}


async def test_validate_and_explain_run_nothing(call: Checked) -> None:
    found = await call("validate", text="nodes:\n  - {id: a, rum: 'true'}\n")
    assert found["diagnostics"][0]["range"]["start"]["line"] == 1
    assert await call("validate", text="nodes:\n  - {id: a, run: 'true'}\n") == {"diagnostics": []}
    explained = await call("explain", text="nodes:\n  - {id: a, run: x}\n  - {id: b, needs: [a], run: y}\n")
    assert explained["waves"] == [["a"], ["b"]]
    assert (await call.refused("validate")).number == -32602
    assert "checkup" in [entry["name"] for entry in await call("workflows")]


async def test_graphs_are_named_by_id_prefix_last_or_not_at_all(call: Checked) -> None:
    assert await call("status") is None
    first = await call.graph("a")
    assert (await call("status"))["id"] == first
    await asyncio.sleep(0.002)
    second = await call.graph("b")
    assert (await call("status", graph="@last"))["id"] == second
    assert refused_by(ambiguous := await call.refused("status")) == "ambiguous"
    assert [row["id"] for row in ambiguous.data["graphs"]] == [second, first]
    prefix = next(first[:n] for n in range(4, 37) if not second.startswith(first[:n]))
    assert (await call("status", graph=prefix))["id"] == first
    assert refused_by(await call.refused("status", graph=first[:4])) == "ambiguous"
    assert refused_by(await call.refused("status", graph="nope")) == "notFound"
    page = await call("list", limit=1)
    assert [g["id"] for g in page["graphs"]] == [second]
    assert [g["id"] for g in (await call("list", after=page["next"]))["graphs"]] == [first]
    assert refused_by(await call.refused("list", after="x")) == "cursorInvalid"
    assert (await call("list", status="complete"))["graphs"] == []


async def test_nodes_are_named_by_slug_or_id_with_a_suggestion(call: Checked) -> None:
    graph = await call.graph("lint", "tests")
    node = (await call("node", graph=graph, node="lint"))["node"]
    assert (await call("node", graph=graph, node=node["id"]))["node"] == node
    refusal = await call.refused("node", graph=graph, node="lnt")
    assert refused_by(refusal) == "notFound"
    assert refusal.data["suggestions"] == ["lint"]


async def test_dry_runs_show_and_change_nothing(call: Checked) -> None:
    preview = await call("set", nodes=nodes("a"), title="t", dryRun=True)
    assert preview["preview"]["nodes"][0]["state"] == "ready"
    assert (await call("list"))["graphs"] == []
    graph = await call.graph("a")
    rev = call.served.daemon.state.graphs[graph].rev
    assert (await call("cancel", dryRun=True))["preview"]["stopping"]["verb"] == "cancel"
    status = await call("status")
    assert (status["rev"], status["status"]) == (rev, "active")
    assert not list((call.served.daemon.folder / "environments").iterdir())[1:]


async def test_expectations_are_checked(call: Checked) -> None:
    graph = await call.graph("a")
    refusal = await call.refused("pause", graph=graph, expectedRev=99)
    assert refused_by(refusal) == "conflict"
    assert refusal.data["retryable"] is True
    rev = call.served.daemon.state.graphs[graph].rev
    await call("pause", graph=graph, expectedRev=rev, expectedPlan=1)
    refusal = await call.refused("pause", graph=graph)
    assert refused_by(refusal) == "invalidTransition"
    assert {"from", "to", "rev", "graph", "hint"} <= refusal.data.keys()


async def test_settle_waits_for_the_last_tree(call: Checked) -> None:
    graph = await call.graph("a", "b")
    now = await call("cancel", graph=graph)
    assert sorted(now["stopping"]) == ["a", "b"]
    number = await call.client.request("workgraph/cancel", {"graph": graph, "settle": True})
    await asyncio.sleep(0.05)
    await call.served.daemon.end_all(graph)
    result = (await call.client.answer(number))["result"]
    assert "stopping" not in result
    assert (await call("status", graph=graph))["status"] == "cancelled"


async def test_settle_gives_up_after_its_time_and_says_what_is_left(call: Checked) -> None:
    graph = await call.graph("a")
    result = await call("pause", graph=graph, mode="stop", settle=True, settleSeconds=0.05)
    assert result["stopping"] == ["a"]


@pytest.mark.parametrize(("verb", "more"), [("pause", {}), ("finish", {"reason": "enough"})])
async def test_settle_of_a_drain_waits_for_what_runs(call: Checked, verb: str, more: dict[str, Any]) -> None:
    graph = await call.graph("a", ("b", ["a"]))
    answering = asyncio.create_task(call(verb, graph=graph, settle=True, **more))
    await asyncio.sleep(0.2)
    assert not answering.done(), answering.result()
    await call.served.daemon.end_one(graph)
    assert "stopping" not in await answering


async def test_a_node_that_does_not_stop_is_not_held(call: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "SETTLE_S", 0.05)
    shell = replace(PROFILES["shell"], opens=("open", "{session}"))
    call.served.daemon.settings.agents = Agents(profiles={"shell": shell})
    graph = await call.graph("a")
    (key,) = call.served.daemon.state.graphs[graph].live
    await call.served.daemon.identify(graph)
    await call.served.daemon.run(AttemptSaid(graph, key, Leave(), session="s-1"))
    refusal = await call.refused("hold", graph=graph, node="a")
    assert (refused_by(refusal), refusal.data["retryable"]) == ("conflict", True)
    assert "has not stopped" in str(refusal)
    assert call.served.daemon.held == set()
    await call.served.daemon.run(AttemptEnded(graph, key, "paused"))
    (key,) = call.served.daemon.state.graphs[graph].live
    await call.served.daemon.run(AttemptSaid(graph, key, Leave(), session="s-1"))
    monkeypatch.setattr(hold, "SETTLE_S", 10)
    holding = asyncio.create_task(call("hold", graph=graph, node="a"))
    while not call.served.daemon.held:
        await asyncio.sleep(0.01)
    await call.served.daemon.run(AttemptEnded(graph, key, "paused"))
    held = await holding
    assert (held["childSession"], held["argv"]) == ("s-1", ["open", "s-1"])
    assert refused_by(await call.refused("hold", graph=graph, node="a")) == "conflict"


async def test_the_verbs_move_the_graph(call: Checked) -> None:
    graph = await call.graph("a", ("b", ["a"]))
    await call.served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit code 1")
    assert (await call("status"))["status"] == "blocked"
    assert refused_by(await call.refused("resume", graph=graph)) == "invalidTransition"
    assert (await call.refused("retry", graph=graph)).number == -32602
    await call("retry", graph=graph, node="a")
    assert (await call("status"))["status"] == "active"
    await call("pause", graph=graph)
    await call("resume", graph=graph)
    await call("finish", graph=graph, reason="enough")
    await call.served.daemon.end_all(graph)
    assert (await call("status", graph=graph))["status"] == "complete"
    await call("clear", graph=graph)
    assert await call("status", graph=graph) is None


async def test_why_names_a_cause_and_a_command_in_every_state(call: Checked) -> None:
    graph = await call.graph("a", ("b", ["a"]), ("c", ["b"]))
    assert (await call("why", node="b"))[0]["on"] == "a"
    key = next(iter(call.served.daemon.state.graphs[graph].live))
    await call.served.daemon.run(AttemptStuck(graph, key, (4711, 4712), "it does not die"))
    stuck = (await call("why", node="a"))[0]
    assert stuck["next"] == f"graphd release a --pids 4711,4712 --graph {graph}"
    assert refused_by(await call.refused("release", graph=graph, node="a", pids=[1]))
    await call("release", graph=graph, node="a", pids=[4711, 4712])


async def test_output_is_cut_at_characters_and_read_on(call: Checked) -> None:
    graph = await call.graph("a")
    text = "größe€" * 500
    await call.served.daemon.end_one(graph, text=text)
    for limit in (1, 7, 1000, 100_000):
        got, offset, total = "", 0, 0
        while offset < (len(text.encode()) if limit > 1 else 20):
            answer = await call("output", graph=graph, node="a", offset=offset, limit=limit)
            assert answer["text"]
            total = answer["total"]
            got += answer["text"]
            offset += len(answer["text"].encode())
        assert text.startswith(got)
        assert total == len(text.encode())
    assert refused_by(await call.refused("output", graph=graph, node="a", attempt=7)) == "notFound"


async def test_a_long_output_comes_from_the_attempts_file(call: Checked) -> None:
    graph = await call.graph("a")
    attempt = next(iter(call.served.daemon.state.graphs[graph].attempts.values()))
    folder = call.served.daemon.folder / "attempts" / graph / attempt.folder
    folder.mkdir(parents=True)
    (folder / "output").write_text("€" * 50_000)
    await call.served.daemon.end_one(graph, text="€" * 100)
    state = call.served.daemon.state.graphs[graph].nodes[attempt.node]
    assert state.output is not None
    state.output.is_cut = True
    answer = await call("output", graph=graph, node="a", offset=3 * 49_999, limit=10)
    assert (answer["text"], answer["total"]) == ("€", 150_000)


async def test_history_comes_in_whole_revs(call: Checked) -> None:
    graph = await call.graph("a", "b", ("c", ["a", "b"]))
    await call.served.daemon.end_all(graph)
    events, after = [], 0
    while after is not None:
        page = await call("history", graph=graph, after=after, limit=3)
        events += page["events"]
        after = page.get("next")
    assert [(e["rev"], e["index"]) for e in events] == sorted({(e["rev"], e["index"]) for e in events})
    assert len(events) == len(call.served.daemon.log)
    assert all(not (e.get("node") or "").startswith("gn-") for e in events)


async def test_health_and_capacity_tell_how_it_is(call: Checked) -> None:
    health = await call("graphd/health")
    assert Path(health["socket"]).exists()
    assert health["connections"] == [{"client": "test", "principal": "user", "bytesInFlight": 0, "framesInFlight": 0}]
    await call.graph("a", "b")
    capacity = await call("graphd/capacity")
    assert capacity["available"] is True
    assert capacity["concurrency"]["running"] == 2
    assert all(check["ok"] for check in await call("graphd/doctor"))
    assert "shell" in [entry["name"] for entry in await call("agents")]
    assert len(await call("processes")) == 2


async def test_stop_with_cancel_ends_the_graphs_first(call: Checked) -> None:
    graph = await call.graph("a")
    number = await call.client.request("graphd/stop", {"mode": "cancel"})
    await asyncio.sleep(0.05)
    await call.served.daemon.end_all(graph)
    assert (await call.client.answer(number))["result"] == {}
    assert call.served.daemon.state.graphs[graph].status == "cancelled"
    assert (await call.client.rest())[-1]["method"] == "graphd/stopping"


async def test_the_daemon_ends_when_idle_and_stays_while_it_has_a_reason() -> None:
    async with serving() as served:
        served.daemon.is_busy = True
        served.daemon.settings.idle_minutes = 0.05 / 60
        client = await served.client()
        await client.close()
        await asyncio.sleep(0.3)
        assert served.server.stop_reason is None
        served.daemon.is_busy = False
        for _ in range(100):
            if served.server.stop_reason is not None:
                break
            await asyncio.sleep(0.02)
        assert served.server.stop_reason == "idle"
