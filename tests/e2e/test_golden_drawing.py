"""`tree`, `picture` and the doctor's report over the wire, held to `protocol.json`; big graphs are drawn soon."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.kit.wire import Client, Served, WireError, nodes, refused_by, serving
from tests.kit.workspaces import ROOT

PROTOCOL: dict[str, Any] = json.loads((ROOT / "protocol" / "protocol.json").read_text(encoding="utf-8"))
RESULTS = {row["method"]: row["result"] for row in PROTOCOL["requests"]}
DIAMOND: tuple[tuple[str, list[str]], ...] = (
    ("scan", []),
    ("lint", ["scan"]),
    ("types", ["scan"]),
    ("report", ["lint", "types"]),
)


class Drawing:
    """Calls whose results are held to their schema."""

    def __init__(self, served: Served, client: Client) -> None:
        self.daemon = served.daemon
        self._client = client

    async def __call__(self, method: str, **params: Any) -> Any:
        result = await self._client.call(method, params)
        Draft202012Validator({**RESULTS[method], "$defs": PROTOCOL["$defs"]}).validate(result)
        return result

    async def tree(self, **params: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = await self("workgraph/tree", **params)
        return rows

    async def picture(self, **params: Any) -> dict[str, Any]:
        drawn: dict[str, Any] = await self("workgraph/picture", **params)
        return drawn

    async def graph(self, *rows: Any, **params: Any) -> str:
        return str((await self("workgraph/set", nodes=nodes(*rows), title="Checkup", **params))["graph"])


@pytest.fixture
async def draw() -> AsyncIterator[Drawing]:
    async with serving() as served:
        client = await served.client()
        yield Drawing(served, client)
        await client.close()


def enabled(row: dict[str, Any]) -> set[str]:
    return {command["command"].removeprefix("graphd.") for command in row["commands"] if command["enabled"]}


async def test_a_graphs_row_says_how_far_it_is_and_what_can_be_done(draw: Drawing) -> None:
    graph = await draw.graph(*DIAMOND)
    [row] = await draw.tree()
    assert (row["id"], row["label"], row["state"], row["collapsible"]) == (graph, "Checkup", "active", "expanded")
    assert row["description"] == "active, 0 of 4"
    assert enabled(row) == {"pause", "cancel"}
    await draw("workgraph/pause", graph=graph)
    assert enabled((await draw.tree())[0]) == {"resume", "cancel"}
    await draw("workgraph/resume", graph=graph)
    await draw.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 3")
    [row] = await draw.tree()
    assert row["description"] == "blocked, 4 of 4, 1 failed"
    assert row["contextValue"] == "graph.blocked"
    assert "retry" in enabled(row)
    await draw("workgraph/cancel", graph=graph)
    [row] = await draw.tree()
    assert (row["state"], row["collapsible"], enabled(row)) == ("cancelled", "collapsed", set())


async def test_what_a_row_enables_is_what_the_daemon_admits(draw: Drawing) -> None:
    graph = await draw.graph(*DIAMOND)
    for step in ("nothing", "pause", "resume", "fail", "cancel"):
        if step == "fail":
            await draw.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 3")
        elif step != "nothing":
            await draw(f"workgraph/{step}", graph=graph)
        [row] = await draw.tree()
        commands = [command for command in row["commands"] if await admits(draw, command)]
        admitted = {command["command"].removeprefix("graphd.") for command in commands}
        # over a pause that drains the daemon admits one that stops: a row offers neither
        assert enabled(row) == admitted - ({"pause"} if row["state"] == "user_paused" else set()), step


async def admits(draw: Drawing, command: dict[str, Any]) -> bool:
    """Whether the daemon would take a row's command now."""
    method = command["command"].replace("graphd.", "workgraph/")
    try:
        await draw(method, **command["arguments"][0], dryRun=True)
    except WireError as refusal:
        return refused_by(refusal) != "invalidTransition"
    return True


async def test_nodes_come_layer_by_layer_with_what_they_wait_for(draw: Drawing) -> None:
    graph = await draw.graph(*reversed(DIAMOND))
    rows = await draw.tree(graph=graph)
    assert [row["label"] for row in rows] == ["scan", "types", "lint", "report"]
    assert [row["description"] for row in rows] == ["", "needs scan", "needs scan", "needs lint, types"]
    assert rows[0]["id"] == f"{graph}/scan"
    assert (rows[0]["icon"], rows[0]["collapsible"], enabled(rows[0])) == ("sync~spin", "collapsed", {"openOutput"})
    assert (rows[1]["collapsible"], enabled(rows[1])) == ("none", set())
    await draw.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 3")
    failed, blocked, *_ = await draw.tree(graph=graph)
    assert failed["description"] == "exec_failed: exit 3"
    assert enabled(failed) == {"retry", "openOutput"}
    assert (blocked["description"], blocked["icon"]) == ("behind scan", "lock")


