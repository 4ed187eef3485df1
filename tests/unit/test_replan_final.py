"""The final check of a plan that changes: it reads every end, and opens again."""

from graphd.core.codec import dump_definition
from graphd.core.commands import Extend
from graphd.core.draft import Draft
from graphd.core.edits import Patch
from graphd.core.events import DAEMON
from graphd.core.model import Definition, Node
from graphd_protocol.ids import FINAL_ID
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, node
from tests.unit.test_replan import codes, edit, refused, started


def with_final(*definitions: Definition) -> Drive:
    """A graph whose plan ends in the final check, as a planner's does."""
    drive = started(*definitions)
    final = define(FINAL_ID, *(d.slug for d in definitions))
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    new = Node(id=FINAL_ID, definition=final, index=-1, needs=(), required=True)
    draft.emit("node_defined", new, definition=dump_definition(final), required=True)
    draft.emit(
        "graph_extended", version=2, added=[FINAL_ID], changed=[], removed=[], cancelled=[], restarted=[], reason=None,
        is_automatic=False, source=None,
    )  # fmt: skip
    drive.commit([draft.change], [])
    return drive


def test_the_final_check_reads_every_end_of_the_new_plan_and_opens_again() -> None:
    drive = with_final(define("a"), define("b"))
    for slug in ("a", "b", FINAL_ID):
        drive.run(ended(graph_of(drive), slug))
    assert graph_of(drive).status == "complete"
    drive.run(Extend(G, (define("c", "a"),)), ME)
    assert node(drive, FINAL_ID).definition.needs == ("b", "c")
    assert (graph_of(drive).status, node(drive, FINAL_ID).state) == ("active", "waiting")
    drive.run(ended(graph_of(drive), "c"))
    assert node(drive, FINAL_ID).state == "running"
    drive.run(Extend(G, (define("d"),)), ME)
    assert node(drive, FINAL_ID).after_stop == "waiting", "what it checks is not all of it any more"
    assert refused(drive, cancel=(FINAL_ID,)).code == "invalidTransition"
    assert refused(drive, change=(Patch(FINAL_ID, {"spec": "x"}),)).code == "invalidTransition"
    assert codes(refused(drive, Extend(G, (define("e", FINAL_ID),)))) == {"need.unknown"}


def test_a_final_check_that_waits_is_only_rewired() -> None:
    drive = with_final(define("a"), define("b"))
    drive.run(Extend(G, (define("c"),)), ME)
    assert (node(drive, FINAL_ID).state, node(drive, FINAL_ID).attempts) == ("waiting", 0)
    assert node(drive, FINAL_ID).definition.needs == ("a", "b", "c")
    edit(drive, restart=("a",))
    assert node(drive, FINAL_ID).definition.needs == ("a", "b", "c"), "nothing to rewire"
