"""Waits end by a durable timer or a signal, approvals come before the slot, and none of them takes one."""

import json
from typing import Any

import pytest

from graphd.core.commands import Cancel, Clear, DaemonStarted, Finish, Pause, Respond, Resume, RetryNodes, Signal, Tick
from graphd.core.definition import Approval, Definition, Gate, Wait
from graphd.core.draft import Draft
from graphd.core.early import DEFAULT_AFTER_MS
from graphd.core.events import DAEMON, Refused, WakeAt
from graphd.core.model import Ask, Graph, Limits
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, begun, define, end, node, plan, states


def wait(slug: str, *needs: str, **more: Any) -> Definition:
    return Definition(slug, "", "", needs=needs, wait=Wait(**more), required=True)


def graph_of(drive: Drive, graph: str = G) -> Graph:
    return drive.state.graphs[graph]


# ---- until ----------------------------------------------------------------------------------------------------------


def test_a_wait_takes_no_slot_and_no_attempt_and_ends_at_its_time() -> None:
    drive = begun(wait("pause", until="90s"), define("a"), define("b", "pause"), limits=Limits(concurrency=1))
    assert states(graph_of(drive)) == {"pause": "running", "a": "running", "b": "waiting"}
    assert graph_of(drive).attempts.keys() == {(node_id("a"), "worker", 1)}
    assert WakeAt(drive.now + 90_000) in drive.effects
    end(drive, "a")
    drive.tick(89_999)
    assert states(graph_of(drive))["pause"] == "running"
    drive.tick(1)
    assert states(graph_of(drive)) == {"pause": "achieved", "a": "achieved", "b": "running"}
    fired = [event for event in drive.log if event.kind == "node_achieved" and event.node == node_id("pause")]
    drive.tick(100_000)
    assert len(fired) == 1


def test_a_timer_outlives_a_crash_and_fires_once() -> None:
    from graphd.core.restore import restore

    drive = begun(wait("pause", until="90s"))
    restore(drive.state)
    drive.now += 60_000
    drive.run(DaemonStarted(2, "0", 1))
    assert WakeAt(1000 + 90_000) in drive.effects
    drive.tick(30_000)
    assert graph_of(drive).status == "complete"
    assert drive.effects == []


def test_a_time_that_has_passed_is_due_at_once() -> None:
    drive = begun(wait("then", until="1970-01-01T00:00:00Z"))
    drive.tick(0)
    assert graph_of(drive).status == "complete"


def test_a_text_that_is_no_time_fails_the_node() -> None:
    """A plan with one is refused; an imported log may have it."""
    drive = begun(wait("pause", until="1s"), start=False)
    from dataclasses import replace

    found = node(drive, "pause")
    found.definition = replace(found.definition, wait=Wait(until="soon"))
    drive.is_checked = False
    drive.run(Resume(G))
    failure = node(drive, "pause").failure
    assert failure is not None
    assert failure.failure_class == "verdict_fail"


def test_a_wait_ends_in_a_paused_graph_too_and_what_follows_stays_ready() -> None:
    drive = begun(wait("pause", until="1s"), define("b", "pause"))
    drive.run(Pause(G, "stop"))
    assert graph_of(drive).status == "user_paused"
    drive.tick(1000)
    assert states(graph_of(drive)) == {"pause": "achieved", "b": "ready"}


def test_a_paused_graph_begins_no_wait() -> None:
    drive = begun(wait("pause", until="1s"), start=False)
    drive.tick(5000)
    assert states(graph_of(drive)) == {"pause": "ready"}


def test_waits_in_a_row_begin_one_after_the_other() -> None:
    drive = begun(wait("w1", until="1s"), wait("w2", "w1", until="1s"), wait("w3", "w2", until="1s"))
    for _ in range(3):
        drive.tick(1000)
    assert graph_of(drive).status == "complete"


def test_cancel_and_finish_end_a_wait_at_once() -> None:
    drive = begun(wait("pause", until="1h"))
    drive.run(Cancel(G), ME)
    assert (graph_of(drive).status, states(graph_of(drive))) == ("cancelled", {"pause": "cancelled"})
    drive.tick(3_600_000)
    other = begun(wait("pause", until="1h"))
    other.run(Finish(G, "enough"), ME)
    assert states(graph_of(other)) == {"pause": "skipped"}
    assert graph_of(other).status == "complete"


# ---- signals --------------------------------------------------------------------------------------------------------


