"""Provider weather, staggered starts and memory: what a profile allows, over all graphs."""

from collections.abc import Callable
from typing import Any

import pytest

from graphd.core.commands import AttemptSaid, DaemonStarted, ProfileCooling, Respond, Resume
from graphd.core.definition import Approval, Budget, Definition, Retry, Wait
from graphd.core.events import WakeAt
from graphd.core.model import Graph, Spent
from graphd.core.policy import Leave
from graphd.core.restore import restore
from graphd.core.weather import CALM_MS, DOWN_LIMIT_MS
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, define, ended, identified, live_key, plan, states, stuck

AGENT: dict[str, Any] = {"profiles": (("shell", "shell"), ("build", "claude"), ("plan", "gemini"))}


def build(slug: str, *needs: str, **more: Any) -> Definition:
    return define(slug, *needs, worker="build", **more)


def cool(drive: Drive, graph: Graph, slug: str, ms: int, reason: str = "overloaded", profile: str = "claude") -> None:
    drive.run(ProfileCooling(graph.id, live_key(graph, slug), profile, drive.now + ms, reason))


def running(drive: Drive) -> list[str]:
    return [
        f"{graph.id}/{slug}"
        for graph in drive.state.graphs.values()
        for slug, state in states(graph).items()
        if state == "running"
    ]


def test_a_rest_is_shared_by_all_graphs_and_by_no_other_profile() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    cool(drive, drive.state.graphs["g"], "a", 30_000)
    drive.run(plan("h", build("b"), define("c", worker="plan"), define("d")))
    assert running(drive) == ["g/a", "h/c", "h/d"]
    assert WakeAt(drive.now + 30_000) in drive.effects
    drive.tick(29_999)
    assert "h/b" not in running(drive)
    drive.tick(1)
    assert "h/b" in running(drive)


def test_what_did_not_act_is_put_back_uncounted_and_comes_back_after_the_rest() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    cool(drive, graph, "a", 30_000)
    drive.run(ended(graph, "a", "put_back"))
    node = next(iter(graph.nodes.values()))
    assert (node.state, node.attempts, graph.status) == ("ready", 0, "active")
    drive.tick(30_000)
    assert node.state == "running"


def test_a_rest_survives_the_daemon() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a"), build("b", "a")))
    graph = drive.state.graphs["g"]
    drive.run(plan("h", build("x")))
    cool(drive, drive.state.graphs["h"], "x", 10_000)
    cool(drive, graph, "a", 30_000)
    drive.state.cooling.clear()
    restore(drive.state)
    assert drive.state.cooling["claude"].until == drive.now + 30_000, "the longest of all that were reported"
    drive.run(ended(graph, "a"))
    drive.run(DaemonStarted(2, "0", 1))
    assert states(graph)["b"] == "ready"


def test_a_shorter_rest_changes_nothing() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    cool(drive, drive.state.graphs["g"], "a", 30_000)
    cool(drive, drive.state.graphs["g"], "a", 10_000)
    assert [e.kind for change in drive.changes for e in change.events] == []


def test_a_turn_that_failed_for_weather_before_it_acted_is_put_back_and_after_it_is_a_failure() -> None:
    for is_unacted, state in ((True, "ready"), (False, "failed")):
        drive = Drive(**AGENT)
        drive.run(plan("g", build("a")))
        graph = drive.state.graphs["g"]
        drive.run(identified(graph, "a"))
        key = live_key(graph, "a")
        cool(drive, graph, "a", 30_000)
        trouble: Any = ("exec_failed", "overloaded")
        drive.run(AttemptSaid("g", key, Leave("edit", "w"), trouble=trouble, is_unacted=is_unacted, used=Spent(7)))
        drive.run(ended(graph, "a", "failed"))
        node = next(iter(graph.nodes.values()))
        assert (node.state, node.attempts, node.spent.tokens) == (state, 0 if is_unacted else 1, 7)


def test_an_end_that_comes_first_does_not_hide_the_rest() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    late = ProfileCooling("g", live_key(graph, "a"), "claude", drive.now + 5000, "busy")
    drive.run(ended(graph, "a", "put_back"))
    drive.run(late)
    assert drive.state.cooling["claude"].reason == "busy"
    drive.run(late._replace(graph="nobody"))
    assert not drive.changes


def test_a_rest_that_is_over_already_waits_for_nobody() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    drive.run(identified(graph, "a"))
    drive.run(ProfileCooling("g", live_key(graph, "a"), "claude", drive.now, "busy"))
    assert [event.kind for change in drive.changes for event in change.events] == ["provider_cooling"]


# ---- a provider that is down ----------------------------------------------------------------------------------------


def down(drive: Drive, graph: Graph) -> None:
    """Rest after rest without a calm between them, until the limit is past; the last one has 540 s left."""
    began = drive.now
    while True:
        cool(drive, graph, "a", 600_000)
        drive.run(ended(graph, "a", "put_back"))
        if drive.now - began > DOWN_LIMIT_MS:
            break
        drive.tick(600_000 + CALM_MS)
    drive.tick(60_000)


def test_a_provider_that_is_down_for_long_holds_the_graph_up_until_its_rest_is_over() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    down(drive, graph)
    assert (graph.status, graph.pause_cause) == ("infra_paused", "provider")
    assert graph.pause_reason == "claude rests, and has for long: overloaded"
    assert WakeAt(drive.now + 540_000) in drive.effects
    drive.tick(0)
    assert graph.status == "infra_paused", "not before"
    drive.tick(540_000)
    assert (graph.status, running(drive)) == ("active", ["g/a"]), "by itself"


