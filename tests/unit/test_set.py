"""`set`: what is no graph is refused, one graph replaces another, what a graph is set with becomes its own."""

from graphd.core.commands import Clear, Pause, Release, Resume, RetryNodes
from graphd_protocol.ids import node_id
from tests.unit.core_drive import Drive, G, define, effects_of, ended, live_key, plan, refused, started, stuck


def test_set_refuses_what_is_no_graph() -> None:
    drive = Drive()
    assert refused(drive, plan(G, define("a"), objective=" ")).code == "invalidObjective"
    refusal = refused(drive, plan(G, define("a", "b"), define("b", "a")))
    assert (refusal.code, refusal.facts["diagnostics"][0]["code"]) == ("invalidPlan", "plan.cycle")
    assert refused(drive, plan(G, define("a"), replace="nobody")).code == "notFound"
    drive.run(plan(G, define("a"), owner="agent:x"))
    assert refused(drive, plan(G, define("a"))).code == "alreadyExists"
    refusal = refused(drive, plan("h", define("a"), owner="agent:x"))
    assert (refusal.code, refusal.facts["graph"]) == ("alreadyExists", G)
    drive.run(plan("h", define("a"), owner="agent:y"))
    drive.run(plan("i", define("a")))
    drive.run(Clear("i"))
    drive.run(ended(drive.state.graphs["i"], "a"))
    assert refused(drive, plan("i", define("a"))).code == "alreadyExists", "an id is never used again"
    assert refused(drive, Pause("i")).code == "notFound"


def test_replace_clears_the_old_graph_and_starts_nothing_before_its_trees_are_empty() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), owner="agent:x"))
    drive.run(plan("h", define("b"), owner="agent:x", replace=G))
    assert [(c.graph, c.operation) for c in drive.changes] == [(G, "clear"), ("h", "set")]
    assert started(drive) == ["g/a"]
    assert ("StopAttempt", G, (node_id("a"), "worker", 1)) in effects_of(drive)
    old = drive.state.graphs[G]
    drive.run(stuck(old, "a", 7))
    assert not drive.state.graphs["h"].live
    drive.run(Release(G, "a", (7,)))
    assert G not in drive.state.graphs
    assert drive.state.graphs["h"].live
    assert ("RemoveGraphFiles", G) in effects_of(drive)
    drive.run(plan("i", define("b"), replace="h"))
    drive.run(plan("j", define("b"), replace="h"))
    assert [c.graph for c in drive.changes] == ["j"], "the wish stands already"


def test_the_delivery_node_and_the_only_sink_are_required_whatever_the_plan_says() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", required=False), define("b", required=False), delivery_node="a"))
    assert [n.required for n in drive.state.graphs[G].nodes.values()] == [True, False]
    drive.run(plan("h", define("a", required=False), define("b", "a", required=False)))
    assert [n.required for n in drive.state.graphs["h"].nodes.values()] == [False, True]


def test_an_environment_that_was_sent_becomes_the_graphs_and_none_leaves_the_stored_one() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), environment="e1", start=False))
    graph = drive.state.graphs[G]
    drive.run(Resume(G))
    assert graph.environment == "e1"
    drive.run(ended(graph, "a", "failed"))
    drive.run(RetryNodes(G, "a", environment="e2"))
    key = live_key(graph, "a")
    assert (graph.environment, graph.attempts[key].environment) == ("e2", "e2")
