"""Asks: opened by the core, answered once by compare-and-set, withdrawn; the second answer is told who was first."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.asks import Options, action_hash, open_ask, open_asks, withdraw, withdraw_of
from graphd.core.commands import Respond
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, AnswerAsk
from graphd.core.model import Ask
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, define, plan

G = "g"
A = node_id("a")
YES_NO: Options = (
    {"id": "y", "kind": "allow_once", "label": "Yes"},
    {"id": "n", "kind": "reject_once", "label": "No"},
)


def running() -> Drive:
    """A graph whose nodes `a` and `b` run."""
    drive = Drive()
    drive.run(plan(G, define("a"), define("b")))
    return drive


def opened(drive: Drive, **given: Any) -> Ask:
    """A permission that attempt 1 of `a` asks for, as one change."""
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    usual: dict[str, Any] = {
        "kind": "permission", "title": "Write x?", "action": {"toolKind": "edit", "paths": ["x"]}, "options": YES_NO,
        "node": draft.graph.nodes[A], "attempt": 1, "role": "worker", "key": "7", "scopes": ("once", "graph"),
    }  # fmt: skip
    ask = open_ask(draft, **{**usual, **given})
    drive.commit([draft.change], [])
    return ask


def answer(drive: Drive, ask: Ask, **given: Any) -> None:
    usual: dict[str, Any] = {"option": "y"}
    drive.run(Respond(G, ask.id, ask.action_hash, **{**usual, **given}), ME)


def test_the_first_answer_is_kept_and_told_to_the_agent_in_the_same_change() -> None:
    drive = running()
    ask = opened(drive)
    answer(drive, ask, scope="graph", comment="fine")
    kept = drive.state.graphs[G].asks[ask.id]
    assert (kept.state, kept.answered_by, kept.option, kept.scope, kept.comment) == (
        "answered", "me", "y", "graph", "fine",
    )  # fmt: skip
    assert drive.effects == [AnswerAsk(G, (A, "worker", 1), ask.id)]
    assert kept.spent_by == 1


def test_the_second_answer_is_refused_and_says_who_was_first() -> None:
    drive = running()
    ask = opened(drive)
    answer(drive, ask)
    with pytest.raises(Refused, match="answered by me") as refused:
        answer(drive, ask, option="n")
    assert (refused.value.code, refused.value.facts["by"]) == ("askGone", "me")
    assert drive.state.graphs[G].asks[ask.id].option == "y"


def test_an_answer_to_what_was_withdrawn_is_refused() -> None:
    drive = running()
    ask = opened(drive)
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    withdraw(draft, drive.state.graphs[G].asks[ask.id], "the agent took it back")
    drive.commit([draft.change], [])
    with pytest.raises(Refused, match="it was withdrawn"):
        answer(drive, ask)
    assert not drive.state.graphs[G].open_asks


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"option": "x"}, "notFound"),
        ({"option": None}, "notFound"),
        ({"option": None, "text": "yes"}, "notFound"),
        ({"scope": "attempt"}, "notFound"),
    ],
)
def test_what_is_no_answer_to_it_is_refused_and_leaves_it_open(given: dict[str, Any], code: str) -> None:
    drive = running()
    ask = opened(drive)
    with pytest.raises(Refused) as refused:
        answer(drive, ask, **given)
    assert refused.value.code == code
    assert drive.state.graphs[G].asks[ask.id].state == "open"


def test_an_answer_is_bound_to_what_was_shown() -> None:
    drive = running()
    ask = opened(drive)
    with pytest.raises(Refused, match="another action") as refused:
        drive.run(Respond(G, ask.id, action_hash({"toolKind": "execute"}), "y"), ME)
    assert refused.value.code == "conflict"


def test_an_ask_that_is_not_there() -> None:
    drive = running()
    with pytest.raises(Refused, match="no ask") as refused:
        drive.run(Respond(G, "ask-0", "", "y"), ME)
    assert refused.value.code == "notFound"


def test_a_question_takes_a_text() -> None:
    drive = running()
    ask = opened(drive, kind="question", options=(), scopes=("once",))
    with pytest.raises(Refused, match="needs one"):
        answer(drive, ask, option=None)
    answer(drive, ask, option=None, text="blue")
    assert drive.state.graphs[G].asks[ask.id].text == "blue"


def test_an_ask_of_nobody_that_runs_is_answered_without_a_word_to_an_agent() -> None:
    drive = running()
    for ask in (opened(drive, node=None, attempt=None, key=None), opened(drive, kind="trust")):
        answer(drive, ask)
        assert not drive.effects
    assert drive.state.graphs[G].asks[ask.id].spent_by == 1


def test_ids_are_unique_over_all_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = running()
    first = opened(drive)
    monkeypatch.setattr(
        "graphd.core.asks.node_id", lambda place: first.id.replace("ask-", "gn-") if "+" not in place else "gn-00"
    )
    assert opened(drive).id == "ask-00"


def test_withdrawing_what_one_node_asked() -> None:
    drive = running()
    one, other, foreign = (
        opened(drive),
        opened(drive, attempt=2),
        opened(drive, node=drive.state.graphs[G].nodes[node_id("b")]),
    )
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    node = draft.graph.nodes[A]
    assert [ask.id for ask in open_asks(draft, node, "permission")] == [one.id, other.id]
    withdraw_of(draft, node, reason="its node ended")
    assert list(drive.state.graphs[G].open_asks) == [foreign.id]
    drive.commit([draft.change], [])
