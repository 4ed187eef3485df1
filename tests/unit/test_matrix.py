"""Every verb in every status, every fact in every attempt state: model.md's tables by hand, run against the core."""

from collections.abc import Callable
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import (
    Acknowledge,
    Cancel,
    Clear,
    Command,
    DaemonStarted,
    DeadlineReached,
    Extend,
    ExtendTimeout,
    Finish,
    Hold,
    Pause,
    Release,
    Replan,
    Resume,
    RetryNodes,
    Step,
)
from graphd.core.definition import Budget
from graphd.core.edits import Edits
from graphd.core.events import AttemptKey
from graphd.core.model import Graph, Retry
from graphd_protocol import states as tables
from graphd_protocol.ids import node_id
from tests.unit.core_drive import (
    ATTEMPT_MOVES,
    ME,
    MOVES,
    Drive,
    G,
    define,
    ended,
    graph_of,
    identified,
    live_key,
    plan,
    states,
    stuck,
)


def begin(status: str) -> Drive:
    """A graph in `status`: `a` failed; `b` runs where something can, is ready under a budget, else is achieved."""
    drive = Drive(concurrency=2)
    has_run = status in ("blocked", "complete")
    a = define("a", required=status == "blocked")
    budget = Budget(tokens=1) if status == "budget_limited" else None
    drive.run(plan(G, a, define("b", required=False), budget=budget))
    drive.run(ended(graph_of(drive), "a", "failed", reason="no"))
    if status == "budget_limited":
        drive.run(ended(graph_of(drive), "b", "failed"))
    elif has_run:
        drive.run(ended(graph_of(drive), "b"))
    elif status == "user_paused":
        drive.run(Pause(G))
    elif status == "infra_paused":
        drive.run(DaemonStarted(2, "0", 5))
    elif status == "cancelled":
        drive.run(Cancel(G))
        drive.run(ended(graph_of(drive), "b"))
    assert graph_of(drive).status == status
    return drive


VERBS: dict[str, Command] = {
    "pause": Pause(G),
    "pause --stop": Pause(G, "stop"),
    "resume": Resume(G),
    "resume --top-up": Resume(G, None, Budget(tokens=9)),
    "step": Step(G),
    "extendTimeout": ExtendTimeout(G, "b", 1000),
    "hold": Hold(G, "b"),
    "retry": RetryNodes(G, "a"),
    "finish": Finish(G, "enough"),
    "cancel": Cancel(G),
    "clear": Clear(G),
    "extend": Extend(G, (define("n"),)),
    "replan": Replan(G, Edits(restart=("a",))),
    "release": Release(G, "b", (7,)),
    "acknowledge": Acknowledge(G, ()),
}
STATUSES = ("active", "user_paused", "infra_paused", "blocked", "budget_limited", "complete", "cancelled")
NO = "invalidTransition"
# The status afterwards, `+wish` where a tree is yet to end, or the code of the refusal.
MATRIX: dict[str, tuple[str, ...]] = {
    "pause": ("user_paused", NO, NO, "user_paused", "user_paused", NO, NO),
    "pause --stop": ("active +pause", "user_paused +pause", NO, "user_paused", "user_paused", NO, NO),
    "resume": (NO, "active", "active", NO, NO, NO, NO),
    "resume --top-up": (NO, "invalidBudget", "invalidBudget", NO, "active", NO, NO),  # none of the others has a budget
    "step": (NO, NO, NO, NO, NO, NO, NO),  # something runs, or nothing is ready
    "extendTimeout": ("active", "user_paused", "infra_paused", NO, NO, NO, NO),
    "hold": (NO, NO, NO, NO, NO, NO, NO),  # no agent has a session here
    "retry": ("active", "user_paused", "infra_paused", "active", "budget_limited", "active", NO),
    "extend": ("active", "user_paused", "infra_paused", "active", "budget_limited", "active", NO),
    "replan": ("active", "user_paused", "infra_paused", "active", "budget_limited", NO, NO),
    "finish": ("active", "user_paused", "infra_paused", "complete", "complete", NO, NO),
    "cancel": ("active +cancel", "user_paused +cancel", "infra_paused +cancel", "cancelled", "cancelled", NO, NO),
    "clear": (
        "active +clear", "user_paused +clear", "infra_paused +clear", "cleared", "cleared", "cleared", "cleared",
    ),
    "release": (NO, NO, NO, NO, NO, NO, NO),  # nothing is stuck here
    "acknowledge": STATUSES,
}  # fmt: skip


