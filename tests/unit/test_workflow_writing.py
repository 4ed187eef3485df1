"""A plan written as a file: compiled again, it is the same plan, whatever its texts are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.core.definition import (
    Approval,
    Budget,
    Definition,
    ForEach,
    Gate,
    Item,
    Pruned,
    Retry,
    Review,
    Terms,
    Verify,
    Wait,
)
from graphd.core.final import with_final
from graphd.core.model import Limits
from graphd.workflows import load, schema, summarise
from graphd.workflows.contracts import contract_text
from graphd.workflows.writing import to_yaml

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "examples").glob("*.yaml")), *sorted((ROOT / "tests/data/workflows/good").glob("*.yaml"))]
PARTS = [
    *(
        "",
        " ",
        "\n",
        "\n\n",
        "a",
        "#",
        ": ",
        "- ",
        "'",
        '"',
        "\\",
        "\t",
        "|",
        "{",
        "}",
        "[",
        ",",
        "%",
        "@",
        "&a",
        "*",
        "!",
    ),
    *("日本", "😀", "\u2028", "\x85", "\x7f", "\x01", "\ufeff", "\r", "yes", "012", "1e5", "null", "~", "x"),
]

amounts = st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000)
texts = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)
filled = texts.filter(lambda text: text.strip() != "" and "{{" not in text)
globs = st.lists(st.sampled_from(["src/**", "*.py", "a b/c", "日本/*"]), max_size=2).map(tuple)
clauses: dict[str, st.SearchStrategy[Any]] = {
    "title": filled,
    "required": st.booleans(),
    "timeout_ms": st.integers(1000, 10**9),
    "hard_timeout_ms": st.none() | st.integers(1000, 10**9),
    "retry": st.builds(Retry, st.integers(0, 100), amounts, st.just(("lost", "timeout"))),
    "on_lost": st.sampled_from(["resume", "pause", "fail"]),
    "priority": st.integers(-100, 100),
    "report_to_parent": st.booleans(),
    "output_schema": st.none()
    | st.dictionaries(texts, st.just({"type": "string"}), max_size=3).map(
        lambda named: contract_text({"properties": named, "x-note": "yes", "description": "012"})
    ),
    "approval": st.none() | st.builds(Approval, texts, st.sampled_from([None, "allow", "deny"])),
    "verify": st.none() | st.builds(Verify, filled) | st.builds(Verify, st.none(), st.just("verify"), filled),
    "artifacts": globs,
    "writes": globs,
    "isolation": st.sampled_from([None, "none", "graph", "node"]),
    "permissions": st.sampled_from([None, "read", "edit", "full"]),
    "model": st.none() | filled,
    "thinking": st.sampled_from([None, "low", "max"]),
    "mode": st.none() | filled,
    "max_tool_calls": st.none() | st.integers(1, 1000),
    "unattended_extensions": st.none() | st.integers(0, 1000),
}


@st.composite
def plans(draw: st.DrawFn) -> list[Definition]:
    made = [
        Definition(f"n{i}", draw(filled), draw(st.sampled_from(["shell", "build"])), **{
            name: draw(strategy) for name, strategy in clauses.items()
        })
        for i in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    first = made[0].slug
    made.append(
        Definition("last", draw(filled), "arbiter", title="last", needs=(first,), gate=Gate(first, 3),
                   condition=f'{first}.state == "achieved"', input_mapping=(("x", f"{first}.output.a"),),
                   review=Review("diff", first), for_each=None)
    )  # fmt: skip
    made.append(Definition("each", "do {{x}} {{index}}", "build", title="each", needs=("last",),
                           for_each=ForEach("last.output.list", "x", 7)))  # fmt: skip
    made.append(Definition("rest", "", "", title="rest", needs=("each",), wait=draw(st.sampled_from(
        [Wait("5m"), Wait("2026-12-01T09:00:00+01:00"), Wait(signal="go", timeout_s=1.5)]))))  # fmt: skip
    return made


@pytest.fixture(autouse=True, scope="module")
def _everything_is_carried_out() -> Any:
    """What is refused as not supported is written all the same."""
    with pytest.MonkeyPatch.context() as patch:
        for table in schema.TABLES:
            for name, key in list(schema._INDEX[table.name].items()):
                patch.setitem(schema._INDEX[table.name], name, replace(key, later=""))
        yield


@settings(max_examples=150)
@given(
    plans(), filled, filled,
    st.builds(Limits, st.integers(1, 64), st.integers(10, 10_000), st.integers(1, 100), st.integers(1, 8),
              st.integers(0, 10), st.integers(0, 1000)),
    st.builds(Budget, st.none() | st.integers(1, 10**12), st.none() | amounts,
              st.none() | st.integers(1, 10**9)),
    st.builds(Terms, st.just("standard"), st.none(), st.sampled_from(["drain", "stop"]),
              st.sampled_from(["none", "graph", "node"]), st.sampled_from(["notice", "serialise"]), st.booleans()),
    st.dictionaries(st.sampled_from(["a", "B_2"]), texts.filter(lambda text: "\0" not in text)),
)  # fmt: skip
def test_a_plan_that_was_written_is_compiled_to_itself(  # noqa: PLR0913  # all that a graph is set with
    plan: list[Definition], title: str, objective: str, limits: Limits, budget: Budget, terms: Terms,
    variables: dict[str, str],
) -> None:  # fmt: skip
    text = to_yaml(
        title, objective, plan, limits=limits, budget=budget, terms=terms, delivery_node="n0", variables=variables
    )
    again = load(text, name="x")

    assert list(again.definitions) == plan
    assert (again.title, again.objective, again.limits, again.terms) == (title, objective, limits, terms)
    assert again.budget == (budget if budget != Budget() else None)
    assert again.delivery_node == "n0"
    assert again.variables == variables


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_what_a_file_means_is_written_and_means_the_same(path: Path) -> None:
    asked = summarise(path.read_bytes(), name=path.stem).inputs
    inputs = {name: "src" for name, declared in asked.items() if "default" not in declared}
    plan = load(path.read_bytes(), name=path.stem, inputs=inputs)
    terms = replace(plan.terms, mode="standard", admission=None)
    text = to_yaml(
        plan.title, plan.objective, plan.definitions, limits=plan.limits, budget=plan.budget, terms=plan.terms,
        delivery_node=plan.delivery_node, variables=plan.variables,
    )  # fmt: skip
    again = load(text, name=path.stem)

    assert again.definitions == plan.definitions
    assert (again.terms, again.budget, again.variables) == (terms, plan.budget, plan.variables)


def test_it_reads_as_a_person_would_write_it() -> None:
    plan = [
        Definition("lint", "make lint", "shell", title="lint"),
        Definition("look", "Look at it.\n\nTell it.\n", "explore", title="Look", needs=("lint",), required=True),
    ]  # fmt: skip
    assert to_yaml("Checks", "All is well", plan, budget=Budget(wall_ms=1500)) == (
        "title: Checks\nconfig:\n  objective: All is well\n  budget: { wall_seconds: 1.5 }\n  nodes:\n"
        "    - id: lint\n      run: make lint\n"
        "    - id: look\n      name: Look\n      worker: explore\n      needs: [lint]\n      required: true\n"
        "      prompt: |\n        Look at it.\n\n        Tell it.\n"
    )


def test_what_only_a_running_graph_has_is_left_out() -> None:
    plan = with_final([
        Definition("a", "ls", "shell"), Definition("a-1", "ls", "shell", item=Item("a", 1, "5")),
    ])  # fmt: skip
    terms = Terms("deep", "f" * 64, final_check=True, pruned=(Pruned("x", "not now"),))
    text = to_yaml("t", "o", plan, terms=terms)
    assert "a-1" not in text
    assert "gn-final" not in text
    assert f"# It was a deep run; its brief is not kept, only the fingerprint {'f' * 64}." in text
    assert load(text).terms == Terms(final_check=True)
