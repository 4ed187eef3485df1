"""An edited plan against the graph that runs: only what differs is touched, and the diff says what came of it."""

from dataclasses import replace

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Extend, Replan
from graphd.core.compare import Stand, caught_up, compare, diff_since, plan_of
from graphd.core.definition import ForEach, Wait
from graphd.core.edits import Edits, Patch
from graphd_protocol.ids import FINAL_ID
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, plan, states
from tests.unit.test_replan_final import with_final


def running() -> Drive:
    drive = Drive(concurrency=2)
    drive.run(plan(G, define("a"), define("b", "a"), define("c", "b"), define("d"), define("e", "d")))
    drive.run(ended(drive.state.graphs[G], "a"))
    return drive


def test_the_same_plan_has_no_edits() -> None:
    drive = running()
    found = compare(graph_of(drive), plan_of(graph_of(drive)))
    assert found.edits.is_empty
    assert found.kept == ()


def test_only_what_differs_is_edited_and_only_what_ran_restarts() -> None:
    drive = running()
    assert states(graph_of(drive)) == {"a": "achieved", "b": "running", "c": "waiting", "d": "running", "e": "waiting"}
    edited = (
        define("b", "a"),
        define("c", "b", timeout_ms=9000),
        define("d", timeout_ms=7000),
        define("n", "b"),
    )
    found = compare(graph_of(drive), edited)
    assert found.edits == Edits(
        add=(define("n", "b"),),
        change=(Patch("c", {"timeout_ms": 9000}), Patch("d", {"timeout_ms": 7000})),
        remove=(("e", "no longer in the file"),),
    )
    assert found.kept == ("a",)
    again = compare(
        graph_of(drive), (define("a", title="new"), define("b"), define("c", "b"), define("d"), define("e", "d"))
    )
    assert again.edits.restart == ("a", "b")
    drive.run(Replan(G, again.edits), ME)
    assert compare(graph_of(drive), plan_of(graph_of(drive))).edits.is_empty


def test_edits_of_a_file_are_brought_up_to_date_with_what_began_since() -> None:
    drive = running()
    edits = compare(
        graph_of(drive), [replace(d, spec="new") if d.slug == "c" else d for d in plan_of(graph_of(drive))]
    ).edits
    assert caught_up(graph_of(drive), edits).restart == ()
    drive.run(ended(graph_of(drive), "b"))
    assert states(graph_of(drive))["c"] == "running"
    assert caught_up(graph_of(drive), edits).restart == ("c",)


def test_a_failed_node_that_was_changed_is_tried_again() -> None:
    drive = running()
    drive.run(ended(graph_of(drive), "b", "failed"))
    found = compare(
        graph_of(drive), [d if d.slug != "b" else define("b", "a", title="t") for d in plan_of(graph_of(drive))]
    )
    assert (found.edits.restart, found.edits.remove) == (("b",), ())
    drive.run(Replan(G, Edits(cancel=("e",))), ME)
    assert compare(graph_of(drive), plan_of(graph_of(drive))[:4]).kept == (), "what was cancelled is not mentioned"


def test_the_final_check_is_not_of_the_file() -> None:
    drive = with_final(define("a"), define("b"))
    assert [d.slug for d in plan_of(graph_of(drive))] == ["a", "b"]
    assert FINAL_ID not in {slug for slug, _ in compare(graph_of(drive), [define("a")]).edits.remove}


def test_items_of_a_list_are_not_of_the_file_and_a_list_that_was_made_stays() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a"), define("i", "a", for_each=ForEach("a.output", "x"))))
    drive.run(ended(graph_of(drive), "a", text="[1, 2]"))
    assert set(states(graph_of(drive))) == {"a", "i", "i-1", "i-2"}
    assert [d.slug for d in plan_of(graph_of(drive))] == ["a", "i"]
    assert compare(graph_of(drive), plan_of(graph_of(drive))).edits.is_empty
    for edits in (Edits(restart=("a",)), Edits(restart=("i-1",)), Edits(cancel=("i",))):
        with pytest.raises(Refused) as caught:
            drive.run(Replan(G, edits), ME)
        assert (caught.value.code, "rerun" in caught.value.hint) == ("invalidTransition", True)
    drive.run(Extend(G, (define("n", "i"),)), ME)
    assert states(graph_of(drive))["n"] == "waiting"


def test_a_node_that_only_waits_restarts_and_goes_at_once_and_stays_of_its_kind() -> None:
    drive = Drive()
    drive.run(
        plan(G, define("a"), *(replace(define(w), wait=Wait(signal="go"), worker="", spec="") for w in ("v", "w")))
    )
    assert states(graph_of(drive)) == {"a": "running", "v": "running", "w": "running"}
    with pytest.raises(Refused):
        drive.run(
            Replan(G, Edits(change=(Patch("v", {"wait": None, "worker": "shell", "spec": "x"}),), restart=("v",))), ME
        )
    drive.run(Replan(G, Edits(remove=(("v", "no"),), restart=("w",))), ME)
    assert states(graph_of(drive)) == {"a": "running", "v": "cancelled", "w": "running"}


def test_the_diff_of_a_replan_says_what_came_of_every_node() -> None:
    drive = running()
    stand = Stand.of(graph_of(drive))
    assert diff_since(stand, graph_of(drive)).is_empty
    edits = Edits(
        add=(define("n", "b"),), change=(Patch("b", {"spec": "x", "title": "B"}),), remove=(("e", "no"), ("d", "why")),
        restart=("a",),
    )  # fmt: skip
    drive.run(Replan(G, edits), ME)
    diff = diff_since(stand, graph_of(drive))
    assert diff.added == ("n",)
    assert diff.changed == (("b", ("spec", "title")),)
    assert diff.removed == (("d", "why"), ("e", "no"))
    assert diff.stopped == (("b", "waiting"), ("d", "cancelled"))
    assert diff.moved == (("a", "achieved", "ready"), ("e", "waiting", "cancelled"))
    later = Stand.of(graph_of(drive))
    drive.run(Replan(G, Edits(add=(define("m"),))), ME)
    drive.run(Replan(G, Edits(remove=(("m", "no"),))), ME)
    assert diff_since(later, graph_of(drive)).is_empty, "what came and went in between"