def test_a_signal_wakes_what_waits_and_its_payload_is_the_output() -> None:
    drive = begun(wait("go", signal="deploy"), define("b", "go", condition="go.output.n > 1"))
    done = drive.run(Signal("deploy", json.dumps({"n": 2})), ME)
    assert done.woke == ((G, "go"),)
    assert states(graph_of(drive)) == {"go": "achieved", "b": "running"}
    found = node(drive, "go").output
    assert found is not None
    assert (found.text, found.media_type) == ('{"n": 2}', "application/json")


def test_a_signal_that_nobody_waits_for_wakes_nobody() -> None:
    drive = begun(wait("go", signal="deploy"), define("a"))
    done = drive.run(Signal("other"))
    assert (done.woke, done.kept) == ((), ())
    assert not drive.changes


def test_a_signal_that_comes_before_its_node_waits_is_kept_for_it() -> None:
    drive = begun(define("a"), wait("go", "a", signal="deploy"))
    assert drive.run(Signal("deploy", "1")).kept == ((G, "go"),)
    drive.run(Signal("deploy", "2"))
    drive.run(DaemonStarted(2, "0", 1))
    end(drive, "a")
    assert states(graph_of(drive)) == {"a": "achieved", "go": "achieved"}
    found = node(drive, "go").output
    assert found is not None
    assert found.text == "2"


def test_a_signal_for_a_blocked_node_does_not_say_again_that_the_graph_is_blocked() -> None:
    drive = begun(define("a"), wait("go", "a", signal="deploy"))
    end(drive, "a", outcome="failed")
    assert graph_of(drive).status == "blocked"
    drive.run(Signal("deploy"))
    assert [event.kind for change in drive.changes for event in change.events] == ["signal_kept"]


def test_a_signal_reaches_every_live_graph_and_no_other() -> None:
    drive = begun(wait("go", signal="deploy"))
    drive.run(plan("h", wait("go", signal="deploy"), wait("also", signal="deploy")))
    drive.run(plan("i", wait("go", signal="deploy"), define("a")))
    drive.run(Cancel("i"))
    assert drive.run(Signal("deploy")).woke == ((G, "go"), ("h", "go"), ("h", "also"))
    assert drive.run(Signal("deploy")).woke == ()
    assert graph_of(drive, "i").stopping is not None


def test_without_a_signal_in_time_the_node_fails_as_timeout() -> None:
    drive = begun(wait("go", signal="deploy", timeout_s=1.5))
    drive.tick(1500)
    failure = node(drive, "go").failure
    assert failure is not None
    assert (failure.failure_class, failure.reason) == ("timeout", "no signal deploy came in 1.5 s")
    assert graph_of(drive).status == "blocked"
    drive.run(RetryNodes(G, "go"))
    assert drive.run(Signal("deploy")).woke == ((G, "go"),)
    drive.tick(9999)
    assert graph_of(drive).status == "complete"


def test_a_wait_without_an_end_is_a_next_step() -> None:
    drive = begun(wait("go", signal="deploy"))
    assert graph_of(drive).status == "active"
    assert not any(isinstance(effect, WakeAt) for effect in drive.effects)


def test_a_signal_is_rehearsed_without_a_trace() -> None:
    drive = begun(wait("go", signal="deploy"))
    from graphd.core.commands import Request
    from graphd.core.decide import decide

    decision = decide(drive.state, drive.tape, Request(Signal("deploy")), drive.now)
    drive.tape.rollback(0)
    assert decision.done.woke == ((G, "go"),)
    assert states(graph_of(drive)) == {"go": "running"}


# ---- approvals ------------------------------------------------------------------------------------------------------


def asked(drive: Drive) -> Ask:
    (ask,) = [graph_of(drive).asks[i] for i in graph_of(drive).open_asks]
    return ask


def answer(drive: Drive, option: str, **more: Any) -> None:
    ask = asked(drive)
    drive.run(Respond(G, ask.id, ask.action_hash, option=option, **more), ME)


def approved(prompt: str = "Ship it?", **more: Any) -> Definition:
    return define("ship", approval=Approval(prompt, **more))


def test_an_approval_is_asked_for_before_the_slot_is_taken_and_once() -> None:
    drive = begun(approved(), define("a"))
    assert states(graph_of(drive)) == {"ship": "ready", "a": "running"}
    ask = asked(drive)
    assert (ask.kind, ask.title, ask.node, ask.attempt) == ("approval", "Ship it?", node_id("ship"), None)
    assert [option["id"] for option in ask.options] == ["allow", "deny"]
    drive.run(DaemonStarted(2, "0", 1))
    drive.tick(1000)
    assert asked(drive).id == ask.id
    answer(drive, "allow")
    assert states(graph_of(drive))["ship"] == "running"


