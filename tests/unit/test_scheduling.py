"""What starts next: fairness among graphs, order within one, caps, retries that wait, agents that are missing."""

from graphd.core.commands import AttemptEnded, Cancel, Clear, Resume, RetryNodes, Tick
from graphd.core.model import Definition, Limits, Retry
from graphd_protocol.ids import node_id
from tests.unit.core_drive import Drive, G, define, effects_of, ended, live_key, plan, refused, started, states


def test_three_graphs_share_the_slots_fairly() -> None:
    drive = Drive(concurrency=3)
    for name in ("a", "b", "c"):
        drive.run(plan(name, *(define(f"{name}{i}", required=False) for i in range(6))))
    assert [drive.state.graphs[g].counts["running"] for g in "abc"] == [3, 0, 0], "the first came to an idle daemon"
    for _ in range(15):
        graph = max(drive.state.graphs.values(), key=lambda g: (g.counts["running"], g.id))
        key = next(iter(graph.live))
        drive.now += 10
        drive.run(AttemptEnded(graph.id, key, "achieved"))
        counts = [g.counts["running"] for g in drive.state.graphs.values() if g.counts["ready"]]
        assert not counts or max(counts) - min(counts) <= (2 if len(started(drive)) < 6 else 1)
    assert [sum(s.startswith(g) for s in started(drive)) for g in "abc"] == [6, 6, 6]


def test_equal_graphs_take_turns_by_the_longest_wait() -> None:
    drive = Drive(concurrency=1)
    for graph in ("a", "b", "c"):
        drive.run(plan(graph, *(define(f"{graph}{i}", required=False) for i in range(3))))
    while running := [g for g in drive.state.graphs.values() if g.live]:
        drive.now += 10
        drive.run(AttemptEnded(running[0].id, next(iter(running[0].live)), "achieved"))
    assert [name[0] for name in started(drive)] == list("abcabcabc")


def test_order_is_priority_then_longest_path_then_plan_order() -> None:
    drive = Drive(concurrency=1)
    rows = [
        define("leaf1", required=False), define("leaf2", required=False), define("root", required=False),
        define("mid", "root", required=False), define("end", "mid", required=False),
        define("late", priority=-1, required=False), define("early", priority=1, required=False),
    ]  # fmt: skip
    drive.run(plan(G, *rows))
    graph = drive.state.graphs[G]
    while graph.live:
        drive.run(AttemptEnded(G, next(iter(graph.live)), "achieved"))
    assert started(drive) == [f"g/{s}" for s in ("early", "root", "mid", "leaf1", "leaf2", "end", "late")]


def test_caps_of_the_daemon_the_graph_and_the_profile_hold() -> None:
    drive = Drive(
        concurrency=4, per_profile=(("slow", 1),), profiles=(("shell", "shell"), ("think", "slow"))
    )  # fmt: skip
    thinkers = [Definition(f"t{i}", "x", "think", priority=5) for i in range(3)]
    drive.run(plan("a", *thinkers, *(define(f"s{i}", required=False) for i in range(5)), limits=Limits(concurrency=3)))
    drive.run(plan("b", *(define(f"s{i}", required=False) for i in range(5))))
    assert started(drive) == ["a/t0", "a/s0", "a/s1", "b/s0"]
    drive.run(AttemptEnded("a", live_key(drive.state.graphs["a"], "t0"), "achieved"))
    assert started(drive)[4:] == ["b/s1"], "the graph with the fewest running nodes is next"
    drive.run(AttemptEnded("b", live_key(drive.state.graphs["b"], "s0"), "achieved"))
    assert started(drive)[5:] == ["b/s2"] or started(drive)[5:] == ["a/t1"]
    assert drive.state.running_by_profile["slow"] <= 1


def test_nothing_is_admitted_while_the_store_can_take_nothing() -> None:
    drive = Drive(can_admit=False)
    drive.run(plan(G, define("a")))
    assert started(drive) == []
    drive.capacity = type(drive.capacity)()
    drive.run(Tick())
    assert started(drive) == ["g/a"]


