"""`on_required_failure: stop` ends what runs; writers of the same files run one after the other."""

from typing import Any

import pytest

from graphd.core.commands import AttemptEnded, DaemonStarted, Pause, Release, Replan, Resume, RetryNodes, Signal
from graphd.core.definition import ForEach, Terms, Wait
from graphd.core.edits import Edits
from graphd.core.events import Refused, StopAttempt
from graphd.core.model import Definition, Limits
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, begun, define, ended, graph_of, live_key, states, stuck

STOP = Terms(on_required_failure="stop")


def end(drive: Drive, slug: str, outcome: str = "achieved", **more: Any) -> None:
    drive.run(ended(graph_of(drive), slug, outcome, **more))


def failing() -> Drive:
    """`a` and `b` run, `c` is ready; then `a`, which is required, fails."""
    drive = begun(define("a"), define("b"), define("c"), limits=Limits(concurrency=2), terms=STOP)
    end(drive, "a", "failed", reason="no")
    return drive


def test_the_first_required_failure_stops_what_runs_and_starts_nothing_more() -> None:
    drive = failing()
    assert states(graph_of(drive)) == {"a": "failed", "b": "running", "c": "ready"}
    assert StopAttempt(G, (node_id("b"), "worker", 1)) in drive.effects
    assert graph_of(drive).attempts[(node_id("b"), "worker", 1)].stop_reason == "required_failure"
    end(drive, "b", "failed")
    assert states(graph_of(drive)) == {"a": "failed", "b": "ready", "c": "ready"}
    assert graph_of(drive).status == "blocked"
    assert graph_of(drive).pause_reason == "required node a failed: no"
    assert not graph_of(drive).attempts[(node_id("b"), "worker", 1)].is_counted


def test_a_result_that_comes_while_stopping_counts() -> None:
    drive = failing()
    end(drive, "b")
    assert states(graph_of(drive))["b"] == "achieved"
    assert graph_of(drive).status == "blocked"


def test_the_stop_outlives_a_crash() -> None:
    drive = failing()
    drive.run(DaemonStarted(2, "0", 1))
    assert StopAttempt(G, (node_id("b"), "worker", 1), is_repeat=True) in drive.effects
    assert states(graph_of(drive))["c"] == "ready"


def test_retry_goes_on_with_everything_and_resume_alone_is_refused() -> None:
    drive = failing()
    end(drive, "b", "failed")
    with pytest.raises(Refused, match="nothing in it can start"):
        drive.run(Resume(G), ME)
    drive.run(RetryNodes(G, "a"), ME)
    assert states(graph_of(drive)) == {"a": "running", "b": "running", "c": "ready"}


def test_a_replan_that_takes_the_failure_out_goes_on_with_the_others() -> None:
    drive = failing()
    drive.run(Replan(G, Edits(remove=(("a", "not needed"),))), ME)
    end(drive, "b", "failed")
    assert states(graph_of(drive)) == {"a": "cancelled", "b": "running", "c": "running"}
    assert graph_of(drive).failed_by is None


def test_retry_while_the_others_still_stop_takes_the_stop_back() -> None:
    drive = failing()
    drive.run(RetryNodes(G, "a"), ME)
    end(drive, "b", "failed")
    assert states(graph_of(drive))["a"] == "running"
    assert graph_of(drive).status == "active"


def test_what_would_begin_without_a_slot_does_not_after_the_failure_either() -> None:
    lists = [define(f"e{i}", "a", for_each=ForEach("a.output", "x")) for i in (1, 2)]
    drive = begun(define("a"), *lists, terms=STOP)
    end(drive, "a", text="no list")
    assert states(graph_of(drive)) == {"a": "achieved", "e1": "failed", "e2": "ready"}
    assert graph_of(drive).status == "blocked"


def test_a_list_whose_items_are_stopped_goes_on_with_the_retry() -> None:
    drive = begun(define("a"), define("each", "a", for_each=ForEach("a.output", "x")), define("b"), terms=STOP)
    end(drive, "a", text='["one"]')
    end(drive, "b", "failed", reason="no")
    (item,) = (node for node in graph_of(drive).nodes.values() if node.definition.item is not None)
    end(drive, item.slug, "failed")
    assert (states(graph_of(drive))["each"], item.state, graph_of(drive).status) == ("running", "ready", "blocked")
    drive.run(RetryNodes(G, "b"), ME)
    assert item.state == "running"