async def test_attempts_are_below_their_node(draw: Drawing) -> None:
    graph = await draw.graph("one")
    await draw.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 3")
    await draw("workgraph/retry", graph=graph, node="one")
    rows = await draw.tree(graph=graph, node="one")
    assert [row["label"] for row in rows] == ["one@2", "one@1"]
    assert rows[1]["description"] == "failed: exit 3"
    assert rows[0]["commands"][0]["arguments"] == [{"graph": graph, "node": "one", "attempt": 2}]
    with pytest.raises(WireError) as refusal:
        await draw.tree(graph=graph, node="two")
    assert refused_by(refusal.value) == "notFound"


async def test_a_check_is_an_attempt_of_its_own_beside_the_work_that_it_checks(draw: Drawing) -> None:
    plan = [{"slug": "one", "spec": "true", "verify": {"run": "true"}}]
    graph = (await draw("workgraph/set", nodes=plan, title="t"))["graph"]
    await draw.daemon.end_one(graph)
    check, work = await draw.tree(graph=graph, node="one")
    assert (work["label"], check["label"]) == ("one@1", "one.verifier@1")
    assert (work["id"], check["id"]) == (f"{graph}/one@1", f"{graph}/one.verifier@1")
    assert (enabled(work), enabled(check)) == ({"openOutput"}, set())
    attempts = (await draw("workgraph/node", graph=graph, node="one"))["attempts"]
    assert [attempt["id"] for attempt in attempts] == ["one@1", "one.verifier@1"]


async def test_a_picture_has_boxes_lines_and_words(draw: Drawing) -> None:
    graph = await draw.graph(*DIAMOND)
    drawn = await draw.picture()
    assert (drawn["graph"], drawn["rev"], drawn["hidden"]) == (graph, 2, 0)
    assert drawn["layers"] == [["scan"], ["lint", "types"], ["report"]]
    boxes = {node["id"]: node for node in drawn["nodes"]}
    assert boxes["scan"]["state"] == "running"
    assert all(node["x"] + node["w"] <= drawn["width"] for node in drawn["nodes"])
    assert all(node["y"] + node["h"] <= drawn["height"] for node in drawn["nodes"])
    for edge in drawn["edges"]:
        (x, y), *_, (_, end) = edge["points"]
        upper, lower = boxes[edge["from"]], boxes[edge["to"]]
        assert upper["x"] <= x <= upper["x"] + upper["w"]
        assert (y, end) == (upper["y"] + upper["h"], lower["y"])
    assert "│ ● scan    running\n" in drawn["text"]
    assert "● scan" in drawn["drawing"]
    assert drawn == await draw.picture(graph=graph)


async def test_ten_thousand_nodes_are_drawn_around_what_runs(draw: Drawing) -> None:
    names = [f"n{index:05}" for index in range(10_000)]
    rows = [(name, [names[index // 2]] if index else []) for index, name in enumerate(names)]
    graph = await draw.graph(*rows, limits={"maxNodes": 10_000})
    begun = time.perf_counter()
    drawn = await draw.picture(graph=graph)
    listed = await draw.tree(graph=graph)
    took_s = time.perf_counter() - begun
    assert len(drawn["nodes"]) == 100
    assert drawn["hidden"] == 9900
    assert drawn["nodes"][0]["id"] == "n00000"
    assert len(drawn["text"].splitlines()) == 102 + len(drawn["layers"])
    assert len(listed) == 1001
    assert (listed[-1]["contextValue"], listed[-1]["label"]) == ("more", "and 9000 more")
    assert took_s < 5
    assert len((await draw.picture(graph=graph, maxNodes=3))["nodes"]) == 3


async def test_the_doctors_report_holds_nothing_that_a_user_wrote(draw: Drawing) -> None:
    await draw.graph("secret-slug")
    plain = await draw("graphd/doctor")
    report = await draw("graphd/doctor", report=True)
    more = {row["id"]: row for row in report[len(plain) :]}
    assert set(more) == {"versions", "protocol", "graphs", "connections", "sizes"}
    assert all(row["ok"] for row in more.values())
    assert more["graphs"]["detail"] == "1 active"
    assert "secret" not in json.dumps(report)
    assert "Checkup" not in json.dumps(report)


async def test_capacity_is_what_its_model_says(draw: Drawing) -> None:
    await draw.graph("a", "b")
    capacity = await draw("graphd/capacity")
    assert capacity["concurrency"] == {"limit": 8, "running": 2, "queued": 0}
    assert capacity["agents"] == {"shell": 2}


def test_examples_are_there_for_other_clients() -> None:
    assert list(Path(ROOT / "protocol" / "examples").glob("*.jsonl"))
