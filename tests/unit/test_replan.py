"""`extend` and `replan` by behaviour: what is edited, what is refused, what restarts, and when."""

from dataclasses import asdict
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.codec import Row
from graphd.core.commands import (
    Cancel,
    Command,
    DaemonStarted,
    Extend,
    Finish,
    Pause,
    Replan,
    Resume,
    RetryNodes,
)
from graphd.core.definition import Budget, Gate, Retry, Verify
from graphd.core.draft import Draft
from graphd.core.edits import Edits, Patch, dump_edits, load_edits, patch_to
from graphd.core.events import DAEMON, StopAttempt
from graphd.core.model import Definition, Limits
from graphd.core.revision import Reporting
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, effects_of, ended, graph_of, node, plan, states, stuck


def started(*definitions: Definition, concurrency: int = 8, **more: Any) -> Drive:
    drive = Drive(concurrency=concurrency)
    drive.run(plan(G, *definitions, **more))
    return drive


def edit(drive: Drive, **edits: Any) -> None:
    drive.run(Replan(G, Edits(**edits)), ME)


def refused(drive: Drive, command: Command | None = None, **edits: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        drive.run(command or Replan(G, Edits(**edits)), ME)
    assert caught.value.hint
    return caught.value


def codes(refusal: Refused) -> set[str]:
    assert refusal.code == "invalidPlan"
    return {row["code"] for row in refusal.facts["diagnostics"]}


def kinds(drive: Drive) -> list[str]:
    return [event.kind for change in drive.changes for event in change.events]


# ---- one plan version, one change --------------------------------------------------------------------------------


def test_an_extension_is_one_change_and_one_plan_version_and_its_nodes_start() -> None:
    drive = started(define("a"), define("b", "a"))
    drive.run(Extend(G, (define("c"), define("d", "b", "c", required=False))), ME)
    assert graph_of(drive).plan_version == 2
    assert states(graph_of(drive)) == {"a": "running", "b": "waiting", "c": "running", "d": "waiting"}
    assert [n.index for n in graph_of(drive).nodes.values()] == [0, 1, 2, 3]
    assert drive.changes[0].operation == "extend"
    event = drive.changes[0].events[-2]
    assert (event.kind, event.payload["added"]) == ("graph_extended", ["c", "d"])


def test_a_replan_adds_changes_and_removes_in_one_change() -> None:
    drive = started(define("a"), define("b", "a"), define("c", "b", required=False), concurrency=1)
    edit(
        drive, add=(define("n", "a"),), change=(Patch("c", {"needs": ["n"], "spec": "anew"}),),
        remove=(("b", "not needed"),),
    )  # fmt: skip
    assert graph_of(drive).plan_version == 2
    assert states(graph_of(drive)) == {"a": "running", "b": "cancelled", "c": "waiting", "n": "waiting"}
    assert node(drive, "b").cancel_reason == "removed: not needed"
    assert (node(drive, "b").removed_in, list(graph_of(drive).removed)) == (2, [node_id("b")])
    assert (node(drive, "c").definition.spec, node(drive, "c").needs) == ("anew", (node_id("n"),))
    assert node(drive, "c").required, "the only end of the plan"
    assert len({event.rev for change in drive.changes for event in change.events}) == 1
    drive.run(ended(graph_of(drive), "a"))
    drive.run(ended(graph_of(drive), "n"))
    drive.run(ended(graph_of(drive), "c"))
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "ok")


def test_which_node_is_required_follows_the_plan() -> None:
    drive = started(define("a", required=False), define("b", "a", required=False), concurrency=1)
    assert node(drive, "b").required
    drive.run(Extend(G, (define("c", "a", required=False),)), ME)
    assert not node(drive, "b").required, "it is no longer the only end"
    edit(drive, remove=(("c", "no"),))
    assert node(drive, "b").required, "it is again"


def test_edits_that_come_to_nothing_change_nothing() -> None:
    drive = started(define("a"))
    rev = graph_of(drive).rev
    edit(drive, change=(Patch("a", {"spec": "do a"}),))
    assert (graph_of(drive).rev, graph_of(drive).plan_version, drive.changes) == (rev, 1, [])
    assert codes(refused(drive)) == {"edits.empty"}
    assert codes(refused(drive, Extend(G, ()))) == {"edits.empty"}


