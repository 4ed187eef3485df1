"""Everything that a node may ask for: from the file to the core, in `explain`, and in what deep mode wants."""

from pathlib import Path
from typing import Any

import pytest

from graphd.core.definition import Approval, Budget, ForEach, Gate, Review, Terms, Verify, Wait
from graphd.workflows import Compiled, WorkflowRefused, explain, load, render, validate

FILE = Path(__file__).parents[1] / "data" / "workflows" / "good" / "everything.yaml"
BRIEF = "mode: deep\nadmission: { goal: x, verdict: READY }\n"


def plan(text: str = "") -> Compiled:
    return load(text or FILE.read_bytes(), name="everything")


def codes(text: str) -> list[str]:
    return [d.code for d in validate(text)]


def test_every_clause_arrives_in_its_definition() -> None:
    nodes = {d.slug: d for d in plan().definitions}

    assert nodes["files"].artifacts == ("*.py",)
    assert nodes["files"].output_schema is not None
    assert '"$ref":"#/$defs/file"' in nodes["files"].output_schema
    assert nodes["pause"].wait == Wait(signal="go", timeout_s=60)
    assert (nodes["pause"].worker, nodes["pause"].spec) == ("", "")
    change = nodes["change"]
    assert change.for_each == ForEach("files.output.list", "file", 5)
    assert change.spec == "Change {{file}}, number {{index}}, of parser; a text of its own: {{files}}"
    assert (change.writes, change.unattended_extensions) == (("src/**/*.py",), 0)
    assert (change.permissions, change.thinking, change.mode, change.max_tool_calls) == ("edit", "high", "code", 40)
    assert nodes["check"].verify == Verify("test -s report")
    assert (change.model, change.timeout_ms, change.hard_timeout_ms) == ("standard", 5000, 9000)
    assert change.approval == Approval("May it write?", "deny")
    assert nodes["check"].approval == Approval()
    assert nodes["judge"].gate == Gate("change", 1)
    assert nodes["judge"].review == Review("diff", "change", "check")


def test_budget_and_terms_arrive_with_the_plan() -> None:
    made = plan()

    assert made.budget == Budget(200_000, 2.5, 90_500)
    assert made.terms.admission is not None
    assert made.terms == Terms("deep", made.terms.admission, "stop", final_check=True)
    assert len(made.terms.admission) == 64
    assert made.warnings == ()
    assert load("nodes: [{ id: a, run: ls }]").budget is None
    assert load("config: { budget: {}, nodes: [{ id: a, run: ls }] }").budget is None


def test_a_fingerprint_is_of_what_the_brief_says_not_of_how_it_is_written() -> None:
    def of(admission: str) -> str | None:
        return load(f"admission: {admission}\nnodes: [{{ id: a, run: ls }}]").terms.admission

    short = of("{ goal: x, verdict: READY }")
    assert short == of("{ verdict: READY, goal: 'x', risks: [], scope: { in: [] } }")
    assert short != of("{ goal: y, verdict: READY }")
    assert short != of("{ goal: x, verdict: READY, scope: { in: [a] } }")


def test_the_goal_of_a_brief_is_the_objective_where_the_file_names_none() -> None:
    assert load("admission: { goal: done, verdict: READY }\nnodes: [{ id: a, run: ls }]").objective == "done"
    assert plan().objective == "Make {the parser} right"


def test_explain_prints_the_clauses_the_bounds_and_the_last_check() -> None:
    told = explain(FILE.read_bytes(), name="everything")
    nodes = {node["id"]: node for node in told.nodes}

    assert told.config == {
        "max_concurrency": 2, "budget": {"tokens": 200_000, "cost_usd": 2.5, "wall_seconds": 90.5},
        "on_required_failure": "stop", "final_check": True, "delivery_node": "judge",
    }  # fmt: skip
    assert nodes["pause"]["wait"] == {"signal": "go", "timeout_s": 60}
    assert "worker_type" not in nodes["pause"]
    assert nodes["change"]["for_each"] == {"in": "files.output.list", "as": "file", "max": 5}
    assert nodes["check"]["approval"] is True
    assert nodes["judge"]["gate"] == {"revise": "change", "max_revisions": 1}
    assert nodes["files"]["output_schema"]["x-note"] == "for readers"
    assert (nodes["gn-final"]["depends_on"], told.waves[-1]) == (["judge"], ["gn-final"])


