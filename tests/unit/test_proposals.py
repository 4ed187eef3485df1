"""Proposals: edits that wait for an answer, accepted once as one replan, stale when the plan moved under them."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Accept, Cancel, Dismiss, Extend, Propose, Replan, Respond
from graphd.core.definition import Budget
from graphd.core.edits import Edits, Patch
from graphd.core.model import Ask, Limits, Source
from graphd.core.proposals import edits_of, open_proposals
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, plan, states

ADDITION = Edits(add=(define("c", "a"),))


def proposed(edits: Edits = ADDITION, **more: Any) -> Drive:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b")))
    drive.run(Propose(G, edits, "planner", "found more to do", **more), ME)
    return drive


def only(drive: Drive) -> Ask:
    (ask,) = open_proposals(graph_of(drive))
    return ask


def refusal(drive: Drive, command: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        drive.run(command, ME)
    assert caught.value.hint
    return caught.value


def kinds(drive: Drive) -> list[str]:
    return [event.kind for event in drive.changes[0].events]


def test_a_proposal_waits_with_its_ask_and_changes_no_plan() -> None:
    drive = proposed()
    assert graph_of(drive).plan_version == 1
    assert kinds(drive) == ["ask_opened", "proposal_made"]
    ask = only(drive)
    assert (ask.kind, ask.title, ask.action["author"], ask.action["planVersion"]) == (
        "proposal", "found more to do", "planner", 1,
    )  # fmt: skip
    assert edits_of(ask) == ADDITION


@pytest.mark.parametrize("way", ["accept", "respond"])
def test_acceptance_is_one_replan_in_the_change_of_the_answer(way: str) -> None:
    drive = proposed()
    ask = only(drive)
    command = Accept(G, ask.id) if way == "accept" else Respond(G, ask.id, ask.action_hash, option="accept")
    drive.run(command, ME)
    assert kinds(drive)[:1] == ["ask_answered"]
    assert {"node_defined", "graph_extended", "proposal_settled"} <= set(kinds(drive))
    assert (graph_of(drive).plan_version, states(graph_of(drive))["c"], open_proposals(graph_of(drive))) == (
        2,
        "waiting",
        [],
    )
    late = refusal(drive, Accept(G, ask.id))
    assert (late.code, late.facts["by"]) == ("askGone", "me")


@pytest.mark.parametrize("way", ["dismiss", "respond"])
def test_a_dismissed_proposal_is_gone(way: str) -> None:
    drive = proposed()
    ask = only(drive)
    command = Dismiss(G, ask.id, "no") if way == "dismiss" else Respond(G, ask.id, ask.action_hash, option="dismiss")
    drive.run(command, ME)
    assert (graph_of(drive).plan_version, kinds(drive)) == (1, ["ask_answered", "proposal_settled"])
    assert refusal(drive, Dismiss(G, ask.id)).code == "askGone"


def test_an_unknown_proposal_is_not_found() -> None:
    assert refusal(proposed(), Accept(G, "ask-00000000")).code == "notFound"


def test_a_proposal_is_stale_when_a_node_that_it_edits_was_edited_since() -> None:
    change = Edits(change=(Patch("b", {"spec": "anew"}),), restart=("b",))
    drive = proposed(change)
    stale = only(drive)
    drive.run(Extend(G, (define("x"),)), ME)
    drive.run(Propose(G, Edits(cancel=("a",)), "me", "no a"), ME)
    drive.run(Replan(G, Edits(change=(Patch("b", {"timeout_ms": 5000}),))), ME)
    refused = refusal(drive, Accept(G, stale.id))
    assert (refused.code, refused.facts["planVersion"], refused.facts["node"]) == ("conflict", 3, "b")
    assert stale.id in graph_of(drive).open_asks, "a refusal answers nothing"
    assert refusal(drive, Respond(G, stale.id, stale.action_hash, option="accept")).code == "conflict"
    drive.run(Dismiss(G, stale.id), ME)
    fresh = only(drive)
    drive.run(Accept(G, fresh.id), ME)  # the plan moved, but not where this one edits it
    assert graph_of(drive).nodes[node_id("a")].after_stop == "cancelled"


def test_a_removed_node_makes_a_proposal_about_it_stale() -> None:
    drive = proposed(Edits(restart=("b",)))
    drive.run(Replan(G, Edits(remove=(("b", "no"),))), ME)
    assert refusal(drive, Accept(G, only(drive).id)).code == "conflict"


def test_acceptance_is_checked_anew() -> None:
    drive = proposed()
    drive.run(Extend(G, (define("c"),)), ME)
    assert refusal(drive, Accept(G, only(drive).id)).code == "invalidPlan"
    drive = proposed()
    missing = (("shell", "no shell"),)
    assert refusal(drive, Accept(G, only(drive).id, missing=missing)).code == "agentMissing"


def test_acceptance_is_held_to_the_budget() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a"), budget=Budget(tokens=100)))
    drive.run(Propose(G, Edits(change=(Patch("b", {"worker": "build"}),)), "planner", "an agent knows better"), ME)
    assert refusal(drive, Accept(G, only(drive).id, reports=(("build", "none"),))).code == "invalidBudget"


def test_a_file_whose_node_began_since_restarts_it_though_an_agent_of_it_is_missing() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a")))
    edits = Edits(change=(Patch("b", {"spec": "anew"}),), add=(define("c", worker="build", required=False),))
    drive.run(Propose(G, edits, "me", "the file was changed", Source("file", "w", "/w.yaml", "beef")), ME)
    drive.run(ended(graph_of(drive), "a"))
    assert states(graph_of(drive))["b"] == "running"
    drive.run(Accept(G, only(drive).id, missing=(("build", "not installed"),)), ME)
    assert graph_of(drive).nodes[node_id("b")].after_stop == "waiting"


def test_what_could_not_be_accepted_is_not_proposed() -> None:
    drive = proposed()
    assert refusal(drive, Propose(G, Edits(add=(define("a"),)), "p", "r")).code == "invalidPlan"
    assert refusal(drive, Propose(G, Edits(), "p", "r")).code == "invalidPlan"


def test_automatic_proposals_are_carried_out_at_once_and_capped() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), limits=Limits(replans=1)))
    drive.run(Propose(G, Edits(add=(define("x"),)), "optimizer", "split", is_automatic=True))
    assert kinds(drive)[0] == "proposal_made"
    assert (graph_of(drive).plan_version, graph_of(drive).replans, open_proposals(graph_of(drive))) == (2, 1, [])
    assert (
        refusal(drive, Propose(G, Edits(add=(define("y"),)), "optimizer", "more", is_automatic=True)).code == "capacity"
    )
    drive.run(Extend(G, (define("y"),)), ME)
    assert graph_of(drive).replans == 1, "a person's do not count"


def test_an_accepted_file_is_where_the_plan_comes_from() -> None:
    source = Source("file", "w", "/w.yaml", "beef")
    drive = proposed(source=source)
    drive.run(Accept(G, only(drive).id, environment="e"), ME)
    assert (graph_of(drive).source, graph_of(drive).environment) == (source, "e")


def test_a_file_is_caught_up_with_what_began_and_what_came_to_rest_since() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", priority=2), define("b", priority=1), define("c"), define("z", priority=-1)))
    change = (Patch("a", {"timeout_ms": 5000}), Patch("b", {"spec": "anew"}), Patch("z", {"spec": "anew"}))
    edits = Edits(change=change, remove=(("c", "no longer in the file"),))
    drive.run(Propose(G, edits, "me", "w was changed", Source("file", "w", "/w.yaml", "beef")), ME)
    drive.run(ended(graph_of(drive), "a"))
    drive.run(ended(graph_of(drive), "b"))
    drive.run(ended(graph_of(drive), "c"))
    drive.run(Accept(G, only(drive).id), ME)
    event = next(event for event in drive.changes[0].events if event.kind == "graph_replanned")
    assert event.payload["restarted"] == ["a", "b", "z"]
    assert event.payload["removed"] == [], "it is done, and stays"


def test_a_cancelled_graph_has_no_open_proposals_and_a_complete_one_still_takes_an_extension() -> None:
    drive = proposed()
    drive.run(Propose(G, Edits(restart=("a",)), "me", "again"), ME)
    drive.run(ended(graph_of(drive), "a"))
    drive.run(ended(graph_of(drive), "b"))
    assert (graph_of(drive).status, len(open_proposals(graph_of(drive)))) == ("complete", 1), (
        "a restart could not be accepted now"
    )
    drive.run(Accept(G, only(drive).id), ME)
    assert graph_of(drive).status == "active"
    drive.run(Propose(G, Edits(add=(define("z"),)), "p", "r"), ME)
    drive.run(Cancel(G), ME)
    drive.run(ended(graph_of(drive), "c"))
    assert (graph_of(drive).status, open_proposals(graph_of(drive))) == ("cancelled", [])
