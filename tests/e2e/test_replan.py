"""The living plan over the wire: edits, proposals, files, and two clients that want different things at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphd.core.commands import Clear
from graphd.server import plans
from graphd.server.methods import reuse
from graphd_protocol import model as wire
from tests.kit.wire import Client, Folded, Served, WireError, nodes, refused_by, serving

Json = dict[str, Any]


class Edited:
    """Two clients of one daemon, and calls whose results are held to their model."""

    def __init__(self, served: Served, client: Client, other: Client) -> None:
        self.served = served
        self.client = client
        self.other = other

    async def __call__(self, method: str, client: Client | None = None, **params: Any) -> Any:
        result = await (client or self.client).call(f"workgraph/{method}", params)
        if method not in ("status", "history", "why"):
            wire.MutationResult.model_validate(result, by_name=False)
        return result

    async def refused(self, method: str, **params: Any) -> WireError:
        with pytest.raises(WireError) as refusal:
            await self(method, **params)
        assert refusal.value.data["hint"]
        return refusal.value

    async def graph(self, *rows: Any, **params: Any) -> str:
        return str((await self("set", nodes=nodes(*rows), title="t", **params))["graph"])

    async def states(self, graph: str) -> dict[str, str]:
        snapshot = await self("status", graph=graph)
        wire.Snapshot.model_validate(snapshot, by_name=False)
        return {node["slug"]: node["state"] for node in snapshot["nodes"] if "removedIn" not in node}

    async def version(self, graph: str) -> int:
        return int((await self("status", graph=graph))["planVersion"])


@pytest.fixture
async def call() -> AsyncIterator[Edited]:
    async with serving() as served:
        first, second = await served.client(env={"PATH": "/usr/bin:/bin"}), await served.client()
        yield Edited(served, first, second)
        await first.close()
        await second.close()


def row(slug: str, *needs: str, **more: Any) -> Json:
    return {"slug": slug, "spec": f"echo {slug}", "needs": list(needs), **more}


async def test_a_replan_is_shown_by_a_dry_run_and_then_done_as_one_plan_version(call: Edited) -> None:
    graph = await call.graph("a", ("b", ["a"]), ("c", ["b"]))
    edits: Json = {
        "graph": graph, "add": [row("n", "a")], "change": [{"slug": "c", "needs": ["n"], "retry": {"max": 2}}],
        "remove": [{"node": "b", "reason": "not needed"}], "restart": ["a"],
    }  # fmt: skip
    preview = await call("replan", dryRun=True, **edits)
    assert preview["diff"] == {
        "added": ["n"],
        "changed": [{"node": "c", "fields": ["needs", "retry"]}],
        "removed": [{"node": "b", "reason": "not needed"}],
        "stopped": [{"node": "a", "then": "waiting"}],
        "moved": [{"node": "b", "origin": "waiting", "state": "cancelled"}],
    }
    assert preview["preview"]["planVersion"] == 2
    assert (await call.version(graph), await call.states(graph)) == (
        1,
        {"a": "running", "b": "waiting", "c": "waiting"},
    )
    done = await call("replan", **edits)
    assert done["stopping"] == ["a"]
    assert (await call.version(graph), await call.states(graph)) == (
        2,
        {"a": "running", "n": "waiting", "c": "waiting"},
    )
    snapshot = await call("status", graph=graph)
    assert sum(snapshot["counts"].values()) == 3, "what was removed is not counted"


async def test_an_expected_plan_holds_over_moving_nodes_and_not_over_an_edit(call: Edited) -> None:
    graph = await call.graph("a", "b")
    await call.served.daemon.end_one(graph)
    await call("extend", graph=graph, nodes=[row("c")], expectedPlan=1)
    refusal = await call.refused("extend", graph=graph, nodes=[row("d")], expectedPlan=1)
    assert (refused_by(refusal), refusal.data["planVersion"]) == ("conflict", 2)


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ({}, "invalidPlan"),
        ({"add": [row("a")]}, "invalidPlan"),
        ({"add": [row("n", "ghost")]}, "invalidPlan"),
        ({"add": [row("n", worker="nobody")]}, "invalidPlan"),
        ({"add": [row("n", worker="build")]}, "agentMissing"),
        ({"change": [{"slug": "b", "worker": "nobody"}]}, "invalidPlan"),
        ({"change": [{"slug": "ghost", "spec": "x"}]}, "notFound"),
        ({"change": [{"slug": "a", "spec": "x"}]}, "invalidTransition"),
        ({"remove": [{"node": "a", "reason": "no"}]}, "invalidPlan"),
    ],
)
async def test_edits_are_refused_with_a_name(call: Edited, edits: Json, code: str) -> None:
    graph = await call.graph("a", ("b", ["a"]))
    assert refused_by(await call.refused("replan", graph=graph, **edits)) == code
    assert await call.version(graph) == 1


async def test_of_a_replan_and_a_pause_one_wins_and_the_other_is_told_why(call: Edited) -> None:
    for _ in range(8):
        graph = await call.graph("a", ("b", ["a"]))
        rev = (await call("status", graph=graph))["rev"]
        answers = await asyncio.gather(
            call("replan", call.client, graph=graph, restart=["a"], expectedRev=rev),
            call("pause", call.other, graph=graph, mode="stop", expectedRev=rev),
            return_exceptions=True,
        )
        lost = [answer for answer in answers if isinstance(answer, WireError)]
        assert [refused_by(trouble) for trouble in lost] == ["conflict"], answers
        assert lost[0].data["rev"] > rev
        assert "read the graph again" in lost[0].data["hint"]
        snapshot = await call("status", graph=graph)
        is_paused = isinstance(answers[0], WireError)
        assert (snapshot["planVersion"], "stopping" in snapshot) == ((1, True) if is_paused else (2, False))


async def test_without_expectations_both_happen_in_the_order_in_which_they_came(call: Edited) -> None:
    graph = await call.graph("a", ("b", ["a"]))
    await call("pause", graph=graph, mode="stop")
    refusal = await call.refused("replan", graph=graph, restart=["a"])
    assert refused_by(refusal) == "invalidTransition"
    assert "pause" in refusal.data["hint"]


def write(folder: Path, text: str) -> str:
    path = folder / "w.yaml"
    path.write_text(text)
    return str(path)


FIRST = """\
nodes:
  - { id: a, run: echo a }
  - { id: b, needs: [a], run: echo b }
  - { id: c, needs: [b], run: echo c }