def test_edits_are_json_and_back() -> None:
    edits = Edits(
        (define("a"),), (Patch("b", {"spec": "x"}),), (("c", "why"),), ("d",), ("e",), resume=True,
    )  # fmt: skip
    assert load_edits(dump_edits(edits)) == edits
    assert load_edits(dump_edits(Edits())) == Edits()
    old = define("a", "x", condition='x.state == "achieved"', gate=Gate(), retry=Retry(1))
    new = define("a", artifacts=("f",), timeout_ms=5000)
    assert patch_to(old, new).applied(old) == new
    assert patch_to(new, old).applied(new) == old
    assert Patch("a", {"timeout_ms": None, "needs": None}).applied(define("a", "x", timeout_ms=1)) == define("a")


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_ids_are_never_used_again() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    edit(drive, remove=(("b", "no"),))
    assert codes(refused(drive, Extend(G, (define("b"),)))) == {"slug.taken"}
    for edits in ({"change": (Patch("b", {"spec": "x"}),)}, {"restart": ("b",)}, {"remove": (("b", "no"),)}):
        refusal = refused(drive, **edits)
        assert (refusal.code, refusal.facts["node"], refusal.facts["rev"]) == (
            "invalidTransition",
            "b",
            graph_of(drive).rev,
        )
    assert refused(drive, RetryNodes(G, "b")).code == "invalidTransition"
    assert refused(drive, change=(Patch("ghost", {}),)).code == "notFound"
    assert codes(refused(drive, Extend(G, (define("c", "b"),)))) == {"need.gone"}


@pytest.mark.parametrize("how", ["remove", "cancel"])
def test_no_node_is_left_needing_a_removed_or_cancelled_one(how: str) -> None:
    drive = started(define("a"), define("b", "a"), define("c", "b"), concurrency=1)
    ends = {"remove": (("b", "no"),)} if how == "remove" else {"cancel": ("b",)}
    assert codes(refused(drive, **ends)) == {"need.gone"}
    edit(drive, **ends, change=(Patch("c", {"needs": ["a"]}),))
    assert states(graph_of(drive)) == {"a": "running", "b": "cancelled", "c": "waiting"}
    assert (node(drive, "b").removed_in is None) == (how == "cancel")
    assert codes(refused(drive, change=(Patch("c", {"needs": ["b"]}),))) >= {"need.gone"}


def test_a_cycle_is_refused_with_its_path_and_leaves_no_trace() -> None:
    drive = started(define("a"), define("b", "a"), concurrency=1)
    drive.run(Pause(G, "stop"))
    drive.run(ended(graph_of(drive), "a", "failed"))
    refusal = refused(drive, change=(Patch("a", {"needs": ["b"]}),))
    assert codes(refusal) == {"plan.cycle"}
    assert "a needs b needs a" in refusal.message
    assert node(drive, "a").needs == ()


def test_caps_count_nodes_over_the_life_of_the_graph() -> None:
    drive = started(define("a"), define("b"), concurrency=1, limits=Limits(max_nodes=3))
    edit(drive, remove=(("b", "no"),))
    drive.run(Extend(G, (define("c"),)), ME)
    assert codes(refused(drive, Extend(G, (define("d"),)))) == {"plan.tooLarge"}


def test_the_plan_check_is_the_one_of_set() -> None:
    drive = started(define("a"))
    troubled = (define("b", "ghost"), define("gn-final"), define("and"), Definition("e", " ", "shell"))
    assert codes(refused(drive, Extend(G, troubled))) == {"need.unknown", "slug.invalid", "spec.empty"}


def test_a_worker_that_nobody_serves_is_refused_where_the_node_is_required() -> None:
    drive = started(define("a"), define("b"))
    missing = (("shell", "no shell"),)
    assert refused(drive, Extend(G, (define("c"),), missing=missing)).code == "agentMissing"
    change = Replan(G, Edits(change=(Patch("a", {"spec": "x"}),), restart=("a",)), missing=missing)
    assert refused(drive, change).code == "agentMissing"
    drive.run(Extend(G, (define("c", required=False),), missing=missing), ME)


