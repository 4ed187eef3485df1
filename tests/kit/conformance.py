"""What every driver must hold, ours and a third party's: subclass `Conformance` in a test module, and pytest runs it.

A subclass names its driver and gives orders for these scenarios of its own fake program:

- `result`: it works a while, prints something, and its result is the text `the result`;
- `question`: it asks for one permission (kinds allow_once and reject_once), then as `result`; where `asks` is true;
- `failure`: it ends without a result;
- `noise`: bytes that mean nothing (no UTF-8, long lines, stray words), then as `result`;
- `hang`: it works until it is stopped, and does not mind an interrupt.

Real keepers, real processes; the core is `tests.kit.acp.Core`. Source: execution.md, Drivers, Exactly once over a
crash.
"""

import asyncio
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphd.children.driver import Driver, Fact, Fold, Order
from graphd.children.identity import read_identity
from graphd.children.journal import Record, read_records
from graphd.children.keeping.files import IN, OUT
from graphd.core.commands import AttemptEnded
from graphd.core.talk import render
from tests.kit.acp import Core, allow, reject
from tests.kit.kept import is_gone, until

KINDS = {
    "say", "serve", "session", "ask", "ask_gone", "usage", "item", "candidate", "turn_failed", "turn_cancelled",
}  # fmt: skip


