"""Why a node is where it is: each reason that can keep one, with a command that the command line takes."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
import pytest

from graphd.cli.main import cli
from graphd.core.commands import (
    Cancel,
    DaemonStarted,
    DeadlineReached,
    Finish,
    Pause,
    ProfileCooling,
    Step,
)
from graphd.core.definition import Budget, Definition, Gate, Item, Retry, Wait
from graphd.core.model import Graph, Limits
from graphd.server.reason import Surroundings
from graphd.server.reasons import reasons
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, define, ended, live_key, plan, stuck

G = "g"
Wire = dict[str, Any]


def build(slug: str, *needs: str, **more: Any) -> Definition:
    return define(slug, *needs, worker="build", **more)


class Case:
    """A workspace in which something keeps a node."""

    def __init__(self, *definitions: Definition, start: bool = True, set_more: Wire | None = None, **capacity: Any):
        profiles = (("shell", "shell"), ("build", "claude"))
        self.drive = Drive(**({"profiles": profiles} | capacity))
        self.store_health = "ok"
        self.drive.run(plan(G, *definitions, start=start, **(set_more or {})), ME)

    @property
    def graph(self) -> Graph:
        return self.drive.state.graphs[G]

    def run(self, *commands: Any) -> "Case":
        for command in commands:
            self.drive.run(command, ME)
        return self

    def end(self, slug: str, outcome: str = "achieved", **more: Any) -> "Case":
        self.drive.run(ended(self.graph, slug, outcome, **more))
        return self

    def why(self, slug: str) -> list[Wire]:
        around = Surroundings(self.drive.state, self.drive.capacity, self.drive.now, self.store_health)
        return reasons(self.graph, self.graph.nodes[node_id(slug)], around)


def escalated() -> Case:
    case = Case(build("a"))
    return case.run(DeadlineReached(G, live_key(case.graph, "a")))


def cooled(*more: Definition) -> Case:
    case = Case(build("a"), build("b", "a"), *more)
    return case.run(ProfileCooling(G, live_key(case.graph, "a"), "claude", case.drive.now + 30_000, "overloaded"))


def replaced() -> Case:
    case = Case(define("a"))
    case.drive.run(plan("new", define("n"), replace=G), ME)
    return case


def without_attempt(wait: Wait | None) -> Case:
    """A node that runs and has no attempt: what puts it there is not asked here."""
    case = Case(define("a"), define("item", item=Item("a", 1, "1")))
    case.drive.is_checked = False
    node = case.graph.nodes[node_id("a")]
    for key in list(case.graph.live):
        if key[0] == node.id:
            case.graph.live.pop(key)
    node.state, node.definition = "running", replace(node.definition, wait=wait)
    return case


CASES: dict[str, tuple[Callable[[], Case], str, str]] = {
    # code: the case, the node, the beginning of the command
    "waitsFor": (lambda: Case(define("a"), define("b", "a")), "b", "graphd why a"),
    "condition": (
        lambda: Case(define("a"), define("b", "a", condition='a.state == "failed"')), "b", "graphd show g",
    ),
    "asksForPlan": (
        lambda: Case(define("a", gate=Gate()), define("b", "a")).end("a", text='{"verdict": "REPLAN"}'),
        "b", "graphd resume g",
    ),
    "graphSlots": (
        lambda: Case(define("a"), define("b"), set_more={"limits": Limits(1)}),
        "b", "graphd watch g",
    ),
    "slots": (lambda: Case(define("a"), define("b"), concurrency=1), "b", "graphd processes"),
    "profileSlots": (lambda: Case(build("a"), build("b"), per_profile=(("claude", 1),)), "b", "graphd processes"),
    "staggered": (lambda: Case(build("a"), build("b"), stagger_ms=(("claude", 500),)), "b", "graphd processes"),
    "memory": (
        lambda: Case(build("a"), build("b"), memory_mb=100, memory_mb_of=(("claude", 80),)), "b", "graphd processes",
    ),
    "coolingDown": (lambda: cooled().end("a"), "b", "graphd watch g"),
    "budget": (
        lambda: Case(build("a"), build("b"), set_more={"budget": Budget(tokens=60_000)}), "b", "graphd status g",
    ),
    "agentMissing": (lambda: Case(define("a", worker="plan"), define("b")), "a", "graphd agents"),
    "stepping": (lambda: Case(define("a"), define("b"), start=False).run(Step(G, "a")), "b", "graphd why a"),
    "writes": (lambda: Case(define("a", writes=("x/**",)), define("b", writes=("x/*",))), "b", "graphd why a"),
    "retryDue": (
        lambda: Case(define("a", retry=Retry(1, 60))).end("a", "failed", failure_class="exec_failed"), "a",
        "graphd watch g",
    ),
    "user_paused": (lambda: Case(define("a"), start=False).run(), "a", "graphd resume g"),
    "infra_paused": (
        lambda: Case(define("a", on_lost="pause")).end("a", "lost"), "a", "graphd resume g",
    ),
    "budget_limited": (
        lambda: Case(define("a"), define("b", "a"), set_more={"budget": Budget(tokens=1)}).end("a"), "b",
        "graphd resume g --top-up 200k",
    ),
    "stopping": (lambda: Case(define("a")).run(Pause(G, "stop")), "a", "graphd watch g"),
    "storeUnavailable": (lambda: _held_by_store(), "b", "graphd doctor"),
    "stuck": (lambda: _stuck(), "a", "graphd release a --pids 7,9"),
    "escalation": (escalated, "a", "graphd ask ask-"),
    "running": (lambda: Case(define("a")), "a", "graphd logs a"),
    "waitsForSignal": (lambda: without_attempt(Wait(signal="go")), "a", "graphd signal go"),
    "waitsUntil": (lambda: without_attempt(Wait(until="5m")), "a", "graphd watch g"),
    "joins": (lambda: without_attempt(None), "a", "graphd why item"),
    "failed": (lambda: Case(define("a")).end("a", "failed"), "a", "graphd logs a"),
    "canRetry": (lambda: Case(define("a")).end("a", "failed"), "a", "graphd retry a"),
    "blockedBy": (lambda: Case(define("a"), define("b", "a")).end("a", "failed"), "b", "graphd why a"),
    "finished_early": (lambda: Case(define("a"), define("b", "a")).run(Finish(G, "enough")), "b", "graphd retry b"),
    "cancelled": (lambda: Case(define("a"), define("b", "a")).run(Cancel(G)), "b", "graphd history g"),
    "achieved": (lambda: Case(define("a")).end("a", text="x"), "a", "graphd output a"),
}  # fmt: skip


def _stuck() -> Case:
    case = Case(define("a"), define("b"))
    return case.run(stuck(case.graph, "a", 7, 9))


def _held_by_store() -> Case:
    case = Case(define("a"), define("b"), concurrency=1)
    case.store_health = "full"
    return case


@pytest.mark.parametrize("code", CASES)
def test_each_reason_is_named_with_a_command_that_can_be_typed(code: str) -> None:
    make, slug, begins = CASES[code]
    found = {reason["code"]: reason for reason in make().why(slug)}
    assert code in found, found
    assert found[code]["next"].startswith(begins)
    assert found[code]["detail"]
    for reason in found.values():
        _parse(reason["next"])


def _parse(line: str) -> None:
    """The command line knows the command and takes its words. It is not run."""
    words = shlex.split(line)
    assert words[0] == "graphd"
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None, line
    command.make_context(words[1], words[2:], resilient_parsing=False)


def test_the_nearest_reason_comes_first() -> None:
    case = Case(define("a"), define("b"), concurrency=1).run(Pause(G))
    assert [reason["code"] for reason in case.why("b")] == ["held", "user_paused"]
    assert case.why("b")[1]["on"] == "me", "paused by whom"


def test_a_provider_that_is_down_and_an_agent_that_is_gone_are_waited_for() -> None:
    case = Case(define("a", worker="plan"))
    assert [(r["code"], r["next"]) for r in case.why("a")] == [
        ("held", "graphd status g"), ("infra_paused", "graphd agents"),
    ]  # fmt: skip


def test_a_stuck_tree_names_itself_from_every_node_of_its_graph() -> None:
    case = Case(define("a"), define("b", "a"))
    case.run(stuck(case.graph, "a", 7))
    assert case.why("b")[-1]["next"] == "graphd why a --graph g"


def test_what_runs_while_its_provider_rests_says_so() -> None:
    case = cooled()
    assert [reason["code"] for reason in case.why("a")] == ["coolingDown", "running"]


def test_a_graph_that_takes_anothers_place_waits_for_its_trees() -> None:
    case = replaced()
    new = case.drive.state.graphs["new"]
    around = Surroundings(case.drive.state, case.drive.capacity, case.drive.now)
    found = reasons(new, new.nodes[node_id("n")], around)
    assert (found[0]["code"], found[0]["on"], found[0]["next"]) == ("replaces", G, f"graphd status {G}")


def test_a_signals_name_is_one_word_to_a_shell_whatever_it_is() -> None:
    (reason,) = without_attempt(Wait(signal="it's on; exit")).why("a")
    _parse(reason["next"])
    assert shlex.split(reason["next"]) == ["graphd", "signal", "it's on; exit"]


def test_a_restart_is_no_reason() -> None:
    case = Case(define("a")).run(DaemonStarted(2, "0", 1))
    assert [reason["code"] for reason in case.why("a")] == ["running"]


def test_what_never_started_has_no_log_to_show() -> None:
    case = Case(define("a", worker="plan", required=False), define("b"))
    assert case.why("a")[0]["next"] == "graphd history g"