def test_a_refused_approval_fails_the_node_as_refused() -> None:
    drive = begun(approved(), define("b", "ship"))
    answer(drive, "deny", comment="not on a Friday")
    failure = node(drive, "ship").failure
    assert failure is not None
    assert (failure.failure_class, failure.reason) == ("refused", "me refused it: not on a Friday")
    assert node(drive, "ship").attempts == 0
    assert states(graph_of(drive))["b"] == "blocked"
    assert graph_of(drive).status == "blocked"


def test_an_approval_holds_over_attempts_and_not_over_a_retry() -> None:
    drive = begun(approved(""))
    assert asked(drive).title == "Start ship?"
    answer(drive, "allow")
    end(drive, "ship", None, "lost")
    assert states(graph_of(drive)) == {"ship": "running"}
    end(drive, "ship", None, "failed")
    drive.run(RetryNodes(G, "ship"))
    assert states(graph_of(drive)) == {"ship": "ready"}
    answer(drive, "allow")
    assert states(graph_of(drive)) == {"ship": "running"}


def test_a_paused_graph_asks_nothing_and_an_answer_while_paused_counts() -> None:
    drive = begun(approved(), start=False)
    assert not graph_of(drive).open_asks
    drive.run(Resume(G))
    drive.run(Pause(G))
    answer(drive, "allow")
    assert states(graph_of(drive)) == {"ship": "ready"}
    drive.run(Resume(G))
    assert states(graph_of(drive)) == {"ship": "running"}


@pytest.mark.parametrize("verb", [Cancel(G), Clear(G), Finish(G, "enough")])
def test_an_approval_of_what_does_not_start_any_more_is_withdrawn(verb: Any) -> None:
    drive = begun(approved(), define("a"))
    ask = asked(drive)
    drive.run(verb, ME)
    assert graph_of(drive).asks[ask.id].state == "withdrawn"
    with pytest.raises(Refused, match="needs no answer"):
        drive.run(Respond(G, ask.id, ask.action_hash, option="allow"), ME)


def test_an_answer_for_a_node_that_moved_on_changes_nothing() -> None:
    from graphd.core.early import settle_approval

    drive = begun(approved())
    ask = asked(drive)
    answer(drive, "allow")
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="respond")
    settle_approval(draft, ask)
    assert not draft.change.events


def test_with_nobody_there_the_default_answers_at_its_time() -> None:
    drive = Drive(is_attended=False)
    drive.run(plan(G, approved(default="allow"), define("a")))
    assert WakeAt(drive.now + DEFAULT_AFTER_MS) in drive.effects
    drive.tick(DEFAULT_AFTER_MS - 1)
    assert states(graph_of(drive))["ship"] == "ready"
    drive.tick(1)
    assert states(graph_of(drive))["ship"] == "running"
    (ask,) = graph_of(drive).asks.values()
    assert (ask.answered_by, ask.option) == ("policy", "allow")


def test_with_somebody_there_the_default_waits_until_they_have_gone() -> None:
    drive = begun(approved(default="deny"))
    drive.tick(2 * DEFAULT_AFTER_MS)
    assert states(graph_of(drive)) == {"ship": "ready"}
    drive.capacity = drive.capacity._replace(is_attended=False)
    drive.run(Tick())
    assert states(graph_of(drive)) == {"ship": "failed"}


def test_a_default_that_is_no_option_is_no_answer() -> None:
    drive = Drive(is_attended=False)
    drive.run(plan(G, approved(default="maybe")))
    drive.tick(10 * DEFAULT_AFTER_MS)
    assert len(graph_of(drive).open_asks) == 1


def test_a_revision_asks_again() -> None:
    drive = begun(approved(), define("review", "ship", gate=Gate("ship")))
    answer(drive, "allow")
    end(drive, "ship")
    end(drive, "review", '{"verdict": "REVISE"}')
    assert states(graph_of(drive))["ship"] == "ready"
    assert len(graph_of(drive).open_asks) == 1


def test_refusing_one_of_many_stops_asking_for_the_others_where_the_graph_stops() -> None:
    drive = begun(define("a", approval=Approval()), define("b", approval=Approval()))
    assert len(graph_of(drive).open_asks) == 2
    first = next(iter(graph_of(drive).open_asks))
    ask = graph_of(drive).asks[first]
    drive.run(Respond(G, ask.id, ask.action_hash, option="deny"), ME)
    assert graph_of(drive).status == "active"
