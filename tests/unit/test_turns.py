"""What agents say: sessions, questions by policy, scopes and unheard answers, results, turns that fail or cancel."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import AgentAsk, AttemptSaid, Cancel, ChildAsk, DaemonStarted, Pause, Respond, Resume, Revoke
from graphd.core.events import AnswerAsk, StopAttempt
from graphd.core.model import Ask, Attempt, Graph, Node, Output
from graphd.core.policy import Leave
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, define, ended, identified, live_key, plan

G = "g"
OPTIONS = (
    {"id": "a1", "kind": "allow_always", "label": "Always"},
    {"id": "a2", "kind": "allow_once", "label": "Yes"},
    {"id": "r1", "kind": "reject_once", "label": "No"},
)
EDIT = {"toolKind": "edit", "title": "Edit x", "paths": ["/w/src/x"]}
FETCH = {"toolKind": "fetch", "title": "Fetch", "paths": []}
LEAVE = Leave("edit", "/w")


def question(key: str = "1", action: dict[str, Any] = FETCH, **given: Any) -> AgentAsk:
    return AgentAsk(**{"key": key, "kind": "permission", "title": "t", "action": action, "options": OPTIONS} | given)


class Talk:
    """A graph with node `a` under way, and its agent's mouth."""

    def __init__(self, **more: Any) -> None:
        self.drive = Drive()
        self.drive.run(plan(G, define("a", **more), define("b")))
        self.drive.run(identified(self.graph, "a"))

    @property
    def graph(self) -> Graph:
        return self.drive.state.graphs[G]

    @property
    def node(self) -> Node:
        return self.graph.nodes[node_id("a")]

    @property
    def attempt(self) -> Attempt:
        return self.graph.attempts[(node_id("a"), "worker", self.node.last_number)]

    def say(self, leave: Leave = LEAVE, **given: Any) -> None:
        self.drive.run(AttemptSaid(G, self.attempt.key, leave, **given))

    def asks(self) -> list[Ask]:
        return list(self.graph.asks.values())

    def answer(self, ask: Ask, option: str, **given: Any) -> None:
        self.drive.run(Respond(G, ask.id, ask.action_hash, option, **given), ME)


def test_a_session_is_known_as_soon_as_it_is_said() -> None:
    talk = Talk()
    talk.say(session="s1")
    assert (talk.attempt.child_session, talk.node.child_session) == ("s1", "s1")
    rev = talk.graph.rev
    talk.say(session="s1")
    assert talk.graph.rev == rev


def test_what_the_table_allows_is_answered_at_once_by_its_rule() -> None:
    talk = Talk()
    talk.say(asks=(question(action=EDIT),))
    (ask,) = talk.asks()
    assert (ask.state, ask.option, ask.answered_by) == ("answered", "a2", "rule edit/edit")
    assert talk.drive.effects == [AnswerAsk(G, talk.attempt.key, ask.id)]


def test_what_the_table_denies_is_rejected_once_or_cancelled() -> None:
    talk = Talk()
    leave = LEAVE._replace(permissions="read")
    talk.say(leave, asks=(question("1", EDIT), question("2", EDIT, options=OPTIONS[:2])))
    assert [(a.state, a.option) for a in talk.asks()] == [("answered", "r1"), ("answered", None)]


def test_an_agents_own_always_is_never_chosen() -> None:
    talk = Talk()
    talk.say(asks=(question(action=EDIT, options=OPTIONS[:1]),))
    assert talk.asks()[0].state == "open", "there is no allow_once: a person decides"


def test_a_question_that_came_before_is_not_asked_twice() -> None:
    talk = Talk()
    talk.say(asks=(question(),))
    talk.say(asks=(question(),))
    assert len(talk.asks()) == 1


def test_an_ask_that_the_agent_takes_back_is_withdrawn() -> None:
    talk = Talk()
    talk.say(asks=(question("1"), question("2", {**FETCH, "title": "other"})))
    talk.say(gone=("1", "9"))
    assert [a.state for a in talk.asks()] == ["withdrawn", "open"]


