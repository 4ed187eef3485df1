"""The clock of one attempt, with clocks of the test's own: sleep, moves, and a deadline that is told again."""

import asyncio

from graphd.children.deadline import AGAIN_S, DeadlineWatch
from graphd.children.driver import Order
from graphd.children.profiles.choosing import Agents
from graphd.core.commands import Busy
from graphd.daemon.rests import CALM_S, Rests


class Time:
    """A monotonic clock that only goes on while somebody dozes; `asleep` is what the machine sleeps meanwhile."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.dozes: list[float] = []

    def monotonic_s(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return round(self.now_s * 1000)

    def slept_s(self) -> float:
        return 0.0

    async def doze(self, event: asyncio.Event, seconds: float) -> None:
        self.dozes.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)


async def lates(watch: DeadlineWatch, clock: Time, *, moves: list[float | None]) -> list[float]:
    """When it was told to be late, as long as there is a move to answer with; then the watch is ended."""
    told: list[float] = []
    task: asyncio.Task[None]

    async def late() -> None:
        told.append(clock.now_s)
        if not moves:
            task.cancel()
            return
        move = moves.pop(0)
        if move is not None:
            watch.move(move)

    task = asyncio.create_task(watch.watch(100.0, late))
    await asyncio.gather(task, return_exceptions=True)
    return told


async def test_a_deadline_that_is_moved_is_told_at_its_new_time() -> None:
    clock = Time()
    watch = DeadlineWatch(60, monotonic_s=clock.monotonic_s, doze=clock.doze)
    assert await lates(watch, clock, moves=[90.0, 300.0]) == [160.0, 190.0, 400.0]


async def test_one_that_nobody_answers_is_told_again_after_a_while() -> None:
    clock = Time()
    watch = DeadlineWatch(60, monotonic_s=clock.monotonic_s, doze=clock.doze)
    assert await lates(watch, clock, moves=[None]) == [160.0, 160.0 + AGAIN_S]


async def test_an_adopted_attempt_whose_time_is_long_over_is_late_at_once() -> None:
    clock = Time()
    clock.now_s = 5000.0
    watch = DeadlineWatch(60, monotonic_s=clock.monotonic_s, doze=clock.doze)
    assert await lates(watch, clock, moves=[]) == [5000.0]


async def test_a_real_doze_is_woken_by_a_move() -> None:
    watch = DeadlineWatch(3600)
    told = asyncio.Event()

    async def late() -> None:
        told.set()

    task = asyncio.create_task(watch.watch(0.0, late))
    watch.move(-1.0)
    async with asyncio.timeout(10):
        await told.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_without_a_deadline_nobody_is_told_until_there_is_one() -> None:
    clock = Time()
    watch = DeadlineWatch(None, monotonic_s=clock.monotonic_s, doze=clock.doze)
    told = asyncio.Event()

    async def late() -> None:
        told.set()

    task = asyncio.create_task(watch.watch(100.0, late))
    await asyncio.sleep(0)
    assert not told.is_set()
    watch.move(5.0)
    async with asyncio.timeout(10):
        await told.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_each_trouble_of_a_row_rests_longer_and_a_calm_begins_anew() -> None:
    clock = Time()
    rests = Rests(Agents, clock)
    order = Order.__new__(Order)
    for name, value in (("profile", "claude"), ("cookie", "c")):
        object.__setattr__(order, name, value)
    first = rests.rest_s(order, Busy())
    clock.now_s += first
    second = rests.rest_s(order, Busy())
    assert 1.9 < second / first < 2.1
    clock.now_s += second + CALM_S + 1
    assert rests.rest_s(order, Busy()) == first, "the same attempt, the same jitter"
    assert rests.rest_s(order, Busy(retry_after_s=10_000)) >= 10_000


def test_an_agent_that_is_gone_from_the_settings_rests_like_any_other() -> None:
    order = Order.__new__(Order)
    for name, value in (("profile", "mine"), ("cookie", "c")):
        object.__setattr__(order, name, value)
    assert Rests(Agents, Time()).rest_s(order, Busy(retry_after_s=100)) >= 100
