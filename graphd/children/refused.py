"""An attempt that must not be started after all: it ends at once, with nothing on disk and nothing spawned.

An agent may be gone, or may not serve the permissions, by the time its slot is there. One that was begun is adopted as
ever: what runs is not refused. Source: execution.md, Drivers, Recovery (nothing was started: put_back).
"""

from collections.abc import Callable

from graphd.children.driver import Order, Run, RunFactory, TalkReport
from graphd.children.drivers import DriverMissing
from graphd.children.run import KeptRun
from graphd.core.commands import AttemptEnded


class RefusedRun:
    """The `Run` of an order with a refusal. `otherwise` makes the one that adopts."""

    def __init__(self, order: Order, report: TalkReport, otherwise: RunFactory) -> None:
        self._order = order
        self._run: Run | None = None
        self._report = report
        self._otherwise = otherwise
        self._wishes: list[Callable[[Run], None]] = []

    async def start(self) -> AttemptEnded:
        """Put back where the agent may come again, else failed as refused."""
        order = self._order
        key = (order.node, order.role, order.number)
        if order.is_agent_gone:
            return AttemptEnded(order.graph, key, "put_back", reason=order.refusal)
        return AttemptEnded(order.graph, key, "failed", "refused", order.refusal)

    async def adopt(self) -> AttemptEnded:
        """As if nothing was refused. One whose driver is gone is not understood any more: its tree is ended."""
        try:
            self._run = self._otherwise(self._order, self._report)
        except DriverMissing:
            return await self._end_unheard()
        for wish in self._wishes:
            wish(self._run)
        return await self._run.adopt()

    async def _end_unheard(self) -> AttemptEnded:
        self._run = KeptRun(self._order, self._report)
        self._run.request_stop()
        ended = await self._run.adopt()
        if ended.outcome in ("put_back", "lost"):
            return ended
        return ended._replace(outcome="failed", failure_class="refused", reason=self._order.refusal, output=None)

    def _pass_on(self, wish: Callable[[Run], None]) -> None:
        """Now, or when there is somebody who can be told: a stop may be wanted before the adoption has begun."""
        if self._run is not None:
            wish(self._run)
        else:
            self._wishes.append(wish)

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Pass it on."""
        self._pass_on(lambda run: run.tell(lines))

    def request_close(self) -> None:
        """Pass it on."""
        self._pass_on(lambda run: run.request_close())

    def request_stop(self) -> None:
        """Pass it on."""
        self._pass_on(lambda run: run.request_stop())

    @property
    def heard(self) -> int:
        """Nothing was told where nothing runs."""
        return self._run.heard if self._run is not None else 0

    def move_deadline(self, total_s: float) -> None:
        """Pass it on."""
        self._pass_on(lambda run: run.move_deadline(total_s))

    async def recheck(self) -> None:
        """Pass it on."""
        if self._run is not None:
            await self._run.recheck()

    async def submit(self, content: bytes) -> bool:
        """Pass it on; where nothing runs nobody hands in anything."""
        return self._run is not None and await self._run.submit(content)

    async def collect(self) -> None:
        """Pass it on."""
        if self._run is not None:
            await self._run.collect()

    async def detach(self) -> None:
        """Pass it on."""
        if self._run is not None:
            await self._run.detach()