def test_a_worker_that_no_agent_serves_holds_its_required_node_only() -> None:
    drive = Drive(concurrency=2)
    rows = [
        Definition("model", "x", "build", required=True, priority=3),
        define("other"),
        define("end", "model", "other"),
    ]
    drive.run(plan(G, *rows))
    graph = drive.state.graphs[G]
    assert states(graph) == {"model": "ready", "other": "running", "end": "waiting"}
    assert graph.status == "active"
    drive.run(ended(graph, "other"))
    assert (graph.status, graph.pause_cause) == ("infra_paused", "agent")
    assert "build" in (graph.pause_reason or "")
    drive.capacity = type(drive.capacity)(profiles=(("shell", "shell"), ("build", "claude")))
    drive.run(Resume(G))
    assert started(drive) == ["g/other", "g/model"]


def test_an_optional_node_without_an_agent_fails_and_the_rest_goes_on() -> None:
    drive = Drive()
    rows = [Definition("model", "x", "build"), define("other", required=False), define("end", "model", "other")]
    drive.run(plan(G, *rows, missing=(("build", "not installed"),)))
    graph = drive.state.graphs[G]
    assert states(graph) == {"model": "failed", "other": "running", "end": "waiting"}
    failure = graph.nodes[node_id("model")].failure
    assert failure is not None
    assert failure.failure_class == "agent_missing"
    required = plan("h", Definition("model", "x", "build", required=True), missing=(("build", "not installed"),))
    refusal = refused(drive, required)
    assert (refusal.code, refusal.facts["node"]) == ("agentMissing", "model")


def test_a_retry_waits_its_doubling_time_and_somebody_wakes_it() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", retry=Retry(3, 5))))
    graph = drive.state.graphs[G]
    for wait in (5_000, 10_000, 20_000):
        drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
        assert ("WakeAt", drive.now + wait) in effects_of(drive)
        drive.tick(wait - 1)
        assert not graph.live
        drive.tick(1)
        assert graph.live
    drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
    assert (graph.status, graph.nodes[node_id("a")].attempts) == ("blocked", 4)


def test_retry_max_never_exceeds_the_attempts_of_the_graph() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", retry=Retry(99, 0)), limits=Limits(attempts_per_node=3)))
    graph = drive.state.graphs[G]
    while graph.live:
        drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
    assert graph.nodes[node_id("a")].attempts == 3
    refusal = refused(drive, RetryNodes(G, "a"))
    assert refusal.code == "capacity"


def test_a_timer_of_a_node_that_moved_on_wakes_nothing() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", retry=Retry(1, 5)), define("b", required=False)))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
    drive.run(Cancel(G))
    drive.run(ended(graph, "b"))
    drive.tick(5_000)
    assert (graph.status, drive.changes, drive.state.timers) == ("cancelled", [], [])
    drive.run(plan("h", define("a", retry=Retry(1, 5))))
    drive.run(ended(drive.state.graphs["h"], "a", "failed", failure_class="exec_failed"))
    drive.run(Clear("h"))
    drive.tick(5_000)
    assert drive.state.timers == []


def test_a_queue_entry_of_a_node_that_moved_on_starts_nothing() -> None:
    drive = Drive(concurrency=1)
    rows = [
        define("a", priority=5, required=False), define("x", required=False, priority=3),
        define("b", priority=4), define("c", "a", "b", required=False), define("z", priority=-9),
    ]  # fmt: skip
    drive.run(plan(G, *rows))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", "failed"))
    drive.run(ended(graph, "b"))
    assert states(graph)["c"] == "ready"
    drive.run(RetryNodes(G, "a"))
    assert states(graph)["c"] == "waiting"
    while graph.live:
        drive.run(AttemptEnded(G, next(iter(graph.live)), "achieved"))
    assert started(drive) == [f"g/{s}" for s in ("a", "b", "x", "a", "c", "z")]
    assert graph.status == "complete"


def test_a_graph_whose_ready_nodes_all_wait_for_their_profile_leaves_the_slots_to_others() -> None:
    drive = Drive(concurrency=3, per_profile=(("shell", 1),), profiles=(("shell", "shell"), ("think", "slow")))
    drive.run(plan("a", *(define(f"n{i}", required=False) for i in range(3))))
    drive.run(plan("b", Definition("t", "x", "think")))
    assert started(drive) == ["a/n0", "b/t"]