def test_who_checks_is_missing_as_who_works_is() -> None:
    drive = started(define("a"), define("b", "a"))
    missing = (("review", "no agent"),)
    checked = Verify(worker="review", criteria="it holds")
    assert refused(drive, Extend(G, (define("c", verify=checked),), missing=missing)).code == "agentMissing"
    change = Replan(G, Edits(change=(Patch("b", {"verify": asdict(checked)}),)), missing=missing)
    assert refused(drive, change).facts["node"] == "b"


@pytest.mark.parametrize("row", [{"worker": "build"}, {"verify": {"worker": "build", "criteria": "it holds"}}])
def test_what_does_not_say_what_it_uses_does_not_come_into_a_graph_with_a_budget(row: Row) -> None:
    drive = started(define("a"), define("b", "a"), budget=Budget(tokens=100))
    reports: Reporting = (("shell", "not_applicable"), ("build", "none"))
    added = Patch("c", row).applied(define("c"))
    for command in (Extend(G, (added,), reports=reports), Replan(G, Edits(change=(Patch("b", row),)), reports=reports)):
        assert refused(drive, command).code == "invalidBudget"


def test_a_gate_that_is_required_for_being_the_only_end_may_be_changed() -> None:
    drive = started(define("a"), define("g", "a", gate=Gate(), required=False))
    assert node(drive, "g").required
    edit(drive, change=(Patch("g", {"spec": "look closer"}),))
    assert (node(drive, "g").definition.spec, node(drive, "g").required) == ("look closer", True)


def test_a_running_node_takes_another_timeout_and_nothing_else() -> None:
    drive = started(define("a"), define("b"))
    edit(drive, change=(Patch("a", {"timeout_ms": 5000, "hard_timeout_ms": 9000}),))
    assert (node(drive, "a").definition.timeout_ms, node(drive, "a").state) == (5000, "running")
    refusal = refused(drive, change=(Patch("a", {"spec": "x"}),))
    assert (refusal.code, refusal.facts["from"]) == ("invalidTransition", "running")
    assert "--restart a" in refusal.hint


@pytest.mark.parametrize("state", ["achieved", "failed", "skipped", "cancelled"])
def test_a_node_at_rest_takes_a_change_only_with_a_restart(state: str) -> None:
    drive = started(
        define("achieved"), define("failed", required=False), define("cancelled"), define("other"),
        define("skipped", "achieved", condition='achieved.state == "failed"', required=False),
    )  # fmt: skip
    drive.run(ended(graph_of(drive), "achieved"))
    drive.run(ended(graph_of(drive), "failed", "failed"))
    edit(drive, cancel=("cancelled",))
    drive.run(ended(graph_of(drive), "cancelled", "failed"))
    assert node(drive, state).state == state
    change = (Patch(state, {"spec": "anew"}),)
    assert refused(drive, change=change).facts["from"] == state
    assert refused(drive, remove=((state, "no"),)).facts["from"] == state
    assert refused(drive, cancel=(state,)).code == "invalidTransition"
    edit(drive, change=change, restart=(state,))
    assert (node(drive, state).state, node(drive, state).definition.spec) == (
        "skipped" if state == "skipped" else "running", "anew",
    )  # fmt: skip


def test_a_gate_is_not_removed_cancelled_weakened_or_made_a_plain_node() -> None:
    drive = started(define("a"), define("g", "a", gate=Gate()), define("z"), concurrency=1)
    for edits in (
        {"remove": (("g", "no"),)}, {"cancel": ("g",)}, {"change": (Patch("g", {"gate": None}),)},
        {"change": (Patch("g", {"required": False}),)},
    ):  # fmt: skip
        assert refused(drive, **edits).code == "invalidTransition"
    edit(drive, change=(Patch("g", {"spec": "look closer"}),))
    assert node(drive, "g").definition.spec == "look closer"


