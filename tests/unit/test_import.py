"""An exported graph comes back: what is at rest is kept, the rest is decided anew, and nothing runs by itself."""

import json
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.change import GraphValue, decode, encode_v1, encode_v2
from graphd.core.change.incoming import WORKER_1, command_of
from graphd.core.commands import Cancel, Clear, DaemonStarted, Import, Replan, Resume
from graphd.core.definition import Budget, ForEach, Gate
from graphd.core.edits import Edits
from graphd.core.model import Graph, Limits
from graphd.server import project
from graphd_protocol.ids import FINAL_ID, node_id
from tests.unit.core_drive import Drive, define, ended, plan, states

STATES_2 = {"a": "achieved", "b": "running", "c": "waiting"}


def chain() -> Drive:
    """a is achieved, b runs, c waits."""
    drive = Drive()
    nodes = [define("a", title="First"), define("b", "a"), define("c", "b", condition='b.state == "achieved"')]
    drive.run(plan("g", *nodes, delivery_node="c"))
    drive.run(ended(drive.state.graphs["g"], "a", text='{"x": 1}'))
    return drive


def exported(graph: Graph, version: int = 2) -> GraphValue:
    change = encode_v2(project.snapshot(graph)) if version == 2 else encode_v1(graph)
    value = decode(json.loads(json.dumps(change)))
    assert isinstance(value, GraphValue)
    return value


def imported(value: GraphValue, *, into: Drive | None = None, owner: str | None = None, new: str = "") -> Graph:
    drive = into or Drive()
    drive.run(
        command_of(value, graph=new or value.id, workspace="here", owner=owner, environment="e" if owner else None)
    )
    return drive.state.graphs[new or value.id]


def test_a_graph_at_work_is_paused_and_goes_on_after_resume() -> None:
    source = chain().state.graphs["g"]
    assert states(source) == STATES_2
    drive = Drive()

    graph = imported(exported(source), into=drive)

    assert (graph.status, graph.pause_reason) == ("user_paused", "imported: it was active")
    assert states(graph) == {"a": "achieved", "b": "ready", "c": "waiting"}
    first = graph.nodes[node_id("a")]
    assert first.output is not None
    assert first.output.text == '{"x": 1}'
    assert (first.definition, first.started_at, first.spent) == (
        source.nodes[first.id].definition, source.nodes[first.id].started_at, source.nodes[first.id].spent,
    )  # fmt: skip
    assert (graph.id, graph.created_at, graph.workspace) == (source.id, source.created_at, "here")
    assert (graph.delivery_node, graph.limits, graph.spent) == (source.delivery_node, source.limits, source.spent)
    assert drive.effects == []
    drive.run(Resume("g"))
    assert states(graph)["b"] == "running"
    drive.run(ended(graph, "b"))
    drive.run(ended(graph, "c"))
    assert (graph.status, graph.outcome) == ("complete", "ok")


def test_what_was_removed_from_the_plan_stays_removed() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan("g", define("a"), define("b", required=False), define("c", required=False)))
    drive.run(Replan("g", Edits(remove=(("a", "while it ran"), ("b", "not needed")))))
    into = Drive()
    graph = imported(exported(drive.state.graphs["g"]), into=into)
    assert states(graph) == {"a": "cancelled", "b": "cancelled", "c": "ready"}
    assert [node.removed_in for node in graph.nodes.values()] == [2, 2, None]
    assert [node.cancel_reason for node in graph.nodes.values()][:2] == ["removed: while it ran", "removed: not needed"]
    assert set(graph.removed) == {node_id("a"), node_id("b")}
    into.run(Resume("g"))
    into.run(ended(graph, "c"))
    assert graph.status == "complete"


def test_what_it_was_paused_for_is_kept_as_words() -> None:
    drive = Drive()
    drive.run(plan("g", define("a"), start=False))
    graph = imported(exported(drive.state.graphs["g"]))
    assert graph.pause_reason == "imported: it was user_paused (set without starting)"


def test_a_budget_comes_along_and_what_is_spent_counts_against_it() -> None:
    drive = Drive()
    drive.run(plan("g", define("a"), define("b", "a"), budget=Budget(tokens=5, wall_ms=60_000)))
    drive.run(ended(drive.state.graphs["g"], "a"))
    graph = imported(exported(drive.state.graphs["g"]))
    assert (graph.budget, graph.spent.tokens) == (Budget(tokens=5, wall_ms=60_000), 1)
    drive = Drive()
    drive.run(plan("g", define("a"), budget=Budget(tokens=5)))
    assert imported(exported(drive.state.graphs["g"])).budget == Budget(tokens=5)


