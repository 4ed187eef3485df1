"""`workgraph/change` is folded: the last one wins, what never falls is held, trouble names its change."""

from collections.abc import Callable
from typing import Any

import pytest

from graphd.core.change import Folded, MalformedChange, fold
from tests.unit.change_values import STONE, N, change_1, change_2, decoded, edited, put


def later(value: Any, **graph: Any) -> Any:
    return edited(value, lambda v: v["graph"].update(graph))


def test_fold_is_last_wins_and_passes_over_strangers() -> None:
    first, second = change_1(), later(change_1(), updatedAt=6, tokensSpent=8)
    assert fold([]) == Folded()
    assert fold([first, {"kind": "message"}, 7, second]) == Folded(decoded(second))
    assert fold([first, first]) == Folded(decoded(first))


def test_a_replacement_reads_as_tombstone_then_set() -> None:
    other = later(change_1(), id="g2", createdAt=3, tokensSpent=0, replanRuns=0, planVersion=1)
    assert fold([change_1(), STONE]) == Folded(None, "g1", 9)
    assert fold([change_1(), STONE, other]) == Folded(decoded(other), "g1", 9)
    assert fold([STONE]) == Folded(None, "g1", 9)
    with pytest.raises(MalformedChange) as caught:
        fold([change_1(), other])
    assert (caught.value.field, caught.value.index) == ("changes[1].graph.id", 1)
    with pytest.raises(MalformedChange) as caught:
        fold([change_1(), STONE | {"cleared": "g2"}])
    assert caught.value.field == "changes[1].cleared"


@pytest.mark.parametrize(
    ("make", "edit", "field"),
    [
        (change_1, {"createdAt": 2}, "graph.createdAt"),
        (change_1, {"updatedAt": 4}, "graph.updatedAt"),
        (change_1, {"planVersion": 1}, "graph.planVersion"),
        (change_1, {"tokensSpent": 6}, "graph.tokensSpent"),
        (change_1, {"replanRuns": 0}, "graph.replanRuns"),
        (change_2, {"planVersion": 0}, "graph.planVersion"),
        (change_2, {"spent": {"tokens": 2, "costUsd": 0.5, "wallMs": 10}}, "graph.spent.tokens"),
        (change_2, {"spent": {"tokens": 3, "costUsd": 0.4, "wallMs": 10}}, "graph.spent.costUsd"),
        (change_2, {"spent": {"tokens": 3, "costUsd": 0.5, "wallMs": 9}}, "graph.spent.wallMs"),
    ],
)
def test_what_never_falls_is_held(make: Callable[[], Any], edit: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedChange) as caught:
        fold([make(), later(make(), **edit)])
    assert caught.value.field == f"changes[1].{field}"


def test_an_unknown_cost_falls_nowhere_and_versions_may_follow_each_other() -> None:
    unknown = later(change_2(), spent={"tokens": 3, "costUsd": None, "wallMs": 10})
    assert fold([change_2(), unknown, change_2()]).graph == decoded(change_2())
    version_1 = later(change_1(), tokensSpent=3, planVersion=1)
    assert fold([change_2(), version_1]).graph == decoded(version_1)
    assert fold([version_1, change_2()]).graph == decoded(change_2())


def test_trouble_inside_a_fold_keeps_the_inner_index() -> None:
    with pytest.raises(MalformedChange) as caught:
        fold([{}, edited(change_1(), put(*N, 2, "title", to=""))])
    assert (caught.value.field, caught.value.index) == ("changes[1].graph.nodes[2].title", 2)
