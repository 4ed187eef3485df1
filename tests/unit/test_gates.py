"""Gates: verdicts decide what runs after them, work is sent back so many times, REPLAN holds what follows."""

import json
from typing import Any

import pytest

from graphd.core.commands import AttemptSaid, Cancel, DaemonStarted, Finish, Pause, Resume, RetryNodes, Step
from graphd.core.definition import Gate
from graphd.core.events import Refused
from graphd.core.gates import VerdictMissing, findings_of, verdict_of
from graphd.core.model import Limits, Output
from graphd.core.policy import Leave
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, begun, define, end, graph_of, live_key, node, states


def said(verdict: str, **more: Any) -> str:
    return json.dumps({"verdict": verdict, **more})


def reviewed(**gate: Any) -> Drive:
    """`make` → `check` → `review` (a gate that may send `make` back) → `ship`."""
    return begun(
        define("make"), define("check", "make"), define("review", "check", gate=Gate("make", **gate)),
        define("ship", "review"),
    )  # fmt: skip


def work(drive: Drive, verdict: str, **more: Any) -> None:
    """One round of `reviewed`, up to its verdict."""
    end(drive, "make", "m")
    end(drive, "check", "c")
    end(drive, "review", said(verdict, **more))


# ---- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (None, "there is no output"), (" \n", "there is no output"), ("fine", "not JSON"),
        ("[1]", "another JSON value"),
        ("[" * 100_000, "not JSON"), ("{}", "there is none"), ('{"verdict": "MAYBE"}', '"MAYBE"'),
        ('{"verdict": "accept"}', '"accept"'), ('{"verdict": ["ACCEPT"]}', "ACCEPT"),
    ],
)  # fmt: skip
def test_an_output_without_a_verdict_says_what_is_missing(text: str | None, trouble: str) -> None:
    output = Output(text, len(text), "text/plain") if text is not None else None
    with pytest.raises(VerdictMissing, match=r".*") as caught:
        verdict_of(output)
    assert trouble in str(caught.value.reason)


def test_a_text_that_is_one_json_object_counts_and_a_cut_one_does_not() -> None:
    assert verdict_of(Output(' {"verdict": "REJECT"}\n', 24, "text/plain")) == "REJECT"
    with pytest.raises(VerdictMissing, match="64 KiB"):
        verdict_of(Output('{"verdict": "REJECT"}', 99_999, "application/json", is_cut=True))


@pytest.mark.parametrize("text", ["fine", "{}", '{"verdict": "YES"}', None])
def test_a_gate_without_a_verdict_fails_and_nothing_runs_behind_it(text: str | None) -> None:
    drive = begun(define("review", gate=Gate()), define("ship", "review"))
    end(drive, "review", text)
    failure = node(drive, "review").failure
    assert failure is not None
    assert failure.failure_class == "verdict_fail"
    assert states(graph_of(drive)) == {"review": "failed", "ship": "blocked"}
    attempt = graph_of(drive).attempts[(node_id("review"), "worker", 1)]
    assert (attempt.outcome, attempt.failure_class) == ("failed", "verdict_fail")


def test_a_verdict_is_a_success_of_the_gate_and_is_kept_on_it() -> None:
    drive = begun(define("review", gate=Gate()), define("ship", "review"))
    end(drive, "review", said("ACCEPT"))
    assert node(drive, "review").verdict == "ACCEPT"
    assert states(graph_of(drive)) == {"review": "achieved", "ship": "running"}
    assert graph_of(drive).history[-3].detail == "ACCEPT"


@pytest.mark.parametrize("verdict", ["REJECT", "BLOCKED", "REVISE"])
def test_only_accept_lets_run_what_has_no_condition(verdict: str) -> None:
    drive = begun(define("review", gate=Gate()), define("ship", "review"), define("tell", "ship"))
    end(drive, "review", said(verdict))
    assert states(graph_of(drive)) == {"review": "achieved", "ship": "skipped", "tell": "skipped"}
    assert (node(drive, "ship").skip, node(drive, "tell").skip) == ("gate_not_accepted", "no_input")
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "rejected")
    assert drive.log[-1].payload["gates"] == ["review"]


def test_a_condition_alone_decides_for_its_node() -> None:
    drive = begun(
        define("review", gate=Gate()), define("mend", "review", condition='review.verdict == "REJECT"'),
        define("ship", "review", condition='review.verdict in ["ACCEPT"]'),
    )  # fmt: skip
    end(drive, "review", said("REJECT"))
    assert states(graph_of(drive)) == {"review": "achieved", "mend": "running", "ship": "skipped"}
    end(drive, "mend")
    assert graph_of(drive).outcome == "ok"  # nothing was kept back because of the gate


def test_a_gate_at_the_end_makes_the_outcome() -> None:
    drive = begun(define("a", required=False), define("review", "a", gate=Gate()))
    end(drive, "a")
    end(drive, "review", said("REJECT"))
    assert graph_of(drive).outcome == "rejected"