@pytest.mark.parametrize("kind", ["permission", "question"])
def test_with_nobody_attached_the_setting_says_what_becomes_of_it(kind: Any) -> None:
    talk = Talk()
    alone = LEAVE._replace(is_attended=False)
    talk.say(alone, asks=(question("1", kind=kind),))
    talk.say(alone._replace(detached="deny"), asks=(question("2", {**FETCH, "title": "2"}, kind=kind),))
    assert [(a.state, a.answered_by) for a in talk.asks()] == [("open", None), ("answered", "rule asks.detached")]


def test_a_standing_answer_covers_the_next_ask_until_it_is_revoked() -> None:
    talk = Talk()
    outside = {**EDIT, "paths": ["/else/x"]}
    talk.say(asks=(question("1", outside),))
    (first,) = talk.asks()
    assert first.scopes == ("once", "attempt", "graph")
    talk.answer(first, "a2", scope="attempt")
    talk.say(asks=(question("2", {**EDIT, "paths": ["/else/y"]}),))
    assert (talk.asks()[1].answered_by, talk.asks()[1].option) == (f"rule {first.id}", "a2")
    talk.drive.run(Revoke(G, first.id), ME)
    talk.say(asks=(question("3", {**EDIT, "paths": ["/else/z"]}),))
    assert talk.asks()[2].state == "open"
    for ask_id in (first.id, "ask-0", talk.asks()[2].id):
        with pytest.raises(Refused, match="no standing answer"):
            talk.drive.run(Revoke(G, ask_id), ME)


def test_a_scope_of_the_attempt_ends_with_it_and_one_of_the_graph_does_not() -> None:
    talk = Talk()
    one, two = {**EDIT, "paths": ["/one/x"]}, {**EDIT, "paths": ["/two/x"]}
    talk.say(asks=(question("1", one), question("2", two)))
    first, second = talk.asks()
    talk.answer(first, "a2", scope="attempt")
    talk.answer(second, "r1", scope="graph")
    talk.drive.run(ended(talk.graph, "a", "lost"))
    talk.say(asks=(question("1", one | {"title": "again"}), question("2", two | {"title": "again"})))
    assert [(a.state, a.option) for a in talk.asks()[2:]] == [("open", None), ("answered", "r1")]


def test_an_ask_without_a_rule_of_ours_takes_no_scope() -> None:
    talk = Talk()
    talk.say(asks=(question(),))
    assert talk.asks()[0].scopes == ("once",)
    with pytest.raises(Refused, match="scope"):
        talk.answer(talk.asks()[0], "a2", scope="graph")


def test_an_answer_that_nobody_heard_serves_the_next_attempt_once() -> None:
    talk = Talk()
    talk.say(asks=(question("1"),))
    talk.answer(talk.asks()[0], "a2", comment="ok")
    assert talk.asks()[0].spent_by == 1
    talk.drive.run(ended(talk.graph, "a", "lost", unheard=("1",)))
    assert talk.asks()[0].spent_by is None
    talk.say(asks=(question("7", options=({"id": "z", "kind": "allow_once", "label": "Yes"},)),))
    again = talk.asks()[1]
    assert (again.state, again.option, again.answered_by) == ("answered", "z", "me")
    assert talk.asks()[0].spent_by == 2
    talk.say(asks=(question("8"),))
    assert talk.asks()[2].state == "open", "once"


def test_an_answer_that_nobody_heard_and_that_is_no_option_any_more_asks_again() -> None:
    talk = Talk()
    talk.say(asks=(question("1"),))
    talk.answer(talk.asks()[0], "a1")
    talk.drive.run(ended(talk.graph, "a", "lost", unheard=("1",)))
    talk.say(asks=(question("7", options=OPTIONS[1:]),))
    assert (talk.asks()[1].state, talk.asks()[0].spent_by) == ("open", None)
    talk.say(asks=(question("8"),))
    assert talk.asks()[2].option == "a1", "it is still there for who can take it"


