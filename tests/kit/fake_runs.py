"""Runs without processes: a world of children that lives on when a daemon in the same test process 'crashes'.

A node's spec says what its child does: `ok TEXT`, `turns ONE|TWO` (its first result, its second …), `fail`, `lost`,
`hang` (until it is stopped).
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from graphd.base.failpoints import failpoint
from graphd.children.driver import Order, Report
from graphd.core.commands import AttemptEnded
from graphd.core.model import Identity, Output


@dataclass
class Child:
    """One attempt's child: what it will do, and whether it is done."""

    spec: str
    is_done: bool = False
    said: str = ""
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class World:
    """The outside: it remembers every start, and refuses to let one node live twice."""

    def __init__(self) -> None:
        self.children: dict[str, Child] = {}
        self.starts: Counter[str] = Counter()
        self.doubles: list[str] = []
        self.turns: Counter[str] = Counter()

    def spawn(self, cookie: str, spec: str) -> Child:
        """Start a child, and note where one of the same node is alive."""
        node = cookie.rpartition("@")[0]
        alive = [c for c, child in self.children.items() if c.rpartition("@")[0] == node and not child.is_done]
        self.doubles += [f"{cookie} beside {other}" for other in alive]
        self.starts[cookie] += 1
        self.children[cookie] = Child(spec)
        return self.children[cookie]

    def run(self, order: Order, report: Report) -> "FakeRun":
        """A `RunFactory`."""
        return FakeRun(self, order, report)


class QuietRun:
    """All of a `graphd.children.driver.Run` but its start and its adoption: nobody listens, and nothing is kept."""

    def __init__(self, order: Order, report: Report) -> None:
        self.order = order
        self.report = report

    def _ended(self, outcome: str, **facts: object) -> AttemptEnded:
        key = (self.order.node, self.order.role, self.order.number)
        return AttemptEnded(self.order.graph, key, outcome, **facts)  # type: ignore[arg-type]

    def request_stop(self) -> None:
        """It ends by itself."""

    def request_close(self) -> None:
        """It ends by itself."""

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Nobody listens."""

    @property
    def heard(self) -> int:
        """No line was ever sent."""
        return 0

    def move_deadline(self, total_s: float) -> None:
        """Nobody looks at a clock here."""

    async def recheck(self) -> None:
        """Nothing is ever stuck here."""

    async def submit(self, content: bytes) -> bool:
        """It has no turns."""
        return False

    async def collect(self) -> None:
        """No keeper to tell."""

    async def detach(self) -> None:
        """No keeper to tell."""


class FakeRun(QuietRun):
    """One attempt in the world."""

    def __init__(self, world: World, order: Order, report: Report) -> None:
        super().__init__(order, report)
        self.world = world
        self._stop = asyncio.Event()

    async def start(self) -> AttemptEnded:
        """Spawn, then follow."""
        failpoint("fake.spawn.before")
        child = self.world.spawn(self.order.cookie, self.order.spec)
        failpoint("fake.spawn.after")
        return await self._follow(child)

    async def adopt(self) -> AttemptEnded:
        """By the recovery table: unknown to the world means nothing was started."""
        child = self.world.children.get(self.order.cookie)
        if child is None:
            return self._ended("put_back", reason="nothing was started")
        return await self._follow(child)

    async def _follow(self, child: Child) -> AttemptEnded:
        await self.report.identified(Identity("boot", "ns", 1, 1))
        word, _, text = child.spec.partition(" ")
        await asyncio.sleep(0)
        if word == "hang" and not child.is_done:
            await self._stop.wait()
            child.is_done = True
            return self._ended("failed", reason="it was stopped", failure_class="exec_failed")
        if word == "turns" and not child.is_done:
            texts = text.split("|")
            child.said = texts[min(self.world.turns[self.order.node], len(texts) - 1)]
            self.world.turns[self.order.node] += 1
        child.is_done = True
        failpoint("fake.reap.after")
        if word == "turns":
            return self._ended("achieved", output=Output(child.said, len(child.said), "text/plain"))
        if word == "ok":
            return self._ended("achieved", output=Output(text, len(text), "text/plain"))
        if word == "lost":
            return self._ended("lost", reason="the world forgot it")
        return self._ended("failed", reason="it failed", failure_class="exec_failed")

    def request_stop(self) -> None:
        """End a hanging child."""
        self._stop.set()

    async def collect(self) -> None:
        """No keeper to tell."""
        failpoint("fake.collect.after")
