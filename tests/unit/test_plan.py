"""Plan checks, and what follows from the shape of a plan."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.core.model import Definition, Limits
from graphd.core.plan import PlanTrouble, check_plan, collapse, effective_required, sinks, waves

WIDE = Limits(max_nodes=10_000)


def node(slug: str, *needs: str, **more: object) -> Definition:
    return Definition(slug, "true", "shell", needs=needs, **more)  # type: ignore[arg-type]


def check(*definitions: Definition, limits: Limits = WIDE, delivery_node: str | None = None) -> list[PlanTrouble]:
    return check_plan(definitions, limits=limits, delivery_node=delivery_node)


def only(*definitions: Definition) -> PlanTrouble:
    (trouble,) = check(*definitions)
    return trouble


def test_a_sound_plan_has_no_trouble() -> None:
    assert check(node("a"), node("b", "a"), node("c", "a", "b", condition='a.state == "achieved"')) == []


def test_a_cycle_is_named_in_order_from_its_first_node() -> None:
    trouble = only(node("z"), node("b", "a"), node("c", "b"), node("a", "c", "z"))

    assert (trouble.code, trouble.path) == ("plan.cycle", ("b", "a", "c"))
    assert "b needs a needs c needs b" in trouble.message


def test_what_only_hangs_on_a_cycle_is_not_in_it() -> None:
    trouble = only(node("x", "a"), node("a", "b"), node("b", "a"))

    assert trouble.path == ("a", "b")


def test_two_separate_cycles_are_both_told() -> None:
    troubles = check(node("a", "b"), node("b", "a"), node("c", "d"), node("d", "c"))

    assert [t.path for t in troubles] == [("a", "b"), ("c", "d")]


def test_of_many_cycles_the_first_eight_are_told() -> None:
    pairs = [node(a, b) for i in range(20) for a, b in ((f"a{i}", f"b{i}"), (f"b{i}", f"a{i}"))]

    assert [t.path[0] for t in check(*pairs)] == [f"a{i}" for i in range(8)]


def test_waves_leave_out_what_is_on_a_cycle() -> None:
    assert waves([node("a", "b"), node("b", "a"), node("c")]) == [["c"]]


def test_a_cycle_is_found_5000_deep_and_its_message_is_bounded() -> None:
    chain = [node("n0", "n4999"), *(node(f"n{i}", f"n{i - 1}") for i in range(1, 5000))]

    trouble = only(*chain)

    assert len(trouble.path) == 5000
    assert len(trouble.message) < 400


def test_24_diamond_layers_are_cheap() -> None:
    layers = [node("a0"), node("b0")]
    for i in range(1, 24):
        layers += [node(f"a{i}", f"a{i - 1}", f"b{i - 1}"), node(f"b{i}", f"a{i - 1}", f"b{i - 1}")]
    start = time.perf_counter()

    assert check(*layers) == []
    assert len(waves(layers)) == 24
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("code", "definitions"),
    [
        ("slug.invalid", [node("gn-x")]), ("slug.invalid", [node("and")]), ("slug.invalid", [node("迁移")]),
        ("slug.invalid", [node("x" * 65)]), ("slug.duplicate", [node("a"), node("a")]), ("need.self", [node("a", "a")]),
        ("need.unknown", [node("a", "b")]), ("plan.empty", []), ("condition.malformed", [node("a", condition="x")]),
        ("condition.notANeed", [node("a"), node("b", condition='a.state == "failed"')]),
        ("mapping.notANeed", [node("a"), node("b", input_mapping=(("x", "a"),))]),
        ("mapping.malformed", [node("a"), node("b", "a", input_mapping=(("x", "a.state"),))]),
        ("mapping.name", [node("a"), node("b", "a", input_mapping=(("../x", "a"),))]),
        ("spec.empty", [Definition("a", " \n", "shell")]), ("spec.malformed", [Definition("a", "ls \0", "shell")]),
        ("template.inShell", [Definition("a", "echo {{ x.y }}", "shell")]),
    ],
)  # fmt: skip
def test_each_trouble_has_its_code_and_a_hint(code: str, definitions: list[Definition]) -> None:
    trouble = only(*definitions)

    assert code == trouble.code
    assert trouble.message
    assert trouble.hint


def test_go_templates_are_none_of_ours() -> None:
    assert check(Definition("a", "docker inspect -f '{{.State}}' x; echo '{{json .X}}'", "shell")) == []


def test_slugs_with_one_id_are_both_named() -> None:
    trouble = only(node("costarring"), node("liquid"))  # a known collision of FNV-1a-32

    assert trouble.code == "slug.collision"
    assert "costarring" in trouble.message
    assert "liquid" in trouble.message


def test_a_dangling_need_is_answered_with_the_close_name() -> None:
    trouble = only(node("discover"), node("b", "discovr"))

    assert trouble.hint == "did you mean discover?"
    assert (trouble.index, trouble.part, trouble.item) == (1, "needs", 0)


def test_caps_are_told_alone() -> None:
    many = [node(f"n{i}", "nobody") for i in range(101)]

    assert [t.code for t in check(*many, limits=Limits())] == ["plan.tooLarge"]
    assert [t.code for t in check(*[node("a")] * 10_001)] == ["plan.tooLarge"]


def test_an_unknown_delivery_node_and_worker_are_refused() -> None:
    assert [t.code for t in check(node("a"), delivery_node="b")] == ["delivery.unknown"]
    assert [t.code for t in check_plan([node("a")], limits=WIDE, workers={"build"})] == ["worker.unknown"]


def test_doubled_needs_collapse() -> None:
    (_, b) = collapse([node("a"), node("b", "a", "a")])

    assert b.needs == ("a",)
    assert check(node("a"), node("b", "a", "a")) == []


def test_the_only_sink_and_the_delivery_node_are_required() -> None:
    assert {"b"} == effective_required([node("a"), node("b", "a")])
    assert set() == effective_required([node("a"), node("b")])
    assert {"a"} == effective_required([node("a"), node("b")], "a")
    assert {"a", "c"} == effective_required([node("a", required=True), node("b", "a"), node("c", "b")])


def test_the_final_check_is_required_and_no_sink() -> None:
    plan = [node("a"), node("gn-final", "a")]

    assert sinks(plan) == ["a"]
    assert {"a", "gn-final"} == effective_required(plan)


def test_waves_follow_the_longest_path() -> None:
    plan = [node("d", "a", "c"), node("a"), node("b", "a"), node("c", "b"), node("e")]

    assert waves(plan) == [["a", "e"], ["b"], ["c"], ["d"]]


@given(st.lists(st.lists(st.integers(0, 11), max_size=4), min_size=1, max_size=12))
def test_a_plan_is_refused_exactly_when_it_has_a_cycle(edges: list[list[int]]) -> None:
    plan = [node(f"n{i}", *{f"n{j}" for j in needs if j < len(edges) and j != i}) for i, needs in enumerate(edges)]
    troubles = check(*plan)
    done: set[str] = set()
    for _ in plan:
        done |= {d.slug for d in plan if done.issuperset(d.needs)}

    assert (len(done) < len(plan)) == bool(troubles)
    needs = {d.slug: d.needs for d in plan}
    for trouble in troubles:
        for slug, need in zip(trouble.path, (*trouble.path[1:], trouble.path[0]), strict=True):
            assert need in needs[slug]
    if not troubles:
        layer = {slug: i for i, wave in enumerate(waves(plan)) for slug in wave}
        assert all(layer[need] < layer[d.slug] for d in plan for need in d.needs)
