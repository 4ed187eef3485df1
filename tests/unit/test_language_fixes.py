"""Code actions: what each offers for its diagnostic, and that the file is mended by it."""

import pytest

from graphd.workflows.language import Analysis, Fix, Point, Span, analyse, fixes, replaced
from graphd.workflows.language.fixes import MENDS

WHOLE = Span(Point(0, 0), Point(10_000, 0))
TWO = "nodes:\n  - { id: lint, run: make }\n  - { id: tests, needs: [lint], run: make }\n"
COND = TWO.replace(
    "{ id: tests, needs: [lint], run: make }", "id: tests\n    needs: [lint]\n    run: make\n    condition: {}"
).replace("{ id: lint, run: make }", "id: lint\n    run: make")


def offered(text: str, code: str) -> tuple[Analysis, list[Fix]]:
    analysis = analyse(text, name="x")
    return analysis, fixes(analysis, WHOLE, [code])


def mended(text: str, code: str, title: str = "") -> str:
    """The text after the preferred fix, or the one whose title starts so."""
    analysis, found = offered(text, code)
    chosen = next(f for f in found if f.diagnostic_code and (f.title.startswith(title) if title else f.is_preferred))
    after = replaced(text, list(chosen.edits))
    left = [d.code for d in analyse(after, name="x").diagnostics]
    assert left.count(code) < [d.code for d in analysis.diagnostics].count(code), after
    return after


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("need.unknown", TWO.replace("[lint]", "[lnt]"), TWO),
        ("need.self", TWO.replace("[lint]", "[lint, tests]"), TWO),
        ("edge.redundant", TWO.replace("[lint]", "[lint, lint]"), TWO),
        ("key.unknown", TWO.replace("needs", "need"), TWO),
        ("key.unknown", TWO.replace("needs", "dependsOn"), TWO.replace("needs", "depends_on")),
        ("key.twice", TWO.replace("needs: [lint]", "needs: [lint], depends_on: [lint]"), TWO),
        ("worker.unknown", "nodes: [{id: a, worker: biuld, prompt: x}]", "nodes: [{id: a, worker: build, prompt: x}]"),
        ("key.missing", "nodes:\n  - id: a\n", "nodes:\n  - id: a\n    run: echo a\n"),
        ("key.missing", "nodes: [{id: a, worker: build}]", "nodes: [{id: a, worker: build, prompt: a}]"),
        ("key.missing", "nodes:\n  - run: ls\n", "nodes:\n  - id: node-1\n    run: ls\n"),
        ("key.missing", "nodes: [{id: a, prompt: x}]", "nodes: [{id: a, prompt: x, worker: build}]"),
        ("type", "nodes: [{id: a, run: ls, required: yes}]", "nodes: [{id: a, run: ls, required: true}]"),
        ("type", "nodes: [{id: a, run: ls, required: 'no'}]", "nodes: [{id: a, run: ls, required: false}]"),
        ("type", "nodes: [{id: 12, run: ls}]", 'nodes: [{id: "12", run: ls}]'),
        ("type", "nodes: [{id: a, run: ls, priority: '7'}]", "nodes: [{id: a, run: ls, priority: 7}]"),
        ("type", "nodes: [{id: a, run: ls, priority: 012}]", "nodes: [{id: a, run: ls, priority: 12}]"),
        ("type", "nodes:\n  - id: a\n    run: ls\n    needs:\n", "nodes:\n  - id: a\n    run: ls\n    needs: []\n"),
        ("type", TWO.replace("[lint]", "lint"), TWO),
        ("value", "nodes: [{id: a, run: ls, on_lost: resum}]", "nodes: [{id: a, run: ls, on_lost: resume}]"),
        ("range", "nodes: [{id: a, run: ls, priority: 900}]", "nodes: [{id: a, run: ls, priority: 100}]"),
        ("notSupported", "nodes: [{id: a, run: ls, isolation: node}]", "nodes: [{id: a, run: ls}]"),
        ("slug.duplicate", "nodes: [{id: a, run: x}, {id: a, run: y}]", "nodes: [{id: a, run: x}, {id: a-2, run: y}]"),
        ("slug.invalid", "nodes: [{id: and, run: x}, {id: b, needs: [and], run: y}]",
         "nodes: [{id: and-node, run: x}, {id: b, needs: [and-node], run: y}]"),
        ("name.mismatch", "config:\n  name: y\n  nodes: [{id: a, run: x}]\n",
         "config:\n  name: x\n  nodes: [{id: a, run: x}]\n"),
        ("delivery.unknown", "config:\n  delivery_node: b1\n  nodes: [{id: b, run: x}]\n",
         "config:\n  delivery_node: b\n  nodes: [{id: b, run: x}]\n"),
        ("condition.notANeed", TWO.replace("needs: [lint]", "condition: lint.output == 1"),
         TWO.replace("needs: [lint], run: make", "condition: lint.output == 1, run: make, needs: [lint]")),
        ("condition.malformed", COND.format("lint.state == achieved"), COND.format('lint.state == "achieved"')),
        ("condition.malformed", COND.format('lint.state == "acheived"'), COND.format('lint.state == "achieved"')),
        ("condition.malformed", COND.format('lint.state != "failed" && lint.output.n > 1'),
         COND.format('lint.state != "failed" and lint.output.n > 1')),
        ("mapping.notANeed", TWO.replace("[lint]", "[lint], input_mapping: { x: lin.output }"),
         TWO.replace("[lint]", "[lint], input_mapping: { x: lint.output }")),
        ("template.inShell", TWO.replace("needs: [lint], run: make", "needs: [lint], run: 'cat {{lint}}'"),
         TWO.replace("needs: [lint], run: make", "needs: [lint], run: 'cat $(cat \"$GRAPHD_INPUT_DIR\"/lint)'")),
        ("template.unbound", "nodes:\n  - { id: a, run: x }\n  - { id: b, worker: build, prompt: 'do {{a}}' }\n",
         "nodes:\n  - { id: a, run: x }\n  - { id: b, worker: build, prompt: 'do {{a}}', needs: [a] }\n"),
        ("template.unbound", "nodes: [{ id: b, worker: build, prompt: 'do {{inputs.x}}' }]\n",
         "inputs:\n  x: { type: string }\nnodes: [{ id: b, worker: build, prompt: 'do {{inputs.x}}' }]\n"),
        ("plan.empty", "nodes: []\n", "nodes: [{ id: hello, run: echo hello }]\n"),
        ("file.empty", "# nothing\n", "# nothing\nnodes:\n  - { id: hello, run: echo hello }\n"),
        ("input.enum", "inputs: { x: { type: enum } }\nnodes: [{id: a, run: x}]\n",
         "inputs: { x: { type: enum, enum: [a, b] } }\nnodes: [{id: a, run: x}]\n"),
        ("yaml.character", "nodes: [{id: a, run: 'x\u2028'}]\n", "nodes: [{id: a, run: 'x'}]\n"),
        ("yaml.key", "nodes: [{id: a, run: x, 1: y}]\n", 'nodes: [{id: a, run: x, "1": y}]\n'),
    ],
)  # fmt: skip
def test_the_obvious_mend(code: str, before: str, after: str) -> None:
    assert mended(before, code) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nodes:\n  - id: a\n\trun: ls\n", "nodes:\n  - id: a\n    run: ls\n"),
        ("nodes:\n  - id: a\n    run: echo a: b\n", 'nodes:\n  - id: a\n    run: "echo a: b"\n'),
        ("nodes:\n  - id: a\n    needs [b]\n    run: ls\n", "nodes:\n  - id: a\n    needs: [b]\n    run: ls\n"),
        ("nodes:\n  - id: a\n    run:ls\n", "nodes:\n  - id: a\n    run: ls\n"),
        ("nodes:\n  - id: a\n    needs: [b\n    run: ls\n", "nodes:\n  - id: a\n    needs: [b]\n    run: ls\n"),
        ("nodes:\n  - {id: a, needs: [b, run: ls}\n", "nodes:\n  - {id: a, needs: [b], run: ls}\n"),
        ("nodes:\n  - {id: 'a, run: ls}\n", "nodes:\n  - {id: 'a', run: ls}\n"),
        ("nodes:\n  - id: a\n    run: 'ls\n", "nodes:\n  - id: a\n    run: 'ls'\n"),
    ],
)
def test_torn_yaml_is_closed_again(before: str, after: str) -> None:
    assert mended(before, "yaml.syntax") == after


