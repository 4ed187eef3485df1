"""Good files: what they compile to, in both spellings, and what is remarked about them."""

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphd.core.model import Definition, Limits, Retry
from graphd.workflows import WorkflowRefused, explain, load, summarise, validate
from graphd.workflows.schema import TABLES

ROOT = Path(__file__).parents[2]
GOOD = Path(__file__).parents[1] / "data" / "workflows" / "good"
INPUTS: dict[str, Any] = {"target": "src", "depth": "3"}


def codes(text: str, name: str | None = None) -> list[str]:
    return [d.code for d in validate(text, name=name)]


def refused(text: str, **more: Any) -> list[str]:
    with pytest.raises(WorkflowRefused) as caught:
        load(text, **more)
    return [d.code for d in caught.value.diagnostics]


def test_the_file_of_the_seed_is_valid_unchanged() -> None:
    content = (GOOD.parent / "seed" / "parallel-migrate.yaml").read_bytes()

    plan = load(content, name="parallel-migrate")

    assert validate(content, name="parallel-migrate") == []
    assert plan.title == plan.objective == "并行迁移"
    assert [d.slug for d in plan.definitions] == ["discover", "migrate-auth", "migrate-server", "assemble"]
    assert plan.definitions[3].needs == ("migrate-auth", "migrate-server")
    assert plan.definitions[0].required


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_example_is_valid_and_without_warnings(path: Path) -> None:
    assert validate(path.read_bytes(), name=path.stem) == []


def test_the_smallest_file_runs() -> None:
    plan = load(
        "nodes:\n  - { id: lint, run: make lint }\n  - { id: tests, run: make test }\n"
        "  - { id: report, needs: [lint, tests], run: 'cat \"$GRAPHD_INPUT_DIR\"/*' }\n",
        name="checks",
    )

    assert (plan.name, plan.title, plan.objective) == ("checks", "checks", "checks")
    assert plan.definitions[2] == Definition(
        "report", 'cat "$GRAPHD_INPUT_DIR"/*', "shell", title="report", needs=("lint", "tests")
    )
    assert plan.limits == Limits()
    assert plan.warnings == ()


def test_both_spellings_mean_the_same() -> None:
    long, short = (load((GOOD / f"{n}.yaml").read_bytes(), name=n, inputs=INPUTS) for n in ("long", "short"))

    assert long.definitions == short.definitions
    assert long.limits == short.limits == Limits(concurrency=3, max_nodes=50)
    assert long.delivery_node == "report"
    assert long.warnings == ()
    assert [w.code for w in short.warnings] == ["edge.redundant"]


def test_defaults_are_taken_key_by_key() -> None:
    listed, no, report = load((GOOD / "long.yaml").read_bytes(), name="long", inputs=INPUTS).definitions

    assert (listed.timeout_ms, listed.hard_timeout_ms, listed.title) == (30_000, None, "List")
    assert (no.timeout_ms, no.hard_timeout_ms, no.on_lost, no.priority) == (30_000, 60_000, "fail", -5)
    assert report.retry == Retry(max=2, backoff_s=0.5, on=("timeout",))


def test_a_prompt_is_filled_where_the_value_is_known() -> None:
    plan = load((GOOD / "long.yaml").read_bytes(), name="long", inputs=INPUTS)

    assert plan.definitions[2].spec == "Plan for src at depth 3: {{list}}"
    assert plan.definitions[0].spec == 'ls "$GRAPHD_VAR_target"'
    assert plan.inputs == {"target": "src", "depth": 3}
    assert plan.variables == {"target": "src", "depth": "3"}


def test_explain_prints_the_long_form() -> None:
    told = explain((GOOD / "short.yaml").read_bytes(), name="short")

    assert told.waves == [["list"], ["no"], ["report"]]
    assert told.nodes[0]["prompt_template"] == {"inline": 'ls "$GRAPHD_VAR_target"'}
    assert told.nodes[1] == {
        "id": "no", "name": "no", "worker_type": "shell", "depends_on": ["list"], "required": False,
        "prompt_template": {"inline": 'wc -l < "$GRAPHD_INPUT_DIR/list"'},
        "worker_config": {"timeout_ms": 30_000, "hard_timeout_ms": 60_000},
        "retry": {"max": 1, "backoff_s": 0.5, "on": ["exec_failed", "timeout"]}, "on_lost": "fail", "priority": -5,
    }  # fmt: skip
    assert told.nodes[2]["required"]


