"""A person takes a session over: one node pauses, is not started while held, and goes on in its session."""

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Hold, Pause, Step, Tick
from graphd.core.holding import is_at_work
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, ended
from tests.unit.test_turns import G, Talk

A = node_id("a")


def held() -> Talk:
    """`a` has a session, and a person has it."""
    talk = Talk()
    talk.say(session="s1")
    talk.drive.capacity = talk.drive.capacity._replace(held=frozenset({(G, A)}))
    talk.drive.run(Hold(G, "a"), ME)
    return talk


def test_its_tree_is_ended_and_it_waits_in_its_session_until_it_is_let_go() -> None:
    talk = held()
    assert (talk.attempt.stop_reason, is_at_work(talk.graph, A)) == ("hold", True)
    talk.drive.run(ended(talk.graph, "a", "failed"))
    assert (talk.node.state, talk.attempt.outcome, is_at_work(talk.graph, A)) == ("ready", "paused", False)
    talk.drive.run(Tick())
    assert talk.node.state == "ready"
    rev = talk.graph.rev
    talk.drive.run(Hold(G, "a"), ME)
    assert talk.graph.rev == rev, "it is paused already"
    talk.drive.capacity = talk.drive.capacity._replace(held=frozenset())
    talk.drive.run(Tick())
    assert (talk.node.state, talk.attempt.resumes) == ("running", 1)


def test_what_it_achieved_before_it_could_pause_counts() -> None:
    talk = held()
    talk.drive.run(ended(talk.graph, "a"))
    assert talk.node.state == "achieved"
    with pytest.raises(Refused, match="no session of it waits or works"):
        talk.drive.run(Hold(G, "a"), ME)


def test_a_step_does_not_start_what_is_held() -> None:
    talk = held()
    talk.drive.run(ended(talk.graph, "a", "failed"))
    talk.drive.run(ended(talk.graph, "b"))
    if talk.graph.status == "active":
        talk.drive.run(Pause(G), ME)
        talk.drive.run(Step(G, "a"), ME)
        assert talk.node.state == "ready"


def test_without_a_session_it_is_refused_and_twice_too() -> None:
    talk = Talk()
    with pytest.raises(Refused, match="a is running, and no session of it waits or works"):
        talk.drive.run(Hold(G, "a"), ME)
    twice = held()
    with pytest.raises(Refused, match="no session of it"):
        twice.drive.run(Hold(G, "a"), ME)


def test_a_session_that_another_process_has_is_waited_for_and_gone_on_with_however_often_it_was_put_back() -> None:
    talk = held()
    talk.drive.run(ended(talk.graph, "a", "failed"))
    talk.drive.capacity = talk.drive.capacity._replace(held=frozenset())
    talk.drive.run(Tick())
    for tries in (2, 3):
        assert (talk.node.last_number, talk.graph.attempts[(A, "worker", tries)].resumes) == (tries, 1)
        talk.drive.capacity = talk.drive.capacity._replace(elsewhere=frozenset({(G, A)}))
        talk.drive.run(ended(talk.graph, "a", "put_back"))
        talk.drive.tick(60_000)
        assert talk.node.state == "ready", "it is there still"
        rev = talk.graph.rev
        talk.drive.run(Hold(G, "a"), ME)
        assert talk.graph.rev == rev, "a person may ask for it too"
        talk.drive.capacity = talk.drive.capacity._replace(elsewhere=frozenset())
        talk.drive.run(Tick())
    assert (talk.node.state, talk.node.last_number) == ("running", 4)


def test_a_node_that_was_only_ever_put_back_has_no_session() -> None:
    talk = Talk()
    talk.drive.run(ended(talk.graph, "a", "put_back"))
    assert (talk.node.state, talk.attempt.resumes) == ("running", None)
    talk.drive.run(ended(talk.graph, "a", "put_back"))
    with pytest.raises(Refused, match="no session of it"):
        talk.drive.run(Hold(G, "a"), ME)
