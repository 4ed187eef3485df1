"""Budgets: what is counted, who is admitted near the end, when it trips, and how it goes on."""

from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.budget import check_reports, reserved, used
from graphd.core.commands import (
    AttemptUsed,
    Cancel,
    Capacity,
    Estimate,
    Finish,
    MachineSlept,
    Pause,
    Release,
    Resume,
    RetryNodes,
    Step,
    Tick,
)
from graphd.core.definition import Budget, Definition, Terms, Verify
from graphd.core.events import WakeAt
from graphd.core.model import Limits, Spent
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, ended, graph_of, identified, live_key, plan, states, stuck

AGENT: dict[str, Any] = {"profiles": (("shell", "shell"), ("build", "claude"))}


def agents(*slugs: str, budget: Budget, needs: tuple[str, ...] = (), **capacity: Any) -> Drive:
    """A graph of nodes for an agent that says what it uses."""
    drive = Drive(**{**AGENT, **capacity})
    drive.run(plan(G, *(Definition(slug, "x", "build", needs=needs, required=True) for slug in slugs), budget=budget))
    return drive


def use(drive: Drive, slug: str, tokens: int, cost: float | None = 0.0) -> None:
    drive.run(AttemptUsed(G, live_key(graph_of(drive), slug), Spent(tokens, cost)))


def end(drive: Drive, slug: str, outcome: str = "achieved", **spent: Any) -> None:
    drive.run(ended(graph_of(drive), slug, outcome, spent=Spent(**spent)))


def running(drive: Drive) -> list[str]:
    return [slug for slug, state in states(graph_of(drive)).items() if state == "running"]


def events(drive: Drive, kind: str) -> list[dict[str, Any]]:
    return [event.payload for event in drive.log if event.kind == kind]


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [Budget(), Budget(tokens=0), Budget(tokens=5, cost_usd=-1.0), Budget(wall_ms=0)])
def test_a_budget_of_nothing_is_refused(budget: Budget) -> None:
    with pytest.raises(Refused) as refused:
        Drive().run(plan(G, define("a"), budget=budget))
    assert refused.value.code == "invalidBudget"


@pytest.mark.parametrize(
    ("budget", "reports", "is_kept"),
    [
        (Budget(tokens=5), "none", False),
        (Budget(tokens=5), "cost", False),
        (Budget(tokens=5), "tokens", True),
        (Budget(cost_usd=1.0), "tokens", False),
        (Budget(cost_usd=1.0), "both", True),
        (Budget(tokens=5, cost_usd=1.0), "not_applicable", True),
        (Budget(wall_ms=5), "none", True),
        (None, "none", True),
    ],
)
def test_an_agent_that_does_not_say_what_is_counted_can_not_keep_a_budget(
    budget: Budget | None, reports: Any, is_kept: bool
) -> None:
    command = plan(G, define("a"), budget=budget, reports=(("shell", reports),))
    if is_kept:
        Drive().run(command)
        return
    with pytest.raises(Refused, match="does not say what it uses") as refused:
        Drive().run(command)
    assert (refused.value.code, refused.value.facts["node"]) == ("invalidBudget", "a")


def test_who_checks_a_result_is_counted_too() -> None:
    checked = define("a", verify=Verify(worker="review", criteria="it holds"))
    reports = (("shell", "not_applicable"), ("review", "none"))
    with pytest.raises(Refused, match=r"a \(review\) does not say"):
        Drive().run(plan(G, checked, budget=Budget(tokens=5), reports=reports))
    last = plan(G, define("a"), budget=Budget(tokens=5), terms=Terms(final_check=True), reports=(("verify", "none"),))
    with pytest.raises(Refused, match="gn-final"):
        Drive().run(last)


def test_a_worker_whose_agent_nobody_knows_is_let_pass() -> None:
    check_reports(Budget(tokens=1), (define("a"),), {"build": "none"})


# ---- reservations and admission -------------------------------------------------------------------------------------


def test_what_runs_has_its_estimate_set_aside() -> None:
    drive = agents(
        "a", "b", budget=Budget(tokens=200_000, cost_usd=9.0), estimates=(("claude", Estimate(60_000, 1.5)),)
    )
    assert reserved(drive.state, graph_of(drive), drive.capacity)[:2] == (120_000, 3.0)
    use(drive, "a", 20_000, 1.0)
    assert reserved(drive.state, graph_of(drive), drive.capacity)[:2] == (100_000, 2.0)
    use(drive, "a", 70_000, 2.0)
    assert reserved(drive.state, graph_of(drive), drive.capacity)[:2] == (60_000, 1.5), "never less than nothing"
    assert used(drive.state, graph_of(drive), drive.now)[:2] == (70_000, 2.0)