def test_contradictions_and_malformed_patches_are_refused() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    for edits in (
        {"remove": (("b", "no"),), "cancel": ("b",)}, {"remove": (("b", "1"), (node_id("b"), "2"))},
        {"restart": ("a",), "cancel": ("a",)}, {"change": (Patch("b", {"spec": "x"}),), "cancel": ("b",)},
        {"change": (Patch("b", {"spec": "x"}), Patch("b", {"spec": "y"}))},
    ):  # fmt: skip
        assert codes(refused(drive, **edits)) == {"edits.contradiction"}
    assert codes(refused(drive, change=(Patch("b", {"colour": "red"}),))) == {"edits.malformed"}
    assert refused(drive, change=(Patch("b", {"slug": "c"}),)).code == "invalidTransition"


def test_the_delivery_node_stays_in_the_plan() -> None:
    drive = started(define("a"), define("b"), concurrency=1, delivery_node="b")
    assert codes(refused(drive, remove=(("b", "no"),))) == {"delivery.unknown"}


# ---- what restarts, and when -------------------------------------------------------------------------------------


def test_a_restart_takes_every_settled_node_that_read_its_output_and_no_other() -> None:
    drive = started(
        define("a"), define("b", "a"), define("c", "b"), define("d", "a", required=False), define("other"),
        define("late", "c", "other"),
    )  # fmt: skip
    for slug in ("a", "other", "b", "d", "c"):
        drive.run(ended(graph_of(drive), slug, text=slug))
    assert node(drive, "late").state == "running"
    edit(drive, restart=("b",))
    assert states(graph_of(drive)) == {
        "a": "achieved", "b": "running", "c": "waiting", "d": "achieved", "other": "achieved", "late": "running",
    }  # fmt: skip
    assert (node(drive, "late").after_stop, node(drive, "c").output) == ("waiting", None)
    assert drive.changes[0].events[0].payload["restarted"] == ["b", "c", "late"]
    drive.run(ended(graph_of(drive), "late", text="too late"))
    assert (node(drive, "late").state, node(drive, "late").output) == ("waiting", None), "what it read is void"


def test_a_running_node_waits_again_only_when_its_tree_is_proven_empty() -> None:
    drive = started(define("a"), define("b", "a"))
    edit(drive, restart=("a",), change=(Patch("a", {"spec": "anew"}),))
    assert (node(drive, "a").state, node(drive, "a").after_stop) == ("running", "waiting")
    attempt = graph_of(drive).attempts[node_id("a"), "worker", 1]
    assert (attempt.state, attempt.stop_reason) == ("stopping", "replan")
    assert effects_of(drive)[0][:3] == ("StopAttempt", G, attempt.key)
    drive.run(DaemonStarted(2, "0", 1))
    assert any(isinstance(effect, StopAttempt) for effect in drive.effects), "the wish survives a crash"
    drive.run(ended(graph_of(drive), "a", text="of the old plan"))
    assert (node(drive, "a").state, node(drive, "a").last_number, node(drive, "a").output) == ("running", 2, None)
    assert (attempt.outcome, attempt.is_counted, node(drive, "a").after_stop) == ("cancelled", True, None)


def test_a_stuck_tree_holds_the_restart_until_it_is_proven_dead() -> None:
    drive = started(define("a"), define("b"))
    drive.run(stuck(graph_of(drive), "a", 7))
    edit(drive, restart=("a",))
    assert (node(drive, "a").state, node(drive, "a").after_stop) == ("running", "waiting")
    drive.run(ended(graph_of(drive), "a", "lost"))
    assert (node(drive, "a").state, node(drive, "a").last_number) == ("running", 2)


def test_a_running_node_that_is_removed_is_cancelled_when_its_tree_is_proven_empty() -> None:
    drive = started(define("a"), define("b"))
    done = drive.run(Replan(G, Edits(remove=(("a", "no"),))), ME)
    assert done.stopping == ("a",)
    assert (node(drive, "a").state, node(drive, "a").removed_in) == ("running", 2)
    assert refused(drive, restart=("a",)).code == "invalidTransition", "it is out of the plan already"
    drive.run(ended(graph_of(drive), "a", text="kept"))
    assert (node(drive, "a").state, node(drive, "a").cancel_reason) == ("cancelled", "removed: no")
    assert node(drive, "a").output is not None
    drive.run(ended(graph_of(drive), "b"))
    assert graph_of(drive).status == "complete"