def test_a_list_of_items_is_a_use_of_its_need() -> None:
    text = (
        "nodes:\n  - { id: a, run: ls }\n  - { id: b, needs: [a], worker: build, input_mapping: { y: a.output },"
        " for_each: { in: a.output, as: x }, prompt: 'do {{x}}' }\n"
    )
    assert codes(text) == []


# ---- contracts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("{ type: object, properties: { propertis: { type: string } } }", []),
        ("{ typ: object }", ["did you mean type?"]),
        ("{ definitions: {} }", ["did you mean $defs?"]),
        ("{ zzz: 1 }", ["name it x-zzz if it is for readers"]),
        ("{ anyOf: [{ typo: 1 }] }", ["did you mean"]),
        ("{ not: { $ref: other.json } }", ["put it under $defs"]),
        ("{ $ref: '#/$defs/a' }", ["write # and the way"]),
        ("{ $ref: '#/$defs/a', $defs: { a: true } }", []),
        ("{ $ref: '#here', $defs: { a: { $anchor: here } } }", []),
        ("{ $ref: '#there', $defs: { a: { $anchor: here } } }", ["write # and the way"]),
        ("{ $ref: '#/anyOf/1', anyOf: [true] }", ["write # and the way"]),
        ("{ $ref: '#/anyOf/0', anyOf: [true] }", []),
        ("{ $ref: '#/$defs/a~1b', $defs: { a/b: true } }", []),
        ("{ $defs: { a: { $id: x } } }", ["use $anchor"]),
        ("{ $id: 'urn:x' }", []),
        ("{ $schema: 'https://json-schema.org/draft/2020-12/schema' }", []),
        ("{ $schema: 'http://json-schema.org/draft-07/schema#' }", ["remove $schema"]),
        ("{ patternProperties: { '[': true } }", ["it is a regular expression"]),
        ("{ pattern: '%s' }" % ("a" * 600), ["split it"]),
        ("{ const: { anything: [goes] }, enum: [{ $ref: nowhere }] }", []),
        ("{ type: [object, nothing] }", ["see JSON Schema 2020-12"]),
        ("{ items: %s }" % ("{ not: " * 13 + "true" + " }" * 13), ["use $defs"]),
        ("{ description: '%s' }" % ("a" * 70_000), ["leave out what nobody reads"]),
    ],
)
def test_contracts_are_of_2020_12_and_nothing_else(schema: str, expected: list[str]) -> None:
    found = validate(f"nodes: [{{ id: a, run: ls, output_schema: {schema} }}]")

    assert [d.code for d in found] == ["schema.malformed"] * len(expected), render(found, "x")
    assert all(d.hint.startswith(hint) for d, hint in zip(found, expected, strict=True)), render(found, "x")


def test_a_trouble_of_a_contract_is_told_where_it_stands() -> None:
    (found,) = validate(
        "nodes:\n  - id: a\n    run: ls\n    output_schema:\n      properties:\n        x:\n          typ: string\n"
    )
    assert (found.range.start.line, found.range.start.character) == (6, 10)
    assert found.path == "nodes[0].output_schema.properties.x.typ"


# ---- warnings -------------------------------------------------------------------------------------------------------


def test_a_condition_that_looks_past_a_gate_is_remarked() -> None:
    text = (
        "nodes:\n  - { id: g, worker: arbiter, prompt: judge, gate: {} }\n"
        "  - { id: a, needs: [g], run: ls, condition: '%s' }\n"
    )
    assert codes(text % 'g.state == "achieved"') == []
    other = text.replace("needs: [g]", "needs: [g, b]") + "  - { id: b, run: ls }\n"
    assert codes(other % 'b.state == "achieved"') == ["gate.unguarded"]
    assert codes(other % 'b.state == "achieved" and g.verdict in ["ACCEPT", "REVISE"]') == []


