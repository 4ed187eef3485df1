"""Pairs of crash points, in process: crash at k, then at each point of the recovery; nothing is lost or runs twice."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from graphd.base import failpoints
from graphd.base.refusal import Refused
from graphd.core.commands import Cancel, Command, Request, Set
from graphd.core.model import Definition, Retry, Source
from graphd.daemon.house import Daemon
from tests.kit.fake_runs import World


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Raises Crash at the n-th failpoint; counts them all."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.hits = 0
        self.is_blown = False

    def __call__(self, name: str) -> None:
        if self.is_blown:
            raise Crash(name)  # a dead process does nothing more
        self.hits += 1
        if self.hits == self.at:
            self.is_blown = True
            raise Crash(name)


PLAN = (
    Definition("a", "ok A", "shell"),
    Definition("b", "ok B", "shell", needs=("a",)),
    Definition("c", "fail", "shell", needs=("a",), retry=Retry(max=1, backoff_s=0)),
    Definition("d", "ok D", "shell", needs=("b", "c")),
)
HANGING = (Definition("h", "hang", "shell"), Definition("i", "ok I", "shell", needs=("h",)))
EXPECTED = {"a": "achieved", "b": "achieved", "c": "failed", "d": "achieved"}


Drive = Callable[[Daemon, list[str]], Awaitable[None]]


async def life(folder: Path, world: World, acked: list[str], fuse: Fuse, drive: Drive) -> bool:
    """One daemon's life, in which `drive` does what clients do; False where it crashed."""
    failpoints.hook_in(fuse)
    workspace = folder / "w"
    workspace.mkdir(exist_ok=True)
    try:
        async with Daemon.open(workspace, folder / "state", config=folder / "config", factory=world.run) as daemon:
            await drive(daemon, acked)
            failpoints.hook_in(None)
        return True
    except BaseException as trouble:
        if not is_crash(trouble):
            raise
        return False
    finally:
        failpoints.hook_in(None)


def is_crash(trouble: BaseException) -> bool:
    if isinstance(trouble, BaseExceptionGroup):
        return any(is_crash(inner) for inner in trouble.exceptions)
    return isinstance(trouble, Crash)


async def drive(daemon: Daemon, acked: list[str]) -> None:
    """Do what was not acknowledged yet; what was committed before the crash took the answer is refused by name."""
    ended = asyncio.Event()
    watch = daemon.subscribe(lambda changes: ended.set() if is_over(daemon) else None)
    steps: list[tuple[str, Command, str]] = [
        ("set g", Set("g", "t", "o", Source("nodes"), "/w", PLAN), "alreadyExists"),
        ("set x", Set("x", "t", "o", Source("nodes"), "/w", HANGING), "alreadyExists"),
        ("cancel x", Cancel("x"), "invalidTransition"),
    ]
    for name, command, when_done in steps:
        if name in acked:
            continue
        refused = ""
        try:
            await daemon.execute(Request(command))
        except Refused as refusal:
            refused = refusal.code
        assert refused in ("", when_done)
        acked.append(name)
    if not is_over(daemon):
        await ended.wait()
    watch()


def is_over(daemon: Daemon) -> bool:
    graphs = daemon.state.graphs
    return {"g", "x"} <= set(graphs) and all(graph.is_ended for graph in graphs.values())


async def check(folder: Path, world: World, acked: list[str]) -> None:
    async with Daemon.open(folder / "w", folder / "state", config=folder / "config", factory=world.run) as daemon:
        for name in acked:
            assert name.split()[1] in daemon.state.graphs, f"{name} was acknowledged and is lost"
        graph = daemon.state.graphs["g"]
        assert {n.slug: n.state for n in graph.nodes.values()} == EXPECTED
        assert (graph.status, graph.outcome) == ("complete", "withFailures")
        cancelled = daemon.state.graphs["x"]
        assert cancelled.status == "cancelled"
        assert {n.state for n in cancelled.nodes.values()} == {"cancelled"}
        assert await daemon.doctor() == []
    assert world.doubles == []
    assert set(world.starts.values()) <= {1}, "an attempt number acted twice"
    assert all(child.is_done for child in world.children.values())


async def count_points(folder: Path) -> int:
    fuse = Fuse()
    world, acked = World(), list[str]()
    assert await life(folder, world, acked, fuse, drive)
    await check(folder, world, acked)
    return fuse.hits


async def sweep(folder: Path, first: range, second: range | None) -> int:
    """Crash at each k of `first`; with `second`, then again at each of those hits of the recovery. Returns how many."""
    done = 0
    for k in first:
        for j in second or [None]:
            place = folder / f"{k}-{j}"
            place.mkdir()
            world, acked = World(), list[str]()
            crashed = not await life(place, world, acked, Fuse(k), drive)
            if crashed and j is not None:
                crashed = not await life(place, world, acked, Fuse(j), drive)
            for _ in range(3):
                if not crashed:
                    break
                crashed = not await life(place, world, acked, Fuse(), drive)
            assert not crashed
            await check(place, world, acked)
            done += 1
    return done


@pytest.mark.timeout(240)
async def test_every_single_crash_point_recovers(ram_path: Path) -> None:
    clean = ram_path / "clean"
    clean.mkdir()
    points = await count_points(clean)
    assert points > 25
    assert await sweep(ram_path, range(1, points + 1), None) == points


@pytest.mark.timeout(240)
async def test_pairs_of_crash_points_recover(ram_path: Path) -> None:
    """One pair in sixteen, evenly; all of them are behind `make test-all`."""
    clean = ram_path / "clean"
    clean.mkdir()
    points = await count_points(clean)
    await sweep(ram_path, range(1, points + 1, 8), range(2, points + 1, 8))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_all_pairs_of_crash_points_recover(ram_path: Path) -> None:
    clean = ram_path / "clean"
    clean.mkdir()
    points = await count_points(clean)
    await sweep(ram_path, range(1, points + 1), range(1, points + 1))