def test_a_second_replan_may_end_what_the_first_one_restarts() -> None:
    drive = started(define("a"), define("b"))
    edit(drive, restart=("a",))
    edit(drive, change=(Patch("a", {"spec": "third"}),), restart=("a",))
    edit(drive, cancel=("a",))
    assert node(drive, "a").after_stop == "cancelled"
    drive.run(ended(graph_of(drive), "a", "lost"))
    assert (node(drive, "a").state, node(drive, "a").cancel_reason) == ("cancelled", "cancelled by a replan")


@pytest.mark.parametrize("wish", ["restart", "remove"])
def test_a_cancel_comes_over_a_replan_that_waits_for_a_tree(wish: str) -> None:
    drive = started(define("a"), define("b", required=False))
    edit(drive, **({"restart": ("a",)} if wish == "restart" else {"remove": (("a", "no"),)}))
    drive.run(Cancel(G, "enough"), ME)
    drive.run(ended(graph_of(drive), "a"))
    drive.run(ended(graph_of(drive), "b"))
    assert (graph_of(drive).status, node(drive, "a").state) == ("cancelled", "cancelled")
    assert node(drive, "a").cancel_reason == ("enough" if wish == "restart" else "removed: no")
    assert refused(drive, Extend(G, (define("c"),))).code == "invalidTransition"


def test_a_pause_with_stop_leaves_a_recalled_node_waiting_for_the_new_plan() -> None:
    drive = started(define("a"))
    edit(drive, restart=("a",))
    drive.run(Pause(G, "stop"), ME)
    assert refused(drive, restart=("a",)).code == "invalidTransition", "a wish stands"
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert (graph_of(drive).status, node(drive, "a").state) == ("user_paused", "ready")


def test_a_finish_settles_what_a_replan_had_recalled_and_takes_no_other_replan() -> None:
    drive = started(define("a", required=False), define("b"))
    edit(drive, restart=("a",))
    drive.run(Finish(G, "enough"), ME)
    assert refused(drive, Extend(G, (define("c"),))).code == "invalidTransition"
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert (node(drive, "a").state, node(drive, "a").skip) == ("skipped", "finished_early")
    drive.run(ended(graph_of(drive), "b"))
    drive.run(Extend(G, (define("c"),)), ME)
    assert (graph_of(drive).status, graph_of(drive).is_finishing, node(drive, "c").state) == (
        "active",
        False,
        "running",
    )


def test_restarts_count_as_attempts_and_end_at_their_limit() -> None:
    drive = started(define("a"), define("b", "a"), limits=Limits(attempts_per_node=2))
    drive.run(ended(graph_of(drive), "a"))
    edit(drive, restart=("b",))
    drive.run(ended(graph_of(drive), "b", "lost"))
    refusal = refused(drive, restart=("a",))
    assert (refusal.code, refusal.facts["node"]) == ("capacity", "b"), "a reader has none left"


def test_a_ready_node_that_is_changed_waits_for_its_new_needs() -> None:
    drive = started(define("a", priority=1), define("b"), concurrency=1)
    assert states(graph_of(drive)) == {"a": "running", "b": "ready"}
    edit(drive, change=(Patch("b", {"needs": ["a"]}),))
    assert node(drive, "b").state == "waiting"
    drive.run(ended(graph_of(drive), "a"))
    assert node(drive, "b").state == "running"


def test_ready_nodes_start_in_the_order_of_the_new_plan() -> None:
    drive = started(define("a", priority=9), define("b"), define("c"), concurrency=1)
    edit(drive, add=(define("x", "c"), define("y", "x")))
    drive.run(ended(graph_of(drive), "a"))
    assert states(graph_of(drive)) == {"a": "achieved", "b": "ready", "c": "running", "x": "waiting", "y": "waiting"}


# ---- blocked, paused, complete -----------------------------------------------------------------------------------


def blocked() -> Drive:
    drive = started(define("a"), define("b", "a"), define("c", "b"), define("other"))
    drive.run(ended(graph_of(drive), "other"))
    drive.run(ended(graph_of(drive), "a", "failed", reason="no"))
    assert (graph_of(drive).status, node(drive, "c").state) == ("blocked", "blocked")
    return drive