def test_only_as_many_are_admitted_as_the_budget_has_room_for() -> None:
    drive = agents("a", "b", "c", budget=Budget(tokens=100_000))
    assert running(drive) == ["a", "b"], "an estimate of 50,000 each"
    end(drive, "a", tokens=10_000, wall_ms=1)
    assert running(drive) == ["b", "c"], "what the first one used tells what the next will"


def test_the_median_of_what_was_used_is_the_estimate() -> None:
    drive = agents(*"abcdefg", budget=Budget(tokens=1_000_000, cost_usd=99.0), concurrency=3)
    for slug, tokens, cost in (("a", 1000, None), ("b", 3000, 2.0), ("c", 500_000, 4.0)):
        end(drive, slug, tokens=tokens, cost_usd=cost)
    drive.run(Resume(G), ME)  # one of them hid its cost
    assert running(drive) == ["d", "e", "f"]
    assert reserved(drive.state, graph_of(drive), drive.capacity)[:2] == (9000, 9.0)
    end(drive, "d", "lost", tokens=9)
    assert reserved(drive.state, graph_of(drive), drive.capacity)[0] == 9000, "what was interrupted tells nothing"


def test_the_estimate_looks_at_the_last_hundred_alone() -> None:
    drive = Drive(check=False, **AGENT)
    nodes = [Definition(f"n{i}", "x", "build", required=True) for i in range(103)]
    drive.run(plan(G, *nodes, budget=Budget(tokens=10**9), limits=Limits(max_nodes=200)))
    for i in range(102):
        end(drive, f"n{i}", tokens=1 if i < 51 else 5)
    assert reserved(drive.state, graph_of(drive), drive.capacity)[0] == 5


def test_near_the_end_one_runs_at_a_time_and_the_last_has_the_rest_as_its_limit() -> None:
    drive = agents("a", "b", budget=Budget(tokens=30_000, cost_usd=2.0))
    assert running(drive) == ["a"]
    attempt = graph_of(drive).attempts[live_key(graph_of(drive), "a")]
    assert attempt.limit == Budget(tokens=30_000, cost_usd=2.0)
    end(drive, "a", tokens=25_000, cost_usd=0.5)
    attempt = graph_of(drive).attempts[live_key(graph_of(drive), "b")]
    assert attempt.limit == Budget(tokens=5000, cost_usd=1.5)
    end(drive, "b", tokens=4000, cost_usd=0.5)
    assert graph_of(drive).status == "complete"


def test_a_shell_uses_nothing_and_is_never_held() -> None:
    drive = Drive(**AGENT)
    drive.run(plan(G, define("a"), Definition("b", "x", "build", required=True), define("c"), budget=Budget(tokens=10)))
    assert running(drive) == ["a", "b", "c"], "an agent beside shells is still the only one of its kind"
    assert reserved(drive.state, graph_of(drive), drive.capacity)[0] == 50_000


# ---- what is counted ------------------------------------------------------------------------------------------------


def test_every_role_is_counted_and_interrupted_ones_too() -> None:
    drive = agents("a", budget=Budget(tokens=100_000))
    use(drive, "a", 700, 0.25)
    use(drive, "a", 400, 0.25)  # totals never fall
    drive.run(ended(graph_of(drive), "a", "lost", spent=Spent()))
    graph = graph_of(drive)
    assert (graph.spent.tokens, graph.spent.cost_usd) == (700, 0.25)
    assert graph.spent_by_role["worker"].tokens == 700
    assert not drive.state.used, "what is settled is in the log"


def test_what_the_run_knows_better_than_the_usage_facts_is_kept() -> None:
    drive = agents("a", budget=Budget(tokens=100_000))
    use(drive, "a", 700, None)
    end(drive, "a", tokens=900, cost_usd=1.0, wall_ms=5)
    assert graph_of(drive).nodes[node_id("a")].spent == Spent(900, 1.0, 5)


def test_a_cost_that_nobody_knows_is_said_to_be_partial_never_none() -> None:
    drive = agents("a", "b", budget=Budget(tokens=1_000_000))
    end(drive, "a", tokens=5, cost_usd=None)
    graph = graph_of(drive)
    assert (graph.spent.cost_usd, graph.cost_is_partial) == (None, True)
    end(drive, "b", tokens=5, cost_usd=0.5)
    assert (graph.spent.cost_usd, graph.cost_is_partial) == (0.5, True)
    assert graph.spent_by_role["worker"].cost_usd is None


