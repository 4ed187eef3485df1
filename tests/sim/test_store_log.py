"""The log on a real database: a load gives back what was committed, tables equal the log, bases, history, retention."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graphd.base.clock import SystemClock
from graphd.core.codec import dump_graph
from graphd.core.commands import (
    AgentAsk,
    AttemptEnded,
    AttemptSaid,
    Cancel,
    Clear,
    Done,
    MachineSlept,
    Pause,
    Request,
    Respond,
    RetryNodes,
    Revoke,
)
from graphd.core.decide import decide
from graphd.core.model import State
from graphd.core.policy import Leave
from graphd.core.tape import Tape
from graphd.store import log as log_module
from graphd.store import rows
from graphd.store.database import Database
from graphd.store.log import Log
from graphd.store.rebuild import differences
from graphd.store.refusals import GuardRefused, StoreCorrupt
from graphd.store.remembered import KEPT_MS, Remembered, RequestRow
from graphd.store.writer import Decided
from tests.data.store.workload import Workload, apply, close_database, open_database, plan


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await close_database(opened)


def values(state: State) -> dict[str, object]:
    graphs = {name: rows.decoded(rows.encoded(dump_graph(graph))) for name, graph in state.graphs.items()}
    return {"graphs": graphs, "tombstones": state.tombstones}


async def assert_loads_as(database: Database, state: State) -> None:
    loaded = await Log(database, clock=SystemClock()).load(apply)
    assert values(loaded) == values(state)
    assert loaded.running == state.running
    assert loaded.running_by_profile == {k: v for k, v in state.running_by_profile.items() if v}
    assert await database.read(lambda connection: differences(connection, apply)) == []


async def test_a_load_gives_back_what_was_committed_at_every_commit(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 12), plan("b", 3))
    while any(not graph.is_ended for graph in workload.state.graphs.values()):
        await assert_loads_as(database, workload.state)
        facts = [fact for graph in workload.state.graphs.values() for fact in workload.steps(graph)]
        await workload.batch(*facts[:3])
    await assert_loads_as(database, workload.state)


async def test_a_log_that_was_loaded_goes_on(tmp_path: Path) -> None:
    for turn in range(3):
        database = await open_database(tmp_path)
        workload = await Workload.on(database)
        assert database.was_clean
        if turn == 0:
            await workload.batch(plan("a", 11))
        else:
            await workload.batch(*workload.steps(workload.state.graphs["a"]))
        await assert_loads_as(database, workload.state)
        await close_database(database)


async def test_two_attempts_of_a_node_in_one_batch_are_both_stored(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 1))
    key = next(iter(workload.state.graphs["a"].live))
    await workload.batch(*workload.steps(workload.state.graphs["a"]))
    await workload.batch(AttemptEnded("a", key, "lost", reason="its keeper died"))
    attempts = workload.state.graphs["a"].attempts
    assert [attempts[key].state, attempts[(key[0], key[1], 2)].state] == ["settled", "starting"]
    await assert_loads_as(database, workload.state)


async def test_a_sleep_of_the_machine_moves_the_clocks_of_all_live_attempts(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 3))
    (key, *_) = workload.state.graphs["a"].live
    before = workload.state.graphs["a"].attempts[key].deadline_at
    await workload.batch(MachineSlept(60_000))
    assert workload.state.graphs["a"].attempts[key].deadline_at == (before or 0) + 60_000
    await assert_loads_as(database, workload.state)


async def test_a_standing_answer_that_is_revoked_is_stored_as_that(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 1))
    (key, *_) = workload.state.graphs["a"].live
    options = ({"id": "y", "kind": "allow_once", "label": "Yes"},)
    asked = AgentAsk("1", "permission", "edit", {"toolKind": "edit", "paths": ["/etc/x"]}, options)
    await workload.batch(AttemptSaid("a", key, Leave("edit", "/w"), asks=(asked,)))
    (ask,) = workload.state.graphs["a"].asks.values()
    await workload.batch(Respond("a", ask.id, ask.action_hash, "y", scope="graph"))
    await workload.batch(Revoke("a", ask.id))
    assert workload.state.graphs["a"].asks[ask.id].is_revoked
    await assert_loads_as(database, workload.state)


async def test_clear_leaves_a_tombstone_and_nothing_else(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 3), plan("b", 2))
    await workload.finish("b")
    rev = workload.state.graphs["b"].rev
    await workload.batch(Clear("b"))
    assert workload.state.tombstones == {"b": rev + 1}
    await assert_loads_as(database, workload.state)

    def left(connection: object) -> list[int]:
        tables = ("nodes", "attempts", "events", "bases", "asks", "deliveries")
        return [
            connection.execute(f"SELECT count(*) FROM {t} WHERE graph = 'b'").fetchone()[0]  # type: ignore[attr-defined]
            for t in tables
        ]

    assert await database.read(left) == [0] * 6
    assert (await workload.log.history("b")).events == []


async def test_request_ids_are_remembered_with_their_answers_and_go_with_their_graph(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))
    await workload.finish("a")
    rows_ = [
        RequestRow("a", "r1", "f1", Done("a", 7, ("n0", "n1")), workload.now),
        RequestRow("", "r1", "f2", Done("a", 1), workload.now),
    ]
    await workload.log.commit(Decided(requests=rows_), workload.state)
    assert await workload.log.requests() == rows_
    await workload.batch(Clear("a"))
    assert await workload.log.requests() == [rows_[1]]


def test_what_is_remembered_is_bounded_by_the_graphs_and_by_seven_days() -> None:
    def row(scope: str, name: str, at: int) -> RequestRow:
        return RequestRow(scope, name, "f", Done("a", 1), at)

    known = Remembered([row("", "set", 1), row("a", "pause", 2), row("lost", "clear", 3)], graphs={"a"}, now=10)
    assert (known.graph_of("pause"), known.graph_of("set"), len(known)) == ("a", None, 3)
    known.note([row("", "set", 20), row("a", "clear", 20)], gone=set(), now=20)
    known.note([row("a", "again", 30)], gone={"a"}, now=30)
    assert known.find("a", "pause") is None
    assert known.find("a", "again") is not None, "its answer may have been lost, and it goes by time"
    known.note([], gone=set(), now=KEPT_MS + 10)
    assert [known.find("lost", "clear"), known.find("", "set")] == [None, row("", "set", 20)]
    known.note([], gone=set(), now=KEPT_MS + 31)
    assert len(known) == 0


async def test_an_id_of_the_workspace_that_was_forgotten_can_be_used_again(database: Database) -> None:
    workload = await Workload.on(database)
    for fingerprint in ("old", "new"):
        row = RequestRow("", "r1", fingerprint, Done("a", 1), workload.now)
        await workload.log.commit(Decided(requests=[row]), workload.state)
    assert [row.fingerprint for row in await workload.log.requests()] == ["new"]


async def test_bases_are_written_by_revs_and_at_the_end_and_checked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "BASE_REVS", 10)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 6), plan("wide", 40))
    seen: set[int] = set()
    while not workload.state.graphs["a"].is_ended:
        await workload.batch(*workload.steps(workload.state.graphs["a"])[:1])
        found = await bases(database, "a")
        assert len(found) <= 1
        seen.update(found)
        await assert_loads_as(database, workload.state)
    assert len(seen) == 2
    assert max(seen) == workload.state.graphs["a"].rev
    assert await bases(database, "wide") == []
    await workload.finish("wide")
    revs = workload.state.graphs["wide"].rev
    assert revs // 40 <= 4  # a graph's bases are at most about one for each time its nodes moved: linear
    await assert_loads_as(database, workload.state)


async def bases(database: Database, graph: str) -> list[int]:
    query = "SELECT rev FROM bases WHERE graph = ? ORDER BY rev"
    return [row[0] for row in await database.read(lambda c: c.execute(query, (graph,)).fetchall())]


async def test_retention_drops_what_stands_before_the_last_base_of_ended_graphs_alone(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 4), plan("live", 4))
    await workload.finish("a")
    end = workload.state.graphs["a"].rev
    assert await workload.log.retain(ended_before_ms=workload.now - 100) == 0
    assert await workload.log.retain(ended_before_ms=workload.now + 1) == 1
    assert await workload.log.retain(ended_before_ms=workload.now + 1) == 0
    page = await workload.log.history("a")
    assert (page.events, page.base_rev) == ([], end)
    assert (await workload.log.history("live")).base_rev is None
    await assert_loads_as(database, workload.state)


async def test_a_graph_reopened_after_retention_keeps_the_base_that_its_log_begins_with(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 1))
    await workload.batch(*workload.steps(workload.state.graphs["a"]))
    key = next(iter(workload.state.graphs["a"].live))
    await workload.batch(AttemptEnded("a", key, "failed", failure_class="exec_failed", reason="exit 1", exit_code=1))
    await workload.batch(RetryNodes("a"))
    await workload.finish("a")
    await workload.log.retain(ended_before_ms=workload.now + 1)
    first = await bases(database, "a")
    state = workload.state
    state.graphs["a"].status = "active"  # a reopening, made by hand: its event is not at hand in every version
    tape = Tape()
    changes = decide(state, tape, Request(Pause("a")), workload.now).changes
    await workload.log.commit(Decided(changes=changes), state)
    changes = decide(state, tape, Request(Cancel("a")), workload.now).changes
    await workload.log.commit(Decided(changes=changes), state)
    assert state.graphs["a"].is_ended
    assert await bases(database, "a") == [*first, state.graphs["a"].rev]
    page = await workload.log.history("a", after=0)
    assert page.base_rev == first[0]
    assert [event.kind for event in page.events][-1] == "cancelled"


async def test_history_gives_whole_revs_and_every_event_once(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 7))
    await workload.finish("a")
    everything = (await workload.log.history("a", limit=1000)).events
    assert [e.index for e in everything if e.index == 0] == [0] * workload.state.graphs["a"].rev
    for limit in (1, 2, 3, 5, 50):
        collected, after = [], 0
        while True:
            page = await workload.log.history("a", after=after, limit=limit)
            collected += page.events
            if page.next is None:
                break
            assert page.events[-1].rev == page.next > after
            after = page.next
        assert collected == everything
    kinds = ["node_achieved", "completed"]
    page = await workload.log.history("a", kinds=kinds, limit=3)
    assert page.events == [e for e in everything if e.kind in kinds][:3]
    assert (await workload.log.history("a", kinds=[])).events == []


async def test_guards_refuse_what_the_model_does_not_allow_and_the_store_goes_on(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))
    await workload.batch(*workload.steps(workload.state.graphs["a"]))
    await workload.batch(*workload.steps(workload.state.graphs["a"])[:1])
    illegal = [
        "UPDATE attempts SET state = 'live' WHERE state = 'settled'",
        "UPDATE attempts SET state = 'starting' WHERE state = 'live'",
        "UPDATE attempts SET state = 'asleep'",
        "UPDATE nodes SET state = 'verifying'",
        "UPDATE nodes SET changed_at = 0",
        "UPDATE graphs SET status = 'odd'",
        "UPDATE events SET kind = 'other'",
        "INSERT INTO attempts SELECT graph, node, role, 9, 'starting', doc FROM attempts WHERE state = 'live'",
        "INSERT INTO events SELECT graph, rev + 2, 0, at, kind, node, payload, actor FROM events"
        " WHERE rev = (SELECT max(rev) FROM events) LIMIT 1",
        "INSERT INTO events SELECT graph, rev, 77, at, kind, node, payload, actor FROM events LIMIT 1",
        "INSERT INTO nodes VALUES ('nobody', 'x', 'x', 'ready', 1, '{}')",
    ]
    for statement in illegal:

        def break_it(connection: object, statement: str = statement) -> None:
            with database.fenced(connection):  # type: ignore[arg-type]
                connection.execute(statement)  # type: ignore[attr-defined]
                connection.execute("COMMIT")  # type: ignore[attr-defined]

        with pytest.raises(GuardRefused):
            await database.write(break_it)
    assert database.health == "ok"
    await assert_loads_as(database, workload.state)


async def test_a_row_that_can_not_be_read_is_named(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 2))

    def spoil(connection: object) -> None:
        for statement in ("DROP TRIGGER events_final", "UPDATE events SET payload = '{' WHERE rev = 1 AND idx = 1"):
            connection.execute(statement)  # type: ignore[attr-defined]

    await database.write(spoil)
    with pytest.raises(StoreCorrupt, match=r"a/1\.1"):
        await Log(database, clock=SystemClock()).load(apply)


async def test_doctor_names_every_difference(database: Database) -> None:
    workload = await Workload.on(database)
    await workload.batch(plan("a", 3))
    await workload.finish("a")

    def spoil(connection: object) -> None:
        for statement in (
            "UPDATE nodes SET doc = json_set(doc, '$.rounds', 9) WHERE slug = 'n1'",
            "DELETE FROM attempts WHERE node = (SELECT id FROM nodes WHERE slug = 'n0')",
            "UPDATE bases SET doc = json_set(doc, '$.title', 'other')",
            "UPDATE graphs SET title = 'other'",
        ):
            connection.execute(statement)  # type: ignore[attr-defined]

    await database.write(spoil)
    found = "\n".join(await database.read(lambda connection: differences(connection, apply)))
    assert "in rounds" in found
    assert "missing in the table" in found
    assert "base at rev" in found
    assert "graphs a:" in found
    assert len(found.splitlines()) == 4


async def test_text_that_is_not_unicode_and_large_numbers_survive() -> None:
    value = {"reason": "no such file \udcff", "big": 2**70, "ok": "日本"}
    assert rows.decoded(rows.encoded(value)) == value
