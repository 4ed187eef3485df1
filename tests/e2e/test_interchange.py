"""What leaves and enters: export, import, purge, deliveries; over the wire and on the command line."""

import asyncio
import json
import time
from typing import Any

import pytest

from graphd.core.commands import AttemptEnded
from graphd.core.model import Output
from graphd_protocol.ids import node_id
from tests.kit.wire import Client, Served, WireError, nodes, refused_by, serving
from tests.kit.workspaces import Workspace

Wire = dict[str, Any]
CHAIN = nodes("a", ("b", ["a"]), ("c", ["b"]))


async def refusal(client: Client, method: str, **params: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        await client.call(method, params)
    return caught.value


async def exported(client: Client, graph: str, **params: Any) -> list[str]:
    lines: list[str] = (await client.call("workgraph/export", {"graph": graph, **params}))["lines"]
    assert [json.loads(line)["kind"] for line in lines] == ["workgraph/change"]
    return lines


async def half_done(served: Served, client: Client) -> str:
    """a is achieved, b runs."""
    graph = str((await client.call("workgraph/set", {"nodes": CHAIN, "title": "chain"}))["graph"])
    await served.daemon.end_one(graph, text="x" * 10_000)
    return graph


async def test_a_graph_goes_out_and_comes_back_in_another_workspace() -> None:
    async with serving() as served, serving() as elsewhere:
        client, other = await served.client(), await elsewhere.client()
        graph = await half_done(served, client)
        lines = await exported(client, graph)
        assert json.loads(lines[0])["version"] == 2

        done = await other.call("workgraph/import", {"lines": ["", *lines]})

        assert done["graph"] == graph
        snapshot = await other.call("workgraph/status", {"graph": graph})
        assert (snapshot["status"], snapshot["pauseReason"]) == ("user_paused", "imported: it was active")
        assert snapshot["workspace"] == str(elsewhere.daemon.workspace)
        assert [node["state"] for node in snapshot["nodes"]] == ["achieved", "ready", "waiting"]
        output = await other.call("workgraph/output", {"graph": graph, "node": "a"})
        assert (output["text"], output["next"], output["total"]) == ("x" * 10_000, 10_000, 10_000)
        await other.call("workgraph/resume", {"graph": graph})
        await elsewhere.daemon.end_all(graph)
        again = await exported(other, graph)
        assert json.loads(again[0])["graph"]["status"] == "complete"
        # what follows from one store to the other is one history to the fold
        both = [*lines, *again]
        assert (await client.call("workgraph/import", {"lines": both, "newId": True}))["graph"] != graph
        for one in (client, other):
            await one.close()


async def test_a_dry_run_shows_it_and_changes_nothing() -> None:
    async with serving() as served, serving() as elsewhere:
        client, other = await served.client(), await elsewhere.client()
        graph = await half_done(served, client)
        lines = await exported(client, graph)
        shown = await other.call("workgraph/import", {"lines": lines, "dryRun": True})
        assert shown["preview"]["status"] == "user_paused"
        assert (await other.call("workgraph/list"))["graphs"] == []
        for one in (client, other):
            await one.close()


async def test_what_is_no_graph_is_refused_with_its_place() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await half_done(served, client)
        (line,) = await exported(client, graph)
        broken = json.loads(line)
        del broken["graph"]["nodes"][1]["spec"]
        stone = json.dumps({"kind": "workgraph/change", "version": 2, "operation": "clear", "cleared": graph,
                            "clearedAt": 1})  # fmt: skip
        for lines, told in (
            ([line, "{"], "line 2"), ([json.dumps(broken)], "graph.nodes[1]"), ([line, stone], "no graph"),
            (["{}"], "no graph"), (["[" * 100_000], "line 1"),
        ):  # fmt: skip
            trouble = await refusal(client, "workgraph/import", lines=lines)
            assert refused_by(trouble) == "malformedLog"
            assert told in str(trouble)
        assert refused_by(await refusal(client, "workgraph/import", lines=[line])) == "alreadyExists"
        assert (await refusal(client, "workgraph/import", lines=[])).number == -32602
        await client.close()


async def test_version_1_says_what_it_can_and_refuses_the_rest() -> None:
    async with serving() as served:
        client = await served.client()
        graph = await half_done(served, client)
        (line,) = await exported(client, graph, version=1)
        assert json.loads(line)["graph"]["nodes"][1]["blocks"] == [node_id("a")]
        await client.call("workgraph/cancel", {"graph": graph})
        await served.daemon.end_one(graph, "cancelled")
        assert refused_by(await refusal(client, "workgraph/export", graph=graph, version=1)) == "notSupported"
        await client.close()


async def test_only_people_import_and_purge() -> None:
    async with serving() as served:
        agent = await served.client(owner={"id": "agent:x"})
        for method, params in (("import", {"lines": ["{}"]}), ("purge", {"olderThanDays": 0})):
            assert refused_by(await refusal(agent, f"workgraph/{method}", **params)) == "unauthorised"
        await agent.close()


async def test_purge_takes_ended_graphs_alone() -> None:
    async with serving() as served:
        client = await served.client()
        live = await half_done(served, client)
        done = str((await client.call("workgraph/set", {"nodes": nodes("z"), "title": "z"}))["graph"])
        await served.daemon.end_all(done)
        place = served.daemon.folder / "attempts" / done / f"{node_id('z')}@1"
        place.mkdir(parents=True)
        (place / "output").write_bytes(b"0123456789")
        environments = served.daemon.folder / "environments"
        environments.mkdir(exist_ok=True)
        (environments / "old.json").write_text("{}")
        import os

        os.utime(environments / "old.json", (1, 1))

        assert refused_by(await refusal(client, "workgraph/purge", graph=live)) == "invalidTransition"
        for params in ({}, {"graph": done, "olderThanDays": 1.0}):
            assert (await refusal(client, "workgraph/purge", **params)).number == -32602
        assert await client.call("workgraph/purge", {"olderThanDays": 1.0}) == {"graphs": [], "bytes": 0}

        only_files = await client.call("workgraph/purge", {"graph": done, "transcripts": True})
        assert only_files == {"graphs": [done], "bytes": 10}
        assert not place.parent.exists()
        assert (await client.call("workgraph/status", {"graph": done}))["status"] == "complete"

        assert await client.call("workgraph/purge", {"olderThanDays": 0.0}) == {"graphs": [done], "bytes": 0}
        assert await client.call("workgraph/status", {"graph": done}) is None
        assert [row["id"] for row in (await client.call("workgraph/list"))["graphs"]] == [live]
        assert not (environments / "old.json").exists()
        await client.close()


async def owned(served: Served, client: Client, owner: str) -> str:
    graph = str((await client.call("workgraph/set", {"nodes": nodes("z"), "title": "z", "owner": owner}))["graph"])
    await served.daemon.end_all(graph)
    return graph


async def test_deliveries_wait_until_they_are_acknowledged() -> None:
    async with serving() as served:
        person = await served.client()
        agent = await served.client(owner={"id": "agent:x"})
        assert await agent.call("workgraph/deliveries") == {"deliveries": []}
        waiting = await agent.request("workgraph/deliveries", {"waitMs": 10_000})
        first = await owned(served, person, "agent:x")
        found = (await agent.answer(waiting))["result"]
        assert [row["graph"] for row in found["deliveries"]] == [first]
        await owned(served, person, "agent:y")
        assert len((await person.call("workgraph/deliveries"))["deliveries"]) == 2
        assert (await agent.call("workgraph/deliveries", {"after": found["next"]}))["deliveries"] == []

        (theirs,) = (await person.call("workgraph/deliveries", {"owner": "agent:y"}))["deliveries"]
        mine = found["deliveries"][0]["id"]
        assert refused_by(await refusal(agent, "workgraph/deliveries", owner="agent:y")) == "unauthorised"
        assert refused_by(await refusal(agent, "workgraph/acknowledge", deliveries=[theirs["id"]])) == "notFound"
        for _ in range(2):
            assert await agent.call("workgraph/acknowledge", {"deliveries": [mine]}) == {"deliveries": [mine]}
        assert (await agent.call("workgraph/deliveries"))["deliveries"] == []
        assert refused_by(await refusal(agent, "workgraph/deliveries", after="x")) == "cursorInvalid"
        for client in (person, agent):
            await client.close()


async def test_the_wait_for_a_delivery_is_bounded() -> None:
    async with serving() as served:
        client = await served.client()
        begun = time.monotonic()
        assert await client.call("workgraph/deliveries", {"waitMs": 200}) == {"deliveries": []}
        assert 0.15 < time.monotonic() - begun < 5
        await client.close()


async def test_a_result_that_is_no_text_is_read_to_its_end_by_next() -> None:
    async with serving() as served:
        client = await served.client()
        graph = str((await client.call("workgraph/set", {"nodes": nodes("z"), "title": "z"}))["graph"])
        raw = b"\xff\xfe" * 50_000 + "ä".encode() * 10
        key = next(iter(served.daemon.state.graphs[graph].live))
        place = served.daemon.folder / "attempts" / graph / f"{node_id('z')}@1"
        place.mkdir(parents=True)
        (place / "output").write_bytes(raw)
        cut = Output("…", len(raw), "text/plain", is_cut=True)
        await served.daemon.run(AttemptEnded(graph, key, "achieved", output=cut))
        offset, pieces = 0, []
        while offset < len(raw):
            params = {"graph": graph, "node": "z", "offset": offset, "limit": 1001}
            answer = await client.call("workgraph/output", params)
            assert answer["next"] > offset
            offset = answer["next"]
            pieces.append(answer["text"])
        assert offset == len(raw)
        assert "".join(pieces) == raw.decode(errors="replace")
        await client.close()


# ---- on the command line ------------------------------------------------------------------------------------------


def ask(workspace: Workspace, *words: str, code: int = 0) -> str:
    done = workspace.graphd(*words)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + (done.stderr if code else "")


def test_export_clear_import_resume(workspace: Workspace) -> None:
    ask(workspace, "run", "--sh", f"echo one >> {workspace.oracle}; echo out", "--then", "exit 3", code=1)
    graph = json.loads(ask(workspace, "status", "--json"))["graphs"][0]["id"]
    (workspace.root / "g.jsonl").write_text(ask(workspace, "export", graph))
    assert "is here, or was" in ask(workspace, "import", "g.jsonl", code=1)
    ask(workspace, "clear", graph)
    assert "--new-id" in ask(workspace, "import", "g.jsonl", code=1)

    said = ask(workspace, "import", "g.jsonl", "--new-id")
    assert "imported" in said
    assert "2 nodes" in said
    found = json.loads(ask(workspace, "status", "--json"))["graphs"][0]
    assert (found["status"], found["counts"]) == ("blocked", {"achieved": 1, "failed": 1})
    assert ask(workspace, "output", "echo") == "out\n"
    ask(workspace, "retry", "exit")
    ask(workspace, "watch", found["id"], code=1)
    assert workspace.lines() == ["one"], "what was achieved is not run again"
    assert "tables agree" in ask(workspace, "doctor")

    ask(workspace, "stop")
    found = json.loads(ask(workspace, "watch", found["id"], "--json", code=1).splitlines()[-1])
    assert found["snapshot"]["counts"] == {"achieved": 1, "failed": 1}, "the log holds it"


async def test_an_import_that_is_sent_again_is_applied_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphd.client import Session

    for name, value in workspace.environment.items():
        monkeypatch.setenv(name, value)
    async with serving() as served:
        client = await served.client()
        lines = await exported(client, await half_done(served, client))
        await client.close()
    params = {"lines": lines, "newId": True, "requestId": "once"}
    async with await Session.open(workspace=workspace.root) as session:
        first = await session.call("workgraph/import", params)
        assert await session.call("workgraph/import", params) == first
        assert len((await session.call("workgraph/list"))["graphs"]) == 1


def test_purge_on_the_command_line(workspace: Workspace) -> None:
    ask(workspace, "run", "--sh", "echo hello")
    folder = workspace.folder / "attempts"
    assert list(folder.glob("*/*/journal")) != []
    assert "usage" in ask(workspace, "purge", code=2).lower() or "purge what" in ask(workspace, "purge", code=2)
    assert "transcripts of 1 graph" in ask(workspace, "purge", "--older-than", "0", "--transcripts")
    assert list(folder.glob("*/*")) == []
    assert ask(workspace, "output", "--graph", "@last") == "hello\n", "what the database keeps of it"
    found = json.loads(ask(workspace, "purge", "--older-than", "0", "--json"))
    assert len(found["graphs"]) == 1
    assert json.loads(ask(workspace, "status", "--json"))["graphs"] == []


def test_a_file_that_is_none_is_a_bad_file(workspace: Workspace) -> None:
    (workspace.root / "empty").touch()
    (workspace.root / "raw").write_bytes(b"\xff\xfe")
    (workspace.root / "text").write_text("hello\n")
    for name, code in (("empty", 2), ("raw", 2), ("missing", 2), ("text", 5)):
        ask(workspace, "import", name, code=code)


@pytest.mark.parametrize("count", [200])
async def test_a_wide_graph_survives_the_way_out_and_in(count: int) -> None:
    async with serving() as served, serving() as elsewhere:
        client, other = await served.client(), await elsewhere.client()
        wide = nodes(*(f"n{i}" for i in range(count)), ("end", [f"n{i}" for i in range(count)]))
        limits = {"maxNodes": count + 1}
        graph = str((await client.call("workgraph/set", {"nodes": wide, "title": "wide", "limits": limits}))["graph"])
        for _ in range(10):
            await served.daemon.end_one(graph)
        lines = await exported(client, graph)
        await other.call("workgraph/import", {"lines": lines})
        here, there = (
            await asyncio.gather(*(one.call("workgraph/status", {"graph": graph}) for one in (client, other)))
        )  # fmt: skip
        assert there["counts"] == {"achieved": 10, "ready": count - 10, "waiting": 1}
        assert [n["spec"] for n in here["nodes"]] == [n["spec"] for n in there["nodes"]]
        for one in (client, other):
            await one.close()