def test_a_missing_node_is_added_in_the_style_of_the_file() -> None:
    flow = mended("nodes: [{id: a, run: x, needs: [setup]}]\n", "need.unknown", "add the node")
    block = mended(
        "nodes:\r\n  - id: a\r\n    run: x\r\n    needs:\r\n      - setup\r\n", "need.unknown", "add the node"
    )

    assert flow == "nodes: [{ id: setup, run: echo setup }, {id: a, run: x, needs: [setup]}]\n"
    assert block.startswith("nodes:\r\n  - { id: setup, run: echo setup }\r\n  - id: a\r\n")


GATED = (
    "nodes:\n  - { id: code, worker: build, prompt: do }\n"
    "  - { id: judge, needs: [code], worker: arbiter, prompt: judge, gate: { revise: code } }\n"
    "  - { id: ship, needs: [code], run: make ship }\n"
)


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("reviseLeaks", GATED, GATED.replace("ship, needs: [code]", "ship, needs: [code, judge]")),
        ("gate.notAnAncestor", GATED.replace("revise: code", "revise: cod").replace("needs: [code], run", "run"),
         GATED.replace("needs: [code], run", "run")),
        ("gate.notAnAncestor", "nodes: [{id: a, run: ls}, {id: b, run: ls, gate: {revise: a}}]",
         "nodes: [{id: a, run: ls}, {id: b, run: ls, gate: {revise: a}, needs: [a]}]"),
        ("review.notAnAncestor", "nodes: [{id: a, run: ls}, {id: b, run: ls, review: {phase: design,"
         " implementation_node_id: a}}]", "nodes: [{id: a, run: ls}, {id: b, run: ls, review: {phase: design,"
         " implementation_node_id: a}, needs: [a]}]"),
        ("review.evidence", "nodes: [{id: a, run: ls}, {id: m, needs: [a], run: ls}, {id: b, needs: [m], run: ls,"
         " gate: {}, review: {phase: design, implementation_node_id: a}}]",
         "nodes: [{id: a, run: ls}, {id: m, needs: [a], run: ls}, {id: b, needs: [m, a], run: ls,"
         " gate: {}, review: {phase: design, implementation_node_id: a}}]"),
        ("forEach.notANeed",
         "nodes: [{id: a, run: ls}, {id: b, needs: [a], run: ls, for_each: {in: aa.output, as: x}}]",
         "nodes: [{id: a, run: ls}, {id: b, needs: [a], run: ls, for_each: {in: a.output, as: x}}]"),
        ("wait.worker", "nodes: [{id: a, wait: {until: 5m}, run: ls}]", "nodes: [{id: a, wait: {until: 5m}}]"),
        ("writes.overlap", "nodes:\n  - { id: a, run: ls, writes: [x] }\n  - { id: b, run: ls, writes: [x] }\n",
         "nodes:\n  - { id: a, run: ls, writes: [x] }\n  - { id: b, run: ls, writes: [x], needs: [a] }\n"),
        ("gate.unguarded", "nodes: [{id: g, run: ls, gate: {}}, {id: a, run: ls}, {id: b, needs: [g, a], run: ls,"
         " condition: 'a.state == \"failed\" or a.output == 1'}]",
         "nodes: [{id: g, run: ls, gate: {}}, {id: a, run: ls}, {id: b, needs: [g, a], run: ls,"
         " condition: '(a.state == \"failed\" or a.output == 1) and g.verdict == \"ACCEPT\"'}]"),
    ],
)  # fmt: skip
def test_gates_reviews_items_waits_and_writers_are_mended(code: str, before: str, after: str) -> None:
    assert mended(before, code) == after


