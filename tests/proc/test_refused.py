"""An attempt that must not be started after all: one that was begun is adopted, with all that is wanted of it."""

import asyncio
from pathlib import Path

import pytest

from graphd.children import drivers
from graphd.children.driver import Order, Run, TalkReport
from graphd.children.drivers import DriverMissing, driver_of
from graphd.children.refused import RefusedRun
from graphd.children.run import KeptRun
from tests.kit.kept import Heard, make_order, until


class Talked(Heard):
    """Hears facts too."""

    async def said(self, facts: object, cursor: tuple[int, int]) -> None:
        """Nothing is done with them."""


def kept(order: Order, report: TalkReport) -> Run:
    return KeptRun(order, report)


async def begun(order: Order) -> None:
    """A daemon starts it, and is gone."""
    heard = Heard()
    run = KeptRun(order, heard)
    task = asyncio.create_task(run.start())
    await until(lambda: bool(heard.identities))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await run.let_go()


async def test_a_stop_that_is_wanted_before_the_adoption_begins_is_carried_out(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100", refusal="gone")
    await begun(order)
    run = RefusedRun(order, Talked(), kept)
    run.request_stop()  # in the same commit as the adoption, as after a crash in the middle of a cancel
    async with asyncio.timeout(30):
        ended = await run.adopt()
    await run.collect()
    assert (ended.outcome, ended.signal) == ("failed", 2)


async def test_its_deadline_is_moved_like_any_other(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100", refusal="gone", timeout_s=1000.0)
    await begun(order)
    late = asyncio.Event()

    class Late(Talked):
        async def deadline(self) -> None:
            late.set()

    run = RefusedRun(order, Late(), kept)
    run.move_deadline(0.1)
    task = asyncio.create_task(run.adopt())
    async with asyncio.timeout(30):
        await late.wait()
    run.request_stop()
    await task
    await run.collect()


async def test_one_whose_driver_is_gone_is_ended_and_says_so(tmp_path: Path) -> None:
    def nobody(order: Order, report: TalkReport) -> Run:
        raise DriverMissing("there is no driver theirs")

    order = make_order(tmp_path, "trap 'echo result; exit 0' INT; sleep 100 & wait", refusal="no driver")
    await begun(order)
    run = RefusedRun(order, Talked(), nobody)
    async with asyncio.timeout(30):
        ended = await run.adopt()
    await run.collect()
    assert (ended.outcome, ended.failure_class, ended.reason) == ("failed", "refused", "no driver")
    assert ended.output is None, "nobody knows what its output means"


def test_a_driver_that_cant_be_loaded_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        def load(self) -> object:
            raise ImportError("no module named theirs")

    monkeypatch.setattr(drivers, "entry_points", lambda **_: [Point()])
    with pytest.raises(DriverMissing, match="ImportError: no module named theirs"):
        driver_of("theirs-broken")
