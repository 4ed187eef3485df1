"""The core by example: the scheduler's order and fairness, batches, roll-back, refusals, deliveries, deep plans."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.base.refusal import Refused
from graphd.core import derive
from graphd.core.commands import (
    Acknowledge,
    AttemptEnded,
    Cancel,
    Clear,
    Command,
    DaemonStarted,
    DeadlineReached,
    Finish,
    Pause,
    Release,
    Request,
    Resume,
    RetryNodes,
    Tick,
)
from graphd.core.decide import _VERBS, decide
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, Event
from graphd.core.evolve import MalformedLog, evolve
from graphd.core.model import Attempt, Definition, Graph, Limits, Output, Retry, State
from graphd.core.restore import restore
from graphd.core.schedule import schedule
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from tests.unit.core_drive import (
    ME,
    Drive,
    define,
    effects_of,
    ended,
    identified,
    live_key,
    picture,
    plan,
    states,
    stuck,
)

G = "g"


def started(drive: Drive) -> list[str]:
    """Slugs in the order in which they were started, as `graph/slug`."""
    graphs = drive.state.graphs
    return [
        f"{event.graph}/{graphs[event.graph].nodes[event.node].slug}"
        for event in drive.log
        if event.kind == "attempt_started" and event.node is not None
    ]


def states_of(drive: Drive) -> dict[str, str]:
    return {graph.id: graph.status for graph in drive.state.graphs.values()}


def refused(drive: Drive, command: Command, **condition: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        drive.run(command, ME, **condition)
    return caught.value


# ---- scheduler ----------------------------------------------------------------------------------------------------


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


# ---- set ----------------------------------------------------------------------------------------------------------


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


# ---- expectations, batches, roll-back -----------------------------------------------------------------------------


def test_expectations_are_compared_and_the_plan_outlives_the_rev() -> None:
    drive = Drive()
    drive.run(plan(G, define("a")))
    rev = drive.state.graphs[G].rev
    refusal = refused(drive, Pause(G), expected_rev=rev - 1)
    assert (refusal.code, refusal.facts["rev"]) == ("conflict", rev)
    assert refused(drive, Pause(G), expected_plan=2).code == "conflict"
    drive.run(Pause(G), ME, expected_rev=rev, expected_plan=1)
    assert drive.state.graphs[G].status == "user_paused"


def test_two_racing_retries_have_one_winner() -> None:
    drive = Drive()
    drive.run(plan(G, define("a")))
    drive.run(ended(drive.state.graphs[G], "a", "failed"))
    tape = Tape()
    decide(drive.state, tape, Request(RetryNodes(G, "a"), ME), 5)
    with pytest.raises(Refused) as caught:
        decide(drive.state, tape, Request(RetryNodes(G, "a"), ME), 5)
    assert caught.value.code == "invalidTransition"


def _some_commands(seed: int) -> list[Command]:
    dice = random.Random(seed)
    commands: list[Command] = []
    for graph in "abcd":
        rows = [define(f"n{i}", *(f"n{j}" for j in range(i) if dice.random() < 0.3), required=False) for i in range(6)]
        commands.append(plan(graph, *rows))
    choices: list[Callable[[str], Command]] = [
        Pause, Resume, Cancel, Clear, RetryNodes, lambda g: Pause(g, "stop"), lambda g: Finish(g, "enough"),
    ]  # fmt: skip
    for _ in range(196):
        graph = dice.choice("abcd")
        commands.append(dice.choice(choices[:2] if dice.random() < 0.8 else choices)(graph))
    return commands


@pytest.mark.parametrize("seed", range(4))
def test_one_batch_of_200_is_the_same_as_one_by_one(seed: int) -> None:
    alone, batch = Drive(can_admit=False), Drive()
    logs: list[list[Any]] = [[], []]
    tape = Tape()
    for command in _some_commands(seed):
        for log, drive, writes in ((logs[0], alone, Tape()), (logs[1], batch, tape)):
            try:
                log.append(decide(drive.state, writes, Request(command, ME), 9))
            except Refused as refusal:
                log.append((refusal.code, refusal.message))
    assert sum(isinstance(row, tuple) for row in logs[0]) > 40, "many are refused because of those before"
    assert repr(logs[0]) == repr(logs[1])
    assert picture(alone.state) == picture(batch.state)
    tape.rollback()
    assert batch.state.graphs == {}


def test_a_failed_commit_takes_back_the_whole_batch_and_its_starts() -> None:
    drive = Drive(concurrency=2)
    drive.run(plan("h", *(define(f"n{i}", required=False) for i in range(3))))
    drive.run(plan(G, define("a", retry=Retry(1, 5)), define("b", "a"), define("c", "a", condition="a.output > 1")))
    drive.run(ended(drive.state.graphs["h"], "n0"))
    before = repr(picture(drive.state))
    commands: list[Command] = [
        ended(drive.state.graphs[G], "a"), Cancel("h"), plan("i", define("x")), DaemonStarted(2, "0", 5),
        Finish(G, "x"),
    ]  # fmt: skip
    for command in commands:
        decide(drive.state, drive.tape, Request(command, ME), drive.now)
    schedule(drive.state, drive.tape, drive.capacity, drive.now)
    assert repr(picture(drive.state)) != before
    drive.tape.rollback()
    drive.state.are_queues_stale = True
    assert picture(drive.state) == picture(drive.replica)
    assert sorted(before) == sorted(repr(picture(drive.state)))
    for command in commands[:2]:
        drive.run(command)
    assert drive.state.graphs["h"].stopping is not None


def test_a_refusal_inside_a_batch_takes_back_its_own_writes_only() -> None:
    drive = Drive(can_admit=False)
    tape = Tape()
    decide(drive.state, tape, Request(plan(G, define("a"))), 1)
    before = picture(drive.state)
    with pytest.raises(Refused):
        decide(drive.state, tape, Request(plan("h", define("a"), replace="nobody")), 1)
    with pytest.raises(Refused):
        decide(drive.state, tape, Request(RetryNodes(G)), 1)
    assert picture(drive.state) == before


# ---- dags of 200 nodes --------------------------------------------------------------------------------------------


@st.composite
def dags(draw: st.DrawFn) -> list[Definition]:
    size, dice = draw(st.integers(1, 200)), draw(st.randoms(use_true_random=False))
    names = [f"n{i}" for i in range(size)]
    rows = []
    for index, name in enumerate(names):
        needs = sorted({dice.choice(names[:index]) for _ in range(dice.randint(0, 4))} if index else set())
        rows.append(define(name, *needs, required=dice.random() < 0.2, priority=dice.randint(-2, 2)))
    dice.shuffle(rows)
    return rows


@settings(max_examples=15, deadline=None)
@given(dags(), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.05, 0.3]))
def test_any_dag_runs_in_order_to_a_verdict(rows: list[Definition], dice: random.Random, failing: float) -> None:
    drive = Drive(concurrency=7, check=len(rows) <= 40)
    drive.run(plan(G, *rows, limits=Limits(max_nodes=200, concurrency=6)))
    graph = drive.state.graphs[G]
    ends: dict[str, str] = {}
    while graph.live:
        key = dice.choice(list(graph.live))
        node = graph.nodes[key[0]]
        assert all(graph.nodes[need].state in ("achieved", "failed", "skipped") for need in node.needs)
        ends[node.slug] = "failed" if dice.random() < failing else "achieved"
        drive.run(AttemptEnded(G, key, "achieved" if ends[node.slug] == "achieved" else "failed"))
    required = {n.slug for n in graph.nodes.values() if n.required}
    has_failed = any(end == "failed" and slug in required for slug, end in ends.items())
    assert graph.status in ("complete", "blocked")
    if has_failed:
        assert graph.status == "blocked"
    elif "failed" not in ends.values():
        assert (graph.status, graph.outcome) == ("complete", "ok")
        assert set(states(graph).values()) == {"achieved"}
    if graph.status == "blocked":
        for node in graph.nodes.values():
            needs = [graph.nodes[need] for need in node.needs]
            hit = any(need.state == "blocked" or (need.state == "failed" and need.required) for need in needs)
            assert (node.state == "blocked") == hit


def test_a_chain_of_5000_blocks_in_one_change_and_is_retried_without_recursion() -> None:
    drive = Drive(check=False)
    rows = [define("n0"), *(define(f"n{i}", f"n{i - 1}") for i in range(1, 5_000))]
    drive.run(plan(G, *rows, limits=Limits(max_nodes=5_000)))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "n0", "failed"))
    assert (graph.status, graph.counts["blocked"]) == ("blocked", 4_999)
    assert len(drive.changes) == 1
    drive.run(RetryNodes(G, "n0"))
    assert (graph.status, graph.counts["waiting"], graph.counts["running"]) == ("active", 4_999, 1)
    drive.run(ended(graph, "n0", "failed"))
    drive.run(Finish(G, "enough"))
    assert (graph.status, graph.outcome, graph.counts["skipped"]) == ("complete", "withFailures", 4_999)


# ---- outcomes -----------------------------------------------------------------------------------------------------


def run_to_end(drive: Drive, failing: set[str]) -> Graph:
    graph = drive.state.graphs[G]
    while graph.live:
        slug = graph.nodes[next(iter(graph.live))[0]].slug
        drive.run(ended(graph, slug, "failed" if slug in failing else "achieved"))
    return graph


@pytest.mark.parametrize(
    ("failing", "status", "outcome"),
    [
        (set(), "complete", "ok"),
        ({"x"}, "complete", "withFailures"),
        ({"x", "y"}, "blocked", None),
        ({"a"}, "blocked", None),
    ],
)
def test_sinks_decide_between_complete_and_blocked(failing: set[str], status: str, outcome: str | None) -> None:
    """With `a` failed, `x` and `y` are skipped for lack of input that failures alone explain."""
    drive = Drive()
    rows = [define("a", required=False), define("x", "a", required=False), define("y", "a", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, failing)
    assert (graph.status, graph.outcome) == (status, outcome)


def test_an_end_skipped_by_a_condition_is_no_failure() -> None:
    drive = Drive()
    no = define("no", "a", condition='a.state == "failed"', required=False)
    rows = [define("a", required=False), no, define("end", "no", required=False), define("f", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, {"f"})
    assert states(graph) == {"a": "achieved", "no": "skipped", "end": "skipped", "f": "failed"}
    assert graph.nodes[node_id("end")].skip == "no_input"
    assert (graph.status, graph.outcome) == ("complete", "withFailures")


def test_a_handler_runs_where_an_optional_need_failed() -> None:
    drive = Drive()
    handler = define("handler", "a", condition='a.state == "failed"')
    drive.run(plan(G, define("a", required=False), handler))
    graph = run_to_end(drive, {"a"})
    assert (states(graph), graph.status) == ({"a": "failed", "handler": "achieved"}, "complete")


@pytest.mark.parametrize(
    ("text", "cut", "expected"),
    [("3", False, "achieved"), ("1", False, "skipped"), ("no", False, "failed"), ("3", True, "failed")],
)
def test_a_condition_reads_the_output_and_never_skips_silently(text: str, cut: bool, expected: str) -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a", condition="a.output.n > 2", required=False), define("c", "a")))
    graph = drive.state.graphs[G]
    body = '{"n": ' + text + "}" if text != "no" else "no json"
    output = Output(body[: -1 if cut else None], 99, "application/json", cut)
    drive.run(AttemptEnded(G, live_key(graph, "a"), "achieved", output=output))
    graph = run_to_end(drive, set())
    assert states(graph)["b"] == expected
    if expected == "failed":
        failure = graph.nodes[node_id("b")].failure
        assert failure is not None
        assert failure.failure_class == "verdict_fail"
        assert failure.attempt is None


# ---- lost, stuck, starts ------------------------------------------------------------------------------------------


def test_three_lost_in_a_row_pause_the_graph_and_progress_starts_the_count_anew() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), limits=Limits(attempts_per_node=9)))
    graph = drive.state.graphs[G]
    for _ in range(2):
        drive.run(ended(graph, "a", "lost"))
        assert graph.status == "active"
    drive.run(ended(graph, "a", "lost", reason="power cut"))
    assert (graph.status, graph.pause_cause, states(graph)["a"]) == ("infra_paused", "lost", "ready")
    assert "power cut" in (graph.pause_reason or "")
    drive.run(Resume(G))
    drive.run(ended(graph, "a"))
    assert graph.status == "complete"


@pytest.mark.parametrize(
    ("policy", "status", "node"), [("fail", "blocked", "failed"), ("pause", "infra_paused", "ready")]
)
def test_on_lost_says_what_a_loss_means(policy: Any, status: str, node: str) -> None:
    drive = Drive()
    drive.run(plan(G, define("a", on_lost=policy)))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", "lost"))
    assert (graph.status, states(graph)["a"]) == (status, node)


def test_a_restart_adopts_every_unsettled_attempt_and_changes_no_status_but_the_fifth() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b")))
    drive.run(plan("h", define("a")))
    drive.run(ended(drive.state.graphs["h"], "a"))
    drive.run(Pause(G, "stop"))
    drive.run(DaemonStarted(2, "0", 4))
    kinds = [effect[0] for effect in effects_of(drive)]
    assert kinds.count("AdoptAttempt") == 2
    assert kinds.count("StopAttempt") == 2, "the wish is carried on"
    assert [c.graph for c in drive.changes] == [G], "an ended graph is left alone"
    drive.run(DaemonStarted(3, "0", 5))
    assert states_of(drive) == {G: "active", "h": "complete"}, "under a wish nothing is added"
    for slug in ("a", "b"):
        drive.run(ended(drive.state.graphs[G], slug, "failed"))
    drive.run(Resume(G))
    drive.run(DaemonStarted(4, "0", 5))
    assert states_of(drive)[G] == "infra_paused"
    assert drive.state.graphs[G].pause_cause == "starts"


def test_a_stuck_tree_pauses_only_what_cant_go_on_and_its_proof_resumes_it() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b"), define("c", "a", "b")))
    graph = drive.state.graphs[G]
    drive.run(stuck(graph, "a", 7))
    assert states_of(drive)[G] == "active"
    drive.run(ended(graph, "b"))
    assert states_of(drive)[G] == "infra_paused"
    drive.run(Resume(G))
    assert ("RecheckAttempt", G, live_key(graph, "a")) in effects_of(drive)
    assert states_of(drive)[G] == "infra_paused"
    drive.run(DaemonStarted(2, "0", 1))
    assert ("AdoptAttempt", G, live_key(graph, "a")) in effects_of(drive)
    drive.run(ended(graph, "a"))
    assert (graph.status, states(graph)["c"]) == ("active", "running")
    assert refused(drive, Release(G, "c", ())).code == "invalidTransition"
    assert refused(drive, Release(G, "z", ())).code == "notFound"
    assert refused(drive, Release(G, node_id("z"), ())).code == "notFound"


# ---- deliveries, environments -------------------------------------------------------------------------------------


def test_deliveries_are_written_with_what_settles_and_acknowledged_once() -> None:
    drive = Drive()
    rows = [
        define("a", report_to_parent=True, required=False), define("b", report_to_parent=True, required=False),
        define("c", required=False),
    ]  # fmt: skip
    drive.run(plan(G, *rows, owner="agent:x", delivery_node="c"))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", text="fine"))
    drive.run(ended(graph, "b", "failed", reason="broken"))
    drive.run(ended(graph, "c", text="\u00e9" * 40_000))
    rows_made = [(d.kind, d.node, d.text[:6]) for d in graph.deliveries.values()]
    assert rows_made == [
        ("result", node_id("a"), "fine"),
        ("failure", node_id("b"), "broken"),
        ("end", None, "\u00e9" * 6),
    ]
    assert all(len(d.text.encode()) <= 65_536 for d in graph.deliveries.values())
    first = next(iter(graph.deliveries))
    drive.run(Acknowledge(G, (first,)))
    assert graph.deliveries[first].is_acknowledged
    drive.run(Acknowledge(G, (first,)))
    assert drive.changes == []
    assert refused(drive, Acknowledge(G, (first, "nobody"))).code == "notFound"


def test_a_graph_without_an_owner_delivers_nothing_and_one_without_a_result_says_how_it_ended() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", report_to_parent=True)))
    drive.run(ended(drive.state.graphs[G], "a", text="x"))
    assert drive.state.graphs[G].deliveries == {}
    drive.run(plan("h", define("a", report_to_parent=True), owner="agent:x"))
    drive.run(ended(drive.state.graphs["h"], "a"))
    assert [(d.kind, d.text) for d in drive.state.graphs["h"].deliveries.values()] == [
        ("result", ""),
        ("end", "h: complete ok"),
    ]
    drive.run(plan("i", define("a", report_to_parent=True), owner="agent:z"))
    drive.run(Cancel("i", "tea"))
    drive.run(ended(drive.state.graphs["i"], "a", "failed"))
    assert [(d.kind, d.text) for d in drive.state.graphs["i"].deliveries.values()] == [("end", "i: cancelled")]


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


def test_finish_needs_a_reason_and_what_runs_drains() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", retry=Retry(3, 0)), define("b"), define("c", "a")))
    graph = drive.state.graphs[G]
    refusal = refused(drive, Finish(G, " "))
    assert "reason" in refusal.message
    drive.run(Finish(G, "enough"))
    assert states(graph) == {"a": "running", "b": "skipped", "c": "skipped"}
    drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
    assert (graph.status, graph.outcome, states(graph)["a"]) == ("complete", "withFailures", "failed")


def test_history_keeps_the_last_64_and_spend_adds_up() -> None:
    drive = Drive(check=False)
    drive.run(plan(G, define("a"), limits=Limits(attempts_per_node=100)))
    graph = drive.state.graphs[G]
    for _ in range(40):
        drive.run(ended(graph, "a", "put_back"))
        drive.tick(60_000)
    assert len(graph.history) == 64
    assert (graph.spent.tokens, graph.nodes[node_id("a")].spent.tokens) == (40, 40)
    assert graph.nodes[node_id("a")].spent.wall_ms == 80, "its attempts' own"
    assert graph.nodes[node_id("a")].attempts == 1, "what never acted is not counted"


# ---- the log ------------------------------------------------------------------------------------------------------


def test_an_event_that_nobody_knows_is_a_malformed_log() -> None:
    state = State()
    with pytest.raises(MalformedLog, match="unknown kind 'teleported'"):
        evolve(state, Tape(), Event("g", 1, 0, 1, "teleported", None, {}, DAEMON))
    with pytest.raises(MalformedLog, match="no such graph"):
        evolve(state, Tape(), Event("g", 1, 0, 1, "paused", None, {}, DAEMON))


def test_asks_live_in_the_log_too() -> None:
    """No rule of this issue opens an ask, but the record and its events are there."""
    drive = Drive(can_admit=False)
    drive.run(plan(G, define("a")))
    graph = drive.state.graphs[G]
    opened = {
        "kind": "question", "title": "?", "action": {}, "action_hash": "h", "options": [{"id": "y"}],
        "scopes": ["once"], "opened_at": 1,
    }  # fmt: skip
    rows: list[tuple[str, dict[str, Any]]] = [
        ("ask_opened", {"id": "q1", **opened}),
        ("ask_opened", {"id": "q2", **opened}),
        ("ask_answered", {"ask": "q1", "by": "me", "option": "y", "text": None}),
        ("ask_withdrawn", {"ask": "q2"}),
    ]
    for index, (kind, payload) in enumerate(rows):
        evolve(drive.state, drive.tape, Event(G, graph.rev + 1, index, 2, kind, None, payload, DAEMON))
    assert [(a.id, a.state, a.answered_by, a.option) for a in graph.asks.values()] == [
        ("q1", "answered", "me", "y"),
        ("q2", "withdrawn", None, None),
    ]


def test_a_loaded_state_goes_on_where_it_was() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", retry=Retry(2, 5)), define("b", "a"), define("c", priority=1)))
    drive.run(ended(drive.state.graphs[G], "c"))
    drive.run(ended(drive.state.graphs[G], "a", "failed", failure_class="exec_failed"))
    loaded = copy.deepcopy(drive.state)
    for graph in loaded.graphs.values():
        graph.queue, graph.ready, graph.counts, graph.live = [], {}, {}, {}
    loaded.timers = []
    restore(loaded)
    assert picture(loaded) == picture(drive.state)
    drive.state = loaded
    drive.tick(5_000)
    assert started(drive)[-1] == "g/a"
    derive.rebuild_queues(loaded)
    assert loaded.graphs[G].queue == []


def test_late_deadlines_and_identities_are_taken_once() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", hard_timeout_ms=1_000)))
    graph = drive.state.graphs[G]
    key = live_key(graph, "a")
    assert graph.attempts[key].deadline_at == drive.now + 1_000
    drive.run(identified(graph, "a"))
    drive.run(identified(graph, "a"))
    assert drive.changes == []
    drive.run(DeadlineReached(G, key))
    assert ("StopAttempt", G, key) in effects_of(drive)
    drive.run(ended(graph, "a", "failed"))
    failure = graph.nodes[node_id("a")].failure
    assert failure is not None
    assert (failure.failure_class, failure.attempt, failure.reason) == ("timeout", "a@1", "it ran out of time")


# ---- corners ------------------------------------------------------------------------------------------------------


def test_a_node_that_fails_again_at_once_blocks_again_what_was_retried_with_it() -> None:
    drive = Drive()
    rows = [define("a"), define("b", "a", condition="a.output.n > 1"), define("c", "b"), define("d", "c")]
    drive.run(plan(G, *rows))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", text="no json"))
    failed = {"a": "achieved", "b": "failed", "c": "blocked", "d": "blocked"}
    assert (states(graph), graph.status) == (failed, "blocked")
    drive.run(RetryNodes(G, "b"))
    assert (states(graph), graph.status) == (failed, "blocked")
    assert graph.nodes[node_id("d")].blocked_by == "b"


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


def test_a_refusal_after_writes_takes_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """No verb of today refuses after its first event; the promise does not depend on that."""

    def late(draft: Draft, command: Pause) -> None:
        draft.emit("paused", status="user_paused", reason="x", cause=None)
        draft.emit("node_retried", draft.graph.nodes[node_id("a")])
        draft.emit("node_ready", draft.graph.nodes[node_id("a")])
        raise Refused("conflict", "late", "again")

    drive = Drive()
    drive.run(plan(G, define("a"), define("b")))
    drive.run(ended(drive.state.graphs[G], "a", "failed"))
    monkeypatch.setitem(_VERBS, Pause, ("pause", late))
    assert refused(drive, Pause(G)).code == "conflict"
    assert states(drive.state.graphs[G]) == {"a": "failed", "b": "running"}
    assert drive.state.graphs[G].queue == []


def test_names_of_an_attempt_are_unique_for_ever() -> None:
    attempt = Attempt(G, "gn-1", "worker", 2, "shell", "shell", None, 1)
    judge = Attempt(G, "gn-1", "judge", 2, "shell", "shell", None, 1)
    assert (attempt.folder, attempt.cookie, attempt.key) == ("gn-1@2", "g/gn-1@2", ("gn-1", "worker", 2))
    assert (judge.folder, judge.key) == ("gn-1.judge@2", ("gn-1", "judge", 2))


def test_a_change_names_the_nodes_that_it_touched_once() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", input_mapping=()), define("b", "a", input_mapping=(("x", "a.output"),))))
    drive.run(ended(drive.state.graphs[G], "a"))
    assert [change.nodes for change in drive.changes] == [[node_id("a"), node_id("b")], [node_id("b")]]


@pytest.mark.parametrize("outcome", ["put_back", "lost"])
def test_a_node_put_back_under_a_finish_is_skipped(outcome: str) -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", required=False)))
    graph = drive.state.graphs[G]
    drive.run(Finish(G, "enough"))
    drive.run(ended(graph, "a", outcome))
    assert graph.nodes[node_id("a")].skip == "finished_early"
    drive.run(ended(graph, "b"))
    assert (graph.status, graph.outcome) == ("complete", "ok")


def test_a_loss_in_a_paused_graph_adds_no_other_pause() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", on_lost="pause")))
    graph = drive.state.graphs[G]
    drive.run(Pause(G))
    drive.run(ended(graph, "a", "lost"))
    assert (graph.status, states(graph)["a"]) == ("user_paused", "ready")


def test_what_is_put_back_again_waits_longer_each_time_up_to_a_minute() -> None:
    drive = Drive()
    drive.run(plan(G, define("a")))
    graph = drive.state.graphs[G]
    waits = []
    for _ in range(8):
        drive.run(ended(graph, "a", "put_back"))
        due = graph.nodes[node_id("a")].not_before
        waits.append(due - drive.now if due is not None else 0)
        drive.tick(waits[-1])
        assert graph.live
    assert waits == [0, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_a_condition_that_said_no_is_no_failure_even_after_one() -> None:
    drive = Drive()
    no = define("no", "a", condition='a.state == "achieved"', required=False)
    rows = [define("a", required=False), no, define("end", "no", required=False), define("f", required=False)]
    drive.run(plan(G, *rows))
    graph = run_to_end(drive, {"a", "f"})
    assert states(graph) == {"a": "failed", "no": "skipped", "end": "skipped", "f": "failed"}
    assert (graph.status, graph.outcome) == ("complete", "withFailures")


def test_a_retry_by_hand_gives_the_automatic_ones_anew() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", retry=Retry(1, 0))))
    graph = drive.state.graphs[G]
    for numbers in (2, 4):
        while graph.live:
            drive.run(ended(graph, "a", "failed", failure_class="exec_failed"))
        assert graph.nodes[node_id("a")].attempts == numbers
        if numbers == 2:
            drive.run(RetryNodes(G))