def outcome_of(drive: Drive, command: Command) -> str:
    try:
        drive.run(command, ME)
    except Refused as refusal:
        return refusal.code if refusal.hint else "a refusal without a hint"
    graph = drive.state.graphs.get(G)
    if graph is None:
        return "cleared"
    return graph.status + (f" +{graph.stopping.verb}" if graph.stopping else "")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_in_each_status(verb: str, status: str) -> None:
    assert outcome_of(begin(status), VERBS[verb]) == MATRIX[verb][STATUSES.index(status)]


@pytest.mark.parametrize("status", STATUSES)
def test_the_tables_of_the_protocol_are_those_of_the_model(status: str) -> None:
    """`states.py` says the same as the matrix above."""
    for verb in ("pause", "resume", "retry", "extend", "replan", "finish", "cancel", "clear"):
        here = {MATRIX[name][STATUSES.index(status)] for name in (verb, f"{verb} --stop") if name in MATRIX}
        if tables.VERB_TABLE[verb][status] == "no":
            assert here == {NO}
        elif tables.VERB_TABLE[verb][status] not in ("can_start", "top_up"):
            assert here != {NO}
    assert set(tables.NODE_MOVES) == {(a, b) for a, row in MOVES.items() for b in row}
    assert {state: set(row) for state, row in tables.ATTEMPT_MOVES.items()} == ATTEMPT_MOVES


# ---- a wish that stands -------------------------------------------------------------------------------------------

WISHES: dict[str, Command] = {"pause": Pause(G, "stop"), "cancel": Cancel(G), "clear": Clear(G)}
UNDER_A_WISH: dict[str, tuple[str, str, str]] = {  # under pause, cancel, clear
    "pause": ("active +pause", NO, NO),
    "pause --stop": ("active +pause", NO, NO),
    "resume": (NO, NO, NO),
    "retry": (NO, NO, NO),
    "extend": (NO, NO, NO),
    "replan": (NO, NO, NO),
    "finish": (NO, NO, NO),
    "cancel": ("active +cancel", "active +cancel", NO),
    "clear": ("active +clear", "active +clear", "active +clear"),
    "acknowledge": ("active +pause", "active +cancel", "active +clear"),
}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("verb", UNDER_A_WISH)
def test_each_verb_under_each_wish(verb: str, wish: str) -> None:
    drive = begin("active")
    drive.run(WISHES[wish], ME)
    assert outcome_of(drive, VERBS[verb]) == UNDER_A_WISH[verb][list(WISHES).index(wish)]
    if UNDER_A_WISH[verb][list(WISHES).index(wish)] == NO:
        with pytest.raises(Refused, match="stopping") as caught:
            drive.run(VERBS[verb], ME)
        assert wish in caught.value.hint
        assert caught.value.facts["rev"] == graph_of(drive).rev
        assert caught.value.facts["from"] == "active"


@pytest.mark.parametrize("wish", WISHES)
def test_a_repeated_wish_changes_nothing(wish: str) -> None:
    drive = begin("active")
    drive.run(WISHES[wish], ME)
    rev = graph_of(drive).rev
    done = drive.run(WISHES[wish], ME)
    assert (done.rev, done.stopping, drive.changes, drive.effects) == (rev, ("b",), [], [])


@pytest.mark.parametrize(
    ("wish", "status", "node"),
    [("pause", "user_paused", "ready"), ("cancel", "cancelled", "cancelled"), ("clear", None, None)],
)
@pytest.mark.parametrize("way", ["ended", "released"])
def test_a_stuck_tree_keeps_the_wish_until_it_is_proven_dead(
    wish: str, status: str | None, node: str | None, way: str
) -> None:
    drive = begin("active")
    drive.run(WISHES[wish], ME)
    drive.run(stuck(graph_of(drive), "b", 7, 9))
    assert outcome_of(drive, Acknowledge(G, ())) == f"infra_paused +{wish}"
    assert "b" in (graph_of(drive).pause_reason or "")
    assert outcome_of(drive, WISHES[wish]) == f"infra_paused +{wish}", "a repeat changes nothing"
    assert outcome_of(drive, Release(G, "b", (7,))) == "stuck"
    if way == "ended":
        drive.run(ended(graph_of(drive), "b", "failed"))
    else:
        drive.run(Release(G, "b", (9, 7)), ME)
    graph = drive.state.graphs.get(G)
    assert (graph.status if graph else None) == status
    assert (states(graph)["b"] if graph else None) == node


def test_pause_with_stop_of_a_drained_graph_names_the_stuck_tree() -> None:
    drive = begin("user_paused")
    drive.run(stuck(graph_of(drive), "b", 7))
    assert graph_of(drive).status == "user_paused"
    assert outcome_of(drive, Pause(G, "stop")) == "infra_paused +pause"


# ---- attempts -----------------------------------------------------------------------------------------------------

Fact = Callable[[Graph, AttemptKey], Command]


