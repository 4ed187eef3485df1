"""For tests with real keepers: orders, a report that remembers, raw keepers, pidfds, and a driver that talks."""

import asyncio
import json
import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphd.children.attempt import make_folder
from graphd.children.driver import Driver, Ending, Fact, Launch, Monologue, Order
from graphd.children.journal import Lines, Record
from graphd.children.keeping.files import OUT
from graphd.children.keeping.tree import look_at
from graphd.children.shell import ShellDriver
from graphd.children.spawn import KeeperProcess, spawn_keeper
from graphd.core.model import Identity, Output
from graphd.core.talk import Line

PROGRAMS = Path(__file__).with_name("programs")
STORE = "store-1"


def make_order(tmp_path: Path, spec: str = "true", **changes: Any) -> Order:
    """An order for one attempt in a fresh folder, with short graces."""
    order = Order(
        graph="0197",
        node="gn-e40c292c",
        slug="a",
        number=1,
        role="worker",
        cookie=f"0197/gn-e40c292c@1/{tmp_path.name}",
        folder=tmp_path / "attempts" / "0197" / "gn-e40c292c@1",
        profile="shell",
        spec=spec,
        inputs=(),
        environment={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        cwd=tmp_path,
        workspace=tmp_path,
        variables={},
        timeout_s=None,
        grace_s=0.3,
        linger_s=60.0,
        store=STORE,
        epoch=1,
    )
    return replace(order, **changes)


class Heard:
    """A report that remembers."""

    def __init__(self) -> None:
        self.identities: list[Identity] = []
        self.stuck_pids: list[tuple[int, ...]] = []
        self.reasons: list[str] = []
        self.deadlines = 0
        self.chunks: list[bytes] = []
        self.on_deadline: Callable[[], None] = lambda: None

    async def identified(self, identity: Identity) -> None:
        self.identities.append(identity)

    async def stuck(self, pids: tuple[int, ...], reason: str) -> None:
        self.stuck_pids.append(pids)
        self.reasons.append(reason)

    async def deadline(self) -> None:
        self.deadlines += 1
        self.on_deadline()

    def printed(self, offset: int, chunk: bytes) -> None:
        self.chunks.append(chunk)


async def until(claim: Callable[[], Any], what: str = "", limit_s: float = 10.0) -> Any:
    """Wait until `claim()` is true, and answer it."""
    end = time.monotonic() + limit_s
    while not (found := claim()):
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        await asyncio.sleep(0.01)
    return found


async def raw_keeper(order: Order, *, driver: Driver | None = None, **changes: Any) -> KeeperProcess:
    """A keeper with a launch spec that a test changed, without a run that follows it."""
    launch = await asyncio.to_thread(make_folder, order, driver or ShellDriver())
    keeper = await spawn_keeper(order.folder, launch | changes, {"PATH": os.environ["PATH"]})
    assert await keeper.first_word() == "ready", (order.folder / "keeper.log").read_text()
    return keeper


def is_over(pidfd: int) -> bool:
    """The process behind the pidfd is dead."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def is_gone(pid: int) -> bool:
    """There is no such process, or it is dead and not yet reaped."""
    seen = look_at(pid)
    return seen is None or seen.is_dead


class TalkFold(Monologue):
    """Whole JSON lines become facts."""

    def __init__(self) -> None:
        self._lines = Lines()
        self.facts: list[Fact] = []

    def feed(self, record: Record) -> list[Fact]:
        if record.kind != OUT:
            return []
        said = [(line.end, json.loads(line.text)) for line in self._lines.feed(record)]
        made = [Fact(end, 0, str(content["kind"]), content) for end, content in said]
        self.facts += made
        return made

    def release(self) -> int:
        return 0

    def end(self, exit_record: dict[str, Any]) -> Ending:
        text = json.dumps(self.facts[-1].content)
        if exit_record["code"] == 0 and self.facts[-1].kind == "result":
            return Ending("achieved", output=Output(text, len(text), "application/json"))
        return Ending("failed", "exec_failed", "no result")


class TalkDriver:
    """Speaks to programs/talk.py: one line to begin, one line for every ask."""

    first_lines = 1
    is_plain = True

    def __init__(self, oracle: Path, rounds: int) -> None:
        self._argv = (sys.executable, str(PROGRAMS / "talk.py"), str(oracle), str(rounds))

    def start(self, order: Order) -> Launch:
        return Launch(self._argv, stdin="pipe")

    def prompt(self, order: Order) -> tuple[Line, ...]:
        return (Line({"seq": 0}),)

    def answer(self, key: str, option: str | None, text: str | None) -> tuple[Line, ...]:
        return (Line({"seq": int(key) + 1, "option": option}),)

    def turn(self, session: str, text: str) -> tuple[Line, ...]:
        return ()

    def cancel(self, session: str | None, open_asks: tuple[str, ...]) -> tuple[Line, ...]:
        return ()

    def close(self, session: str | None) -> tuple[Line, ...]:
        return ()

    def fold(self, order: Order, *, out_bytes: int) -> TalkFold:
        return TalkFold()
