"""The log of the core: what it keeps, what is no log of ours, and a state loaded from what it left."""

import copy
from typing import Any

import pytest

from graphd.core import derive
from graphd.core.events import DAEMON, Event
from graphd.core.evolve import MalformedLog, evolve
from graphd.core.model import Attempt, Limits, Retry, State
from graphd.core.restore import restore
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from tests.unit.core_drive import Drive, G, define, ended, picture, plan, started


def test_history_keeps_the_last_64_and_spend_adds_up() -> None:
    drive = Drive(check=False)
    drive.run(plan(G, define("a"), limits=Limits(attempts_per_node=100)))
    graph = drive.state.graphs[G]
    for _ in range(40):
        drive.run(ended(graph, "a", "put_back"))
        drive.tick(60_000)
    assert len(graph.history) == 64
    assert (graph.spent.tokens, graph.nodes[node_id("a")].spent.tokens) == (40, 40)
    assert graph.nodes[node_id("a")].spent.wall_ms == 80, "its attempts' own"
    assert graph.nodes[node_id("a")].attempts == 1, "what never acted is not counted"


def test_an_event_that_nobody_knows_is_a_malformed_log() -> None:
    state = State()
    with pytest.raises(MalformedLog, match="unknown kind 'teleported'"):
        evolve(state, Tape(), Event("g", 1, 0, 1, "teleported", None, {}, DAEMON))
    with pytest.raises(MalformedLog, match="no such graph"):
        evolve(state, Tape(), Event("g", 1, 0, 1, "paused", None, {}, DAEMON))


def test_asks_live_in_the_log_too() -> None:
    """No rule of this issue opens an ask, but the record and its events are there."""
    drive = Drive(can_admit=False)
    drive.run(plan(G, define("a")))
    graph = drive.state.graphs[G]
    opened = {
        "kind": "question", "title": "?", "action": {}, "action_hash": "h", "options": [{"id": "y"}],
        "scopes": ["once"], "opened_at": 1,
    }  # fmt: skip
    rows: list[tuple[str, dict[str, Any]]] = [
        ("ask_opened", {"id": "q1", **opened}),
        ("ask_opened", {"id": "q2", **opened}),
        ("ask_answered", {"ask": "q1", "by": "me", "option": "y", "text": None}),
        ("ask_withdrawn", {"ask": "q2"}),
    ]
    for index, (kind, payload) in enumerate(rows):
        evolve(drive.state, drive.tape, Event(G, graph.rev + 1, index, 2, kind, None, payload, DAEMON))
    assert [(a.id, a.state, a.answered_by, a.option) for a in graph.asks.values()] == [
        ("q1", "answered", "me", "y"),
        ("q2", "withdrawn", None, None),
    ]


def test_a_loaded_state_goes_on_where_it_was() -> None:
    drive = Drive(concurrency=1)
    drive.run(plan(G, define("a", retry=Retry(2, 5)), define("b", "a"), define("c", priority=1)))
    drive.run(ended(drive.state.graphs[G], "c"))
    drive.run(ended(drive.state.graphs[G], "a", "failed", failure_class="exec_failed"))
    loaded = copy.deepcopy(drive.state)
    for graph in loaded.graphs.values():
        graph.queue, graph.ready, graph.counts, graph.live = [], {}, {}, {}
    loaded.timers = []
    restore(loaded)
    assert picture(loaded) == picture(drive.state)
    drive.state = loaded
    drive.tick(5_000)
    assert started(drive)[-1] == "g/a"
    derive.rebuild_queues(loaded)
    assert loaded.graphs[G].queue == []


def test_names_of_an_attempt_are_unique_for_ever() -> None:
    attempt = Attempt(G, "gn-1", "worker", 2, "shell", "shell", None, 1)
    judge = Attempt(G, "gn-1", "judge", 2, "shell", "shell", None, 1)
    assert (attempt.folder, attempt.cookie, attempt.key) == ("gn-1@2", "g/gn-1@2", ("gn-1", "worker", 2))
    assert (judge.folder, judge.key) == ("gn-1.judge@2", ("gn-1", "judge", 2))


def test_a_change_names_the_nodes_that_it_touched_once() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", input_mapping=()), define("b", "a", input_mapping=(("x", "a.output"),))))
    drive.run(ended(drive.state.graphs[G], "a"))
    assert [change.nodes for change in drive.changes] == [[node_id("a"), node_id("b")], [node_id("b")]]