def test_an_ended_graph_stays_as_it_was() -> None:
    drive = Drive()
    drive.run(plan("g", define("a", required=False), define("b"), define("s", "a")))
    graph = drive.state.graphs["g"]
    drive.run(ended(graph, "a", "failed", failure_class="exec_failed", reason="exit code 1"))
    drive.run(ended(graph, "b", text="b"))
    assert (graph.status, graph.outcome) == ("complete", "withFailures")

    again = imported(exported(graph))

    assert (again.status, again.outcome, states(again)) == ("complete", "withFailures", states(graph))
    assert again.nodes[node_id("s")].skip == "no_input"
    failure = again.nodes[node_id("a")].failure
    assert failure is not None
    assert (failure.failure_class, failure.reason, failure.attempt) == ("exec_failed", "exit code 1", None)


def test_a_cancelled_graph_stays_cancelled() -> None:
    drive = Drive()
    drive.run(plan("g", define("a"), start=False))
    drive.run(Cancel("g", "enough"))
    again = imported(exported(drive.state.graphs["g"]))
    assert (again.status, states(again)) == ("cancelled", {"a": "cancelled"})
    assert again.nodes[node_id("a")].cancel_reason is not None


def test_a_blocked_graph_is_blocked_again_at_once() -> None:
    drive = Drive()
    drive.run(plan("g", define("a"), define("b", "a")))
    drive.run(ended(drive.state.graphs["g"], "a", "failed", failure_class="exec_failed", reason="no"))
    again = imported(exported(drive.state.graphs["g"]))
    assert (again.status, states(again)) == ("blocked", {"a": "failed", "b": "blocked"})


def test_version_1_has_slugs_made_from_titles_and_the_worker_build() -> None:
    drive = Drive()
    drive.run(plan("g", define("a"), define("b", "a", title="And: then!", discovered_from=("a",)), define("c", "b")))
    graph = drive.state.graphs["g"]
    drive.run(ended(graph, "a", "failed", failure_class="timeout", reason="slow"))
    value = exported(graph, 1)

    again = imported(value)

    assert states(again) == {"a": "failed", "And-then": "blocked", "c": "blocked"}
    assert {node.definition.worker for node in again.nodes.values()} == {WORKER_1}
    failure = again.nodes[node_id("a")].failure
    assert failure is not None
    assert (failure.failure_class, failure.reason) == ("timeout", "slow")
    assert again.nodes[node_id("And-then")].definition.discovered_from == ("a",)


def version_1(*titles: str, **more: Any) -> GraphValue:
    rows = [
        {"id": FINAL_ID if t == "last" else node_id(f"x{i}"), "title": t, "spec": "s", "blocks": [], "rounds": 0,
         "state": "waiting"}
        for i, t in enumerate(titles)
    ]  # fmt: skip
    graph = {
        "id": "g", "objective": "one\ntwo", "status": "complete", "planVersion": 1, "nodes": rows, "history": [],
        "pendingDiscoveries": [], "tokensSpent": 5, "replanRuns": 0, "createdAt": 1, "updatedAt": 2,
    }  # fmt: skip
    value = decode({"kind": "workgraph/change", "version": 1, "graph": graph | more})
    assert isinstance(value, GraphValue)
    return value


def test_slugs_of_version_1_are_unique_and_always_slugs() -> None:
    value = version_1("Same one", "same one", "Same one", "???", "and", "last", status="active")
    assert list(states(imported(value))) == ["Same-one", "same-one", "Same-one-2", "node", "node-and", "final"]


def test_a_failure_of_version_1_without_a_class_counts_as_exec_failed() -> None:
    rows = [{"id": node_id("a"), "title": "a", "spec": "s", "blocks": [], "rounds": 1, "state": "failed"}]
    for text in ({}, {"failure": "it broke"}):
        graph = imported(version_1(nodes=[rows[0] | text]))
        failure = graph.nodes[node_id("a")].failure
        assert failure is not None
        assert (failure.failure_class, failure.reason) == ("exec_failed", text.get("failure", "failed"))
        assert (graph.status, graph.outcome, graph.title, graph.spent.tokens) == ("complete", "withFailures", "one", 5)
        assert graph.spent.cost_usd is None


def test_a_version_1_graph_that_is_all_achieved_is_ok() -> None:
    row = {"id": node_id("a"), "title": "a", "spec": "s", "blocks": [], "rounds": 1, "state": "achieved"}
    assert imported(version_1(nodes=[row])).outcome == "ok"


def test_more_nodes_than_the_default_limit_come_back() -> None:
    titles = [f"t{i}" for i in range(Limits().max_nodes + 1)]
    graph = imported(version_1(*titles, status="active"))
    assert graph.limits.max_nodes == len(titles)