@pytest.mark.parametrize("spent", [Spent(0, 0.5), Spent(7, None)])
def test_usage_that_is_not_said_holds_a_graph_with_a_budget(spent: Spent) -> None:
    drive = agents("a", "b", budget=Budget(tokens=10, cost_usd=1.0))
    drive.run(ended(graph_of(drive), "a", spent=spent))
    graph = graph_of(drive)
    assert (graph.status, graph.pause_cause) == ("infra_paused", "usage")
    assert "did not say what it used" in (graph.pause_reason or "")
    drive.run(Resume(G), ME)
    assert graph_of(drive).status == "active"


def test_a_lost_attempt_that_said_nothing_is_no_silent_one() -> None:
    drive = agents("a", budget=Budget(tokens=10))
    end(drive, "a", "lost")
    assert graph_of(drive).status == "active"


# ---- the trip -------------------------------------------------------------------------------------------------------


def test_a_budget_trips_inside_a_running_child_and_what_runs_goes_back_to_ready() -> None:
    drive = agents("a", "b", budget=Budget(tokens=100_000))
    use(drive, "a", 60_000)
    assert not drive.changes, "usage is no event"
    use(drive, "b", 40_000)
    graph = graph_of(drive)
    assert graph.stopping is not None
    assert (graph.stopping.verb, graph.stopping.by) == ("budget", "daemon")
    assert events(drive, "budget_reached") == [
        {"unit": "tokens", "limit": 100_000, "spent": 100_000,
         "reason": "the budget is spent: 100000 tokens of 100000 tokens"}
    ]  # fmt: skip
    assert [effect.attempt[0] for effect in drive.effects] == [node_id("a"), node_id("b")]  # type: ignore[union-attr]
    end(drive, "a", "failed", tokens=60_000, wall_ms=1)
    assert graph_of(drive).status == "active", "the status when the last tree is empty"
    end(drive, "b", "failed", tokens=41_000, wall_ms=1)
    assert graph_of(drive).stopping is None
    assert (graph.status, states(graph)) == ("budget_limited", {"a": "ready", "b": "ready"})
    assert [a.outcome for a in graph.attempts.values()] == ["paused", "paused"]
    assert graph.nodes[node_id("a")].attempts == 0, "a resource stop is never a verdict"
    assert graph.spent.tokens == 101_000


def test_a_result_that_arrives_while_it_stops_counts() -> None:
    drive = agents("a", "b", needs=(), budget=Budget(tokens=100))
    use(drive, "a", 100)
    end(drive, "a", "achieved", tokens=100)
    assert (graph_of(drive).status, states(graph_of(drive))) == ("budget_limited", {"a": "achieved", "b": "ready"})


def test_the_last_node_completes_whatever_it_used() -> None:
    drive = agents("a", budget=Budget(tokens=100))
    end(drive, "a", tokens=500)
    assert graph_of(drive).status == "complete"


def test_a_settlement_trips_too_and_starts_nothing_more() -> None:
    drive = agents("a", "b", budget=Budget(tokens=100))
    end(drive, "a", tokens=500)
    assert (graph_of(drive).status, running(drive)) == ("budget_limited", [])


def test_what_a_budget_stops_is_blocked_by_nothing_less() -> None:
    """Precedence: complete, budget_limited, blocked."""
    drive = Drive(**AGENT)
    a = Definition("a", "x", "build", required=True)
    drive.run(plan(G, a, budget=Budget(tokens=100)))
    use(drive, "a", 100)
    end(drive, "a", "failed", tokens=100)
    assert graph_of(drive).status == "budget_limited"
    drive.run(Finish(G, "enough"), ME)
    assert graph_of(drive).status == "complete"


def test_a_failure_that_ends_a_graph_whose_budget_is_spent_leaves_it_budget_limited() -> None:
    drive = Drive(**AGENT)
    drive.run(plan(G, define("a"), define("b"), budget=Budget(tokens=100)))
    drive.run(Pause(G), ME)
    drive.run(Resume(G), ME)
    end(drive, "a", "failed", tokens=100)
    graph = graph_of(drive)
    assert graph.stopping is not None
    end(drive, "b", "achieved", tokens=1)
    assert (graph.status, states(graph)) == ("budget_limited", {"a": "failed", "b": "achieved"})


