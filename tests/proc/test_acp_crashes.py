"""Daemons that die in the middle of a talk: the agent never notices, nothing is said twice, nothing is done twice."""

import asyncio
import json
import os
import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.driver import AcpDriver
from graphd.children.attempt import Recorded, look
from graphd.children.journal import read_records
from graphd.children.keeping.files import IN
from tests.kit.acp import Core, acp_order, allow, traced, wait
from tests.kit.kept import Heard, until


def ask(number: int) -> dict[str, Any]:
    call = {"toolCallId": f"t{number}", "title": f"Step {number}", "kind": "edit"}
    return {"ask": {"toolCall": call, "effect": f"effect {number}"}}


async def die(core: Core, task: "asyncio.Task[Any]") -> None:
    """What a SIGKILL of the daemon looks like to a keeper: the connection ends without a word."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await core.run.let_go()


def is_settled(folder: Path) -> bool:
    return isinstance(look(folder), Recorded)


def check_said_once(core: Core, tmp_path: Path) -> None:
    """The journal has exactly the rows, the agent got exactly these, and a new fold makes the same facts."""
    records = list(read_records(core.order.folder))
    sent = [json.loads(record.payload) for record in records if record.kind == IN]
    assert sent == [json.loads(row) for row in core.rows[: len(sent)]]
    fold = AcpDriver().fold(core.order, out_bytes=0)
    again = [fact for record in records for fact in fold.feed(record)]
    assert [fact.position for fact in again] == [fact.position for fact in core.facts]
    for fact, other in zip(again, core.facts, strict=True):
        assert fact == other or (fact.kind, other.kind) == ("serve", "say")
    got = [line for line in traced(tmp_path) if "got" in line and line["got"] not in ("reply", "eof", "session/cancel")]
    ids = [line["id"] for line in got]
    assert ids == sorted(set(ids)), "no request came twice"


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_talk_over_many_deaths_is_one_talk(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = str(tmp_path / "a.txt")
    write = {"method": "fs/write_text_file", "params": {"sessionId": "session-1", "path": path, "content": "hi"}}
    turns: list[list[dict[str, Any]]] = [
        [{"say": "a"}, ask(1), {"request": write}, ask(2), {"stop": "max_tokens"}],
        [ask(3), {"line": "noise"}, {"say": "first"}],
        [{"tool": {"toolCallId": "x", "kind": "execute"}}, ask(4), {"say": "second"}],
    ]
    core = Core(acp_order(tmp_path, {"turns": turns, "tick_s": 0.03}, mode="ask"), rounds=("more",))

    async def pause() -> None:
        await asyncio.sleep(rng.choice([0, 0, 0.01]))  # deaths before a commit, and between commit and send

    core.pause = pause
    task = asyncio.create_task(core.make().start())
    await until((core.order.folder / "socket").exists)
    deaths = 0
    while not task.done():
        await asyncio.wait([task], timeout=rng.uniform(0.02, 0.15))
        if not task.done():
            await die(core, task)
            deaths += 1
            task = asyncio.create_task(core.make().adopt())
    ended = await task
    await core.run.collect()
    assert ended.outcome == "achieved", ended.reason
    assert ended.output is not None
    assert ended.output.text == "second"
    assert deaths > 3
    assert len(traced(tmp_path, did="start")) == 1
    assert [line["name"] for line in traced(tmp_path, did="effect")] == [f"effect {number}" for number in (1, 2, 3, 4)]
    assert len(traced(tmp_path, got="session/prompt")) == 3
    assert len(traced(tmp_path, got="session/new")) == 1
    check_said_once(core, tmp_path)


async def test_a_permission_is_answered_by_the_next_daemon(tmp_path: Path) -> None:
    """Asked while nobody lived, and asked before the death: both are open for the next daemon, each once."""
    gate = tmp_path / "gate"
    core = Core(acp_order(tmp_path, {"turns": [[ask(1), {"until": str(gate)}, ask(2), {"say": "done"}]]}), decide=wait)
    task = asyncio.create_task(core.make().start())
    await until(lambda: core.open_asks)
    await die(core, task)
    task = asyncio.create_task(core.make().adopt())
    await asyncio.sleep(0.2)
    assert len(core.of("ask")) == 1, "not asked again"
    core.answer(*[(key, allow(fact)) for key, fact in core.open_asks.items()][0])
    await until(lambda: traced(tmp_path, did="effect"))
    await die(core, task)
    gate.touch()
    await asyncio.sleep(0.3)
    core.decide = allow
    ended = await core.make().adopt()
    await core.run.collect()
    assert ended.outcome == "achieved"
    assert [line["name"] for line in traced(tmp_path, did="effect")] == ["effect 1", "effect 2"]
    check_said_once(core, tmp_path)


async def test_an_answer_that_nobody_heard_is_named_at_the_end(tmp_path: Path) -> None:
    """Committed, and the agent, or its keeper, dies before the line is in the journal: the next attempt may use it. The
    same where no daemon came back in time.
    """
    for victim in ("agent", "keeper", "nobody"):
        folder = tmp_path / victim
        folder.mkdir()
        linger_s = 0.5 if victim == "nobody" else 60.0
        core = Core(acp_order(folder, {"turns": [[ask(1), {"say": "done"}]]}, linger_s=linger_s), decide=wait)
        heard = Heard()
        task = asyncio.create_task(core.make(heard).start())
        await until(partial(core.of, "ask"))
        await die(core, task)
        identity = heard.identities[0]
        if victim == "nobody":
            await until(partial(is_settled, core.order.folder))
        else:
            os.kill(identity.pid if victim == "agent" else identity.keeper_pid, signal.SIGKILL)
        ended = await core.make().adopt()
        await core.run.collect()
        assert (ended.outcome, ended.unheard) == ("failed" if victim == "agent" else "lost", ("101",))


async def test_an_answer_that_was_committed_and_not_sent_is_sent_by_the_next_daemon(tmp_path: Path) -> None:
    core = Core(acp_order(tmp_path, {"turns": [[ask(1), {"say": "done"}]]}), decide=wait)
    task = asyncio.create_task(core.make().start())
    await until(lambda: core.open_asks)
    await die(core, task)
    core.add(*core.driver.answer(next(iter(core.open_asks)), "proceed_once", None))
    core.open_asks.clear()
    ended = await core.make().adopt()
    await core.run.collect()
    assert ended.outcome == "achieved"
    assert len(traced(tmp_path, did="effect")) == 1


async def test_a_turn_that_ended_while_nobody_lived_is_settled_and_closed(tmp_path: Path) -> None:
    core = Core(acp_order(tmp_path, {"turns": [[{"wait": 0.3}, {"say": "done"}]]}))
    task = asyncio.create_task(core.make().start())
    await until(lambda: traced(tmp_path, got="session/prompt"))
    await die(core, task)
    await until(lambda: traced(tmp_path, did="turn"))
    ended = await core.make().adopt()
    await core.run.collect()
    assert ended.outcome == "achieved"
    assert traced(tmp_path, got="session/close")
    check_said_once(core, tmp_path)


async def test_an_agent_that_ended_unseen_is_settled_from_its_journal(tmp_path: Path) -> None:
    """Its result was there: achieved. The same without one: failed. In both the folder alone says so."""
    for number, turn in enumerate(
        [[{"wait": 0.3}, {"say": "done"}, {"after": [{"die": 1}]}], [{"wait": 0.3}, {"die": 1}]]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        core = Core(acp_order(folder, {"turns": [turn]}, linger_s=0.5))
        task = asyncio.create_task(core.make().start())
        await until(partial(traced, folder, got="session/prompt"))
        await die(core, task)
        await until(partial(is_settled, core.order.folder))
        ended = await core.make().adopt()
        await core.run.collect()
        assert ended.outcome == ("failed" if number else "achieved"), ended.reason
        again = await core.make().adopt()
        assert (again.outcome, again.output) == (ended.outcome, ended.output)


async def test_a_stop_over_a_death_is_still_a_stop(tmp_path: Path) -> None:
    """The cancel was committed and not sent; the next daemon sends it, waits for the turn's end, ends the tree."""
    core = Core(acp_order(tmp_path, {"turns": [[{"say": "x"}, {"until_cancel": True}]]}, grace_s=3.0))
    task = asyncio.create_task(core.make().start())
    await until(lambda: traced(tmp_path, got="session/prompt"))
    await die(core, task)
    core.add(*core.driver.cancel(core.session, ()))
    core.is_stopped = True
    ended = await core.make().adopt()
    await core.run.collect()
    assert ended.outcome == "failed"
    assert len(traced(tmp_path, got="session/cancel")) == 1
    assert traced(tmp_path, did="turn")[0]["response"]["result"] == {"stopReason": "cancelled"}


async def test_a_turn_that_never_ends_runs_into_its_deadline(tmp_path: Path) -> None:
    """A program whose inner process is dead lives on with a dead session: only the clock tells."""
    heard = Heard()
    core = Core(acp_order(tmp_path, {"turns": [[{"say": "x"}, {"wait": 1000}]], "on_cancel": "ignore"}, timeout_s=0.8))
    heard.on_deadline = core.stop
    ended = await core.make(heard).start()
    await core.run.collect()
    assert (ended.outcome, heard.deadlines) == ("failed", 1)