class Conformance:
    """See the module. Nothing here knows what the driver speaks."""

    asks = True

    def driver(self) -> Driver:
        raise NotImplementedError

    def order(self, tmp_path: Path, scenario: str) -> Order:
        raise NotImplementedError

    async def play(self, tmp_path: Path, scenario: str, **how: Any) -> tuple[AttemptEnded, Core]:
        """One attempt under one daemon."""
        core = Core(self.order(tmp_path, scenario), self.driver(), **how)
        ended = await core.make().start()
        await core.run.collect()
        return ended, core

    # --- one life ----------------------------------------------------------------------------------------------------

    def test_its_first_lines_are_the_same_each_time_and_as_many_as_it_says(self, tmp_path: Path) -> None:
        driver, order = self.driver(), self.order(tmp_path, "result")
        first = driver.prompt(order)
        assert first == driver.prompt(order)
        assert len(first) == driver.first_lines
        rendered = [render(line, seq) for seq, line in enumerate(first)]
        assert all("\n" not in line and isinstance(json.loads(line), dict) for line in rendered)
        assert not order.folder.exists(), "it is pure"

    async def test_a_result_is_captured_and_nothing_of_it_is_alive(self, tmp_path: Path) -> None:
        ended, core = await self.play(tmp_path, "result")
        assert ended.outcome == "achieved", ended.reason
        assert ended.output is not None
        assert ended.output.text.strip() == "the result"
        assert (core.order.folder / "output").read_text().strip() == "the result"
        assert {fact.kind for fact in core.facts} <= KINDS
        assert core.cursor == (core.facts[-1].position if core.facts else (0, -1))
        json.dumps([fact.content for fact in core.facts])
        identity = read_identity(core.order.folder) or {}
        assert is_gone(identity["agentPid"])

    async def test_no_result_is_a_failure_with_a_reason(self, tmp_path: Path) -> None:
        ended, core = await self.play(tmp_path, "failure")
        assert (ended.outcome, bool(ended.failure_class), bool(ended.reason)) == ("failed", True, True)
        assert core.of("candidate") == []

    async def test_noise_breaks_nothing(self, tmp_path: Path) -> None:
        ended, core = await self.play(tmp_path, "noise")
        assert ended.outcome == "achieved", ended.reason
        assert ended.output is not None
        assert ended.output.text.rstrip().endswith("the result")
        json.dumps([fact.content for fact in core.facts]).encode()

    async def test_a_stop_ends_it(self, tmp_path: Path) -> None:
        core = Core(self.order(tmp_path, "hang"), self.driver())
        task = asyncio.create_task(core.make().start())
        identity = await until(lambda: read_identity(core.order.folder))
        core.stop()
        ended = await task
        assert is_gone(identity["agentPid"])
        await core.run.collect()
        assert ended.outcome in ("failed", "put_back")
        assert core.of("candidate") == []

    @pytest.mark.parametrize("decide", [allow, reject])
    async def test_a_question_is_asked_once_and_its_answer_is_heard(self, tmp_path: Path, decide: Any) -> None:
        if not self.asks:
            return
        ended, core = await self.play(tmp_path, "question", decide=decide)
        questions = core.of("ask")
        assert len(questions) == 1
        assert set(questions[0]) >= {"key", "kind", "title", "action", "options"}
        assert {option["kind"] for option in questions[0]["options"]} >= {"allow_once", "reject_once"}
        assert set(questions[0]["action"]) >= {"toolKind", "title", "paths"}
        assert ended.unheard == ()
        assert ended.outcome == ("achieved" if decide is allow else ended.outcome)

    # --- many lives --------------------------------------------------------------------------------------------------

    async def test_daemons_that_die_change_nothing(self, tmp_path: Path) -> None:
        rng = random.Random(5)
        core = Core(self.order(tmp_path, "question" if self.asks else "result"), self.driver())

        async def pause() -> None:
            await asyncio.sleep(rng.choice([0, 0.005]))

        core.pause = pause
        task = asyncio.create_task(core.make().start())
        await until((core.order.folder / "socket").exists)
        while not task.done():
            await asyncio.wait([task], timeout=rng.uniform(0.02, 0.1))
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await core.run.let_go()
                task = asyncio.create_task(core.make().adopt())
        ended = await task
        await core.run.collect()
        assert ended.outcome == "achieved", ended.reason
        assert ended.output is not None
        assert ended.output.text.strip() == "the result"
        sent = [record.payload for record in read_records(core.order.folder) if record.kind == IN]
        assert [json.loads(line) for line in sent] == [json.loads(row) for row in core.rows[: len(sent)]]

    async def test_a_fold_is_its_journal_wherever_that_is_cut(self, tmp_path: Path) -> None:
        _, core = await self.play(tmp_path, "question" if self.asks else "result")
        records = list(read_records(core.order.folder))
        whole = self._facts(self._fold(core, tmp_path / "whole"), records)
        assert [fact.position for fact in whole] == [fact.position for fact in core.facts]
        assert [fact.position for fact in whole] == sorted({fact.position for fact in whole})
        for number, cut in enumerate(_cuts(records)):
            facts = self._facts(self._fold(core, tmp_path / f"cut-{number}"), cut)
            assert facts == whole[: len(facts)]

    async def test_what_it_released_is_needed_no_more(self, tmp_path: Path) -> None:
        ended, core = await self.play(tmp_path, "question" if self.asks else "result")
        records = list(read_records(core.order.folder))
        exit_record = json.loads((core.order.folder / "exit.json").read_text())
        for count in range(1, len(records)):
            folder = tmp_path / f"released-{count}"
            before = self._fold(core, folder)
            facts = self._facts(before, records[:count])
            before.keep()
            up_to = before.release()
            left = [record for record in records if record.end > up_to]
            if not left:
                continue
            after = self._fold(core, folder, out_bytes=left[0].out_offset)
            again = self._facts(after, left)
            facts += [fact for fact in again if not facts or fact.position > facts[-1].position]
            assert [fact.position for fact in facts] == [fact.position for fact in core.facts]
            ending = after.end(exit_record)
            assert (ending.outcome, ending.output) == (ended.outcome, ended.output)
            assert after.end(exit_record) == ending, "asked again it says the same"

    def _fold(self, core: Core, folder: Path, *, out_bytes: int = 0) -> Fold:
        folder.mkdir(exist_ok=True)
        err = core.order.folder / "err"
        if err.exists():
            shutil.copy(err, folder / "err")
        return self.driver().fold(replace(core.order, folder=folder), out_bytes=out_bytes)

    def _facts(self, fold: Fold, records: list[Record]) -> list[Fact]:
        return [fact for record in records for fact in fold.feed(record)]


def _cuts(records: list[Record]) -> Iterator[list[Record]]:
    """Up to each record, and up to the middle of each record of stdout, as one that was torn and came in two."""
    for at, record in enumerate(records):
        yield records[:at]
        half = len(record.payload) // 2
        if record.kind == OUT and half:
            yield [*records[:at], replace(record, payload=record.payload[:half])]
