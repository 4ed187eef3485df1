"""Rounds of worker and check: results count when the check says so, gaps go back, whatever is missing fails closed."""

import json
from typing import Any

import pytest

from graphd.core.commands import (
    AttemptSaid,
    AttemptStuck,
    Cancel,
    Clear,
    DaemonStarted,
    Pause,
    ProfileCooling,
    Replan,
    Resume,
)
from graphd.core.definition import Budget, Verify
from graphd.core.edits import Edits
from graphd.core.events import PromptAttempt, StartAttempt, StopAttempt, WakeAt
from graphd.core.model import Attempt, Graph, Limits, Node, Output, Spent
from graphd.core.policy import Leave
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, define, ended, identified, plan, states

G = "g"
A = node_id("a")
BY_COMMAND, BY_CHILD = Verify(run="make test"), Verify(worker="verify", criteria="all green")


class Checked:
    """A graph with a checked node `a` and a node that needs it."""

    def __init__(
        self,
        check: Verify | None = BY_CHILD,
        *,
        limits: Limits | None = None,
        has_verifier: bool = True,
        budget: Budget | None = None,
        also: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        served = (("shell", "shell"), ("build", "acp"), ("verify", "acp"))
        self.drive = Drive(profiles=served if has_verifier else served[:2])
        worker = "shell" if check is not None and check.run else "build"
        self.drive.run(
            plan(
                G,
                define("a", verify=check, worker=worker, **more),
                define("after", "a"),
                *map(define, also),
                limits=limits,
                budget=budget,
            )
        )
        self.drive.run(identified(self.graph, "a"))

    @property
    def graph(self) -> Graph:
        return self.drive.state.graphs[G]

    @property
    def node(self) -> Node:
        return self.graph.nodes[A]

    def attempt(self, role: Any = "worker") -> Attempt:
        return [a for a in self.graph.attempts.values() if (a.node, a.role) == (A, role)][-1]

    def candidate(self, text: str = "result", broken: str | None = None) -> None:
        output = Output(text, len(text), "text/plain")
        self.drive.run(AttemptSaid(G, self.attempt().key, Leave(), candidate=output, broken=broken))

    def end(self, role: Any = "worker", outcome: Any = "achieved", text: str | None = None, **more: Any) -> None:
        fact = ended(self.graph, "a", outcome, text, **more)
        self.drive.run(fact._replace(attempt=self.attempt(role).key))

    def judge(self, verdict: Any, *gaps: str) -> None:
        self.end("verifier", text=json.dumps({"verdict": verdict, "gaps": list(gaps)}))


def test_a_command_that_ends_well_is_the_evidence() -> None:
    run = Checked(BY_COMMAND)
    run.end(text="made")
    check = run.attempt("verifier")
    assert (run.node.state, check.worker, check.number) == ("running", "shell", 1)
    assert StartAttempt(G, check.key) in run.drive.effects
    run.end("verifier", exit_code=0)
    assert run.node.state == "achieved"
    assert run.node.output is not None
    assert run.node.output.text == "made"
    (found,) = run.node.evidence
    assert (found["is_achieved"], found["command"], found["exit_code"], found["by"]) == (
        True, "make test", 0, "a.verifier@1",
    )  # fmt: skip


def test_a_command_that_fails_fails_the_node_with_what_it_said() -> None:
    run = Checked(BY_COMMAND)
    run.end(text="made")
    run.end("verifier", "failed", failure_class="exec_failed", reason="exit code 2: red", exit_code=2)
    assert run.node.failure is not None
    assert (run.node.failure.failure_class, run.node.failure.reason) == ("verdict_fail", "exit code 2: red")
    assert run.node.gaps == "exit code 2: red"


def test_a_worker_that_talks_waits_for_its_check_and_goes_on_with_the_gaps() -> None:
    run = Checked()
    run.candidate("first")
    assert (run.attempt().state, run.node.rounds) == ("live", 1)
    run.judge("not_achieved", "no tests", "no docs")
    assert PromptAttempt(G, run.attempt().key) in run.drive.effects
    assert run.node.gaps == "no tests\nno docs"
    run.candidate("second")
    run.judge("achieved")
    assert run.attempt().stop_reason == "end_of_turn"
    run.end(text="second")
    assert run.node.state == "achieved"
    assert run.node.output is not None
    assert run.node.output.text == "second"
    assert [(e["round"], e["is_achieved"]) for e in run.node.evidence] == [(1, False), (2, True)]


def test_a_result_that_breaks_its_contract_goes_back_and_no_check_looks_at_it() -> None:
    run = Checked()
    run.candidate("{}", broken="n is missing")
    assert PromptAttempt(G, run.attempt().key) in run.drive.effects
    assert (run.node.gaps, run.node.rounds, run.node.candidate) == ("n is missing", 1, None)
    assert {key[1] for key in run.graph.live} == {"worker"}
    run.candidate('{"n": 1}')
    run.candidate("{}", broken="n is missing")
    assert run.node.rounds == 2, "what is checked is not overtaken"
    run.judge("achieved")
    run.end(text='{"n": 1}')
    assert run.node.state == "achieved"
    assert run.node.output is not None
    assert run.node.output.text == '{"n": 1}'
    assert [(e["by"], e["is_achieved"]) for e in run.node.evidence] == [("contract", False), ("a.verifier@1", True)]


@pytest.mark.parametrize(("check", "most", "rounds"), [(BY_CHILD, 3, 3), (None, 3, 2), (None, 1, 1)])
def test_a_contract_that_stays_broken_is_the_reason(check: Verify | None, most: int, rounds: int) -> None:
    run = Checked(check, limits=Limits(rounds_per_attempt=most))
    for _ in range(rounds):
        assert run.attempt().failing is None
        run.candidate("{}", broken="n is missing")
    assert run.node.rounds == rounds
    assert run.attempt().stop_reason == "end_of_turn"
    run.end(outcome="failed", failure_class="exec_failed")
    assert run.node.failure is not None
    assert (run.node.failure.failure_class, run.node.failure.reason) == ("verdict_fail", "n is missing")


def test_a_check_by_an_agent_that_rests_waits_with_its_worker() -> None:
    run = Checked()
    run.drive.run(ProfileCooling(G, run.attempt().key, "acp", run.drive.now + 30_000, "overloaded"))
    run.candidate()
    assert {key[1] for key in run.graph.live} == {"worker"}
    assert WakeAt(run.drive.now + 30_000) in run.drive.effects
    run.drive.tick(30_000)
    run.judge("achieved")
    run.end(text="result")
    assert run.node.state == "achieved"


def test_a_check_that_waits_ends_with_its_graph_and_a_command_waits_for_nobody() -> None:
    run = Checked()
    run.drive.run(ProfileCooling(G, run.attempt().key, "acp", run.drive.now + 30_000, "overloaded"))
    run.candidate()
    run.drive.run(Cancel(G, "no"), ME)
    run.end(outcome="cancelled")
    assert (run.node.state, run.graph.status, run.drive.state.checks) == ("cancelled", "cancelled", {})
    shell = Checked(BY_COMMAND)
    shell.drive.run(ProfileCooling(G, shell.attempt().key, "shell", shell.drive.now + 30_000, "overloaded"))
    shell.end(text="made")
    assert shell.attempt("verifier").state == "starting"


def test_a_contract_that_was_mended_without_a_check_gives_the_mended_result() -> None:
    run = Checked(None)
    run.candidate("{}", broken="n is missing")
    run.candidate('{"n": 1}')
    assert run.attempt().stop_reason == "end_of_turn"
    run.end(text='{"n": 1}')
    assert run.node.state == "achieved"
    assert run.node.output is not None
    assert run.node.output.text == '{"n": 1}'


def test_a_second_result_while_the_first_is_checked_is_none() -> None:
    run = Checked()
    run.candidate("first")
    run.candidate("second")
    assert run.node.rounds == 1
    assert run.node.candidate is not None
    assert run.node.candidate.text == "first"


def test_when_the_rounds_are_used_up_the_last_gaps_are_the_reason() -> None:
    run = Checked(limits=Limits(rounds_per_attempt=2))
    for gap in ("one", "two"):
        run.candidate()
        run.judge("not_achieved", gap)
    assert run.attempt().stop_reason == "end_of_turn"
    run.end(outcome="failed", failure_class="exec_failed")
    assert run.node.failure is not None
    assert (run.node.failure.failure_class, run.node.failure.reason) == ("verdict_fail", "two")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "the check's answer is no verdict"),
        ("looks great!", "the check's answer is no verdict"),
        ('["achieved"]', "the check's answer is no verdict"),
        ('{"verdict": "yes"}', "the check's answer is no verdict"),
        ('{"verdict": "not_achieved"}', "the check named no gaps"),
        ('{"verdict": "not_achieved", "gaps": "docs"}', "docs"),
        ('{"verdict": "achieved", "gaps": ["docs"]}', "docs"),
    ],
    ids=["nothing", "flattery", "a list", "another word", "no gaps", "a text", "achieved with gaps"],
)
def test_a_verifier_that_omits_lies_or_flatters_fails_closed(text: str | None, expected: str) -> None:
    run = Checked()
    run.candidate()
    run.end("verifier", text=text)
    assert run.node.gaps == expected
    assert run.node.state == "running"