def _end(outcome: str) -> Callable[[Graph], Command]:
    return lambda graph: ended(graph, "a", outcome, failure_class="exec_failed" if outcome == "failed" else None)


FACTS: dict[str, Callable[[Graph], Command]] = {
    "identified": lambda graph: identified(graph, "a"),
    "stuck": lambda graph: stuck(graph, "a", 7),
    "stuck on others": lambda graph: stuck(graph, "a", 8),
    "deadline": lambda graph: DeadlineReached(G, live_key(graph, "a")),
    "achieved": _end("achieved"),
    "failed": _end("failed"),
    "not_achieved": _end("not_achieved"),
    "lost": _end("lost"),
    "put_back": _end("put_back"),
}
ATTEMPTS = ("starting", "live", "stopping", "stuck")
# The attempt's state, and the node's where it moves; `stopping` is by the deadline.
FACT_MATRIX: dict[str, tuple[str, str, str, str]] = {
    "identified": ("live", "live", "stopping", "stuck"),
    "stuck": ("stuck", "stuck", "stuck", "stuck"),
    "stuck on others": ("stuck", "stuck", "stuck", "stuck"),
    "deadline": ("stopping", "stopping", "stopping", "stuck"),
    "achieved": ("achieved achieved", "achieved achieved", "achieved achieved", "achieved achieved"),
    "failed": (
        "failed failed exec_failed", "failed failed exec_failed", "failed failed timeout", "failed failed exec_failed",
    ),
    "not_achieved": (
        "not_achieved failed exec_failed", "not_achieved failed exec_failed", "failed failed timeout",
        "not_achieved failed exec_failed",
    ),
    "lost": ("lost ready", "lost ready", "failed failed timeout", "lost ready"),
    "put_back": ("put_back ready", "put_back ready", "put_back ready", "put_back ready"),
}  # fmt: skip
SILENT = {("identified", "live"), ("stuck", "stuck"), ("deadline", "stopping"), ("deadline", "stuck")}


def with_attempt(state: str, *more: Any) -> Drive:
    drive = Drive()
    drive.run(plan(G, define("a"), *more))
    if state == "live":
        drive.run(identified(graph_of(drive), "a"))
    if state == "stopping":
        drive.run(DeadlineReached(G, live_key(graph_of(drive), "a")))
    if state == "stuck":
        drive.run(stuck(graph_of(drive), "a", 7))
    drive.capacity = type(drive.capacity)(can_admit=False)
    return drive


@pytest.mark.parametrize("state", ATTEMPTS)
@pytest.mark.parametrize("fact", FACTS)
def test_each_fact_in_each_attempt_state(fact: str, state: str) -> None:
    drive = with_attempt(state)
    key = live_key(graph_of(drive), "a")
    drive.run(FACTS[fact](graph_of(drive)))
    graph = graph_of(drive)
    attempt, node = graph.attempts[key], graph.nodes[node_id("a")]
    shown: str = attempt.state
    if attempt.state == "settled":
        shown = f"{attempt.outcome} {node.state}" + (f" {node.failure.failure_class}" if node.failure else "")
        assert attempt.is_counted == (fact != "put_back")
        assert [type(e).__name__ for e in drive.effects] == ["CollectAttempt"]
    else:
        assert node.state == "running"
    assert shown == FACT_MATRIX[fact][ATTEMPTS.index(state)]
    assert bool(drive.changes) == ((fact, state) not in SILENT)


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_about_a_settled_attempt_is_dropped(fact: str) -> None:
    drive = with_attempt("live")
    command = FACTS[fact](graph_of(drive))
    drive.run(ended(graph_of(drive), "a"))
    before = graph_of(drive).rev
    drive.run(command)
    assert (drive.changes, drive.effects, graph_of(drive).rev) == ([], [], before)
    drive.run(Clear(G))
    drive.run(command)
    assert drive.changes == []


# ---- what a stop makes of an end ----------------------------------------------------------------------------------

STOPPED: dict[str, tuple[str, str]] = {  # attempt and node under pause, under cancel
    "achieved": ("achieved achieved", "cancelled cancelled"),
    "failed": ("paused ready", "cancelled cancelled"),
    "lost": ("paused ready", "cancelled cancelled"),
    "put_back": ("paused ready", "cancelled cancelled"),
}