@pytest.mark.parametrize("on_failure", ["drain", "stop"])
def test_a_failure_whose_own_settlement_spends_the_budget_leaves_it_budget_limited(on_failure: Any) -> None:
    drive = Drive(**AGENT)
    terms = Terms(on_required_failure=on_failure)
    drive.run(plan(G, define("a"), define("b", "a"), budget=Budget(tokens=100), terms=terms))
    end(drive, "a", "failed", tokens=100)
    graph = graph_of(drive)
    assert (graph.status, states(graph)) == ("budget_limited", {"a": "failed", "b": "blocked"})
    drive.run(RetryNodes(G), ME)
    drive.run(Resume(G, None, Budget(tokens=9)), ME)
    assert running(drive) == ["a"]


def test_a_stronger_wish_takes_the_place_of_the_budgets() -> None:
    drive = agents("a", "b", budget=Budget(tokens=100))
    use(drive, "a", 100)
    with pytest.raises(Refused, match="it is stopping"):
        drive.run(Resume(G, None, Budget(tokens=9)), ME)
    drive.run(Pause(G), ME)
    end(drive, "a", "failed", tokens=100)
    assert graph_of(drive).status == "user_paused"
    drive.run(Cancel(G), ME)
    assert graph_of(drive).status == "cancelled"


def test_a_stuck_tree_holds_the_trip_up_and_keeps_the_wish() -> None:
    drive = agents("a", budget=Budget(tokens=100))
    drive.run(stuck(graph_of(drive), "a", 7))
    use(drive, "a", 100)
    graph = graph_of(drive)
    assert (graph.status, graph.pause_cause) == ("infra_paused", "stuck")
    assert graph.stopping is not None
    drive.run(Release(G, "a", (7,)), ME)
    assert (graph.status, states(graph)["a"]) == ("budget_limited", "ready")


def test_running_children_of_a_paused_graph_are_stopped_as_well() -> None:
    drive = agents("a", "b", budget=Budget(tokens=100_000))
    drive.run(Pause(G), ME)
    use(drive, "a", 100_000)
    assert graph_of(drive).stopping is not None
    for slug in "ab":
        end(drive, slug, "failed", tokens=100_000)
    assert graph_of(drive).status == "budget_limited"


# ---- wall time ------------------------------------------------------------------------------------------------------


def test_wall_time_is_time_in_which_something_runs() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b"), define("c", "a", "b"), budget=Budget(wall_ms=60_000)))
    drive.tick(10_000)
    end(drive, "a", wall_ms=9_999)
    drive.tick(5_000)
    graph = graph_of(drive)
    assert used(drive.state, graph, drive.now).wall_ms == 15_000
    drive.run(Pause(G), ME)
    end(drive, "b", wall_ms=14_999)
    drive.tick(500_000)
    assert (graph.spent.wall_ms, graph.busy_since) == (15_000, None), "two at once count once, a pause not at all"
    assert graph.nodes[node_id("a")].spent.wall_ms == 9_999, "an attempt's own time"


def test_wall_time_trips_by_a_timer() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), budget=Budget(wall_ms=60_000)))
    assert WakeAt(drive.now + 60_000) in drive.effects
    drive.tick(59_999)
    assert graph_of(drive).stopping is None
    drive.tick(1)
    assert graph_of(drive).stopping is not None
    end(drive, "a", "failed", wall_ms=1)
    assert graph_of(drive).pause_reason == "the budget is spent: 60 s of 60 s"


def test_sleep_of_the_machine_is_no_wall_time() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), budget=Budget(wall_ms=60_000)))
    drive.run(plan("other", define("a")))
    end_of_other = ended(drive.state.graphs["other"], "a")
    drive.run(end_of_other)
    drive.now += 100_000
    drive.run(MachineSlept(90_000))
    assert [change.graph for change in drive.changes] == [G], "nothing ran in the other"
    assert graph_of(drive).stopping is None
    drive.tick(50_000)
    assert graph_of(drive).stopping is not None


def test_a_timer_of_a_graph_that_is_gone_harms_nobody() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), budget=Budget(wall_ms=1000)))
    end(drive, "a")
    drive.tick(5000)
    assert (graph_of(drive).status, drive.changes) == ("complete", [])


# ---- topping up -----------------------------------------------------------------------------------------------------


