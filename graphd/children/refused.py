"""An attempt that must not be started after all: it ends at once, with nothing on disk and nothing spawned.

An agent may be gone, or may not serve the permissions, by the time its slot is there. One that was begun is adopted as
ever: what runs is not refused. Source: execution.md, Drivers, Recovery (nothing was started: put_back).
"""

from graphd.children.driver import Order, Run, RunFactory, TalkReport
from graphd.core.commands import AttemptEnded


class RefusedRun:
    """The `Run` of an order with a refusal. `otherwise` makes the one that adopts."""

    def __init__(self, order: Order, report: TalkReport, otherwise: RunFactory) -> None:
        self._order = order
        self._run: Run | None = None
        self._report = report
        self._otherwise = otherwise
        self._told: list[tuple[int, str]] = []

    async def start(self) -> AttemptEnded:
        """Put back where the agent may come again, else failed as refused."""
        order = self._order
        key = (order.node, order.role, order.number)
        if order.is_agent_gone:
            return AttemptEnded(order.graph, key, "put_back", reason=order.refusal)
        return AttemptEnded(order.graph, key, "failed", "refused", order.refusal)

    async def adopt(self) -> AttemptEnded:
        """As if nothing was refused."""
        self._run = self._otherwise(self._order, self._report)
        self._run.tell(self._told)
        return await self._run.adopt()

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Pass it on, also what is told before it is adopted."""
        self._told += lines
        if self._run is not None:
            self._run.tell(lines)

    def request_close(self) -> None:
        """Pass it on."""
        if self._run is not None:
            self._run.request_close()

    def request_stop(self) -> None:
        """Pass it on, where there is something to end."""
        if self._run is not None:
            self._run.request_stop()

    @property
    def heard(self) -> int:
        """Nothing was told where nothing runs."""
        return self._run.heard if self._run is not None else 0

    def move_deadline(self, total_s: float) -> None:
        """It is over before any deadline."""

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