def test_an_answer_that_was_heard_is_spent() -> None:
    talk = Talk()
    talk.say(asks=(question("1"), question("2", {**FETCH, "title": "2"})))
    talk.answer(talk.asks()[0], "a2")
    talk.drive.run(ended(talk.graph, "a", "lost", unheard=("2",)))
    assert [a.state for a in talk.asks()] == ["answered", "withdrawn"]
    talk.say(asks=(question("1"),))
    assert talk.asks()[2].state == "open"


def test_the_end_of_one_attempt_leaves_the_asks_of_others_open() -> None:
    talk = Talk()
    talk.say(asks=(question("1"),))
    talk.drive.run(AttemptSaid(G, live_key(talk.graph, "b"), LEAVE, asks=(question("1"),)))
    talk.drive.run(ended(talk.graph, "a"))
    assert [a.state for a in talk.asks()] == ["withdrawn", "open"]


def test_what_is_asked_while_its_end_is_wanted_is_cancelled() -> None:
    talk = Talk()
    talk.say(asks=(question("1"),))
    talk.drive.run(Cancel(G), ME)
    talk.say(asks=(question("2", EDIT),), candidate=Output("x", 1, "text/plain"))
    assert (talk.asks()[1].option, talk.asks()[1].answered_by) == (None, "its end")
    assert talk.attempt.stop_reason == "cancel"


def test_a_result_ends_the_attempt_and_counts_when_its_tree_is_empty() -> None:
    talk = Talk()
    talk.say(candidate=Output("done", 4, "text/plain"))
    assert StopAttempt(G, talk.attempt.key) in talk.drive.effects
    assert (talk.attempt.state, talk.attempt.stop_reason, talk.node.state) == ("stopping", "end_of_turn", "running")
    talk.drive.run(ended(talk.graph, "a", "achieved", "done"))
    assert talk.node.state == "achieved"


@pytest.mark.parametrize("failure", ["limit", "refused", "verdict_fail", "exec_failed"])
def test_a_turn_that_failed_ends_the_attempt_for_that_reason(failure: Any) -> None:
    talk = Talk()
    talk.say(trouble=(failure, "why"))
    assert talk.attempt.stop_reason == "end_of_turn"
    talk.drive.run(ended(talk.graph, "a", "failed", failure_class="exec_failed", reason="killed"))
    assert talk.node.failure is not None
    assert (talk.node.failure.failure_class, talk.node.failure.reason) == (failure, "why")


@pytest.mark.parametrize(("option", "state"), [("continue", "running"), ("retry", "running"), ("fail", "failed")])
def test_a_turn_that_was_cancelled_by_nobody_of_ours_waits_for_a_word(option: str, state: str) -> None:
    talk = Talk()
    talk.say(is_cancelled=True)
    (ask,) = talk.asks()
    assert talk.node.state == "running"
    assert ask.kind == "question"
    talk.answer(ask, option)
    if option == "continue":
        assert talk.drive.effects == [AnswerAsk(G, talk.attempt.key, ask.id)]
        return
    assert StopAttempt(G, talk.attempt.key) in talk.drive.effects
    talk.drive.run(ended(talk.graph, "a", "failed", failure_class="exec_failed"))
    assert talk.node.state == state
    assert talk.node.last_number == (2 if option == "retry" else 1)


def test_an_agent_that_a_signal_ended_is_lost_and_its_session_goes_on() -> None:
    talk = Talk()
    talk.say(session="s1")
    talk.drive.run(ended(talk.graph, "a", "failed", failure_class="exec_failed", signal=9))
    assert talk.graph.attempts[(node_id("a"), "worker", 1)].outcome == "lost"
    assert (talk.attempt.number, talk.attempt.resumes) == (2, 1)
    talk.drive.run(ended(talk.graph, "a", "failed", failure_class="exec_failed", signal=9))
    assert talk.node.state == "failed", "it died before it had a session: nothing can go on"


