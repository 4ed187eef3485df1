"""What systems before this one got wrong when a plan changed under way, each by its behaviour."""

from graphd.core.commands import Cancel, Extend, Pause, Replan, Resume
from graphd.core.edits import Edits, Patch
from graphd.core.model import Definition
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, G, define, ended, graph_of, node, states
from tests.unit.test_replan import codes, edit, refused, started


def test_who_is_shown_ids_may_name_them() -> None:
    """A replanner that quoted the ids that it saw was refused: they were hashed again."""
    drive = started(define("a"), define("b", "a"))
    drive.run(Extend(G, (define("c", node_id("a"), "b"),)), ME)
    edit(drive, change=(Patch(node_id("b"), {"needs": []}),), remove=((node_id("c"), "no"),))
    assert (node(drive, "c").definition.needs, node(drive, "b").needs) == (("a", "b"), ())


def test_an_appendix_is_held_to_the_cap_and_to_prerequisites_that_live() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    edit(drive, cancel=("b",))
    assert codes(refused(drive, Extend(G, (define("c", "b"),)))) == {"need.gone"}
    assert codes(refused(drive, Extend(G, tuple(define(f"n{i}") for i in range(99))))) == {"plan.tooLarge"}


def test_an_appendix_may_need_itself_and_is_then_checked_for_cycles() -> None:
    drive = started(define("a"))
    assert codes(refused(drive, Extend(G, (define("x", "y"), define("y", "x"))))) == {"plan.cycle"}
    drive.run(Extend(G, (define("y", "x"), define("x", "a"))), ME)
    assert states(graph_of(drive)) == {"a": "running", "y": "waiting", "x": "waiting"}


def test_a_node_without_a_task_is_refused_not_stored_as_nothing() -> None:
    drive = started(define("a"))
    assert codes(refused(drive, Extend(G, (Definition("n", "", "shell"),)))) == {"spec.empty"}


def test_an_edit_never_wakes_a_cancelled_graph() -> None:
    """It sat at running with nobody to drive it."""
    drive = started(define("a"), define("b"), concurrency=1)
    drive.run(Cancel(G))
    drive.run(ended(graph_of(drive), "a"))
    for command in (Extend(G, (define("n"),)), Replan(G, Edits(restart=("b",)))):
        assert refused(drive, command).code == "invalidTransition"
    assert graph_of(drive).status == "cancelled"


def test_nodes_that_were_added_to_a_paused_graph_start_with_its_resume() -> None:
    """They were stranded: the addition was acknowledged and nothing ever started them."""
    drive = started(define("a"))
    drive.run(Pause(G))
    drive.run(ended(graph_of(drive), "a"))
    assert graph_of(drive).status == "complete", "nothing was left"
    drive = started(define("a"), define("b"), concurrency=1)
    drive.run(Pause(G))
    drive.run(ended(graph_of(drive), "a"))
    drive.run(Extend(G, (define("c", "a"),)), ME)
    assert states(graph_of(drive)) == {"a": "achieved", "b": "ready", "c": "ready"}
    drive.run(Resume(G))
    drive.run(ended(graph_of(drive), "b"))
    assert node(drive, "c").state == "running"


def test_a_graph_that_ended_while_an_addition_was_thought_up_takes_it_all_the_same() -> None:
    drive = started(define("a"), define("skipped", "a", condition='a.state == "failed"', required=False))
    drive.run(ended(graph_of(drive), "a"))
    assert graph_of(drive).status == "complete"
    drive.run(Extend(G, (define("late", "a"),)), ME)
    assert (graph_of(drive).status, node(drive, "late").state) == ("active", "running")


def test_an_edge_that_is_dropped_frees_what_waited_for_it() -> None:
    """A decision node stayed pending for ever behind a lane that was cut off."""
    drive = started(define("a"), define("slow"), define("decide", "a", "slow"))
    drive.run(ended(graph_of(drive), "a"))
    edit(drive, change=(Patch("decide", {"needs": ["a"]}),))
    assert node(drive, "decide").state == "running"


def test_late_results_of_a_replaced_attempt_are_nobodys() -> None:
    drive = started(define("a"), define("b", "a"))
    old = ended(graph_of(drive), "a", text="old")
    edit(drive, restart=("a",), change=(Patch("a", {"spec": "anew"}),))
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert node(drive, "a").last_number == 2
    rev = graph_of(drive).rev
    drive.run(old)
    assert (graph_of(drive).rev, node(drive, "a").state, node(drive, "a").output) == (rev, "running", None)
