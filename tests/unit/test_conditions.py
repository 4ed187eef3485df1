"""The condition language: what parses, where what does not is wrong, and what it answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.core.conditions import ConditionMalformed, ConditionUnanswerable, Facts, evaluate, parse, references

FACTS = {
    "a": Facts(
        "achieved", output_text='{"n": 3, "s": "x", "l": [{"k": true}, null], "z": 1.0}', media_type="application/json"
    ),
    "text": Facts("achieved", output_text="done\n", media_type="text/plain"),
    "looks-json": Facts("achieved", output_text='{"verdict": "ACCEPT"}', media_type="text/plain"),
    "gone": Facts("skipped", output_text=None, media_type=None),
    "my-node": Facts("failed"),
    "2": Facts("achieved", verdict="REJECT", output_text="5", media_type="application/json"),
}


def answer(text: str) -> bool:
    return evaluate(parse(text), lambda slug: FACTS[slug])


@pytest.mark.parametrize(
    "text",
    [
        'a.state == "achieved"', "a.state == 'achieved'", 'my-node.state == "failed"', 'a.state != "failed"',
        "a.output.n == 3", "a.output.n == 3.0", "a.output.z == 1", "a.output.n >= 3", "a.output.n < 4",
        'a.output.s >= "x"', "a.output.l[0].k == true", "a.output.l[1] == null", "a.output.missing == null",
        "a.output.l[9] == null", "a.output.n.deeper == null", "a.output.missing != 3", 'text.output == "done"',
        "a.output.n in [1, 2, 3]", 'a.state in ["failed", "achieved"]', "a.output.missing in [null]",
        'looks-json.output.verdict == "ACCEPT"', "gone.output.x == null", "gone.output == null",
        'not a.state == "failed"', 'not not a.state == "achieved"', "2.output > 4", '2.verdict == "REJECT"',
        'a.state == "failed" or a.output.n == 3 and my-node.state == "failed"',
        '(a.state == "failed" or a.output.n == 3) and not (2.output == 4)',
        "a.output.l[0].k != 1", "a.output.n != true", 'a.state=="achieved"and a.output.n==3', "a.verdict == null",
        'a.state == "failed" and a.output.missing > 3 or a.output.n == 3',
    ],
)  # fmt: skip
def test_a_condition_that_holds(text: str) -> None:
    assert answer(text) is True


@pytest.mark.parametrize(
    "text",
    ["a.output.n == 4", "a.output.l[0].k == 1", "a.output == 3", "a.output.n in [1, 2]", "a.output.missing == 0"],
)
def test_a_condition_that_does_not_hold(text: str) -> None:
    assert answer(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "a.output.missing > 3", "gone.output.n > 3", 'a.output.n > "3"', "a.output.s < 3", "text.output.n == null",
        "a.output.l > 3", "a.output.l[0].k >= 1", 'a.state == "achieved" and text.output.x != 3',
    ],
)  # fmt: skip
def test_what_has_no_answer_is_said_and_never_false(text: str) -> None:
    with pytest.raises(ConditionUnanswerable) as caught:
        answer(text)

    assert caught.value.reason


def test_json_that_python_alone_would_read_is_not_json() -> None:
    facts = Facts("achieved", output_text='{"n": NaN}', media_type="application/json")

    with pytest.raises(ConditionUnanswerable, match="is not JSON"):
        evaluate(parse("a.output.n == 1"), lambda _: facts)


def test_a_cut_output_says_that_it_is_cut() -> None:
    facts = Facts("achieved", output_text='{"n": [1, 2', media_type="application/json", is_cut=True)

    with pytest.raises(ConditionUnanswerable, match="kept inline"):
        evaluate(parse("a.output.n == 1"), lambda _: facts)


def test_an_output_nested_too_deep_has_no_answer() -> None:
    facts = Facts("achieved", output_text="[" * 100_000, media_type="application/json")

    with pytest.raises(ConditionUnanswerable):
        evaluate(parse("a.output.n == 1"), lambda _: facts)


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("", 0, "write for example"), ("a", 1, "a.state"), ("a.stat == 1", 2, "state"), ("a.state = 3", 8, "=="),
        ('a.state == "acheived"', 8, "achieved"), ("a.state == achieved", 11, '"achieved"'),
        ("a.output.n ==", 13, "number"),
        ('a.state == "failed" && b.state == "failed"', 20, "and"), ('!a.state == "x"', 0, "not"),
        ("a.state < 3", 8, "=="),
        ("a.output.n < null", 11, "=="), ("true.state == 1", 0, "word"), ("gn-a.state == 1", 0, "gn-"),
        ("a.output.l[-1] == 1", 10, "from 0"),
        ("a.state.x == 1", 7, "output"), ("(a.output == 1", 14, "parenthesis"), ("a.output == 1)", 13, "write"),
        ("a.output in 1", 12, "["), ("a.output in [1", 14, "close"), ('a.output == "\\q"', 12, "JSON"),
        ("a.output == 1e999", 12, "1.8e308"),
        ("a.output. == 1", 9, "names"), ("a.output == 012", 12, "quotes"), ("a.verdict == 1", 10, "ACCEPT"),
        ("迁移.state == 1", 0, "write"),
    ],
)  # fmt: skip
def test_what_is_no_condition_says_where_and_what_to_do(text: str, offset: int, hint: str) -> None:
    with pytest.raises(ConditionMalformed) as caught:
        parse(text)

    assert (offset, caught.value.message != "") == (caught.value.offset, True)
    assert hint in caught.value.hint


@pytest.mark.parametrize("bomb", ["(" * 3000, "not " * 1000 + "a.output == 1", "(" * 65 + "a.output == 1" + ")" * 65])
def test_nesting_is_bounded(bomb: str) -> None:
    with pytest.raises(ConditionMalformed, match="nested"):
        parse(bomb)


def test_length_is_bounded() -> None:
    with pytest.raises(ConditionMalformed, match="at most"):
        parse("a.output == " + "1" * 10_000)


def test_64_levels_and_a_long_chain_are_fine() -> None:
    assert answer("(" * 64 + "a.output.n == 3" + ")" * 64)
    assert answer(" and ".join(["a.output.n == 3"] * 200))


def test_references_are_told_once_in_order() -> None:
    condition = parse('b.state == "failed" or not (a.output.x[0] > 1 and b.state == "failed")')

    assert references(condition) == [("b", ("state",)), ("a", ("output", "x", 0))]


@given(st.text(max_size=80))
def test_any_text_parses_or_is_refused(text: str) -> None:
    trouble = None
    try:
        parse(text)
    except ConditionMalformed as caught:
        trouble = caught

    assert trouble is None or 0 <= trouble.offset <= len(text)


WORDS = [
    "a",
    "my-node",
    ".",
    "state",
    "output",
    "verdict",
    "x",
    "[",
    "]",
    "0",
    "==",
    "<",
    "in",
    '"s"',
    "3",
    "null",
    "and",
    "or",
    "not",
    "(",
    ")",
    ",",
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join), st.text(max_size=20))
def test_what_parses_evaluates_or_says_why_not(text: str, output: str) -> None:
    try:
        condition = parse(text.replace(" . ", "."))
    except ConditionMalformed:
        return
    try:
        held: object = evaluate(condition, lambda _: Facts("failed", None, output))
    except ConditionUnanswerable as caught:
        held = caught.reason

    assert held in (True, False) or isinstance(held, str)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda s: st.lists(s, max_size=3)))
def test_a_literal_equals_only_the_same_json(value: object) -> None:
    facts = Facts("achieved", output_text=json.dumps(value), media_type="application/json")

    assert (value is True) == evaluate(parse("a.output == true"), lambda _: facts)
    assert (value is None) == evaluate(parse("a.output == null"), lambda _: facts)
