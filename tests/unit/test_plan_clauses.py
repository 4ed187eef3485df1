"""What single nodes ask for beside their work: gates that send back, waits, items, checks, globs; the last check."""

from dataclasses import replace
from typing import Any

import pytest

from graphd.core.definition import Approval, Budget, Definition, ForEach, Gate, Review, Terms, Verify, Wait
from graphd.core.durations import duration_ms, moment_ms
from graphd.core.final import with_final
from graphd.core.model import Limits
from graphd.core.plan import check_plan, effective_required
from graphd.core.reach import Reach
from graphd.core.trouble import PlanTrouble


def node(slug: str, *needs: str, **more: Any) -> Definition:
    return replace(Definition(slug, "true", "build", needs=needs), **more)


def check(*definitions: Definition, **more: Any) -> list[PlanTrouble]:
    return check_plan(definitions, limits=Limits(), workers=("build", "shell", "verify"), **more)


def codes(*definitions: Definition, **more: Any) -> list[str]:
    return [trouble.code for trouble in check(*definitions, **more)]


WORK = (node("plan"), node("code", "plan"), node("test", "code"), node("judge", "test", gate=Gate("code")))


def test_a_gate_may_send_back_what_came_before_it() -> None:
    assert codes(*WORK, node("ship", "judge")) == []
    assert codes(*WORK, node("ship", "test", "judge")) == []
    assert codes(*WORK, node("notes", "plan")) == []


@pytest.mark.parametrize("target", ["judge", "ship", "nobody", "side"])
def test_a_gate_sends_back_ancestors_only(target: str) -> None:
    nodes = (*WORK[:3], node("side"), node("judge", "test", gate=Gate(target)), node("ship", "judge"))
    (trouble,) = check(*nodes)
    assert (trouble.code, trouble.index, trouble.part, trouble.item) == ("gate.notAnAncestor", 4, "gate", "revise")


def test_a_node_that_reads_what_may_be_sent_back_has_to_wait_for_the_gate() -> None:
    (trouble,) = check(*WORK, node("x"), node("ship", "x", "test"))
    assert (trouble.code, trouble.slug, trouble.part, trouble.item) == ("reviseLeaks", "ship", "needs", 1)
    assert "judge" in trouble.hint
    assert codes(*WORK, node("late", "judge"), node("ship", "late", "code")) == ["reviseLeaks"]


def test_paths_are_looked_at_only_where_the_plan_is_sound() -> None:
    assert codes(*WORK, node("ship", "nobody", "test")) == ["need.unknown"]


WAITS: list[tuple[Wait, list[str]]] = [
    (Wait("90s"), []),
    (Wait("2026-12-01T09:00:00Z"), []),
    (Wait(signal="deploy.done", timeout_s=5), []),
    (Wait("tomorrow"), ["wait.malformed"]),
    (Wait("2026-12-01T09:00:00"), ["wait.malformed"]),
    (Wait(signal="no spaces"), ["wait.malformed"]),
    (Wait(), ["wait.malformed"]),
    (Wait("5m", "x"), ["wait.malformed"]),
    (Wait("5m", timeout_s=5), ["wait.malformed"]),
    (Wait(signal="x", timeout_s=0), ["wait.malformed"]),
]


@pytest.mark.parametrize(("wait", "expected"), WAITS)
def test_a_wait_is_for_a_time_or_a_signal(wait: Wait, expected: list[str]) -> None:
    assert codes(replace(Definition("a", "", ""), wait=wait)) == expected


def test_a_node_that_waits_does_nothing_else() -> None:
    assert codes(node("a", wait=Wait("5m"))) == ["wait.worker"]
    assert codes(replace(Definition("a", "do it", ""), wait=Wait("5m"))) == ["wait.worker"]
    (trouble,) = check(replace(Definition("a", "", ""), wait=Wait("5m"), approval=Approval("?"), writes=("x",)))
    assert (trouble.code, trouble.part) == ("wait.beside", "approval")
    assert "approval, writes" in trouble.message


EACH: list[tuple[dict[str, Any], list[str]]] = [
    ({"for_each": ForEach("find.output.files", "file")}, []),
    ({"for_each": ForEach("find", "file")}, []),
    ({"for_each": ForEach("find files", "file")}, ["forEach.malformed"]),
    ({"for_each": ForEach("fnd.output", "file")}, ["forEach.notANeed"]),
    ({"for_each": ForEach("find.output", "index")}, ["forEach.name"]),
    ({"for_each": ForEach("find.output", "find")}, ["forEach.name"]),
    ({"for_each": ForEach("find.output", "1x")}, ["forEach.name"]),
    ({"for_each": ForEach("find.output", "x"), "input_mapping": (("x", "find"),)}, ["forEach.name"]),
    ({"for_each": ForEach("find.output", "x"), "gate": Gate()}, ["forEach.gate"]),
]


@pytest.mark.parametrize(("more", "expected"), EACH)
def test_items_come_from_a_direct_need_under_a_free_name(more: dict[str, Any], expected: list[str]) -> None:
    assert codes(node("find"), node("each", "find", **more)) == expected