@pytest.mark.parametrize("end", STOPPED)
@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_result_counts_for_a_pause_and_is_kept_as_output_only_for_a_cancel(verb: str, end: str) -> None:
    drive = with_attempt("live", define("b", "a"))
    drive.run(WISHES[verb], ME)
    key = live_key(graph_of(drive), "a")
    drive.run(ended(graph_of(drive), "a", end, text="words"))
    graph = graph_of(drive)
    node = graph.nodes[node_id("a")]
    assert f"{graph.attempts[key].outcome} {node.state}" == STOPPED[end][verb == "cancel"]
    assert (node.output is not None) == (verb == "cancel" or end == "achieved")
    is_uncounted = end == "put_back" or (verb == "pause" and end != "achieved")
    assert (graph.attempts[key].is_counted, node.attempts) == (not is_uncounted, 0 if is_uncounted else 1)
    assert graph.status == ("cancelled" if verb == "cancel" else "user_paused")
    assert graph.stopping is None


# ---- retry of a node in each state --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "expected"),
    [("waiting", NO), ("ready", NO), ("running", NO), ("achieved", NO), ("failed", "active"),
     ("blocked", "upstreamNotAchieved"),
     ("skipped", "active"), ("cancelled", NO), ("absent", "notFound")],
)  # fmt: skip
def test_retry_of_a_node_in_each_state(state: str, expected: str) -> None:
    drive = Drive(concurrency=1)
    skipped = define("skipped", "achieved", condition='achieved.state == "failed"', required=False)
    drive.run(
        plan(
            G, define("achieved", priority=9), skipped, define("failed", priority=8), define("blocked", "failed"),
            define("running", priority=7), define("ready"), define("waiting", "ready"),
        )
    )  # fmt: skip
    drive.run(ended(graph_of(drive), "achieved"))
    drive.run(ended(graph_of(drive), "failed", "failed"))
    if state == "cancelled":
        drive.run(Cancel(G))
        state = "ready"
    else:
        assert all(states(graph_of(drive))[name] == name for name in states(graph_of(drive)))
    assert outcome_of(drive, RetryNodes(G, state)) == expected


def test_every_move_of_a_node_that_needs_no_gate_and_no_replan_happens() -> None:
    moves: set[tuple[str, str]] = set()
    for closing in (Cancel(G), Finish(G, "enough")):
        drive = Drive(concurrency=2)
        drive.run(
            plan(
                G, define("a", required=False, priority=5, retry=Retry(1, 0)), define("b", "a", required=False),
                define("d", "a", condition='a.state == "achieved"', required=False),
                define("e", priority=4), define("f", "e"), define("g", "e", "a"), define("h", required=False),
                define("i", "a", condition="a.output > 1", required=False), define("j", "a", "h", required=False),
                define("k", priority=-1), define("l", priority=-2),
            )
        )  # fmt: skip
        drive.run(ended(graph_of(drive), "a", "failed", failure_class="exec_failed"))
        drive.run(ended(graph_of(drive), "e", "failed"))
        drive.run(ended(graph_of(drive), "a", "failed", failure_class="exec_failed"))
        assert states(graph_of(drive)) == {
            "a": "failed", "b": "skipped", "d": "skipped", "e": "failed", "f": "blocked", "g": "blocked",
            "h": "running", "i": "failed", "j": "waiting", "k": "running", "l": "ready",
        }  # fmt: skip
        drive.run(closing)
        drive.run(ended(graph_of(drive), "h"))
        drive.run(ended(graph_of(drive), "k"))
        moves |= drive.moves

    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", priority=1, required=False), define("b", required=False), define("c", "a", "b")))
    drive.run(ended(graph_of(drive), "a", "failed"))
    drive.run(ended(graph_of(drive), "b"))
    drive.run(Pause(G, "stop"))
    drive.run(ended(graph_of(drive), "c", "failed"))
    drive.run(RetryNodes(G, "a"))
    assert states(graph_of(drive)) == {"a": "ready", "b": "achieved", "c": "waiting"}, "c waits for its input again"
    drive.run(Finish(G, "enough"))
    moves |= drive.moves

    drive = Drive()
    drive.run(plan(G, define("a", required=False), define("b", "a", required=False), define("c"), define("d", "c")))
    drive.run(ended(graph_of(drive), "a", "failed"))
    drive.run(ended(graph_of(drive), "c", "failed"))
    assert states(graph_of(drive)) == {"a": "failed", "b": "skipped", "c": "failed", "d": "blocked"}
    drive.run(RetryNodes(G))
    assert states(graph_of(drive)) == {"a": "running", "b": "waiting", "c": "running", "d": "waiting"}
    moves |= drive.moves

    drive = Drive(profiles=())
    drive.run(plan(G, define("a", required=False), define("b", required=False)))
    moves |= drive.moves

    later = {
        ("achieved", "waiting"),
        ("running", "waiting"),
        ("cancelled", "waiting"),
        ("failed", "cancelled"),
    }  # gates, replan
    assert moves == {(a, b) for a, row in MOVES.items() for b in row} - later