def test_an_attempt_that_came_to_nothing_leaves_the_session_to_the_next_one() -> None:
    """Put back before it acted, or paused before its session stood: what it was to go on with still goes on."""
    talk = Talk()
    talk.say(session="s1")
    talk.drive.run(ended(talk.graph, "a", "lost"))
    assert (talk.attempt.number, talk.attempt.resumes) == (2, 1)
    talk.drive.run(ended(talk.graph, "a", "put_back", reason="its program was gone"))
    assert (talk.attempt.number, talk.attempt.resumes) == (3, 1)
    talk.drive.run(ended(talk.graph, "b"))
    talk.drive.run(Pause(G, "stop"))
    talk.drive.run(ended(talk.graph, "a", "failed", failure_class="exec_failed"))
    talk.drive.run(Resume(G))
    assert (talk.attempt.number, talk.attempt.resumes) == (4, 1)
    talk.say(session="s1")
    talk.drive.run(ended(talk.graph, "a", "put_back"))
    talk.drive.tick(60_000)
    assert (talk.attempt.number, talk.attempt.resumes) == (5, 1)


def test_a_word_about_an_attempt_that_is_stopping_changes_nothing() -> None:
    talk = Talk()
    talk.say(is_cancelled=True)
    talk.say(trouble=("limit", "why"))
    talk.answer(talk.asks()[0], "continue")
    assert talk.drive.effects == []


def test_what_is_said_of_a_settled_attempt_is_dropped() -> None:
    talk = Talk()
    key = live_key(talk.graph, "a")
    talk.drive.run(ended(talk.graph, "a"))
    rev = talk.graph.rev
    talk.drive.run(AttemptSaid(G, key, LEAVE, session="late"))
    assert talk.graph.rev == rev


def test_a_new_daemon_closes_what_a_result_ended() -> None:
    talk = Talk()
    talk.say(candidate=Output("done", 4, "text/plain"))
    talk.drive.run(DaemonStarted(2, "1", 1))
    assert StopAttempt(G, talk.attempt.key, is_repeat=True) in talk.drive.effects


# ---- a child's own question ---------------------------------------------------------------------------------------


def test_a_childs_question_is_one_ask_however_often_it_is_sent() -> None:
    talk = Talk()
    for text in ("Which host?", "Which host?", "Which port?"):
        talk.drive.run(ChildAsk(G, talk.attempt.key, text))
    first, second = talk.asks()
    assert [(ask.kind, ask.title, ask.options, ask.key) for ask in (first, second)] == [
        ("question", "Which host?", (), None), ("question", "Which port?", (), None),
    ]  # fmt: skip
    talk.drive.run(Respond(G, first.id, first.action_hash, text="staging"), ME)
    talk.drive.run(ChildAsk(G, talk.attempt.key, "Which host?"))
    assert (talk.graph.asks[first.id].text, talk.graph.asks[first.id].answered_by) == ("staging", "me")
    assert len(talk.asks()) == 2
    talk.drive.run(ended(talk.graph, "a"))
    assert [ask.state for ask in talk.asks()] == ["answered", "withdrawn"]


def test_with_nobody_there_a_childs_question_is_answered_by_the_rule() -> None:
    talk = Talk()
    talk.drive.run(ChildAsk(G, talk.attempt.key, "Which host?", is_alone=True))
    (ask,) = talk.asks()
    assert (ask.state, ask.answered_by, ask.option, ask.text) == ("answered", "rule asks.detached", None, None)


def test_a_child_whose_end_is_wanted_asks_nothing() -> None:
    talk = Talk()
    talk.drive.run(Cancel(G), ME)
    talk.drive.run(ChildAsk(G, talk.attempt.key, "Which host?"))
    assert talk.asks() == []