def test_a_verdict_that_is_cut_off_is_none() -> None:
    run = Checked()
    run.candidate()
    fact = ended(run.graph, "a", "achieved", '{"verdict": "achieved", "gaps": []}')
    assert fact.output is not None
    run.drive.run(
        fact._replace(attempt=run.attempt("verifier").key, output=Output(fact.output.text, 99, "x", is_cut=True))
    )
    assert run.node.gaps == "the check's answer is no verdict"


def test_a_verifier_that_fails_is_no_verdict() -> None:
    run = Checked()
    run.candidate()
    run.end("verifier", "failed", failure_class="exec_failed", reason="it crashed")
    assert run.node.gaps == "the check gave no verdict: it crashed"


def test_a_check_that_was_lost_is_made_again() -> None:
    run = Checked(BY_COMMAND)
    run.end(text="made")
    run.end("verifier", "lost")
    assert run.attempt("verifier").number == 2
    run.end("verifier")
    assert run.node.state == "achieved"


def test_a_check_that_is_always_lost_ends_without_a_verdict() -> None:
    run = Checked(BY_COMMAND, limits=Limits(attempts_per_node=1))
    run.end(text="made")
    for _ in range(3):
        run.end("verifier", "lost", reason="gone")
    assert run.node.state == "failed"
    assert run.node.failure is not None
    assert run.node.failure.failure_class == "lost"


