"""A driver without processes: its runs achieve at once, so that what is left is graphd itself.

`identified` adds the commit of an identity that every real keeper's run has before its child may go.
"""

from benchmarks.machine import mark
from graphd.children.driver import Order, Report, RunFactory
from graphd.core.commands import AttemptEnded
from graphd.core.model import Identity, Output
from tests.kit.fake_runs import QuietRun

IDENTITY = Identity(boot_id="benchmark", pid_namespace="benchmark", pid=1, start_time=1)


class NoopRun(QuietRun):
    """One attempt."""

    def __init__(self, order: Order, report: Report, *, has_identity: bool) -> None:
        super().__init__(order, report)
        self._has_identity = has_identity

    async def start(self) -> AttemptEnded:
        """Note that the node started, and achieve it."""
        if self._has_identity:
            await self.report.identified(IDENTITY)
        mark(int(self.order.slug[1:]))
        return self._ended("achieved", output=Output("done", 4, "text/plain"))

    async def adopt(self) -> AttemptEnded:
        """Nothing outlives a daemon here: the attempt is put back, as one whose process never started."""
        return self._ended("put_back")


def factory(*, has_identity: bool = False) -> RunFactory:
    """For `Daemon.open`."""
    return lambda order, report: NoopRun(order, report, has_identity=has_identity)
