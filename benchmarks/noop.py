"""A driver without processes: its runs achieve at once, so that what is left is graphd itself.

`identified` adds the commit of an identity that every real keeper's run has before its child may go.
"""

from benchmarks.machine import mark
from graphd.children.driver import Order, Report, RunFactory
from graphd.core.commands import AttemptEnded
from graphd.core.model import Identity, Output

IDENTITY = Identity(boot_id="benchmark", pid_namespace="benchmark", pid=1, start_time=1)


class NoopRun:
    """One attempt. Fits `graphd.children.driver.Run`."""

    def __init__(self, order: Order, report: Report, *, has_identity: bool) -> None:
        self._order = order
        self._report = report
        self._has_identity = has_identity

    async def start(self) -> AttemptEnded:
        """Note that the node started, and achieve it."""
        if self._has_identity:
            await self._report.identified(IDENTITY)
        mark(int(self._order.slug[1:]))
        return self._ended("achieved", Output("done", 4, "text/plain"))

    async def adopt(self) -> AttemptEnded:
        """Nothing outlives a daemon here: the attempt is put back, as one whose process never started."""
        return self._ended("put_back", None)

    def _ended(self, outcome: str, output: Output | None) -> AttemptEnded:
        key = (self._order.node, self._order.role, self._order.number)
        return AttemptEnded(self._order.graph, key, outcome, output=output)  # type: ignore[arg-type]

    def request_stop(self) -> None:
        """Nothing to stop."""

    def request_close(self) -> None:
        """It ends by itself."""

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Nobody listens."""

    @property
    def heard(self) -> int:
        """No line was ever sent."""
        return 0

    def move_deadline(self, total_s: float) -> None:
        """Nothing takes long enough."""

    async def recheck(self) -> None:
        """Nothing is ever stuck."""

    async def submit(self, content: bytes) -> bool:
        """It has no turns."""
        return False

    async def collect(self) -> None:
        """No keeper to tell."""

    async def detach(self) -> None:
        """No keeper to tell."""


def factory(*, has_identity: bool = False) -> RunFactory:
    """For `Daemon.open`."""
    return lambda order, report: NoopRun(order, report, has_identity=has_identity)
