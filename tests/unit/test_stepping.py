"""`step`: one node, then a pause in the change that settles it, whatever happens meanwhile."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Cancel, DaemonStarted, Finish, Pause, Release, Resume, Step
from graphd.core.model import Retry
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, plan, states, stuck


def paused(*definitions: Any, **capacity: Any) -> Drive:
    """A graph that was set without starting; by default `a` and `b`, then `c`."""
    drive = Drive(**capacity)
    nodes = definitions or (define("a"), define("b", priority=1), define("c", "a", "b"))
    drive.run(plan(G, *nodes, start=False))
    return drive


def running(drive: Drive) -> list[str]:
    return [slug for slug, state in states(graph_of(drive)).items() if state == "running"]


def test_the_next_in_order_is_stepped_alone_and_the_graph_pauses_when_it_is_settled() -> None:
    drive = paused()
    drive.run(Step(G), ME)
    graph = graph_of(drive)
    assert (running(drive), graph.status, graph.stepping) == (["b"], "active", node_id("b"))
    drive.run(ended(graph, "b"))
    assert (running(drive), graph.status, graph.pause_reason) == ([], "user_paused", "stepped b")
    assert graph.stepping is None
    assert [e.kind for e in drive.changes[0].events][-1] == "paused", "in the very change"


def test_the_named_one_is_stepped() -> None:
    drive = paused()
    drive.run(Step(G, "a"), ME)
    assert running(drive) == ["a"]


def test_skips_and_blocks_that_a_step_causes_are_part_of_it() -> None:
    drive = paused(define("a", required=False), define("b", "a"), define("c", "b", required=False), define("d"))
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert states(graph_of(drive)) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "ready"}
    assert graph_of(drive).status == "user_paused"


def test_the_last_step_completes_the_graph_and_a_failed_one_blocks_it() -> None:
    drive = paused(define("a"))
    drive.run(Step(G), ME)
    drive.run(ended(graph_of(drive), "a"))
    assert (graph_of(drive).status, graph_of(drive).stepping) == ("complete", None)
    drive = paused(define("a"))
    drive.run(Step(G), ME)
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert (graph_of(drive).status, graph_of(drive).stepping) == ("blocked", None)


def test_a_node_that_is_tried_again_is_still_the_one_step() -> None:
    drive = paused(define("a", retry=Retry(1, 5)), define("b"))
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "failed", failure_class="exec_failed"))
    assert (states(graph_of(drive)), graph_of(drive).status) == ({"a": "ready", "b": "ready"}, "active")
    drive.tick(5000)
    assert running(drive) == ["a"]
    drive.run(ended(graph_of(drive), "a"))
    assert graph_of(drive).status == "user_paused"


def test_a_step_survives_a_daemon() -> None:
    drive = paused()
    drive.run(Step(G, "a"), ME)
    drive.run(DaemonStarted(2, "0", 1))
    assert (running(drive), graph_of(drive).stepping) == (["a"], node_id("a"))
    drive.run(ended(graph_of(drive), "a"))
    assert graph_of(drive).status == "user_paused"


def test_what_may_run_after_a_stuck_tree_is_proven_dead_is_still_one_step() -> None:
    drive = paused()
    drive.run(Step(G, "a"), ME)
    drive.run(stuck(graph_of(drive), "a", 7))
    assert (graph_of(drive).status, graph_of(drive).pause_cause) == ("infra_paused", "stuck")
    drive.run(Release(G, "a", (7,)), ME)
    assert (running(drive), graph_of(drive).status) == (["a"], "active"), "lost, so tried again; b is not started"


def test_resuming_goes_on_with_everything() -> None:
    drive = paused()
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "lost"))
    drive.run(Pause(G), ME)
    assert graph_of(drive).stepping is None
    drive.run(Resume(G), ME)
    assert running(drive) == ["a", "b"]


def test_a_resumed_graph_that_was_held_up_in_a_step_goes_on_with_everything() -> None:
    drive = paused(define("a", on_lost="pause"), define("b"))
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "lost"))
    assert (graph_of(drive).status, graph_of(drive).stepping) == ("infra_paused", node_id("a"))
    drive.run(Resume(G), ME)
    assert (running(drive), graph_of(drive).stepping) == (["a", "b"], None)


def test_a_step_whose_node_is_settled_without_running_is_over() -> None:
    drive = paused()
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "lost"))
    drive.run(Pause(G, "stop"), ME)
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert graph_of(drive).stepping is None
    drive.run(Step(G, "a"), ME)
    drive.run(Finish(G, "enough"), ME)
    assert states(graph_of(drive)) == {"a": "running", "b": "skipped", "c": "skipped"}
    drive.run(Cancel(G), ME)
    drive.run(ended(graph_of(drive), "a"))
    assert (graph_of(drive).status, graph_of(drive).stepping) == ("cancelled", None)


def test_one_whose_agent_is_missing_holds_the_graph_up_and_an_optional_one_ends_the_step() -> None:
    drive = paused(define("a", worker="build"), define("b"))
    drive.run(Step(G, "a"), ME)
    assert (graph_of(drive).status, graph_of(drive).pause_cause) == ("infra_paused", "agent")
    drive = paused(define("a", worker="build", required=False), define("b"))
    drive.run(Step(G, "a"), ME)
    assert (states(graph_of(drive)), graph_of(drive).status) == ({"a": "failed", "b": "ready"}, "user_paused")


def test_a_step_waits_for_its_slot_like_every_node() -> None:
    drive = paused(per_profile=(("shell", 1),))
    drive.run(plan("other", define("x")))
    drive.run(Step(G, "a"), ME)
    assert running(drive) == []
    drive.run(ended(drive.state.graphs["other"], "x"))
    assert running(drive) == ["a"]


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [(Step(G, "c"), "invalidTransition", "c is waiting"), (Step(G, "zz"), "notFound", "zz")],
)
def test_what_is_not_ready_is_not_stepped(command: Step, code: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        paused().run(command, ME)
    assert refused.value.code == code


def test_nothing_is_stepped_while_something_runs_or_where_nothing_is_ready() -> None:
    drive = paused()
    drive.run(Resume(G), ME)
    with pytest.raises(Refused, match="a, b runs|b, a runs"):
        drive.run(Step(G), ME)
    drive.run(Pause(G), ME)
    with pytest.raises(Refused, match="runs"):
        drive.run(Step(G, "c"), ME)
    drive = paused(define("a", worker="build"))
    drive.run(Cancel(G), ME)
    with pytest.raises(Refused, match="cancelled"):
        drive.run(Step(G), ME)


def test_a_graph_whose_nodes_all_wait_says_so() -> None:
    """Only a gate's REPLAN leaves such a graph; here its ready nodes are settled by hand."""
    drive = paused(define("a", required=False), define("b", "a"))
    drive.run(Step(G, "a"), ME)
    drive.run(Pause(G), ME)
    graph = graph_of(drive)
    drive.run(ended(graph, "a", "lost"))
    graph.ready.clear()
    with pytest.raises(Refused, match="no node is ready"):
        _unchecked(drive)


def _unchecked(drive: Drive) -> None:
    drive.is_checked = False
    drive.run(Step(G), ME)


def test_what_waits_for_its_retry_is_stepped_last() -> None:
    drive = paused(define("a", priority=9, retry=Retry(1, 60)), define("b"), define("c"))
    drive.run(Step(G, "a"), ME)
    drive.run(ended(graph_of(drive), "a", "failed", failure_class="exec_failed"))
    drive.run(Pause(G), ME)
    drive.run(Step(G), ME)
    assert running(drive) == ["b"]