def test_a_graph_that_has_something_else_to_do_is_not_held_up() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a"), define("s")))
    graph = drive.state.graphs["g"]
    down(drive, graph)
    assert running(drive) == ["g/s"]
    drive.run(ended(graph, "s"))
    assert graph.status == "infra_paused"


MISSING = define("m", worker="review", priority=9)
LATER: list[tuple[list[Definition], Callable[[Drive, Graph], None]]] = [
    ([Definition("w", "", "", wait=Wait("1s")), define("s", "w")], lambda drive, _: drive.tick(1000)),
    ([define("s", approval=Approval())], lambda drive, graph: approve(drive, graph)),
    ([define("s", retry=Retry(1, 5))], lambda drive, graph: try_again(drive, graph)),
]


def try_again(drive: Drive, graph: Graph) -> None:
    drive.run(ended(graph, "s", "failed"))
    drive.tick(5000)


def approve(drive: Drive, graph: Graph) -> None:
    ask = graph.asks[next(iter(graph.open_asks))]
    drive.run(Respond("g", ask.id, ask.action_hash, "allow"), ME)


@pytest.mark.parametrize(("nodes", "later"), LATER, ids=["a time", "a person", "its retry"])
def test_a_missing_agent_holds_its_own_node_while_another_one_waits(
    nodes: list[Definition], later: Callable[[Drive, Graph], None]
) -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", MISSING, *nodes))
    graph = drive.state.graphs["g"]
    assert graph.status == "active"
    later(drive, graph)
    assert running(drive) == ["g/s"]
    drive.run(ended(graph, "s"))
    assert (graph.status, graph.pause_cause) == ("infra_paused", "agent")


def test_a_missing_agent_holds_its_own_node_while_another_one_waits_for_its_profile() -> None:
    drive = Drive(**AGENT, per_profile=(("claude", 1),))
    drive.run(plan("other", build("a")))
    drive.run(plan("g", MISSING, build("s")))
    assert drive.state.graphs["g"].status == "active"
    drive.run(ended(drive.state.graphs["other"], "a"))
    assert running(drive) == ["g/s"]


def test_what_a_person_works_on_is_not_held_up_by_a_missing_agent() -> None:
    drive = Drive(**AGENT, held=frozenset({("g", node_id("m"))}))
    drive.run(plan("g", MISSING))
    assert drive.state.graphs["g"].status == "active"
    drive.capacity = drive.capacity._replace(held=frozenset())
    drive.tick(0)
    assert drive.state.graphs["g"].pause_cause == "agent"


def test_where_an_agent_is_missing_and_a_provider_is_down_the_graph_goes_on_with_the_provider() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", MISSING, build("a")))
    graph = drive.state.graphs["g"]
    down(drive, graph)
    assert (graph.status, graph.pause_cause) == ("infra_paused", "provider")
    drive.tick(540_000)
    assert (graph.status, running(drive)) == ("active", ["g/a"])


def test_a_calm_between_two_rests_makes_the_trouble_a_new_one() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    cool(drive, graph, "a", 1000)
    drive.now += 1000 + CALM_MS
    cool(drive, graph, "a", 1000)
    assert drive.state.cooling["claude"].since == 1000
    drive.now += 1001 + CALM_MS
    cool(drive, graph, "a", 1000)
    assert drive.state.cooling["claude"].since == drive.now


def test_a_person_may_resume_before_the_rest_is_over_and_is_told_again() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a")))
    graph = drive.state.graphs["g"]
    down(drive, graph)
    drive.run(Resume("g"), ME)
    assert (graph.status, graph.pause_cause) == ("infra_paused", "provider")


# ---- one after the other, and memory --------------------------------------------------------------------------------


def test_starts_of_one_profile_are_staggered_over_all_graphs() -> None:
    drive = Drive(**AGENT, stagger_ms=(("claude", 500),))
    drive.run(plan("g", build("a"), build("b"), define("s")))
    drive.run(plan("h", build("c")))
    assert running(drive) == ["g/a", "g/s"]
    assert WakeAt(drive.now + 500) in drive.effects
    drive.tick(500)
    assert running(drive) == ["g/a", "g/s", "h/c"], "the graph with the fewest running ones has its turn"
    drive.tick(500)
    assert len(running(drive)) == 4


def test_memory_is_a_slot_too_and_what_is_too_large_runs_alone() -> None:
    drive = Drive(**AGENT, memory_mb=1000, memory_mb_of=(("claude", 400), ("gemini", 5000)))
    drive.run(plan("g", *(build(f"a{i}") for i in range(4)), define("big", worker="plan"), define("s")))
    assert running(drive) == ["g/a0", "g/a1", "g/s"]
    graph = drive.state.graphs["g"]
    for slug in ("a0", "a1"):
        drive.run(ended(graph, slug))
    assert running(drive) == ["g/a2", "g/a3", "g/s"]
    for slug in ("a2", "a3", "s"):
        drive.run(ended(graph, slug))
    assert running(drive) == ["g/big"]


def test_a_rest_does_not_hide_a_stuck_tree() -> None:
    drive = Drive(**AGENT)
    drive.run(plan("g", build("a"), build("b"), budget=Budget(tokens=60_000)))
    graph = drive.state.graphs["g"]
    drive.run(stuck(graph, "a", 7))
    assert running(drive) == ["g/a", "g/b"], "a tree that nobody can end does not keep the budget's last one waiting"