def test_what_explain_prints_can_be_read_again() -> None:
    told = explain((GOOD / "short.yaml").read_bytes(), name="short")
    text = yaml.safe_dump({"inputs": {"target": {}, "depth": {}}, "config": {"nodes": told.nodes}}, allow_unicode=True)

    assert explain(text).nodes == told.nodes


def test_a_list_shows_title_and_inputs_of_valid_and_invalid_files() -> None:
    good = summarise((GOOD / "long.yaml").read_bytes(), name="long")
    bad = summarise("title: Half\ninputs: { n: { type: int } }\nnodes: [{ id: a }]\n", name="half")

    assert (good.title, good.is_valid) == ("Both spellings", True)
    assert good.inputs["depth"] == {"type": "int", "default": 2}
    assert good.inputs["target"] == {"type": "path", "description": "what to look at"}
    assert (bad.title, bad.is_valid, bad.inputs) == ("Half", False, {"n": {"type": "int"}})
    assert summarise("[", name="x").title == "x"


def test_explain_fills_in_inputs_that_were_given() -> None:
    told = explain((GOOD / "long.yaml").read_bytes(), name="long", inputs=INPUTS)

    assert told.nodes[2]["prompt_template"]["inline"].startswith("Plan for src")


# ---- inputs ---------------------------------------------------------------------------------------------------------

ASKS = """
inputs:
  who: { type: string, description: whom to greet }
  n: { type: int, default: 2 }
  deep: { type: bool, default: false }
  how: { type: enum, enum: [fast, slow], default: slow }
  ratio: { type: number, default: 0.5 }
nodes: [{ id: a, run: 'echo "$GRAPHD_VAR_who"' }]
"""


def test_inputs_take_texts_and_typed_values() -> None:
    texts = load(ASKS, inputs={"who": "12", "n": "3", "deep": "true", "how": "fast", "ratio": "2"})
    typed = load(ASKS, inputs={"who": "12", "n": 3, "deep": True, "how": "fast", "ratio": 2})

    assert texts.inputs == typed.inputs == {"who": "12", "n": 3, "deep": True, "how": "fast", "ratio": 2}
    assert texts.variables["deep"] == "true"


def test_a_missing_input_is_said_where_it_is_declared() -> None:
    with pytest.raises(WorkflowRefused) as caught:
        load(ASKS)

    assert caught.value.code == "inputMissing"
    assert caught.value.first.range.start.line == 2
    assert "whom to greet" in caught.value.first.message
    assert "--input who=" in caught.value.first.hint


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"who": "x", "n": "two"}, "input.value"), ({"who": "x", "n": True}, "input.value"),
        ({"who": 5}, "input.value"),
        ({"who": "x", "how": "fats"}, "input.value"), ({"who": "x", "deep": "yes"}, "input.value"),
        ({"who": "x", "ratio": float("nan")}, "input.value"), ({"who": "a\0b"}, "input.value"),
        ({"who": "x", "m": 1}, "input.unknown"),
    ],
)  # fmt: skip
def test_an_unfit_input_is_refused(given: dict[str, Any], code: str) -> None:
    assert refused(ASKS, inputs=given) == [code]


def test_a_value_can_not_smuggle_a_template() -> None:
    text = "inputs: { x: {} }\nnodes: [{ id: a, worker: build, prompt: 'do {{inputs.x}}' }]\n"

    assert refused(text, inputs={"x": "{{a}}"}) == ["input.template"]
    assert load(text, inputs={"x": "{a}"}).definitions[0].spec == "do {a}"


# ---- prompts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["prompt_template: { id: look, input: { x: 5 } }", "prompt: { file: look }"])
def test_a_prompt_file_is_read_through_the_reader(spelling: str) -> None:
    text = f"inputs: {{ y: {{}} }}\nnodes:\n  - id: a\n    worker: explore\n    {spelling}\n"

    plan = load(text, inputs={"y": "z"}, read_prompt={"look": b"look at {{inputs.y}}"}.get)

    assert plan.definitions[0].spec == "look at z"
    assert [name for name, _ in plan.prompts] == ["look"]


def test_a_prompt_file_that_is_missing_unbound_or_no_text_is_told() -> None:
    text = "nodes: [{ id: a, worker: explore, prompt: { file: look } }]\n"

    assert refused(text) == ["prompt.missing"]
    assert refused(text, read_prompt={"look": b"{{nobody}}"}.get) == ["template.unbound"]
    assert refused(text, read_prompt={"look": b"\xff"}.get) == ["prompt.encoding"]
    assert codes(text) == []