def test_what_was_blocked_is_freed_when_the_failed_node_is_removed() -> None:
    drive = blocked()
    edit(drive, remove=(("a", "not needed"),), change=(Patch("b", {"needs": []}),))
    assert (graph_of(drive).status, states(graph_of(drive))["b"], states(graph_of(drive))["c"]) == (
        "active",
        "running",
        "waiting",
    )


def test_what_was_blocked_is_freed_when_the_failed_node_restarts() -> None:
    drive = blocked()
    edit(drive, restart=("a",), change=(Patch("a", {"spec": "better"}),))
    assert (graph_of(drive).status, states(graph_of(drive))) == (
        "active", {"a": "running", "b": "waiting", "c": "waiting", "other": "achieved"},
    )  # fmt: skip


def test_a_graph_stays_blocked_while_its_cause_stands() -> None:
    drive = blocked()
    drive.run(Extend(G, (define("d", "b"),)), ME)
    assert (graph_of(drive).status, node(drive, "d").state, node(drive, "d").blocked_by) == ("blocked", "blocked", "a")
    edit(drive, change=(Patch("c", {"needs": ["other"]}),))
    assert (graph_of(drive).status, node(drive, "b").state, node(drive, "c").state) == ("active", "blocked", "running")
    drive.run(ended(graph_of(drive), "c"))
    assert graph_of(drive).status == "blocked"


def test_a_paused_graph_stays_paused_and_goes_on_where_the_replan_says_so() -> None:
    drive = started(define("a"), define("b"))
    drive.run(stuck(graph_of(drive), "a", 7))
    drive.run(ended(graph_of(drive), "b"))
    assert graph_of(drive).status == "infra_paused"
    drive.run(Extend(G, (define("c"),)), ME)
    assert (graph_of(drive).status, node(drive, "c").state) == ("infra_paused", "ready")
    edit(drive, add=(define("d"),), resume=True)
    assert (graph_of(drive).status, node(drive, "d").state) == ("active", "running")
    assert ("RecheckAttempt", G, (node_id("a"), "worker", 1)) in effects_of(drive)


def test_a_replan_does_not_lift_a_budget() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    drive.run(Pause(G))
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="checkpoint")
    draft.emit("paused", status="budget_limited", reason="spent", cause=None)
    drive.commit([draft.change], [])
    edit(drive, remove=(("b", "no"),))
    assert graph_of(drive).status == "budget_limited"
    assert refused(drive, add=(define("c"),), resume=True).code == "invalidTransition"


def test_removing_all_that_is_left_completes_the_graph() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    drive.run(ended(graph_of(drive), "a"))
    drive.run(Pause(G, "stop"))
    drive.run(ended(graph_of(drive), "b", "failed"))
    edit(drive, remove=(("b", "no"),))
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "ok")


def test_an_extension_reopens_a_complete_graph_and_a_replan_does_not() -> None:
    drive = started(define("a"))
    drive.run(ended(graph_of(drive), "a"))
    assert refused(drive, restart=("a",)).code == "invalidTransition"
    edit(drive, add=(define("b", "a"),))
    assert (graph_of(drive).status, graph_of(drive).outcome, node(drive, "b").state) == ("active", None, "running")


def test_a_handler_may_be_added_behind_the_only_end_that_failed() -> None:
    drive = started(define("a", required=False))
    drive.run(ended(graph_of(drive), "a", "failed"))
    assert graph_of(drive).status == "blocked"
    drive.run(Extend(G, (define("mend", "a", condition='a.state == "failed"'),)), ME)
    assert (graph_of(drive).status, node(drive, "mend").state) == ("active", "running")


def test_expectations_and_dry_runs_are_those_of_every_verb() -> None:
    drive = started(define("a"), define("b"))
    drive.run(Extend(G, (define("c"),)), ME, expected_plan=1)
    with pytest.raises(Refused) as caught:
        drive.run(Extend(G, (define("d"),)), ME, expected_plan=1)
    assert (caught.value.code, caught.value.facts["planVersion"]) == ("conflict", 2)


def test_resume_alone_is_an_edit() -> None:
    drive = started(define("a"), define("b"), concurrency=1)
    drive.run(Pause(G))
    edit(drive, resume=True)
    assert graph_of(drive).status == "active"
    assert refused(drive, Resume(G)).code == "invalidTransition"
