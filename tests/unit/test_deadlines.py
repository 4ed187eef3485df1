"""Deadlines: soft for agents, hard for shells, moved by people; clocks that stand still."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.asks import open_ask, withdraw
from graphd.core.commands import (
    Cancel,
    DaemonStarted,
    DeadlineReached,
    ExtendTimeout,
    MachineSlept,
    ProfileCooling,
    Respond,
)
from graphd.core.definition import Definition
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, MoveDeadline, StopAttempt
from graphd.core.model import Ask, Attempt, Clock, Limits
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, identified, plan

A = node_id("a")
KEY = (A, "worker", 1)
YES: Any = ({"id": "y", "kind": "allow_once", "label": "Yes"},)


def agent(*, limits: Limits | None = None, **more: Any) -> Drive:
    """An agent at work, with a minute to do it."""
    drive = Drive(profiles=(("shell", "shell"), ("build", "claude")))
    usual: dict[str, Any] = {"timeout_ms": 60_000, "required": True}
    drive.run(plan(G, Definition("a", "x", "build", **{**usual, **more}), limits=limits))
    drive.run(identified(graph_of(drive), "a"))
    return drive


def attempt_of(drive: Drive) -> Attempt:
    return graph_of(drive).attempts[KEY]


def clock_of(drive: Drive) -> Clock:
    clock = attempt_of(drive).clock
    assert clock is not None
    return clock


def late(drive: Drive, *, ms: int = 60_000, is_attended: bool = False) -> None:
    drive.now += ms
    drive.run(DeadlineReached(G, KEY, is_attended))


def escalation(drive: Drive) -> Ask:
    graph = graph_of(drive)
    return next(ask for ask in map(graph.asks.__getitem__, graph.open_asks) if ask.kind == "escalation")


def respond(drive: Drive, option: str) -> None:
    ask = escalation(drive)
    drive.run(Respond(G, ask.id, ask.action_hash, option), ME)


def is_stopping(drive: Drive) -> bool:
    return attempt_of(drive).stop_reason == "timeout"


# ---- soft and hard --------------------------------------------------------------------------------------------------


def test_at_its_deadline_an_agent_goes_on_and_a_person_is_asked() -> None:
    drive = agent()
    late(drive)
    assert attempt_of(drive).state == "live"
    assert [option["id"] for option in escalation(drive).options] == ["extend", "stop"]
    assert drive.effects == [MoveDeadline(G, KEY, 120_000)]
    assert attempt_of(drive).deadline_at == 1000 + 120_000
    assert [e.kind for e in drive.log[-3:]] == ["timeout_escalated", "ask_opened", "deadline_extended"]


def test_with_nobody_there_it_extends_itself_twice_and_then_it_is_a_timeout() -> None:
    drive = agent()
    late(drive)
    late(drive)
    assert not is_stopping(drive)
    assert len(graph_of(drive).open_asks) == 1, "the same question, not one more"
    late(drive)
    assert is_stopping(drive)
    assert StopAttempt(G, KEY) in drive.effects
    drive.run(ended(graph_of(drive), "a", "failed"))
    node = graph_of(drive).nodes[A]
    assert (node.failure and node.failure.failure_class, graph_of(drive).open_asks) == ("timeout", {})


@pytest.mark.parametrize(("most", "times"), [(0, 0), (1, 1), (5, 5)])
def test_a_node_says_how_often_it_may_extend_itself(most: int, times: int) -> None:
    drive = agent(unattended_extensions=most)
    for _ in range(times):
        late(drive)
        assert not is_stopping(drive)
    late(drive)
    assert is_stopping(drive)


def test_while_somebody_is_there_it_is_asked_again_each_interval_up_to_the_limit() -> None:
    drive = agent(limits=Limits(timeout_extensions=4))
    for _ in range(4):
        late(drive, is_attended=True)
        assert not is_stopping(drive)
    assert clock_of(drive) == Clock(300_000, extensions=4)
    late(drive, is_attended=True)
    assert is_stopping(drive)


def test_a_shell_is_stopped_without_a_question() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", timeout_ms=60_000)))
    late(drive, is_attended=True)
    assert is_stopping(drive)
    assert not graph_of(drive).asks


def test_a_hard_timeout_cuts_the_last_interval_and_asks_nobody() -> None:
    drive = agent(hard_timeout_ms=90_000)
    late(drive)
    assert clock_of(drive).allowed_ms == 90_000
    late(drive, ms=30_000, is_attended=True)
    assert is_stopping(drive)
    drive = agent(hard_timeout_ms=30_000)
    assert attempt_of(drive).deadline_at == 1000 + 30_000
    late(drive, is_attended=True)
    assert is_stopping(drive)


def test_an_attempt_that_is_stopping_has_no_deadline_any_more() -> None:
    drive = agent()
    drive.run(Cancel(G), ME)
    late(drive)
    assert attempt_of(drive).stop_reason == "cancel"
    assert not drive.changes


# ---- what a person says ---------------------------------------------------------------------------------------------


def test_extend_gives_one_timeout_from_the_answer_on() -> None:
    drive = agent()
    late(drive)
    drive.now += 20_000
    respond(drive, "extend")
    assert drive.effects == [MoveDeadline(G, KEY, 140_000)]
    assert clock_of(drive) == Clock(140_000, extensions=1)
    for _ in range(2):
        late(drive)
    assert not is_stopping(drive), "a person had a say: the count begins anew"


def test_extend_never_goes_past_a_hard_timeout() -> None:
    drive = agent(hard_timeout_ms=125_000)
    late(drive)
    drive.now += 20_000
    respond(drive, "extend")
    assert clock_of(drive).allowed_ms == 125_000


def test_stop_ends_it_as_a_timeout() -> None:
    drive = agent()
    late(drive)
    respond(drive, "stop")
    assert is_stopping(drive)


def test_an_answer_about_an_attempt_that_ends_already_changes_nothing_more() -> None:
    drive = agent()
    late(drive)
    drive.run(stuck_fact(drive))
    respond(drive, "extend")
    assert clock_of(drive).allowed_ms == 120_000


def stuck_fact(drive: Drive) -> Any:
    from tests.unit.core_drive import stuck

    return stuck(graph_of(drive), "a", 7)


# ---- the verb -------------------------------------------------------------------------------------------------------


def test_a_running_deadline_is_moved_and_the_question_goes() -> None:
    drive = agent()
    late(drive)
    drive.run(ExtendTimeout(G, "a", 600_000), ME)
    assert drive.effects == [MoveDeadline(G, KEY, 720_000)]
    assert clock_of(drive) == Clock(720_000, extensions=2)
    assert not graph_of(drive).open_asks


def test_a_shells_deadline_is_moved_too() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", timeout_ms=60_000)))
    drive.run(ExtendTimeout(G, "a", 5000), ME)
    assert attempt_of(drive).deadline_at == 1000 + 65_000


def test_a_node_that_does_not_work_has_no_deadline_to_move() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a")))
    for slug in ("b", "a"):
        with pytest.raises(Refused, match="can't extend") as refused:
            drive.run(ExtendTimeout(G, slug, 5000), ME)
        assert refused.value.code == "invalidTransition"
        assert refused.value.facts["from"] in ("waiting", "stuck")
        drive.run(stuck_fact(drive))


def test_the_bounds_of_a_deadline_hold_for_people_too() -> None:
    drive = agent(hard_timeout_ms=90_000)
    with pytest.raises(Refused, match="90 s at most") as refused:
        drive.run(ExtendTimeout(G, "a", 60_000), ME)
    assert refused.value.code == "capacity"
    drive = agent(limits=Limits(timeout_extensions=1))
    drive.run(ExtendTimeout(G, "a", 60_000), ME)
    with pytest.raises(Refused, match="1 times") as refused:
        drive.run(ExtendTimeout(G, "a", 60_000), ME)
    assert refused.value.code == "capacity"


# ---- clocks that stand still ----------------------------------------------------------------------------------------


def asked(drive: Drive, **more: Any) -> Ask:
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    usual: dict[str, Any] = {
        "kind": "permission", "title": "Write x?", "action": {"paths": ["x"]}, "options": YES,
        "node": draft.graph.nodes[A], "attempt": 1, "role": "worker", "key": "7",
    }  # fmt: skip
    ask = open_ask(draft, **{**usual, **more})
    drive.commit([draft.change], [])
    return ask


def test_while_an_attempt_waits_for_a_person_its_clock_stands() -> None:
    drive = agent()
    drive.now += 30_000
    ask = asked(drive)
    late(drive, ms=40_000)
    assert not drive.changes, "not late: it waits"
    drive.now += 20_000
    drive.run(Respond(G, ask.id, ask.action_hash, "y"), ME)
    assert MoveDeadline(G, KEY, 120_000) in drive.effects
    assert (clock_of(drive).person_ms, attempt_of(drive).deadline_at) == (60_000, 1000 + 120_000)


def test_two_questions_at_once_are_waited_for_once() -> None:
    drive = agent()
    first, second = asked(drive), asked(drive, key="8", action={"paths": ["y"]})
    drive.now += 3000
    drive.run(Respond(G, first.id, first.action_hash, "y"), ME)
    drive.now += 5000
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    withdraw(draft, draft.graph.asks[second.id], "no matter")
    drive.commit([draft.change], draft.effects)
    assert clock_of(drive).person_ms == 8000


def test_a_question_about_the_attempt_is_not_waited_for() -> None:
    drive = agent()
    late(drive)
    drive.now += 30_000
    respond(drive, "extend")
    assert clock_of(drive).person_ms == 0


def test_what_it_waited_at_its_end_is_counted_too() -> None:
    drive = agent()
    asked(drive)
    drive.now += 4000
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert clock_of(drive).person_ms == 4000


def test_a_question_of_nobody_that_works_moves_nothing() -> None:
    drive = agent()
    for more in ({"node": None, "attempt": None}, {"attempt": 9}):
        ask = asked(drive, **more)
        drive.now += 1000
        drive.run(Respond(G, ask.id, ask.action_hash, "y"), ME)
    assert clock_of(drive) == Clock(60_000)


def test_a_rest_of_the_provider_is_not_counted_either() -> None:
    drive = agent()
    drive.run(ProfileCooling(G, KEY, "claude", drive.now + 30_000, "overloaded"))
    assert (clock_of(drive).provider_ms, attempt_of(drive).deadline_at) == (30_000, 1000 + 90_000)
    assert MoveDeadline(G, KEY, 90_000) in drive.effects


def test_a_sleep_of_the_machine_moves_what_is_shown_and_not_what_is_allowed() -> None:
    drive = agent()
    drive.now += 500_000
    drive.run(MachineSlept(490_000))
    assert (attempt_of(drive).deadline_at, clock_of(drive)) == (1000 + 60_000 + 490_000, Clock(60_000))
    assert not drive.effects, "the run's own clock stood still meanwhile"


def test_a_sleep_in_the_middle_of_a_question_is_no_waiting() -> None:
    drive = agent()
    drive.now += 10_000
    ask = asked(drive)
    drive.now += 500_000
    drive.run(MachineSlept(490_000))
    drive.now += 5000
    drive.run(Respond(G, ask.id, ask.action_hash, "y"), ME)
    assert clock_of(drive).person_ms == 15_000


def test_an_attempt_from_before_there_were_clocks_gets_one_when_it_needs_it() -> None:
    drive = agent()
    drive.is_checked = False
    attempt_of(drive).clock = None
    late(drive)
    assert clock_of(drive) == Clock(60_000, extensions=1, unattended=1)
    attempt_of(drive).clock = None
    ask = asked(drive)
    drive.now += 1000
    drive.run(MachineSlept(100))
    drive.run(Respond(G, ask.id, ask.action_hash, "y"), ME)
    assert clock_of(drive).person_ms == 1000
    attempt_of(drive).deadline_at = None
    attempt_of(drive).clock = None
    drive.run(DaemonStarted(2, "0", 1))
    respond(drive, "extend")
    assert attempt_of(drive).deadline_at is None
