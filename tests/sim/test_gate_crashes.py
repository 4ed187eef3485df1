"""Crash at every point of a run with a gate, a list, waits and an approval: it ends as if nothing had happened."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from graphd.core.commands import Request, Respond, Set, Signal
from graphd.core.definition import Approval, ForEach, Gate, Terms, Wait
from graphd.core.events import Refused
from graphd.core.model import Definition, Graph, Source
from graphd.daemon.house import Daemon
from graphd_protocol.ids import node_id
from tests.kit.fake_runs import World
from tests.sim.test_pairs import Fuse, life

PLAN = (
    Definition("list", 'ok ["a", "b"]', "shell"),
    Definition("each", "ok x", "shell", needs=("list",), for_each=ForEach("list.output", "x")),
    Definition("make", "ok m", "shell", needs=("each",), writes=("src/**",)),
    Definition("beside", "ok m", "shell", needs=("each",), writes=("src/x",)),
    Definition("review", 'turns {"verdict": "REVISE", "reason": "no"}|{"verdict": "ACCEPT"}', "shell", needs=("make",),
               gate=Gate("make")),
    Definition("calm", "", "", needs=("list",), wait=Wait(until="1ms")),
    Definition("go", "", "", needs=("calm",), wait=Wait(signal="go")),
    Definition("ship", "ok s", "shell", needs=("review", "go", "beside"), approval=Approval("Ship?")),
)  # fmt: skip
STOPPING = (Definition("bad", "fail", "shell", required=True), Definition("long", "hang", "shell", required=True))
SETTLED = dict.fromkeys(["each-1", "each-2", *(d.slug for d in PLAN)], "achieved")


async def drive(daemon: Daemon, acked: list[str]) -> None:
    """Set both graphs, send the signal under one key however often, approve what is asked, wait for both ends."""
    moved = asyncio.Event()
    watch = daemon.subscribe(lambda changes: moved.set())
    for name, plan, terms in (("g", PLAN, Terms()), ("x", STOPPING, Terms(on_required_failure="stop"))):
        if name not in acked:
            with contextlib.suppress(Refused):
                await daemon.execute(Request(Set(name, "t", "o", Source("nodes"), "/w", plan, terms=terms)))
            acked.append(name)
    signal = Request(Signal("go", "1"), request_id="signal:1", fingerprint="f")
    done = await daemon.execute(signal)
    assert [*done.woke, *done.kept] == [("g", "go")], "the first answer is the answer of every repeat"
    while not is_over(daemon):
        moved.clear()
        graph = daemon.state.graphs["g"]
        for ask in [graph.asks[ask] for ask in graph.open_asks]:
            with contextlib.suppress(Refused):
                await daemon.execute(Request(Respond("g", ask.id, ask.action_hash, option="allow")))
        if not is_over(daemon):
            await moved.wait()
    watch()


def is_over(daemon: Daemon) -> bool:
    graphs = daemon.state.graphs
    return {"g", "x"} <= set(graphs) and graphs["g"].is_ended and graphs["x"].status == "blocked"


async def check(folder: Path, world: World) -> None:
    async with Daemon.open(folder / "w", folder / "state", config=folder / "config", factory=world.run) as daemon:
        graph = daemon.state.graphs["g"]
        assert {n.slug: n.state for n in graph.nodes.values()} == SETTLED
        assert (graph.status, graph.outcome) == ("complete", "ok")
        assert counted(graph) == {"list": 1, "each": 0, "make": 2, "beside": 1, "review": 2, "calm": 0, "go": 0,
                                  "ship": 1, "each-1": 1, "each-2": 1}  # fmt: skip
        assert len(graph.asks) == 1, "asked once"
        kinds = [event.kind for event in await daemon.history("g", 0, 10_000, None)]
        assert (kinds.count("items_made"), kinds.count("wait_started"), kinds.count("gate_decided")) == (1, 2, 2)
        assert kinds.count("node_achieved") == len(SETTLED) + 2  # make and review twice
        stopped = daemon.state.graphs["x"]
        assert {n.slug: n.state for n in stopped.nodes.values()} == {"bad": "failed", "long": "ready"}
        assert stopped.nodes[node_id("long")].attempts == 0
        assert await daemon.doctor() == []
    assert world.doubles == []
    assert set(world.starts.values()) <= {1}, "an attempt number acted twice"


def counted(graph: Graph) -> dict[str, int]:
    return {node.slug: node.attempts for node in graph.nodes.values()}


async def count_points(folder: Path) -> int:
    fuse, world = Fuse(), World()
    folder.mkdir()
    assert await life(folder, world, [], fuse, drive)
    await check(folder, world)
    return fuse.hits


async def crash_at(folder: Path, k: int) -> None:
    folder.mkdir()
    world, acked = World(), list[str]()
    crashed = not await life(folder, world, acked, Fuse(k), drive)
    for _ in range(3):
        if not crashed:
            break
        crashed = not await life(folder, world, acked, Fuse(), drive)
    assert not crashed
    await check(folder, world)


@pytest.mark.timeout(240)
async def test_a_crash_anywhere_changes_nothing_of_the_end(ram_path: Path) -> None:
    """Every third point; all of them are behind `make test-all`."""
    points = await count_points(ram_path / "clean")
    assert points > 60
    for k in range(1, points + 1, 3):
        await crash_at(ram_path / str(k), k)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_crash_at_any_point_changes_nothing_of_the_end(ram_path: Path) -> None:
    points = await count_points(ram_path / "clean")
    for k in range(1, points + 1):
        await crash_at(ram_path / str(k), k)
