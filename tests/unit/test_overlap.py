"""Globs that meet, and the nodes that must not run together because of them."""

from fnmatch import translate
from itertools import islice
from re import match

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.core.definition import Definition
from graphd.core.overlap import globs_meet, overlaps, writes_meet
from graphd.core.reach import Reach


def node(slug: str, *writes: str, needs: tuple[str, ...] = (), isolation: str | None = None) -> Definition:
    return Definition(slug, "x", "build", needs=needs, writes=writes, isolation=isolation)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "a"), ("src/*.py", "src/a.py"), ("src/**", "src/a/b/c.py"), ("**/a.py", "src/x/a.py"),
        ("src", "src/a.py"), ("src/", "src/a/b"), ("./src/a", "src/a"), ("src/*/x", "src/y/*"), ("*.py", "a*"),
        ("a?c", "abc"),
        ("[ab].txt", "c.txt"), ("**", "anything/at/all"), ("a/**/z", "a/z"), ("**/x/**", "a/**"), ("a*b*c", "aXbYc"),
    ],
)  # fmt: skip
def test_globs_that_meet(one: str, other: str) -> None:
    assert globs_meet(one, other)
    assert globs_meet(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"), ("src/*.py", "src/a.js"), ("src/**", "docs/**"), ("a?c", "ac"), ("*.py", "*.pyc"), ("src", "src2"),
        ("a/*/c.x", "a/c.x"), ("src/a*", "src/b*"), ("x/**/y.py", "x/**/z.py"),
    ],
)  # fmt: skip
def test_globs_that_do_not_meet(one: str, other: str) -> None:
    assert not globs_meet(one, other)
    assert not globs_meet(other, one)


names = st.text("ab*?", min_size=1, max_size=4)


@given(names, names, st.text("ab", min_size=1, max_size=4))
def test_globs_that_fit_one_name_meet(one: str, other: str, name: str) -> None:
    if match(translate(one), name) and match(translate(other), name):
        assert globs_meet(one, other)


def test_nodes_that_may_run_together_and_write_the_same_are_named_once() -> None:
    nodes = [
        node("a", "src/**", "docs/a.md"), node("b", "src/x.py", "docs/**"), node("c", "src/y.py", needs=("a", "b")),
        node("d", "other/*"), node("e"), node("f", "src/x.py", isolation="node"),
    ]  # fmt: skip
    assert list(overlaps(nodes, Reach(nodes))) == [("a", "b")]
    assert list(overlaps(nodes, Reach(nodes), isolation="node")) == []
    assert writes_meet(nodes[0], nodes[1])
    assert not writes_meet(nodes[0], nodes[3])
    assert not writes_meet(nodes[0], nodes[4])


def test_ten_thousand_writers_of_their_own_files_are_cheap_and_of_one_folder_come_one_by_one() -> None:
    own = [node(f"n{i}", f"out/n{i:05}.txt") for i in range(10_000)]
    assert list(overlaps(own, Reach(own))) == []
    same = [node(f"n{i}", "out/*") for i in range(10_000)]
    assert len(list(islice(overlaps(same, Reach(same)), 5))) == 5