def test_a_rejection_is_said_before_failures() -> None:
    drive = begun(define("a", required=False), define("b"), define("review", "a", "b", gate=Gate(), required=False))
    end(drive, "a", None, "failed")
    end(drive, "b")
    end(drive, "review", said("REJECT"))
    assert graph_of(drive).outcome == "rejected"


def test_what_needs_a_gate_that_never_spoke_is_skipped_and_the_graph_is_no_success() -> None:
    """Skipped is not treated as satisfied; all ends hang on a failure, so the graph is blocked."""
    drive = begun(define("review", gate=Gate(), required=False), define("ship", "review", required=False),
                  define("tell", "ship"))  # fmt: skip
    end(drive, "review", None, "failed")
    assert states(graph_of(drive)) == {"review": "failed", "ship": "skipped", "tell": "skipped"}
    assert node(drive, "ship").skip == "gate_not_accepted"
    assert graph_of(drive).status == "blocked"


def test_one_gate_of_two_that_does_not_accept_keeps_a_node_back() -> None:
    drive = begun(define("g1", gate=Gate()), define("g2", gate=Gate()), define("ship", "g1", "g2"))
    end(drive, "g1", said("ACCEPT"))
    assert states(graph_of(drive))["ship"] == "waiting"
    end(drive, "g2", said("BLOCKED"))
    assert node(drive, "ship").skip == "gate_not_accepted"
    assert drive.log[-1].payload["gates"] == ["g2"]


# ---- revisions ------------------------------------------------------------------------------------------------------


def test_revise_sends_the_path_back_with_the_findings() -> None:
    drive = reviewed()
    work(drive, "REVISE", findings=["too slow", "no test"])
    assert states(graph_of(drive)) == {"make": "running", "check": "waiting", "review": "waiting", "ship": "waiting"}
    assert json.loads(node(drive, "make").findings or "") == ["too slow", "no test"]
    assert node(drive, "check").findings == node(drive, "make").findings
    assert node(drive, "review").findings is None
    assert (node(drive, "review").revisions, node(drive, "review").verdict) == (1, None)
    assert node(drive, "make").output is None
    assert node(drive, "make").attempts == 2
    work(drive, "ACCEPT")
    end(drive, "ship")
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "ok")


def test_findings_outlive_an_attempt_that_failed() -> None:
    drive = reviewed()
    work(drive, "REVISE", reason="no")
    end(drive, "make", None, "failed")
    drive.run(RetryNodes(G, "make"))
    assert node(drive, "make").findings == "no"


def test_revise_is_bounded_and_acts_as_reject_then() -> None:
    drive = reviewed(max_revisions=1)
    work(drive, "REVISE")
    work(drive, "REVISE")
    assert node(drive, "review").verdict == "REVISE"
    assert node(drive, "ship").skip == "gate_not_accepted"
    assert graph_of(drive).outcome == "rejected"
    last = [event for event in drive.log if event.kind == "gate_decided"][-1]
    assert (last.payload["verdict"], last.payload["acts_as"]) == ("REVISE", "REJECT")
    assert "1 times" in last.payload["reason"]


def test_work_is_not_sent_back_beyond_the_attempts_of_a_node() -> None:
    drive = begun(define("make"), define("review", "make", gate=Gate("make", 9)), limits=Limits(attempts_per_node=2))
    for _ in range(2):
        end(drive, "make")
        end(drive, "review", said("REVISE"))
    assert graph_of(drive).outcome == "rejected"
    assert node(drive, "make").attempts == 2


def test_only_the_path_from_the_target_to_the_gate_is_done_again() -> None:
    drive = begun(
        define("base"), define("make", "base"), define("side", "base"), define("review", "make", "side",
        gate=Gate("make")), define("ship", "review"),
    )  # fmt: skip
    for slug in ("base", "make", "side"):
        end(drive, slug, slug)
    end(drive, "review", said("REVISE"))
    again = {event.node for event in drive.log if event.kind == "revision_started"}
    assert again == {node_id("make"), node_id("review")}
    assert states(graph_of(drive))["side"] == "achieved"


def test_an_optional_failure_on_the_path_is_done_again_too() -> None:
    drive = begun(
        define("make"), define("lint", "make", required=False), define("test", "make"),
        define("review", "lint", "test", gate=Gate("make")),
    )  # fmt: skip
    end(drive, "make")
    end(drive, "lint", None, "failed")
    end(drive, "test")
    end(drive, "review", said("REVISE"))
    assert states(graph_of(drive)) == {"make": "running", "lint": "waiting", "test": "waiting", "review": "waiting"}


def test_a_graph_that_is_being_finished_sends_nothing_back() -> None:
    drive = begun(define("make"), define("review", "make", gate=Gate("make"), required=False), define("slow"))
    end(drive, "make")
    end(drive, "review", None, "failed")
    drive.run(Finish(G, "enough"))
    drive.run(RetryNodes(G, "review"))
    end(drive, "review", said("REVISE"))
    assert states(graph_of(drive)) == {"make": "achieved", "review": "achieved", "slow": "running"}
    assert "being finished" in next(e.payload["reason"] for e in drive.log if e.kind == "gate_decided")