def test_mapped_names_replace_the_needs_in_a_prompt() -> None:
    text = "nodes:\n  - { id: a, run: ls }\n  - { id: b, worker: plan, needs: [a], prompt: '%s',"
    text += " input_mapping: { x: a.output.y } }\n"

    assert load(text % "{{x}}").definitions[1].input_mapping == (("x", "a.output.y"),)
    assert refused(text % "{{a}}") == ["template.unbound"]


# ---- what is accepted, what not yet -------------------------------------------------------------------------------


def test_what_asks_for_nothing_is_accepted() -> None:
    text = """
mode: standard
config:
  isolation: none
  on_required_failure: drain
  on_shared_tree: notice
  final_check: false
  max_rounds: 2
  max_replans: 0
  nodes:
    - { id: a, run: ls, isolation: none, approval: false, writes: [], artifacts: [] }
"""
    plan = load(text)

    assert (plan.limits.rounds_per_attempt, plan.limits.replans) == (2, 0)


def test_only_what_is_not_carried_out_gives_the_code_not_supported() -> None:
    with pytest.raises(WorkflowRefused) as caught:
        load("nodes: [{ id: a, run: ls, isolation: node }]\n")

    assert caught.value.code == "notSupported"
    assert "this version" in caught.value.first.message


def test_workers_are_the_callers() -> None:
    text = "nodes: [{ id: a, worker: mine, prompt: x }]\n"

    assert codes(text) == ["worker.unknown"]
    assert validate(text, workers={"mine"}) == []


def test_every_key_of_the_schema_is_spelled_once() -> None:
    for table in TABLES:
        spellings = [s for key in table.keys for s in (key.name, *key.short)]
        assert len(set(spellings)) == len(spellings), table.name


# ---- warnings -------------------------------------------------------------------------------------------------------


def test_the_name_is_the_files() -> None:
    text = "config: { name: other, nodes: [{ id: a, run: ls }] }\n"

    assert codes(text, "mine") == ["name.mismatch"]
    assert codes(text) == []


def test_nothing_required_is_remarked() -> None:
    assert codes("nodes: [{ id: a, run: ls }, { id: b, run: ls }]\n") == ["required.none"]
    assert codes("nodes: [{ id: a, run: ls }, { id: b, run: ls, required: true }]\n") == []


def test_an_edge_that_nothing_uses_is_remarked() -> None:
    text = "nodes:\n  - { id: a, run: ls }\n  - { id: b, run: ls }\n"
    text += "  - { id: c, needs: [a, b], run: ls, input_mapping: { x: a } }\n"

    (found,) = validate(text)
    assert (found.severity, found.code, found.path) == ("warning", "edge.unused", "nodes[2].needs[1]")


def test_an_edge_that_another_implies_is_remarked_only_where_its_output_is_not_read() -> None:
    text = (
        "nodes:\n  - { id: a, run: ls }\n  - { id: b, needs: [a], run: ls }\n  - { id: c, needs: [a, b], run: '%s' }\n"
    )

    assert codes(text % "ls") == ["edge.redundant"]
    assert codes(text % 'cat "$GRAPHD_INPUT_DIR/a"') == []


# ---- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif("coverage" in sys.modules, reason="tracing slows Python alone, so the ratio means nothing")
def test_reading_a_long_file_costs_little_more_than_yaml_itself() -> None:
    entry = "    - id: node-{0}\n      name: Node {0}\n      depends_on: [{1}]\n"
    entry += "      run: echo {0}\n      retry:\n        max: 1\n"
    entries = (entry.format(i, f"node-{i - 1}" if i else "") for i in range(833))
    text = "config:\n  max_total_nodes: 2000\n  nodes:\n" + "".join(entries)
    assert text.count("\n") >= 5000

    def cost(act: Any) -> float:
        times = []
        for _ in range(5):
            start = time.process_time()
            act()
            times.append(time.process_time() - start)
        return statistics.median(times)

    composing = cost(lambda: yaml.compose(text, Loader=yaml.CSafeLoader))
    reading = cost(lambda: validate(text))

    assert validate(text) == []
    assert reading <= 3 * composing + 0.02, f"{reading / composing:.1f} times"