def test_the_same_while_the_worker_lives_fails_closed() -> None:
    run = Checked(limits=Limits(attempts_per_node=1))
    run.candidate()
    for _ in range(3):
        run.end("verifier", "lost", reason="gone")
    run.end()
    assert run.node.failure is not None
    assert run.node.failure.failure_class == "verdict_fail"
    assert run.node.failure.reason == "its check never gave a verdict: gone"


def test_a_worker_that_dies_while_it_is_checked_takes_the_check_with_it() -> None:
    run = Checked()
    run.candidate()
    run.end(outcome="lost", reason="gone")
    assert (run.node.state, run.attempt("verifier").state) == ("running", "stopping")
    run.end("verifier", "failed")
    assert run.attempt().number == 2


def test_a_worker_that_exits_after_its_result_is_checked_all_the_same() -> None:
    run = Checked()
    run.candidate("result")
    run.end(text="result")
    assert states(run.graph)["a"] == "running"
    run.judge("achieved")
    assert run.node.state == "achieved"
    assert run.node.output is not None
    assert run.node.output.text == "result"


def test_a_result_that_nobody_can_check_does_not_count() -> None:
    run = Checked(has_verifier=False)
    run.candidate()
    assert run.attempt().stop_reason == "end_of_turn"
    run.end(outcome="failed")
    assert run.node.failure is not None
    assert run.node.failure.failure_class == "verdict_fail"
    assert "no installed agent serves worker verify" in run.node.failure.reason


def test_the_same_after_its_agent_has_gone() -> None:
    run = Checked(has_verifier=False)
    run.end(text="made")
    assert run.node.failure is not None
    assert run.node.failure.failure_class == "verdict_fail"


def test_a_cleared_graph_awaits_no_check() -> None:
    run = Checked()
    run.candidate()
    run.drive.run(Clear(G), ME)
    run.end("verifier", "failed")
    run.end(outcome="failed")
    assert G not in run.drive.state.graphs
    assert run.drive.state.checks == {}


def test_a_check_that_is_stopped_already_is_not_stopped_again() -> None:
    run = Checked()
    run.candidate()
    run.drive.run(Cancel(G), ME)
    run.end(outcome="failed")
    assert StopAttempt(G, run.attempt("verifier").key) not in run.drive.effects
    run.end("verifier", "failed")
    assert (run.node.state, run.graph.status) == ("cancelled", "cancelled")


def test_cancel_ends_worker_and_check_and_settles_the_node_with_the_last_of_them() -> None:
    run = Checked()
    run.candidate()
    run.drive.run(Cancel(G), ME)
    run.end("verifier", "failed")
    assert run.node.state == "running"
    run.end(outcome="failed")
    assert (run.node.state, run.graph.status) == ("cancelled", "cancelled")


def test_pause_with_stop_puts_a_checked_node_back() -> None:
    run = Checked(BY_COMMAND)
    run.end(text="made")
    run.drive.run(Pause(G, "stop"), ME)
    run.end("verifier", "failed")
    assert (run.node.state, run.graph.status) == ("ready", "user_paused")


def test_a_result_outlives_a_spent_budget_and_only_its_check_is_made_then() -> None:
    run = Checked(budget=Budget(tokens=5))
    run.end(text="made", spent=Spent(tokens=9))
    assert (run.graph.status, states(run.graph)["a"]) == ("budget_limited", "ready")
    run.drive.run(Resume(G, top_up=Budget(tokens=100)), ME)
    assert states(run.graph)["a"] == "running"
    assert (run.attempt("verifier").number, run.node.last_number) == (1, 1)
    run.judge("achieved")
    assert run.node.output is not None
    assert (run.node.state, run.node.output.text) == ("achieved", "made")


