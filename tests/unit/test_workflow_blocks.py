"""Blocks: which nodes they become, who waits for whom, and what writers side by side are followed by."""

import pytest

from graphd.core.definition import Definition, Gate, Review
from graphd.workflows import WorkflowRefused, load, render, validate
from graphd.workflows.blocks import WRITERS
from graphd.workflows.schema import BLOCK, Text


def nodes(*blocks: str, config: str = "", inputs: str = "") -> dict[str, Definition]:
    listed = "".join(f"    - {{ {block} }}\n" for block in blocks)
    text = f"{inputs}config:\n{config}  blocks:\n{listed}"
    found = validate(text)
    assert not [d for d in found if d.severity == "error"], render(found, "x")
    return {d.slug: d for d in load(text).definitions}


def block(slug: str, kind: str, *needs: str, more: str = "") -> str:
    return f"id: {slug}, kind: {kind}, depends_on: [{', '.join(needs)}], instruction: do {slug}{more}"


def test_every_kind_is_compiled_and_told_its_instruction_last() -> None:
    kind = BLOCK.key("kind")
    assert kind is not None
    assert isinstance(kind.kind, Text)
    for name in kind.kind.choices:
        made = nodes(block("it", name))
        assert made["it"].spec.endswith("\n\ndo it")
        assert len(made["it"].spec) > 100
        assert list(made)[-1] == "it"


def test_workers_and_what_is_required_follow_the_kind_unless_the_block_says_more() -> None:
    made = nodes(
        block("a", "explore"), block("b", "coding", "a"), block("c", "verify", "b"), block("d", "synthesize", "c"),
        block("e", "plan", more=", worker_type: architect, required: false, report_to_parent: true"),
    )  # fmt: skip
    assert [(d.slug, d.worker, d.required, d.report_to_parent) for d in made.values()] == [
        ("a", "explore", False, False), ("b", "build", False, False), ("c", "verify", True, False),
        ("d", "synthesize", True, True), ("e", "architect", False, True),
    ]  # fmt: skip


def test_a_review_is_two_readers_and_a_gate() -> None:
    made = nodes(block("code", "coding"), block("test", "verify", "code"), block("look", "review", "code", "test"))
    assert list(made) == ["code", "test", "look-standards", "look-intent", "look"]
    assert made["look-standards"].needs == made["look-intent"].needs == ("code", "test")
    gate = made["look"]
    assert (gate.worker, gate.required, gate.needs) == (
        "arbiter", True, ("look-standards", "look-intent", "code", "test"),
    )  # fmt: skip
    assert gate.gate == Gate("code")
    assert gate.review == Review("diff", "code", "test")
    assert gate.output_schema is not None
    assert "REPLAN" in gate.output_schema


def test_a_review_sends_nothing_back_that_others_read_without_waiting_for_it() -> None:
    made = nodes(block("code", "coding"), block("look", "review", "code"), block("notes", "explore", "code"))
    assert made["look"].gate == Gate()
    assert made["look"].review == Review("diff", "code")


def test_a_review_of_a_plan_is_of_a_design_and_one_of_nothing_is_of_none() -> None:
    made = nodes(block("plan", "plan"), block("look", "review", "plan"), block("other", "review"))
    assert made["look"].review == Review("design", "plan")
    assert made["look"].gate == Gate("plan")
    assert made["other"].review is None


def test_debugging_is_a_diagnosis_and_a_mend() -> None:
    made = nodes(block("bug", "debug"))
    assert [(d.slug, d.needs, d.required) for d in made.values()] == [
        ("bug-diagnosis", (), True), ("bug", ("bug-diagnosis",), True),
    ]  # fmt: skip


def test_writers_side_by_side_are_followed_by_an_aggregator() -> None:
    made = nodes(
        block("start", "plan"), block("a", "coding", "start"), block("b", "prototype", "start"),
        block("c", "coding", "b"), block("check", "verify", "a"), block("look", "review", "check"),
    )  # fmt: skip
    assert made["combined"].needs == ("a", "b", "c")
    assert made["combined"].required
    assert made["check"].needs == ("a", "combined")
    assert made["c"].needs == ("b",), "a member does not wait for what follows it"
    assert list(made)[-1] == "combined"