def test_every_edge_of_a_cycle_can_be_broken() -> None:
    text = "nodes:\n" + "".join(
        f"  - id: n{i}\n    run: x\n    needs:\n      - n{(i + 1) % 3}  # why\n" for i in range(3)
    )
    _, found = offered(text, "plan.cycle")

    assert [f.title for f in found if f.diagnostic_code] == [
        f"break this cycle: n{i} no longer needs n{(i + 1) % 3}" for i in range(3)
    ]
    for fix in found[:3]:
        assert analyse(replaced(text, list(fix.edits)), name="x").diagnostics == []


def test_a_need_is_removed_with_its_line_or_its_comma() -> None:
    block = (
        "nodes:\n  - { id: a, run: x }\n  - id: b\n    run: x\n    needs:\n      - a\n      - zzz  # old\n      - a2\n"
    )
    block += "  - { id: a2, run: x }\n"

    assert "zzz" not in mended(block, "need.unknown", "remove")
    assert mended(TWO.replace("[lint]", "[zzz, lint]"), "need.unknown", "remove") == TWO
    assert mended(TWO.replace("[lint]", "[lint, zzz]"), "need.unknown", "remove") == TWO


def test_a_required_end_is_offered_for_each_end() -> None:
    _, found = offered("nodes:\n  - { id: a, run: x }\n  - { id: b, run: x }\n", "required.none")

    assert [f.title for f in found if f.diagnostic_code] == ["a is required", "b is required"]