def test_a_result_that_comes_while_the_graph_pauses_waits_for_its_check() -> None:
    run = Checked(BY_COMMAND, also=("other",))
    run.drive.run(Pause(G, "stop"), ME)
    run.end(text="made")
    assert states(run.graph)["a"] == "ready"
    run.drive.run(ended(run.graph, "other", "failed"))
    assert run.graph.status == "user_paused"
    run.drive.run(Resume(G), ME)
    assert [key[1] for key in run.graph.live if key[0] == A] == ["verifier"]


@pytest.mark.parametrize("first", ["worker", "verifier"])
def test_a_pause_while_a_result_is_checked_costs_no_round(first: Any) -> None:
    run = Checked()
    run.candidate("result")
    run.drive.run(Pause(G, "stop"), ME)
    for role in sorted(("worker", "verifier"), key=lambda role: role != first):
        run.end(role, "achieved" if role == "worker" else "failed", "result")
    assert (run.graph.status, run.node.state) == ("user_paused", "ready")
    assert run.node.rounds == 1
    run.drive.run(Resume(G), ME)
    assert (run.attempt("verifier").number, run.node.rounds) == (2, 1)


def test_nobody_is_there_any_more_to_check_a_result_that_waited() -> None:
    run = Checked(budget=Budget(tokens=5))
    run.end(text="made", spent=Spent(tokens=9))
    run.drive.capacity = run.drive.capacity._replace(profiles=(("shell", "shell"), ("build", "acp")))
    run.drive.run(Resume(G, top_up=Budget(tokens=100)), ME)
    assert run.node.failure is not None
    assert run.node.failure.failure_class == "verdict_fail"


def test_a_stuck_worker_whose_check_is_lost_holds_the_graph_up() -> None:
    run = Checked(limits=Limits(concurrency=1))
    run.candidate()
    run.drive.run(AttemptStuck(G, run.attempt().key, (7,), "no proof"))
    run.end("verifier", "lost")
    assert (run.graph.status, run.graph.pause_cause) == ("infra_paused", "stuck")


@pytest.mark.parametrize("outcome", ["achieved", "failed"])
def test_so_does_a_stuck_check_whose_worker_has_ended(outcome: str) -> None:
    run = Checked()
    run.candidate()
    run.drive.run(AttemptStuck(G, run.attempt("verifier").key, (7,), "no proof"))
    assert run.graph.status == "active", "its worker lives"
    run.end(outcome=outcome)
    assert (run.graph.status, run.graph.pause_cause) == ("infra_paused", "stuck")
    run.end("verifier", "lost")
    assert run.graph.status == ("active" if outcome == "achieved" else "blocked")


def test_a_new_daemon_goes_on_with_the_check() -> None:
    run = Checked(BY_COMMAND)
    run.end(text="made")
    run.drive.run(DaemonStarted(2, "1", 1))
    assert ("AdoptAttempt", G, run.attempt("verifier").key) in [(type(e).__name__, *e) for e in run.drive.effects]


def test_a_verifier_that_talks_ends_with_its_verdict() -> None:
    run = Checked()
    run.candidate()
    word = '{"verdict": "achieved", "gaps": []}'
    run.drive.run(AttemptSaid(G, run.attempt("verifier").key, Leave(), session="v", candidate=Output(word, 3, "x")))
    assert run.attempt("verifier").stop_reason == "end_of_turn"
    assert run.node.child_session is None, "a check never shares the worker's session"
    run.end("verifier", text=word)
    assert run.attempt().stop_reason == "end_of_turn"


@pytest.mark.parametrize("first", ["worker", "verifier"])
def test_a_replan_recalls_a_node_from_its_check_too(first: Any) -> None:
    """Both processes end before it waits again, whichever is proven empty first; no other check is started."""
    run = Checked()
    run.candidate()
    assert (run.attempt().state, run.attempt("verifier").state) == ("live", "starting")
    run.drive.run(Replan(G, Edits(restart=("a",))), ME)
    assert {run.attempt().state, run.attempt("verifier").state} == {"stopping"}
    run.end(first, "achieved")
    assert run.node.state == "running"
    run.end("verifier" if first == "worker" else "worker", "achieved")
    assert (run.node.state, run.node.last_number, run.attempt("verifier").number) == ("running", 2, 1)


def test_a_replan_recalls_a_node_whose_worker_is_done_and_whose_check_runs() -> None:
    run = Checked()
    run.end(text="made")
    run.drive.run(Replan(G, Edits(remove=(("after", "no"), ("a", "no")), add=(define("n"),))), ME)
    run.end("verifier", "lost")
    assert (run.node.state, run.node.removed_in) == ("cancelled", 2)