def test_an_optional_failure_stops_nothing() -> None:
    drive = begun(define("a", required=False), define("b"), terms=STOP)
    end(drive, "a", "failed")
    assert states(graph_of(drive))["b"] == "running"


def test_draining_stays_the_usual_way() -> None:
    drive = begun(define("a"), define("b"))
    end(drive, "a", "failed")
    assert not any(isinstance(effect, StopAttempt) for effect in drive.effects)


def test_a_tree_that_does_not_end_is_said_and_the_graph_is_blocked_after_it() -> None:
    drive = failing()
    drive.run(stuck(graph_of(drive), "b", 7))
    assert (graph_of(drive).status, graph_of(drive).pause_cause) == ("infra_paused", "stuck")
    drive.run(Release(G, "b", (7,)), ME)
    assert graph_of(drive).status == "blocked"


def test_a_person_who_paused_meanwhile_keeps_the_pause() -> None:
    drive = failing()
    drive.run(Pause(G), ME)
    end(drive, "b", "failed")
    assert graph_of(drive).status == "user_paused"
    drive.run(Resume(G), ME)
    assert graph_of(drive).status == "blocked"


# ---- writers --------------------------------------------------------------------------------------------------------


def writer(slug: str, *globs: str, **more: Any) -> Definition:
    return define(slug, writes=globs, **more)


def test_writers_of_the_same_files_run_one_after_the_other() -> None:
    full = begun(writer("a", "x"), writer("b", "x"), define("c"), define("d"), limits=Limits(concurrency=2))
    assert states(graph_of(full)) == {"a": "running", "b": "ready", "c": "running", "d": "ready"}
    drive = begun(writer("a", "src/**"), writer("b", "src/x.py"), writer("c", "docs/**"), define("d"))
    assert states(graph_of(drive)) == {"a": "running", "b": "ready", "c": "running", "d": "running"}
    end(drive, "a")
    assert states(graph_of(drive))["b"] == "running"


def test_writers_with_trees_of_their_own_run_together() -> None:
    drive = begun(writer("a", "src/**", isolation="node"), writer("b", "src/**"))
    assert states(graph_of(drive)) == {"a": "running", "b": "running"}
    graph_wide = begun(writer("a", "src/**"), writer("b", "src/**"), terms=Terms(isolation="node"))
    assert states(graph_of(graph_wide)) == {"a": "running", "b": "running"}


def test_a_writer_whose_end_cannot_be_proven_holds_the_next_one_and_is_said() -> None:
    drive = begun(writer("a", "x"), writer("b", "x"))
    drive.run(stuck(graph_of(drive), "a", 7))
    assert (graph_of(drive).status, graph_of(drive).pause_cause) == ("infra_paused", "stuck")
    drive.run(AttemptEnded(G, live_key(graph_of(drive), "a"), "lost"))
    assert graph_of(drive).status == "active"


@pytest.mark.parametrize("wait", [Wait(until="1m"), Wait(signal="go")])
def test_a_wait_is_stopped_too_and_begins_anew_with_the_retry(wait: Wait) -> None:
    drive = begun(define("a"), Definition("w", "", "", wait=wait), define("after", "w"), terms=STOP)
    assert states(graph_of(drive))["w"] == "running"
    end(drive, "a", "failed", reason="no")
    assert states(graph_of(drive)) == {"a": "failed", "w": "ready", "after": "waiting"}
    assert graph_of(drive).status == "blocked"
    drive.tick(60_000)
    if wait.signal is not None:
        drive.run(Signal("go"))
    assert states(graph_of(drive))["after"] == "waiting", "nothing moves in a graph that is blocked"
    drive.run(RetryNodes(G, "a"), ME)
    drive.tick(60_000)
    assert (states(graph_of(drive))["w"], graph_of(drive).status) == ("achieved", "active")


def test_a_wait_that_can_still_end_is_a_next_step_beside_a_stuck_tree() -> None:
    drive = begun(define("a"), Definition("w", "", "", wait=Wait(until="1m")))
    drive.run(stuck(graph_of(drive), "a", 7))
    assert graph_of(drive).status == "active"
    drive.tick(60_000)
    assert graph_of(drive).status == "infra_paused"