def test_names_of_items_fit() -> None:
    assert codes(node("find"), node("a" * 61, "find", for_each=ForEach("find", "x", 99))) == []
    assert codes(node("find"), node("a" * 62, "find", for_each=ForEach("find", "x", 99))) == ["slug.tooLong"]


CHECKS: list[tuple[Verify, list[str]]] = [
    (Verify("make test"), []),
    (Verify(worker="verify", criteria="all green"), []),
    (Verify(), ["verify.malformed"]),
    (Verify("x", "verify", "y"), ["verify.malformed"]),
    (Verify(worker="verify", criteria=" "), ["verify.malformed"]),
    (Verify(worker="verfy", criteria="x"), ["worker.unknown"]),
]


@pytest.mark.parametrize(("verify", "expected"), CHECKS)
def test_a_check_is_a_command_or_a_worker_with_criteria(verify: Verify, expected: list[str]) -> None:
    assert codes(node("a", verify=verify)) == expected


def test_names_of_verifiers_are_unchecked_where_workers_are_unknown() -> None:
    assert check_plan([node("a", verify=Verify(worker="mine", criteria="x"))], limits=Limits()) == []


@pytest.mark.parametrize("glob", ["/etc/*", "~/x", "a/../b", "a\\b", "", " ", "x" * 600, "a\nb"])
def test_globs_stay_in_the_workspace(glob: str) -> None:
    (trouble,) = check(node("a", writes=("fine/**", glob)))
    assert (trouble.code, trouble.part, trouble.item) == ("glob.malformed", "writes", 1)
    assert codes(node("a", artifacts=(glob,))) == ["glob.malformed"]


def test_globs_are_bounded() -> None:
    assert codes(node("a", writes=tuple(f"d{i}/*" for i in range(65)))) == ["glob.malformed"]


def test_a_review_is_of_nodes_before_it() -> None:
    rest = (node("code"), node("test", "code"))
    assert codes(*rest, node("judge", "test", review=Review("diff", "code", "test"))) == []
    assert codes(*rest, node("judge", "test", review=Review("design"))) == []
    (trouble,) = check(*rest, node("judge", "code", review=Review("diff", "code", "test")))
    assert (trouble.code, trouble.item) == ("review.notAnAncestor", "verification_node_id")
    assert codes(*rest, node("judge", "test", review=Review("diff", "cod"))) == ["review.notAnAncestor"]


def test_of_gates_that_all_leak_into_each_other_the_first_hundred_are_told() -> None:
    gates = [node(f"g{number}", "a", gate=Gate("a")) for number in range(50)]
    assert codes(node("a"), *gates) == ["reviseLeaks"] * 100


# ---- the last check, reach, durations -------------------------------------------------------------------------------


def test_the_last_check_waits_for_every_end_and_is_required() -> None:
    plan = with_final([node("a"), node("b", "a"), node("c", "a")])
    assert (plan[-1].slug, plan[-1].needs, plan[-1].required) == ("gn-final", ("b", "c"), True)
    assert with_final(plan) == plan
    assert effective_required(plan) == {"gn-final"}
    assert codes(*plan) == ["slug.invalid"]
    assert codes(*plan, may_have_final=True) == []


def test_reach_knows_who_waits_for_whom() -> None:
    reach = Reach([node("d", "b", "c"), node("a"), node("b", "a"), node("c", "a"), node("e")])
    assert reach.waits_for("d", "a")
    assert not reach.waits_for("a", "d")
    assert reach.path("a", "d") == ["d", "a", "b", "c"]
    assert reach.path("b", "d") == ["d", "b"]
    assert reach.path("d", "a") == reach.path("e", "d") == []
    assert reach.readers("a") == ["b", "c"]
    assert [other for other in "abcde" if reach.can_meet("b", other)] == ["c", "e"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90_000), ("500ms", 500), ("1h30m", 5_400_000), (" 2d ", 172_800_000), ("1.5s", 1_500), ("0s", 0),
        ("366d", 366 * 86_400_000), ("367d", None), ("5", None), ("5 m", None), ("", None), ("-5s", None),
        ("1h-5m", None), ("5M", None),
    ],
)  # fmt: skip
def test_durations(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000), ("1970-01-01T01:00+01:00", 0), ("1970-01-01", None),
        ("1970-01-01T00:00:01", None), ("soon", None), ("9999-12-31T23:59:59-23:59", 253_402_387_139_000),
    ],
)  # fmt: skip
def test_moments_name_their_offset(text: str, expected: int | None) -> None:
    assert moment_ms(text) == expected


def test_budget_and_terms_bound_nothing_by_default() -> None:
    assert Budget() == Budget(None, None, None)
    assert Terms() == Terms("standard", None, "drain", "none", "notice", False, ())


def test_reach_tells_a_cycle() -> None:
    assert Reach([node("a"), node("b", "a")]).is_acyclic
    assert not Reach([node("a", "b"), node("b", "a"), node("c")]).is_acyclic