def refusal(value: GraphValue, drive: Drive, **more: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        imported(value, into=drive, **more)
    return caught.value


def test_an_id_is_used_once_and_a_new_one_is_the_way_out() -> None:
    drive = chain()
    value = exported(drive.state.graphs["g"])
    assert refusal(value, drive).code == "alreadyExists"
    assert imported(value, into=drive, new="other").id == "other"
    drive.run(Clear("other"))
    assert refusal(value, drive, new="other").code == "alreadyExists"


def test_an_owner_has_one_live_graph() -> None:
    drive = Drive()
    drive.run(plan("mine", define("a"), owner="me"))
    value = exported(chain().state.graphs["g"])
    assert refusal(value, drive, owner="me").code == "alreadyExists"
    assert imported(value, into=drive, owner="you").owner == "you"
    ended_one = version_1(nodes=[{"id": node_id("a"), "title": "a", "spec": "s", "blocks": [], "rounds": 1,
                                  "state": "achieved"}], id="h")  # fmt: skip
    assert imported(ended_one, into=drive, owner="me").is_ended


def test_a_plan_that_may_not_run_and_an_end_that_is_none_are_refused() -> None:
    value = exported(chain().state.graphs["g"])
    value.graph["limits"]["maxNodes"] = 1
    assert refusal(value, Drive()).code == "invalidPlan"
    assert refusal(version_1("a"), Drive()).code == "malformedLog"


def test_a_graph_made_in_the_future_is_made_now() -> None:
    drive = Drive()
    graph = imported(version_1("a", status="active", createdAt=10**12, updatedAt=10**12), into=drive)
    assert graph.created_at == drive.now


def test_a_moved_workspace_is_noted_in_every_graph_once() -> None:
    drive = chain()
    drive.run(plan("done", define("a")))
    drive.run(ended(drive.state.graphs["done"], "a"))

    drive.run(DaemonStarted(2, "v", 1, "elsewhere"))

    assert {graph.workspace for graph in drive.state.graphs.values()} == {"elsewhere"}
    assert [e.kind for c in drive.changes if c.graph == "done" for e in c.events] == ["workspace_moved"]
    assert [e.kind for c in drive.changes if c.graph == "g" for e in c.events] == ["workspace_moved", "epoch_started"]
    drive.run(DaemonStarted(3, "v", 1, "elsewhere"))
    assert [c.graph for c in drive.changes] == ["g"]


def test_the_command_is_plain_data() -> None:
    command = command_of(version_1("a"), graph="n", workspace="w", owner=None, environment=None)
    assert isinstance(command, Import)
    assert command.source.kind == "nodes"


def listed() -> Drive:
    """A gate said REJECT; a list was made into items, one of them done."""
    drive = Drive()
    each = define("each", "a", for_each=ForEach("a.output", "x"))
    drive.run(plan("g", define("a"), define("review", gate=Gate()), each, define("ship", "review")))
    drive.run(ended(drive.state.graphs["g"], "review", text='{"verdict": "REJECT"}'))
    drive.run(ended(drive.state.graphs["g"], "a", text="[1, 2]"))
    drive.run(ended(drive.state.graphs["g"], "each-1", text="one"))
    return drive


def test_items_and_verdicts_come_back_and_only_what_was_not_done_is_worked_on() -> None:
    drive = Drive()
    graph = imported(exported(listed().state.graphs["g"]), into=drive)
    assert states(graph) == {
        "a": "achieved", "review": "achieved", "each": "ready", "ship": "skipped", "each-1": "achieved",
        "each-2": "waiting",
    }  # fmt: skip
    drive.run(Resume("g"))
    assert (states(graph)["each"], states(graph)["each-2"]) == ("running", "running")
    drive.run(ended(graph, "each-2", text="two"))
    made = graph.nodes[node_id("each")].output
    assert made is not None
    assert json.loads(made.text) == ["one", "two"]
    assert graph.outcome == "rejected"


@pytest.mark.parametrize("readers", [("ship",), ()])
def test_a_gate_that_asked_for_a_new_plan_still_holds_what_needs_it(readers: tuple[str, ...]) -> None:
    drive = Drive()
    drive.run(plan("g", define("review", gate=Gate()), *(define(slug, "review") for slug in readers)))
    drive.run(ended(drive.state.graphs["g"], "review", text='{"verdict": "REPLAN"}'))
    there = Drive()
    graph = imported(exported(drive.state.graphs["g"]), into=there)
    assert (graph.status, states(graph)) == ("user_paused", {"review": "achieved"} | dict.fromkeys(readers, "waiting"))
    there.run(Resume("g"))
    assert (graph.status, graph.outcome) == ("complete", "rejected")
    ended_already = imported(exported(graph), new="h")
    assert (ended_already.status, ended_already.holding) == ("complete", ())


def test_an_item_of_nothing_is_refused() -> None:
    value = exported(listed().state.graphs["g"])
    each = next(node for node in value.graph["nodes"] if node["slug"] == "each")
    del each["forEach"]
    assert refusal(value, Drive()).code == "malformedLog"