def test_too_many_nodes_raise_the_limit() -> None:
    nodes = "".join(f"    - {{ id: n{i}, run: x, required: true }}\n" for i in range(101))

    assert "  max_total_nodes: 101\n" in mended(f"config:\n  nodes:\n{nodes}", "plan.tooLarge")


def test_a_second_key_is_removed_with_what_is_below_it() -> None:
    text = "nodes:\n  - id: a\n    run: x\n    retry:\n      max: 1\n    retry:\n      max: 2\n    name: y\n"

    assert mended(text, "yaml.duplicateKey", "remove") == text.replace("    retry:\n      max: 2\n", "")


def spelt(text: str, at: Point) -> list[str]:
    analysis = analyse(text, name="x")
    return [replaced(text, list(f.edits)) for f in fixes(analysis, Span(at, at), ()) if not f.diagnostic_code]


def test_both_spellings_can_be_had() -> None:
    text = "nodes:\n  - { id: a, run: x }\n  - { id: b, needs: [a], worker: build, prompt: 'of {{a}}' }\n"
    long = text.replace("needs", "depends_on")

    assert spelt(text, Point(2, 14)) == [long]
    assert spelt(long, Point(2, 14)) == [text]
    assert spelt(text, Point(2, 26)) == [text.replace("worker", "worker_type")]
    template = text.replace("prompt: 'of {{a}}'", "prompt_template: { inline: 'of {{a}}' }")
    assert spelt(text, Point(2, 42)) == [template]
    assert [s.replace(" '", "'").replace("'  }", "' }") for s in spelt(template, Point(2, 42))] == [
        text.replace(" '", "'")
    ]


def test_fixes_are_those_of_the_asked_place_and_codes() -> None:
    text = TWO.replace("[lint]", "[lnt]").replace("id: lint", "id: lint, need: [a]")
    analysis = analyse(text, name="x")

    assert {f.diagnostic_code for f in fixes(analysis, WHOLE)} == {"need.unknown", "key.unknown"}
    assert {f.diagnostic_code for f in fixes(analysis, Span(Point(2, 26), Point(2, 26)))} == {"need.unknown"}
    assert {f.diagnostic_code for f in fixes(analysis, WHOLE, ["key.unknown"])} == {"key.unknown"}
    assert all(f.diagnostic is not None and f.diagnostic.code == f.diagnostic_code for f in fixes(analysis, WHOLE))


def test_most_codes_have_a_mend() -> None:
    assert len(MENDS) >= 30
