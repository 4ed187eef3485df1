"""What a living plan costs: settling a node goes by its out-degree, edits by one plan check; deep and wide plans."""

import statistics
import time
from collections.abc import Callable
from functools import partial

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Extend, Replan
from graphd.core.edits import Edits, Patch
from graphd.core.model import Definition, Limits
from graphd.core.plan import check_plan
from tests.unit.core_drive import ME, Drive, define, ended, plan, states

G = "g"
BIG = Limits(max_nodes=10_000)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def hubs(nodes: int) -> Drive:
    """Nodes with ten dependants each, that start one after the other."""
    definitions: list[Definition] = []
    for hub in range(nodes // 11):
        definitions.append(define(f"h{hub}", priority=9))
        definitions += [define(f"h{hub}d{i}", f"h{hub}", required=False) for i in range(10)]
    drive = Drive(check=False, concurrency=1)
    drive.run(plan(G, *definitions, limits=BIG))
    return drive


def settling(drive: Drive) -> float:
    graph = drive.state.graphs[G]
    node = graph.nodes[next(iter(graph.live))[0]]
    assert len(node.dependants) == 10
    fact = ended(graph, node.slug)
    return seconds(lambda: drive.run(fact))


def test_settling_a_node_goes_by_its_out_degree_not_by_the_size_of_the_graph() -> None:
    ratios = []
    big = hubs(10_000)
    for _ in range(4):
        pairs = [(settling(small), settling(big)) for small in (hubs(110) for _ in range(5)) for _ in range(10)]
        ratios.append(statistics.median(b for _, b in pairs) / statistics.median(s for s, _ in pairs))
    assert min(ratios) <= 1.2, ratios


def test_edits_of_ten_thousand_nodes_cost_a_few_plan_checks() -> None:
    definitions = [define(f"n{i}", *(f"n{j}" for j in (i - 1, i - 100) if j >= 0)) for i in range(9000)]
    drive = Drive(check=False)
    drive.run(plan(G, *definitions, limits=BIG))
    added = tuple(define(f"m{i}", f"n{i}") for i in range(1000))
    ratios = []
    for turn in range(3):
        edits = Edits(change=tuple(Patch(f"n{i}", {"spec": f"anew {turn}"}) for i in range(5000, 5100)))
        ratios.append(seconds(partial(drive.run, Replan(G, edits), ME)) / plan_check(definitions))
    assert min(ratios) < 6, ratios
    whole = seconds(lambda: drive.run(Extend(G, added), ME))
    assert whole / plan_check([*definitions, *added]) < 8
    written = {event.node for change in drive.changes for event in change.events if event.node is not None}
    assert len(written) == 1000, "only what is new"


def plan_check(definitions: list[Definition]) -> float:
    return seconds(lambda: check_plan(definitions, limits=BIG))


def test_a_cycle_five_thousand_deep_is_found() -> None:
    drive = Drive(check=False)
    chain = [define("n0"), *(define(f"n{i}", f"n{i - 1}") for i in range(1, 5000))]
    drive.run(plan(G, *chain, limits=BIG))
    edits = Edits(change=(Patch("n0", {"needs": ["n4999"]}),), restart=("n0",))
    with pytest.raises(Refused, match="a cycle") as caught:
        drive.run(Replan(G, edits), ME)
    assert caught.value.facts["diagnostics"][0]["code"] == "plan.cycle"
    assert drive.state.graphs[G].plan_version == 1


def test_diamonds_of_twenty_four_layers_restart_at_once() -> None:
    """Sixteen million paths, forty-nine nodes."""
    layers = [define("a0"), define("b0")]
    for layer in range(1, 24):
        layers += [define(f"{side}{layer}", f"a{layer - 1}", f"b{layer - 1}") for side in "ab"]
    drive = Drive(check=False)
    drive.run(plan(G, *layers, define("end", "a23", "b23")))
    graph = drive.state.graphs[G]
    while graph.counts["waiting"]:
        drive.run(ended(graph, graph.nodes[next(iter(graph.live))[0]].slug))
    drive.run(Replan(G, Edits(restart=("a0",))), ME)
    found = states(drive.state.graphs[G])
    assert (found["a0"], found["b0"], found["a23"]) == ("running", "achieved", "waiting")
    assert sum(state == "waiting" for state in found.values()) == 46