def test_writers_of_the_same_files_that_may_run_together_are_remarked() -> None:
    text = (
        "nodes:\n  - { id: a, run: ls, writes: [src/**] }\n  - { id: b, run: ls, writes: [src/x.py] }\n"
        "  - { id: c, needs: [a, b], run: 'cat $GRAPHD_INPUT_DIR/*', writes: [src/*] }\n"
    )
    (found,) = validate(text)
    assert (found.code, found.path) == ("writes.overlap", "nodes[1].writes")
    assert codes(text.replace("id: b,", "id: b, needs: [a],")) == []


def test_nothing_required_is_no_remark_where_a_last_check_is() -> None:
    assert codes("config: { final_check: true, nodes: [{ id: a, run: ls }, { id: b, run: ls }] }") == []


# ---- the life of a review -------------------------------------------------------------------------------------------

REVIEWED = """
config:
  nodes:
    - { id: code, worker: build, prompt: do it }
    - { id: test, needs: [code], run: make test, required: true }
    - id: judge
      needs: [code, test]
      worker: arbiter
      prompt: judge
      gate: { revise: code }
      review: { phase: diff, implementation_node_id: code, verification_node_id: test }
      output_schema: { required: [verdict, fingerprint] }
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("needs: [code, test]", "needs: [code, test, code]", ["edge.redundant"]),
        ("      gate: { revise: code }\n", "", ["review.ungated"]),
        ("implementation_node_id: code, ", "", ["review.incomplete"]),
        (", verification_node_id: test", "", ["review.incomplete"]),
        ("needs: [code, test]", "needs: [test]", ["review.evidence"]),
        (", required: true", "", ["review.unproven"]),
        (", required: true", ", required: false", ["review.unproven"]),
        ("prompt: judge", "prompt: judge\n      condition: test.state == \"achieved\"", []),
        (", fingerprint]", "]", ["review.fingerprint"]),
        ("      output_schema: { required: [verdict, fingerprint] }\n", "", ["review.fingerprint"]),
        ("test, needs: [code],", "test,", ["review.order"]),
        ("phase: diff, implementation_node_id: code, verification_node_id: test", "phase: design,"
         " implementation_node_id: code", []),
    ],
)  # fmt: skip
def test_what_a_review_lacks_is_a_warning_and_in_a_deep_run_an_error(old: str, new: str, expected: list[str]) -> None:
    text = REVIEWED.replace(old, new, 1) if old else REVIEWED
    assert codes(text) == expected
    found = validate(BRIEF + text)
    assert [d.code for d in found] == expected
    assert {d.severity for d in found} <= ({"error"} if expected != ["edge.redundant"] else {"warning"})


def test_a_verification_outside_of_the_needs_is_missing_evidence() -> None:
    text = REVIEWED.replace("needs: [code, test]", "needs: [code, mid]") + "    - { id: mid, needs: [test], run: ls }\n"
    assert codes(text) == ["review.evidence"]


def test_a_gate_after_a_review_guards_it() -> None:
    text = REVIEWED.replace("      gate: { revise: code }\n", "")
    text += "    - { id: last, needs: [judge], worker: arbiter, prompt: decide, gate: {} }\n"
    assert codes(text) == []


def test_a_deep_run_that_changes_nothing_needs_no_review() -> None:
    assert codes(BRIEF + "nodes: [{ id: a, worker: explore, prompt: look }]") == []


# ---- what is still refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "config: { isolation: graph, nodes: [{ id: a, run: ls }] }",
        "config: { on_shared_tree: serialise, nodes: [{ id: a, run: ls }] }",
    ],
)
def test_what_no_part_carries_out_is_not_supported(text: str) -> None:
    with pytest.raises(WorkflowRefused) as caught:
        load(text)
    assert caught.value.code == "notSupported"


def test_both_or_none_of_two_ways_is_told_once() -> None:
    for clause in ("wait: { until: 5m, signal: x }", "wait: {}", "wait: { timeout_s: 5 }"):
        found: list[Any] = [d.code for d in validate(f"nodes: [{{ id: a, {clause} }}]")]
        assert len(found) == 1, found
