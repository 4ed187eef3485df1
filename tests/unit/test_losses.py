"""Attempts that are lost, stuck, adopted by a new daemon or put back, and facts that come too late."""

from typing import Any

import pytest

from graphd.core.commands import DaemonStarted, DeadlineReached, Pause, Release, Resume
from graphd.core.model import Limits
from graphd_protocol.ids import node_id
from tests.unit.core_drive import (
    Drive,
    G,
    define,
    effects_of,
    ended,
    identified,
    live_key,
    plan,
    refused,
    states,
    states_of,
    stuck,
)


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
