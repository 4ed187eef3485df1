"""The JSON Schema for YAML extensions: fresh, right about good files, and strict about keys."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from graphd.workflows import schema
from graphd.workflows.diagnostics import Findings
from graphd.workflows.explanations import DOCS, WORKER_DOCS
from graphd.workflows.json_schema import FILE, render
from graphd.workflows.read import plain
from graphd.workflows.source import compose

ROOT = Path(__file__).parents[2]
GOOD = [*sorted((ROOT / "examples").glob("*.yaml")), *sorted((ROOT / "tests/data/workflows/good").glob("*.yaml"))]


def troubles(text: str) -> list[str]:
    tree = compose(text, Findings(text))
    assert tree is not None
    value: Any = plain(tree)
    return [e.message for e in Draft7Validator(json.loads(render())).iter_errors(value)]


def test_the_file_is_what_the_schema_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == render(), "run python -m graphd.workflows.json_schema"
    Draft7Validator.check_schema(json.loads(render()))


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_files_fit(path: Path) -> None:
    assert troubles(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "nodes: [{id: a, nme: x, run: ls}]",
        "nodes: [{run: ls}]",
        "nodes: [{id: gn-1, run: ls}]",
        "nodes: [{id: a, needs: [b], depends_on: [b], run: ls}]",
        "nodes: [{id: a, needs: b, run: ls}]",
        "nodes: [{id: a, run: ls, worker_config: {timeout_ms: 9}}]",
        "nodes: [{id: a, run: ls, on_lost: never}]",
        "title: x",
        "nodes: []\nconfig: {nodes: []}",
    ],
)
def test_bad_files_do_not(text: str) -> None:
    assert troubles(text)


def test_every_key_and_worker_is_explained() -> None:
    keys = {(table.name, key.name) for table in schema.TABLES for key in table.keys}

    assert set(DOCS) == keys
    assert set(WORKER_DOCS) == set(schema.BUILT_IN_WORKERS)
