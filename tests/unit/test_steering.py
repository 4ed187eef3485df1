"""Keys over a graph: what each state admits and why not, what is asked first, and what is sent."""

from typing import Any

import pytest
from rich.cells import cell_len

from graphd.cli.keyboard import Pasted
from graphd.cli.keymap import keys_of
from graphd.cli.screen import flowed
from graphd.cli.steering import Face, Steering
from graphd_protocol.states import GRAPH_STATUSES, VERB_TABLE
from tests.unit.test_cli_rendering import diamond, drawn_with, node, snapshot

Wire = dict[str, Any]
PROPOSAL = {"id": "ask-1", "author": "a@1", "reason": "more to do", "planVersion": 1, "madeAt": 1, "add": ["x"]}


class Deeds:
    """Notes what it is told to do."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.asked = ""

    def send(self, verb: str, **params: Any) -> None:
        self.done.append((verb, params))

    def tell(self, what: str, node: str) -> None:
        self.done.append((what, node))

    def follow_output(self, node: str | None) -> None:
        self.done.append(("output", node))

    def ask(self, text: str) -> None:
        self.asked = text

    def leave(self) -> None:
        self.done.append(("leave",))


def steering(value: Wire) -> tuple[Steering, Deeds, Face]:
    deeds, face = Deeds(), Face()
    made = Steering(deeds, face)
    made.take(value)
    return made, deeds, face


def press(made: Steering, *keys: str) -> None:
    for key in keys:
        made.press(key)


def refusals(value: Wire, slug: str | None = None) -> dict[str, str]:
    return {key.command: str(key.refusal) for key in keys_of(value, slug)}


# ---- what is admitted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", GRAPH_STATUSES)
def test_what_the_protocol_s_table_refuses_is_no_key_and_says_why(status: str) -> None:
    value = snapshot(node("a", "failed"), node("b", "ready"), status=status)
    found = refusals(value, "a")
    for command, verb in (("step", "step"), ("retry", "retry"), ("retry all", "retry"), ("cancel", "cancel"),
                          ("finish", "finish")):  # fmt: skip
        assert bool(found[command]) == (VERB_TABLE[verb][status] == "no"), command
    held = "pause" if status == "active" else "resume"
    assert {"pause", "resume"} & set(found) == {held}
    assert bool(found[held]) == (VERB_TABLE[held][status] not in ("yes", "stays", "stop_over_drain"))
    assert found["leave"] == found["help"] == ""


def test_each_refusal_says_what_is_in_the_way() -> None:
    waiting = refusals(diamond(discover="running"), "report")
    assert waiting["retry"].startswith("report is waiting; what failed")
    assert waiting["output"] == "report has not run yet"
    assert waiting["step"] == "no node is ready"
    assert waiting["retry all"] == "nothing failed, and nothing is blocked"
    assert waiting["accept"] == "nothing is proposed"
    assert refusals(diamond(), None)["why"] == "no node is selected"
    spent = refusals(snapshot(node("a", "ready"), status="budget_limited"), "a")
    assert "--top-up" in spent["resume"]
    assert "no agent's" in refusals(snapshot(node("a", "achieved", attempts=1)), "a")["diff"]
    agent = {**node("a", "achieved", attempts=1), "worker": "build"}
    assert refusals(snapshot(agent), "a")["diff"] == ""


def test_a_stop_that_is_under_way_is_waited_for_but_can_be_made_a_cancel() -> None:
    stopping = {"verb": "pause", "by": "person", "at": 1, "left": ["a"]}
    found = refusals({**snapshot(node("a", "running"), status="user_paused"), "stopping": stopping}, "a")
    assert found["resume"] == found["retry all"] == "pause is under way"
    assert found["cancel"] == ""
    cancelling = {**snapshot(node("a", "running")), "stopping": {**stopping, "verb": "cancel"}}
    assert refusals(cancelling, "a")["cancel"] == "cancel is under way"


# ---- keys ----------------------------------------------------------------------------------------------------------


def test_the_selection_begins_where_something_happens_and_moves_in_the_order_of_the_tree() -> None:
    made, _, face = steering(diamond(discover="achieved", tests="running"))
    assert face.selected == "tests"
    for key, selected in (("down", "report"), ("j", "report"), ("up", "tests"), ("home", "discover"), ("k", "discover"),
                          ("end", "report"), ("page up", "discover")):  # fmt: skip
        press(made, key)
        assert face.selected == selected, key
    made.take(snapshot(node("other")))
    assert face.selected == "other", "what was selected is gone"


def test_a_node_is_opened_and_closed_and_its_output_followed_until_it_ends() -> None:
    made, deeds, face = steering(diamond(discover="running"))
    press(made, "enter")
    assert face.opened == "discover"
    press(made, "escape")
    assert face.opened is None
    press(made, "enter", "enter")
    assert face.opened is None
    press(made, "o")
    assert face.followed == "discover"
    assert next(key.label for key in face.keys if key.command == "output") == "stop output"
    made.ended("discover")
    assert face.followed is None
    press(made, "o", "down", "o", "w")
    assert deeds.done == [("output", "discover"), ("output", "discover"), ("output", None), ("why", "lint")]


def test_verbs_are_sent_for_the_node_that_is_selected() -> None:
    made, deeds, face = steering(snapshot(node("a", "failed"), node("b", "ready"), node("c", "ready")))
    assert face.selected == "a"
    press(made, "r", "R", "n", "end", "n", "p")
    assert deeds.done == [
        ("retry", {"node": "a"}), ("retry", {"all": True}), ("step", {}), ("step", {"node": "c"}), ("pause", {}),
    ]  # fmt: skip
    assert made.has_steered
    assert face.hint == "pause asked for"


def test_a_key_that_does_nothing_now_says_why_until_the_next_one() -> None:
    made, deeds, face = steering(diamond(discover="running"))
    press(made, "n")
    assert face.hint == "n: no node is ready"
    press(made, "z")
    assert face.hint == ""
    assert deeds.done == []


def test_cancel_is_confirmed() -> None:
    made, deeds, face = steering(diamond(discover="running"))
    press(made, "c")
    assert "sure?" in deeds.asked
    assert made.is_asking
    assert face.keys == [], "other keys mean nothing meanwhile"
    press(made, "n")
    assert (deeds.asked, deeds.done) == ("", [])
    press(made, "c", "y")
    assert deeds.done == [("cancel", {})]
    assert not made.has_steered, "nobody stays with what is to end"


def test_finish_wants_a_reason_which_is_typed_or_pasted() -> None:
    made, deeds, _ = steering(diamond(discover="running"))
    press(made, "f", "enter")
    assert deeds.done == [], "no reason, no finish"
    press(made, "f", *"good", "x", "backspace", " ", Pasted("enough\nnow"), "left")
    assert deeds.asked.endswith("good enough now▏")
    press(made, "escape")
    assert deeds.done == []
    press(made, "f", *"ok 好", "enter")
    assert deeds.done == [("finish", {"reason": "ok 好"})]


def test_what_is_pasted_is_never_a_command() -> None:
    made, deeds, face = steering(diamond(discover="running"))
    press(made, Pasted("cy"), Pasted("p"))
    assert deeds.done == []
    assert "pasted" in face.hint
    assert not made.is_asking


def test_a_proposal_is_accepted_after_a_question_and_dismissed_at_once() -> None:
    made, deeds, _ = steering({**diamond(discover="running"), "proposals": [PROPOSAL]})
    press(made, "a")
    assert "a@1 proposes (more to do; 1 nodes)" in deeds.asked
    press(made, "y", "x")
    assert deeds.done == [("accept", {"proposal": "ask-1"}), ("dismiss", {"proposal": "ask-1"})]


def test_a_question_of_somebody_else_drops_ours_and_hides_the_keys() -> None:
    made, deeds, face = steering(diamond(discover="running"))
    press(made, "?")
    assert face.has_help
    made.cover(is_covered=True)
    assert (face.has_help, face.keys) == (False, [])
    made.take(diamond(discover="running"))
    assert face.keys == []
    made.cover(is_covered=False)
    assert face.keys
    press(made, "q")
    assert deeds.done == [("leave",)]


# ---- how it is drawn -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(80, 24), (50, 15), (30, 12), (200, 60)])
@pytest.mark.parametrize("has_help", [False, True])
def test_it_fits_and_leaving_and_help_are_always_there(width: int, height: int, has_help: bool) -> None:
    nodes = [node(f"节点-node-{i}", "running", spec="長い行" * 80) for i in range(40)]
    made, _, face = steering(snapshot(*nodes, title="夜间构建 " * 20))
    press(made, *["down"] * 20, "enter")
    face.has_help = has_help
    lines = drawn_with(face, made, width=width, height=height)
    assert len(lines) < height
    assert "q detach" in "".join(lines)
    assert "? all keys" in "".join(lines)
    if not has_help:
        assert any(line.startswith("›") for line in lines), "the selected node is never folded away"


def test_an_open_node_tells_what_it_does_and_why_it_failed() -> None:
    failed = node("b", "failed", ("a",), failure={"class": "exec_failed", "reason": "exit code 3"}, attempts=2)
    made, _, face = steering(snapshot(node("a", "achieved"), failed))
    press(made, "enter")
    text = "\n".join(drawn_with(face, made))
    assert "shell  failed  attempt 2" in text
    assert "needs a (achieved)" in text
    assert text.count("exec_failed: exit code 3") == 2


def test_help_tells_the_reason_of_each_key_that_does_nothing_now() -> None:
    made, _, face = steering(diamond(discover="running"))
    press(made, "?")
    lines = drawn_with(face, made)
    assert any("step  (no node is ready)" in line for line in lines)
    assert any(line.split() == ["p", "pause"] for line in lines)


@pytest.mark.parametrize("width", [20, 49, 80, 300])
def test_the_answers_to_a_question_are_there_however_long_it_is(width: int) -> None:
    asked = "a asks: " + "Run 部署 --everything " * 60
    lines = flowed(f"{asked}   1: Always   2: Yes   3: No   s: for once", width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= 5
    assert any("…" in line for line in lines)
    for answer in ("1: Always", "2: Yes", "3: No", "s: for once"):
        assert any(answer in line for line in lines), answer
    assert flowed("short?   y: yes", 20) == ["short?   y: yes"]
    assert flowed("two\nlines?   y: yes", 40) == ["two lines?   y: yes"]
