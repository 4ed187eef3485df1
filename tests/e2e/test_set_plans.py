"""`set` and what a node may ask for, over the wire: inline nodes, budgets, terms, pruned and added nodes, exports."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from graphd.core.definition import Budget
from tests.kit.wire import Client, WireError, refused_by, serving

Wire = dict[str, Any]
TEXT = """
title: Chain
config:
  budget: { tokens: 100 }
  max_concurrency: 2
  nodes:
    - { id: a, run: 'true' }
    - { id: b, needs: [a], run: 'true' }
    - { id: c, needs: [b], run: 'true' }
    - { id: g, needs: [c], run: 'echo {}', gate: {} }
"""


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving() as served:
        made = await served.client()
        yield made
        await made.close()


async def plan(client: Client, **params: Any) -> Wire:
    """The snapshot of what these params set."""
    graph = (await client.call("workgraph/set", {"title": "t", "start": False, **params}))["graph"]
    snapshot: Wire = await client.call("workgraph/status", {"graph": graph})
    return snapshot


async def refused(client: Client, **params: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        await client.call("workgraph/set", {"title": "t", **params})
    return caught.value


async def codes(client: Client, **params: Any) -> list[str]:
    return [row["code"] for row in (await refused(client, **params)).data["diagnostics"]]


CLAUSES: Wire = {
    "gate": {"maxRevisions": 1}, "outputSchema": {"type": "object", "required": ["verdict"]},
    "approval": {"prompt": "go?", "default": "deny"}, "artifacts": ["out/*"], "writes": ["src/**"],
    "permissions": "full", "model": "standard", "thinking": "low", "mode": "plan", "maxToolCalls": 5,
    "verify": {"run": "true", "criteria": ""},
    "unattendedExtensions": 0,
}  # fmt: skip


async def test_inline_nodes_take_what_a_file_takes_and_the_snapshot_shows_it(client: Client) -> None:
    nodes = [
        {"slug": "find", "spec": "ls"},
        {"slug": "each", "spec": "ls", "needs": ["find"], "forEach": {"in": "find.output", "as": "x"},
         "approval": True},
        {"slug": "pause", "needs": ["find"], "wait": {"signal": "go", "timeoutS": 5}},
        {"slug": "judge", "spec": "ls", "needs": ["each", "pause"], **CLAUSES,
         "review": {"phase": "design", "implementationNodeId": "each"}},
    ]  # fmt: skip
    find, each, pause, judge = (await plan(client, nodes=nodes))["nodes"]

    assert not {"gate", "wait", "forEach", "isolation", "artifacts"} & set(find)
    assert each["forEach"] == {"in": "find.output", "as": "x", "max": 50}
    assert each["approval"] == {"prompt": ""}
    assert (pause["worker"], pause["spec"], pause["wait"]) == ("", "", {"signal": "go", "timeoutS": 5})
    assert {key: judge[key] for key in CLAUSES} == CLAUSES
    assert judge["review"] == {"phase": "design", "implementationNodeId": "each"}


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"outputSchema": {"typ": "object"}}, "schema.malformed"),
        ({"worker": "build", "spec": "{{nobody}}"}, "template.unbound"),
        ({"writes": ["/etc"]}, "glob.malformed"),
        ({"wait": {"until": "later"}, "spec": ""}, "wait.malformed"),
        ({"wait": {"until": "5m"}}, "wait.worker"),
        ({"gate": {"revise": "zz"}}, "gate.notAnAncestor"),
        ({"forEach": {"in": "zz", "as": "x"}}, "forEach.notANeed"),
        ({"spec": ""}, "spec.empty"),
    ],
)
async def test_inline_nodes_are_held_to_what_a_file_is_held_to(client: Client, node: Wire, code: str) -> None:
    assert await codes(client, nodes=[{"slug": "a", "spec": "ls", **node}]) == [code]


@pytest.mark.parametrize(
    "params",
    [
        {"nodes": [{"slug": "a", "spec": "ls", "isolation": "node"}]},
        {"nodes": [{"slug": "a", "spec": "ls"}], "isolation": "graph"},
        {"text": TEXT, "onSharedTree": "serialise"},
    ],
)
async def test_what_no_part_carries_out_is_refused_by_name(client: Client, params: Wire) -> None:
    assert refused_by(await refused(client, **params)) == "notSupported"


async def test_bounds_and_terms_of_the_call_come_before_those_of_the_file(client: Client) -> None:
    plain = await plan(client, text=TEXT)
    assert (plain["budget"], plain["limits"]["concurrency"]) == ({"tokens": 100}, 2)
    assert "terms" not in plain

    made = await plan(
        client, text=TEXT, budget={"wallSeconds": 1.5}, limits={"concurrency": 3}, onRequiredFailure="stop",
        deliveryNode="c",
    )  # fmt: skip
    assert (made["budget"], made["limits"]["concurrency"]) == ({"tokens": 100, "wallSeconds": 1.5}, 3)
    assert made["terms"]["onRequiredFailure"] == "stop"
    assert made["deliveryNode"] == "c"
    assert (await plan(client, text=TEXT, budget={}))["budget"] == {"tokens": 100}


async def test_a_workflow_is_adapted_at_its_start(client: Client) -> None:
    made = await plan(
        client, text=TEXT, prune=[{"node": "b", "reason": "done by hand"}],
        extend=[{"slug": "d", "spec": "echo d", "needs": ["g"]}],
    )  # fmt: skip

    assert [(n["slug"], n["needs"]) for n in made["nodes"]] == [
        ("a", []), ("c", ["a"]), ("g", ["c"]), ("d", ["g"]),
    ]  # fmt: skip
    assert made["terms"]["pruned"] == [{"node": "b", "reason": "done by hand"}]
    assert await codes(client, text=TEXT, prune=[{"node": "g", "reason": "x"}]) == ["prune.gate"]
    assert await codes(client, text=TEXT, prune=[{"node": "b", "reason": ""}]) == ["prune.reason"]
    assert await codes(client, text=TEXT, extend=[{"slug": "a", "spec": "ls"}]) == ["slug.duplicate"]


async def test_a_last_check_without_an_agent_is_refused(client: Client) -> None:
    assert refused_by(await refused(client, text=TEXT, finalCheck=True)) == "agentMissing"


async def test_explain_shows_bounds_and_fills_in_inputs(client: Client) -> None:
    text = "inputs: { x: {} }\n" + TEXT.replace(
        "    - { id: g", "    - { id: e, worker: plan, prompt: '{{inputs.x}}' }\n    - { id: g"
    )
    told = await client.call("workgraph/explain", {"text": text, "inputs": {"x": "here"}})
    assert told["config"] == {"max_concurrency": 2, "budget": {"tokens": 100}}
    assert told["nodes"][3]["prompt_template"] == {"inline": "here"}


async def test_what_a_graph_asks_for_goes_out_and_comes_back() -> None:
    async with serving() as served, serving() as elsewhere:
        one, other = await served.client(), await elsewhere.client()
        nodes = [{"slug": "a", "spec": "ls", **CLAUSES}]
        graph = (await plan(one, nodes=nodes, budget={"costUsd": 2.5}, onRequiredFailure="stop"))["id"]
        lines = (await one.call("workgraph/export", {"graph": graph}))["lines"]
        await other.call("workgraph/import", {"lines": lines})

        here, there = (house.daemon.state.graphs[graph] for house in (served, elsewhere))
        assert json.loads(lines[0])["graph"]["terms"] == {"onRequiredFailure": "stop"}
        assert (there.terms, there.budget) == (here.terms, Budget(cost_usd=2.5))
        assert [n.definition for n in there.nodes.values()] == [n.definition for n in here.nodes.values()]
        for client in (one, other):
            await client.close()