def limited(budget: Budget, **spent: Any) -> Drive:
    drive = agents("a", "b", budget=budget)
    end(drive, "a", **spent)
    if running(drive):
        end(drive, "b", "failed")
    assert graph_of(drive).status == "budget_limited"
    return drive


def test_a_top_up_sets_the_budget_to_what_is_spent_and_so_much() -> None:
    drive = limited(Budget(tokens=100, cost_usd=5.0), tokens=150, cost_usd=0.5)
    drive.run(Resume(G, None, Budget(tokens=1000)), ME)
    graph = graph_of(drive)
    assert (graph.status, graph.budget, running(drive)) == ("active", Budget(tokens=1150, cost_usd=5.0), ["b"])


@pytest.mark.parametrize(
    ("more", "code", "hint"),
    [
        (None, "invalidTransition", "--top-up 200k"),
        (Budget(cost_usd=5.0), "invalidTransition", "--top-up 200k"),
        (Budget(wall_ms=5), "invalidBudget", "status"),
        (Budget(), "invalidBudget", "wallSeconds"),
    ],
)
def test_a_budget_that_would_still_be_spent_is_not_resumed(more: Budget | None, code: str, hint: str) -> None:
    drive = limited(Budget(tokens=100, cost_usd=5.0), tokens=150, cost_usd=0.5)
    with pytest.raises(Refused) as refused:
        drive.run(Resume(G, None, more), ME)
    assert refused.value.code == code
    assert hint in refused.value.hint


def test_a_graph_without_a_budget_gets_none_by_a_top_up() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), start=False))
    with pytest.raises(Refused, match="no budget in tokens"):
        drive.run(Resume(G, None, Budget(tokens=1)), ME)


def test_cost_is_shown_as_money() -> None:
    drive = limited(Budget(cost_usd=1.0), tokens=1, cost_usd=1.25)
    assert graph_of(drive).pause_reason == "the budget is spent: 1.25 USD of 1.00 USD"


def test_time_that_is_topped_up_while_it_runs_is_waited_for() -> None:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a"), budget=Budget(wall_ms=60_000)))
    drive.tick(30_000)
    drive.run(Pause(G), ME)
    drive.run(Resume(G, None, Budget(wall_ms=60_000)), ME)
    assert graph_of(drive).budget == Budget(wall_ms=90_000)
    drive.tick(59_999)
    assert graph_of(drive).stopping is None
    drive.tick(1)
    assert graph_of(drive).stopping is not None


def test_a_retry_does_not_get_past_the_budget() -> None:
    drive = Drive(**AGENT)
    drive.run(plan(G, define("a"), define("b", "a"), budget=Budget(tokens=100)))
    drive.run(Pause(G), ME)
    end(drive, "a", "failed", tokens=100)
    assert graph_of(drive).status == "blocked", "paused already: nothing was left that the budget could stop"
    drive.run(RetryNodes(G, "a"), ME)
    assert (graph_of(drive).status, running(drive)) == ("budget_limited", [])
    with pytest.raises(Refused):
        drive.run(Step(G), ME)


def test_usage_of_an_attempt_that_is_settled_is_dropped() -> None:
    drive = agents("a", "b", budget=Budget(tokens=10**6))
    late = AttemptUsed(G, live_key(graph_of(drive), "a"), Spent(10**7))
    end(drive, "a", tokens=1)
    drive.run(late)
    assert graph_of(drive).stopping is None
    assert not drive.state.used


def test_nothing_is_looked_at_where_there_is_no_budget() -> None:
    drive = Drive(**AGENT)
    drive.run(plan(G, Definition("a", "x", "build")))
    use(drive, "a", 10**9)
    drive.run(identified(graph_of(drive), "a"))
    drive.run(Tick())
    assert graph_of(drive).status == "active"


def test_a_capacity_knows_that_a_shell_is_free() -> None:
    assert dict(Capacity().reports) == {"shell": "not_applicable"}


def test_attempts_from_before_there_were_clocks_are_summed_as_they_were() -> None:
    """A log of an earlier version says nothing of a clock: what was stored then has to come out of it again."""
    drive = Drive(check=False)
    drive.run(plan(G, define("a")))
    graph = graph_of(drive)
    graph.busy_since = None
    for attempt in graph.attempts.values():
        attempt.clock = None
    drive.tick(1000)
    drive.run(MachineSlept(500))
    end(drive, "a", tokens=3, cost_usd=None, wall_ms=7)
    assert (graph.spent, graph.spent_by_role, graph.cost_is_partial) == (Spent(3, None, 7), {}, False)