def test_a_verdict_that_comes_while_pausing_counts_and_after_a_cancel_does_not() -> None:
    drive = reviewed()
    end(drive, "make")
    end(drive, "check")
    drive.run(Pause(G, "stop"))
    end(drive, "review", said("REVISE"))
    assert graph_of(drive).status == "user_paused"
    assert states(graph_of(drive))["make"] == "ready"
    drive.run(Resume(G))
    end(drive, "make")
    end(drive, "check")
    drive.run(Cancel(G))
    end(drive, "review", said("REVISE"))
    assert graph_of(drive).status == "cancelled"
    assert node(drive, "review").verdict is None


def test_findings_are_what_the_gate_says_else_all_that_it_put_out() -> None:
    def told(**value: Any) -> str:
        text = json.dumps(value)
        return findings_of(Output(text, len(text), "application/json"))

    assert told(verdict="REVISE", findings="a") == "a"
    assert json.loads(told(verdict="REVISE", gaps=["b"])) == ["b"]
    assert told(verdict="REVISE") == '{"verdict": "REVISE"}'
    assert len(told(verdict="REVISE", findings="é" * 20_000).encode()) <= 16_384


# ---- replan ---------------------------------------------------------------------------------------------------------


def held() -> Drive:
    """A gate asked for a new plan while `side` runs; `ship` and `tell` need the gate."""
    drive = begun(
        define("review", gate=Gate()), define("side"), define("ship", "review"),
        define("tell", "review", condition='review.verdict == "REPLAN"'),
    )  # fmt: skip
    end(drive, "review", said("REPLAN"))
    return drive


def test_replan_pauses_in_the_same_change_before_anything_starts_or_is_skipped() -> None:
    drive = held()
    assert graph_of(drive).status == "user_paused"
    assert graph_of(drive).pause_reason == "gate review asks for a new plan"
    assert states(graph_of(drive)) == {"review": "achieved", "side": "running", "ship": "waiting", "tell": "waiting"}
    rev = next(event.rev for event in drive.log if event.kind == "gate_decided")
    assert [event.kind for event in drive.log if event.rev == rev][-2:] == ["gate_decided", "paused"]


def test_what_needs_the_gate_waits_over_a_crash_and_goes_on_with_resume() -> None:
    drive = held()
    drive.run(DaemonStarted(2, "0", 1))
    end(drive, "side")
    assert states(graph_of(drive))["ship"] == "waiting"
    assert graph_of(drive).status == "user_paused"
    drive.run(Resume(G), ME)
    assert states(graph_of(drive))["ship"] == "skipped"
    assert states(graph_of(drive))["tell"] == "running"
    assert graph_of(drive).holding == ()


def test_a_step_answers_a_gate_that_asked_for_a_new_plan() -> None:
    drive = held()
    end(drive, "side")
    with pytest.raises(Refused, match="ship is skipped, not ready"):
        drive.run(Step(G, "ship"), ME)
    assert graph_of(drive).holding, "what is refused answers nothing"
    drive.run(Step(G, "tell"), ME)
    assert states(graph_of(drive)) == {
        "review": "achieved", "side": "achieved", "ship": "skipped", "tell": "running",
    }  # fmt: skip
    assert graph_of(drive).holding == ()


def test_replan_holds_a_graph_that_has_nothing_left_to_run() -> None:
    drive = begun(define("a"), define("review", "a", gate=Gate()))
    end(drive, "a")
    end(drive, "review", said("REPLAN"))
    assert graph_of(drive).status == "user_paused"
    drive.run(Resume(G))
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "rejected")


def test_replan_of_a_paused_or_pausing_graph_is_kept_too() -> None:
    drive = begun(define("review", gate=Gate()), define("ship", "review"))
    drive.run(Pause(G, "stop"))
    end(drive, "review", said("REPLAN"))
    assert (graph_of(drive).status, states(graph_of(drive))["ship"]) == ("user_paused", "waiting")
    drive.run(Resume(G))
    assert states(graph_of(drive))["ship"] == "skipped"


def test_finish_answers_a_gate_that_asked_for_a_new_plan() -> None:
    drive = held()
    drive.run(Finish(G, "enough"))
    end(drive, "side")
    assert graph_of(drive).status == "complete"
    assert states(graph_of(drive)) == {"review": "achieved", "side": "achieved", "ship": "skipped", "tell": "skipped"}


# ---- finish, sessions -----------------------------------------------------------------------------------------------


def test_finish_refuses_a_gate_that_has_not_decided_and_names_it() -> None:
    drive = reviewed()
    with pytest.raises(Refused, match="gate review has not decided") as caught:
        drive.run(Finish(G, "enough"), ME)
    assert caught.value.code == "invalidTransition"


def test_a_gate_that_judges_again_begins_another_session() -> None:
    drive = reviewed()
    for session in ("s1", "s2"):
        end(drive, "make")
        end(drive, "check")
        drive.run(AttemptSaid(G, live_key(graph_of(drive), "review"), Leave(), session=session))
        end(drive, "review", said("REVISE"))
    begun_anew = graph_of(drive).attempts[(node_id("review"), "worker", 2)]
    assert (begun_anew.resumes, begun_anew.child_session) == (None, "s2")
