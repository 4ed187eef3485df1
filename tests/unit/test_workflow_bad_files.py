"""Bad files: each is told at its line and column, with its code, a cause and a hint. One file a case, in tests/data."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.workflows import Compiled, Diagnostic, WorkflowRefused, load, render, validate
from graphd.workflows.diagnostics import MAX_DIAGNOSTICS
from graphd.workflows.source import MAX_BYTES

DATA = Path(__file__).parents[1] / "data" / "workflows"
BAD = sorted((DATA / "bad").glob("*.yaml"))
SEEDS = [p.read_bytes() for p in [*BAD, *(DATA / "good").glob("*.yaml")]]


def errors(source: bytes | str) -> list[Diagnostic]:
    return [d for d in validate(source, name="x") if d.severity == "error"]


def test_there_are_enough() -> None:
    assert len(BAD) >= 45


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_a_bad_file_is_told_where_and_why(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    place, code = first.removeprefix("# expect ").split()
    line, column = (int(part) - 1 for part in place.split(":"))

    found = errors(path.read_bytes())

    told = [d for d in found if (d.range.start.line, d.range.start.character, d.code) == (line, column, code)]
    assert len(told) == 1, render(found, path.name)
    assert told[0].message
    assert told[0].hint
    with pytest.raises(WorkflowRefused) as caught:
        load(path.read_bytes(), name=path.stem)
    assert caught.value.diagnostics


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_one_mistake_is_told_once(path: Path) -> None:
    assert len(errors(path.read_bytes())) == 1


@pytest.mark.parametrize(
    ("source", "code", "line", "column"),
    [
        (b"\xff\xfen\0o\0", "file.encoding", 0, 0),
        (b"nodes:\n  - {id: \xe4}\n", "file.encoding", 1, 9),
        (b"#" * (MAX_BYTES + 1), "file.tooLarge", 0, 0),
        ("title: \ud800\n", "file.encoding", 0, 7),
        ("nodes:\r\n  - {id: a, nme: b, run: ls}\r\n", "key.unknown", 1, 12),
        ("\ufeffnodes: []\n", "plan.empty", 0, 0),
        ('nodes: [{id: a, run: "\\UFFFFFFFF"}]', "yaml.syntax", 0, 24),
        ("[" * 200_000, "yaml.depth", 0, 1000),
        ("- " * 200_000, "yaml.depth", 0, 40),
        ("{a: " * 200_000, "yaml.depth", 0, 80),
    ],
)
def test_what_no_text_file_can_hold(source: bytes | str, code: str, line: int, column: int) -> None:
    (found,) = errors(source)

    assert (found.code, found.range.start.line, found.range.start.character) == (code, line, column)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    text = "a: &a [x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{('*' + chr(97 + i) + ', ') * 9}]\n" for i in range(9)
    )

    assert {"yaml.alias", "yaml.anchor", "key.unknown", "key.missing"} == {d.code for d in errors(text)}


def test_findings_are_bounded_and_in_the_order_of_the_text() -> None:
    text = "nodes:\n" + "".join(f"  - {{id: n{i}, run: ls, bad{i}: 1}}\n" for i in range(5000))
    found = validate(text)

    assert len(found) == MAX_DIAGNOSTICS
    assert found == sorted(found, key=lambda d: d.range)
    assert found == validate(text)


def test_rendering_counts_from_one() -> None:
    (line, hint) = render(errors("nodes:\n  - {id: a, run: ls, needs: [b]}\n"), "x.yaml").splitlines()

    assert line == "x.yaml:2:30: error need.unknown: a needs b, which is no node of this plan"
    assert hint.startswith("    ")


def is_answered(source: bytes | str) -> bool:
    """Loading gives a plan, or diagnostics with at least one error, each with a cause."""
    try:
        return isinstance(load(source, name="x"), Compiled)
    except WorkflowRefused as refused:
        found = refused.diagnostics
    return any(d.severity == "error" for d in found) and all(d.message and d.code for d in found)


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(source: bytes) -> None:
    assert is_answered(source)


@given(st.text(alphabet="aid:- \n[]{}'\"|>&*!?,#%\t01", max_size=200))
def test_any_yaml_like_text_is_answered(source: str) -> None:
    assert is_answered(source)


@settings(max_examples=400)
@given(st.sampled_from(SEEDS), st.data())
def test_any_mutation_of_a_file_is_answered(seed: bytes, data: st.DataObject) -> None:
    source = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(source)))
        length = data.draw(st.integers(0, 12))
        other = data.draw(st.sampled_from(SEEDS))
        start = data.draw(st.integers(0, len(other)))
        source[at : at + length] = data.draw(st.binary(max_size=4) | st.just(other[start : start + 30]))

    assert is_answered(bytes(source))
