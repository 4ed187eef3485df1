"""`workgraph/change` under hypothesis: what is written reads back, and no JSON breaks the reader."""

import contextlib
import copy
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from graphd.core.change import MalformedChange, decode, encode_v1, fold
from graphd.core.change.keys import HISTORY_KINDS
from graphd.core.change.values import GraphValue
from graphd.core.model import Definition, Failure, Graph, HistoryEntry, Node, Source, Spent
from graphd_protocol.ids import node_id
from graphd_protocol.states import FailureClass
from tests.unit.change_values import STONE, change_1, change_2

SETTINGS = settings(max_examples=100)
kinds = st.sampled_from(sorted(HISTORY_KINDS))
filled = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
count = st.integers(0, 2**40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Core graphs that version 1 can say."""
    size = draw(st.integers(0, 8))
    created = draw(count)
    graph = Graph(
        draw(filled), draw(st.text(max_size=5)), draw(filled), Source("nodes"), "/w", created,
        created + draw(count), plan_version=draw(st.integers(1, 9)), spent=Spent(tokens=draw(count)),
    )  # fmt: skip
    for index in range(size):
        earlier = [f"n{i}" for i in range(index)]
        some = st.lists(st.sampled_from(earlier), unique=True) if earlier else st.just([])
        definition = Definition(
            f"n{index}", draw(filled), "shell", title=draw(st.text(max_size=4)), needs=tuple(draw(some)),
            discovered_from=tuple(draw(some)),
        )  # fmt: skip
        node = Node(node_id(f"n{index}"), definition, index, tuple(node_id(s) for s in definition.needs), True)
        node.state = draw(st.sampled_from(["waiting", "ready", "running", "achieved", "failed", "blocked"]))
        node.rounds = draw(count)
        node.child_session = draw(st.none() | filled)
        if node.state == "failed":
            node.failure = Failure(draw(st.sampled_from(get_args(FailureClass))), draw(st.text(max_size=5)))
        graph.nodes[node.id] = node
    graph.status = draw(st.sampled_from(["active", "complete", "user_paused", "infra_paused", "blocked"]))
    if graph.status not in ("active", "complete"):
        graph.pause_reason = draw(filled)
    names = [None, *(node.slug for node in graph.nodes.values())]
    graph.history = [
        HistoryEntry(draw(count), 1, draw(kinds), draw(st.sampled_from(names)), draw(st.none() | st.text(max_size=5)))
        for _ in range(draw(st.integers(0, 6)))
    ]
    return graph


@SETTINGS
@given(graphs())
def test_what_version_1_writes_reads_back(graph: Graph) -> None:
    value = encode_v1(graph)
    read = decode(copy.deepcopy(value))
    assert isinstance(read, GraphValue)
    assert read.graph == value["graph"]
    assert decode({"kind": "workgraph/change", "version": 1, "graph": read.graph}) == read
    assert (read.id, read.status, read.pause_reason) == (graph.id, graph.status, graph.pause_reason)
    assert [(n.id, n.needs, n.state, n.rounds) for n in read.nodes] == [
        (n.id, n.needs, n.state, n.rounds) for n in graph.nodes.values()
    ]
    assert len(read.history) == len(graph.history)
    assert all(entry.raw_kind is None for entry in read.history)


def _mutate(draw: st.DrawFn, value: Any) -> None:
    """Change one place, anywhere in a value: replace, remove, add, or copy from another place."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw(st.sampled_from(keys))
        if isinstance(value[key], dict | list) and value[key] and draw(st.booleans()):
            value = value[key]
            continue
        action = draw(st.sampled_from(["replace", "remove", "add", "copy"]))
        if action == "remove":
            del value[key]
        elif action == "add" and isinstance(value, dict):
            value[draw(st.text(max_size=8))] = draw(json_values)
        elif action == "copy":
            value[key] = copy.deepcopy(value[draw(st.sampled_from(keys))])
        else:
            value[key] = draw(json_values)
        return


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good change with up to four places changed."""
    value = copy.deepcopy(draw(st.sampled_from([change_1(), change_2(), STONE])))
    for _ in range(draw(st.integers(1, 4))):
        _mutate(draw, value)
    return value


@SETTINGS
@given(st.lists(mutated() | json_values | st.sampled_from([change_1(), change_2(), STONE]), max_size=4))
def test_no_json_breaks_the_reader(values: list[Any]) -> None:
    for value in values:
        before = copy.deepcopy(value)
        with contextlib.suppress(MalformedChange):
            read = decode(value)
            if isinstance(read, GraphValue):
                again = {"kind": "workgraph/change", "version": read.version, "graph": read.graph}
                assert decode(again) == read
        assert repr(value) == repr(before), "the reader changes nothing that it was given"
    with contextlib.suppress(MalformedChange):
        fold(values)