def test_writers_in_a_row_need_none_and_names_that_people_wrote_stay_theirs() -> None:
    assert "combined" not in nodes(block("a", "coding"), block("b", "debug", "a"))
    made = nodes(block("combined", "coding"), block("b", "coding"), block("look", "review", "b"),
                 block("look-intent", "explore"))  # fmt: skip
    assert made["combined-2"].needs == ("combined", "b")
    assert made["look-intent"].worker == "explore"
    assert made["look"].needs[:2] == ("look-standards", "look-intent-2")


def test_what_leads_to_a_writer_does_not_wait_for_the_aggregator() -> None:
    made = nodes(block("a", "coding"), block("between", "explore", "a"), block("b", "coding", "between"),
                 block("c", "coding"), block("end", "synthesize", "b"))  # fmt: skip
    assert made["between"].needs == ("a",)
    assert made["end"].needs == ("b", "combined")


def test_a_review_of_writers_side_by_side_is_of_the_whole() -> None:
    made = nodes(block("a", "coding"), block("b", "coding"), block("look", "review", "a", "b"))
    assert made["look"].review == Review("diff", "combined")
    assert made["look"].gate == Gate("combined")


def test_defaults_of_the_graph_hold_where_a_block_is_silent() -> None:
    config = "  node_defaults: { required: true, worker_config: { timeout_ms: 5000, model: big }, retry: { max: 2 } }\n"
    made = nodes(block("a", "coding"), block("b", "coding", more=", required: false"), config=config)
    assert [(d.required, d.timeout_ms, d.model, d.retry.max) for d in made.values()] == [
        (True, 5000, "big", 2), (False, 5000, "big", 2), (True, 5000, "big", 2),
    ]  # fmt: skip


def test_a_script_stays_as_it_is_and_inputs_are_filled_in() -> None:
    made = nodes(
        "id: a, kind: verify, worker: shell, instruction: 'make test'",
        "id: b, kind: explore, needs: [a], instruction: 'look at {{inputs.x}} and {{a}}'",
        inputs="inputs: { x: { default: src } }\n",
    )
    assert (made["a"].worker, made["a"].spec) == ("shell", "make test")
    assert made["b"].spec.endswith("look at src and {{a}}")


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ("[{ id: a, kind: coding, depends_on: [b], instruction: x }, { id: b, kind: coding, depends_on: [a],"
         " instruction: y }]", "plan.cycle"),
        ("[{ id: a, kind: coding, instruction: x }, { id: a, kind: coding, instruction: y }]", "slug.duplicate"),
        ("[{ id: a, kind: review, depends_on: [b], instruction: x }]", "need.unknown"),
        ("[{ id: a, kind: debug, worker: shell, instruction: x }]", "block.shell"),
        ("[{ id: a, kind: coding, worker: nobody, instruction: x }]", "worker.unknown"),
        ("[{ id: a, kind: coding }]", "key.missing"),
        ("[{ kind: coding, instruction: x }]", "key.missing"),
    ],
)  # fmt: skip
def test_blocks_that_can_not_be_compiled_are_told(blocks: str, expected: str) -> None:
    with pytest.raises(WorkflowRefused) as caught:
        load(f"config: {{ blocks: {blocks} }}\n")
    assert expected in [d.code for d in caught.value.diagnostics]


def test_writers_are_kinds_of_blocks() -> None:
    kind = BLOCK.key("kind")
    assert kind is not None
    assert isinstance(kind.kind, Text)
    assert set(WRITERS) <= set(kind.kind.choices)


def test_a_deep_run_of_blocks_is_complete_by_itself() -> None:
    listed = (block("code", "coding"), block("test", "verify", "code"), block("look", "review", "code", "test"))
    text = "mode: deep\nadmission: { goal: x, verdict: READY }\nconfig:\n  blocks:\n"
    text += "".join(f"    - {{ {line} }}\n" for line in listed)
    assert validate(text) == []
