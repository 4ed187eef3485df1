"""Batches: expectations, one winner of a race, and what a refusal or a failed commit takes back."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.commands import Cancel, Clear, Command, DaemonStarted, Finish, Pause, Request, Resume, RetryNodes
from graphd.core.decide import _VERBS, decide
from graphd.core.draft import Draft
from graphd.core.model import Retry
from graphd.core.schedule import schedule
from graphd.core.tape import Tape
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, ended, picture, plan, refused, states


def test_expectations_are_compared_and_the_plan_outlives_the_rev() -> None:
    drive = Drive()
    drive.run(plan(G, define("a")))
    rev = drive.state.graphs[G].rev
    refusal = refused(drive, Pause(G), expected_rev=rev - 1)
    assert (refusal.code, refusal.facts["rev"]) == ("conflict", rev)
    assert refused(drive, Pause(G), expected_plan=2).code == "conflict"
    drive.run(Pause(G), ME, expected_rev=rev, expected_plan=1)
    assert drive.state.graphs[G].status == "user_paused"


def test_two_racing_retries_have_one_winner() -> None:
    drive = Drive()
    drive.run(plan(G, define("a")))
    drive.run(ended(drive.state.graphs[G], "a", "failed"))
    tape = Tape()
    decide(drive.state, tape, Request(RetryNodes(G, "a"), ME), 5)
    with pytest.raises(Refused) as caught:
        decide(drive.state, tape, Request(RetryNodes(G, "a"), ME), 5)
    assert caught.value.code == "invalidTransition"


def _some_commands(seed: int) -> list[Command]:
    dice = random.Random(seed)
    commands: list[Command] = []
    for graph in "abcd":
        rows = [define(f"n{i}", *(f"n{j}" for j in range(i) if dice.random() < 0.3), required=False) for i in range(6)]
        commands.append(plan(graph, *rows))
    choices: list[Callable[[str], Command]] = [
        Pause, Resume, Cancel, Clear, RetryNodes, lambda g: Pause(g, "stop"), lambda g: Finish(g, "enough"),
    ]  # fmt: skip
    for _ in range(196):
        graph = dice.choice("abcd")
        commands.append(dice.choice(choices[:2] if dice.random() < 0.8 else choices)(graph))
    return commands


@pytest.mark.parametrize("seed", range(4))
def test_one_batch_of_200_is_the_same_as_one_by_one(seed: int) -> None:
    alone, batch = Drive(can_admit=False), Drive()
    logs: list[list[Any]] = [[], []]
    tape = Tape()
    for command in _some_commands(seed):
        for log, drive, writes in ((logs[0], alone, Tape()), (logs[1], batch, tape)):
            try:
                log.append(decide(drive.state, writes, Request(command, ME), 9))
            except Refused as refusal:
                log.append((refusal.code, refusal.message))
    assert sum(isinstance(row, tuple) for row in logs[0]) > 40, "many are refused because of those before"
    assert repr(logs[0]) == repr(logs[1])
    assert picture(alone.state) == picture(batch.state)
    tape.rollback()
    assert batch.state.graphs == {}


def test_a_failed_commit_takes_back_the_whole_batch_and_its_starts() -> None:
    drive = Drive(concurrency=2)
    drive.run(plan("h", *(define(f"n{i}", required=False) for i in range(3))))
    drive.run(plan(G, define("a", retry=Retry(1, 5)), define("b", "a"), define("c", "a", condition="a.output > 1")))
    drive.run(ended(drive.state.graphs["h"], "n0"))
    before = repr(picture(drive.state))
    commands: list[Command] = [
        ended(drive.state.graphs[G], "a"), Cancel("h"), plan("i", define("x")), DaemonStarted(2, "0", 5),
        Finish(G, "x"),
    ]  # fmt: skip
    for command in commands:
        decide(drive.state, drive.tape, Request(command, ME), drive.now)
    schedule(drive.state, drive.tape, drive.capacity, drive.now)
    assert repr(picture(drive.state)) != before
    drive.tape.rollback()
    drive.state.are_queues_stale = True
    assert picture(drive.state) == picture(drive.replica)
    assert sorted(before) == sorted(repr(picture(drive.state)))
    for command in commands[:2]:
        drive.run(command)
    assert drive.state.graphs["h"].stopping is not None


def test_a_refusal_inside_a_batch_takes_back_its_own_writes_only() -> None:
    drive = Drive(can_admit=False)
    tape = Tape()
    decide(drive.state, tape, Request(plan(G, define("a"))), 1)
    before = picture(drive.state)
    with pytest.raises(Refused):
        decide(drive.state, tape, Request(plan("h", define("a"), replace="nobody")), 1)
    with pytest.raises(Refused):
        decide(drive.state, tape, Request(RetryNodes(G)), 1)
    assert picture(drive.state) == before


def test_a_refusal_after_writes_takes_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """No verb of today refuses after its first event; the promise does not depend on that."""

    def late(draft: Draft, command: Pause) -> None:
        draft.emit("paused", status="user_paused", reason="x", cause=None)
        draft.emit("node_retried", draft.graph.nodes[node_id("a")])
        draft.emit("node_ready", draft.graph.nodes[node_id("a")])
        raise Refused("conflict", "late", "again")

    drive = Drive()
    drive.run(plan(G, define("a"), define("b")))
    drive.run(ended(drive.state.graphs[G], "a", "failed"))
    monkeypatch.setitem(_VERBS, Pause, ("pause", late))
    assert refused(drive, Pause(G)).code == "conflict"
    assert states(drive.state.graphs[G]) == {"a": "failed", "b": "running"}
    assert drive.state.graphs[G].queue == []