"""
EDITED = FIRST.replace("echo c", "echo better") + "  - { id: d, needs: [c], run: echo d }\n"


async def test_an_edited_file_becomes_a_proposal_that_is_accepted_once(call: Edited, tmp_path: Path) -> None:
    file = write(tmp_path, FIRST)
    graph = (await call("set", file=file))["graph"]
    assert (await call("apply", file=file))["diff"] == {}, "nothing was edited"
    write(tmp_path, EDITED)
    diff = {"added": ["d"], "changed": [{"node": "c", "fields": ["spec"]}]}
    preview = await call("apply", file=file, dryRun=True)
    assert (preview["diff"], "proposal" in preview) == (diff, False)
    result = await call("apply", file=file)
    assert result["diff"] == diff
    snapshot = await call("status", graph=graph)
    (proposal,) = snapshot["proposals"]
    wire.Proposal.model_validate(proposal, by_name=False)
    assert (proposal["id"], proposal["planVersion"], proposal["add"]) == (result["proposal"], 1, ["d"])
    assert [ask["id"] for ask in snapshot["asks"]] == [proposal["id"]]
    await call("accept", graph=graph, proposal=proposal["id"])
    snapshot = await call("status", graph=graph)
    assert (snapshot["planVersion"], "proposals" in snapshot, snapshot["asks"]) == (2, False, [])
    assert refused_by(await call.refused("accept", graph=graph, proposal=proposal["id"])) == "askGone"
    assert (await call("apply", file=file))["diff"] == {}, "the plan is what the file says"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"isolation": "node"}, "notSupported"),
        ({"worker": "build", "spec": "say {{nobody}}"}, "invalidPlan"),
        ({"needs": []}, "invalidPlan"),
    ],
)
async def test_a_changed_node_is_held_to_what_a_new_one_is_held_to(call: Edited, change: Json, code: str) -> None:
    reader = {"slug": "b", "spec": "say {{a}}", "worker": "build", "needs": ["a"], "required": False}
    graph = (await call("set", nodes=[row("a"), reader, row("c", "b")], title="t"))["graph"]
    assert refused_by(await call.refused("replan", graph=graph, change=[{"slug": "b", **change}])) == code
    assert refused_by(await call.refused("replan", graph=graph, change=[{"slug": "zz"}])) == "notFound"
    await call("replan", graph=graph, change=[{"slug": "b", "spec": "tell {{a}}", "isolation": "none"}])


async def test_subscribers_are_told_of_proposals(call: Edited, tmp_path: Path) -> None:
    file = write(tmp_path, FIRST)
    graph = (await call("set", file=file))["graph"]
    folded, seen = Folded(), list[Any]()

    async def follow() -> None:
        params = await call.other.next("workgraph/changed")
        wire.Changed.model_validate(params, by_name=False)
        seen.append(params.get("proposals"))
        folded.take(params)

    for value in (await call.other.call("workgraph/subscribe", {"graphs": [graph]}))["graphs"]:
        folded.take(value)
    write(tmp_path, EDITED)
    proposal = (await call("apply", file=file))["proposal"]
    while not any(rows for rows in seen):
        await follow()
    assert seen[-1][0]["id"] == proposal
    assert folded.graphs[graph] == await call("status", graph=graph)
    await call("dismiss", graph=graph, proposal=proposal, reason="no")
    while seen[-1] != []:
        await follow()
    assert folded.graphs[graph] == await call("status", graph=graph)


async def test_a_proposal_names_its_graph_by_itself(call: Edited, tmp_path: Path) -> None:
    graph = (await call("set", file=write(tmp_path, FIRST)))["graph"]
    file = write(tmp_path, EDITED)
    await call.graph("another")
    dismissed = (await call("apply", file=file))["proposal"]
    assert (await call("dismiss", proposal=dismissed))["graph"] == graph
    proposal = (await call("apply", file=file))["proposal"]
    assert (await call("accept", proposal=proposal))["graph"] == graph
    assert refused_by(await call.refused("accept", proposal=proposal)) == "askGone"
    assert refused_by(await call.refused("accept", proposal="ask-none")) == "notFound"


async def test_a_proposal_settled_after_a_restart_is_told_to_who_knew_it_before(call: Edited, tmp_path: Path) -> None:
    """A daemon that starts again has sent nothing of the graph yet: what a client held of it may be old."""
    graph = (await call("set", file=write(tmp_path, FIRST)))["graph"]
    write(tmp_path, EDITED)
    proposal = (await call("apply", file=str(tmp_path / "w.yaml"), graph=graph))["proposal"]
    rev = (await call("status", graph=graph))["rev"]
    async with serving() as again:
        again.daemon.state = call.served.daemon.state
        client = await again.client()
        await client.call("workgraph/dismiss", {"graph": graph, "proposal": proposal})
        (changed,) = (await client.call("workgraph/subscribe", {"since": {graph: rev}}))["graphs"]
        assert changed["proposals"] == []
        await client.close()


async def test_of_an_apply_and_a_retry_one_wins_and_the_other_is_told_why(call: Edited, tmp_path: Path) -> None:
    for turn in range(6):
        file = write(tmp_path, FIRST.replace("echo a", f"echo {turn}"))
        graph = (await call("set", file=file))["graph"]
        await call.served.daemon.end_one(graph, "failed")
        rev = (await call("status", graph=graph))["rev"]
        write(tmp_path, EDITED)
        answers: Any = await asyncio.gather(
            call("apply", call.client, file=file, graph=graph, expectedRev=rev),
            call("retry", call.other, graph=graph, node="a", expectedRev=rev),
            return_exceptions=True,
        )
        lost = [answer for answer in answers if isinstance(answer, WireError)]
        assert [refused_by(trouble) for trouble in lost] == ["conflict"], answers
        assert (lost[0].data["planVersion"], lost[0].data["rev"] > rev) == (1, True)
        await call("cancel", graph=graph)


async def test_a_file_that_is_applied_again_is_proposed_once(call: Edited, tmp_path: Path) -> None:
    graph = (await call("set", file=write(tmp_path, FIRST), start=False))["graph"]
    file = write(tmp_path, EDITED)
    first, again = await call("apply", file=file), await call("apply", file=file)
    assert (again["proposal"], again["diff"]) == (first["proposal"], first["diff"])
    assert len((await call("status", graph=graph))["proposals"]) == 1
    await call("extend", graph=graph, nodes=[row("n")])
    assert (await call("apply", file=file))["proposal"] != first["proposal"], "the plan is another one"


@pytest.mark.parametrize("verb", ["apply", "rerun"])
async def test_a_graph_that_is_cleared_meanwhile_is_not_found(
    call: Edited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    file = write(tmp_path, FIRST)
    graph = (await call("set", file=file, start=False))["graph"]
    place, name = (plans, "plan_of_file") if verb == "apply" else (reuse, "kept_environment")
    work = getattr(place, name)

    async def slow(*given: Any, **more: Any) -> Any:
        await call.served.daemon.run(Clear(graph))
        return await work(*given, **more)

    monkeypatch.setattr(place, name, slow)
    params = {"file": file} if verb == "apply" else {"graph": graph}
    assert refused_by(await call.refused(verb, **params)) == "notFound"


async def test_a_file_from_which_nothing_runs_is_not_found(call: Edited, tmp_path: Path) -> None:
    file = write(tmp_path, FIRST)
    assert refused_by(await call.refused("apply", file=file)) == "notFound"
    assert refused_by(await call.refused("apply", file=str(tmp_path / "no.yaml"))) == "notFound"
    await call("set", file=file)
    write(tmp_path, "nodes: [")
    assert refused_by(await call.refused("apply", file=file)) == "invalidPlan"
    assert refused_by(await call.refused("apply", file=file, text="nodes: [{id: a}]")) == "invalidPlan"


async def test_the_inputs_of_the_graph_are_those_of_the_edited_file(call: Edited, tmp_path: Path) -> None:
    head = "inputs:\n  stage: { type: string }\n"
    body = "config:\n  nodes:\n    - { id: a, worker: shell, prompt: echo }\n"
    file = write(tmp_path, head + body)
    graph = (await call("set", file=file, inputs={"stage": "test"}))["graph"]
    assert (await call("apply", file=file))["diff"] == {}
    write(tmp_path, body)
    assert (await call("apply", file=file, graph=graph))["diff"] == {}, "an input that is no longer asked for"


async def test_a_rerun_is_the_same_plan_as_a_new_graph(call: Edited, tmp_path: Path) -> None:
    file = write(tmp_path, FIRST)
    first = (await call("set", file=file))["graph"]
    await call("replan", graph=first, remove=[{"node": "c", "reason": "no"}])
    write(tmp_path, "nodes: [")
    second = (await call("rerun", graph=first))["graph"]
    assert second != first
    assert await call.states(second) == {"a": "running", "b": "waiting"}
    assert (await call("rerun", graph=first, dryRun=True))["preview"]["id"] not in (first, second)
