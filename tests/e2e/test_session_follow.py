"""A follower outlives its daemon: same graph, no change missed, none seen twice."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from graphd.client import follow as module
from graphd.client.attach import DaemonStartFailure, DaemonUnreachable
from graphd.client.follow import Update, follow
from graphd.client.session import ConnectionLost, Session
from graphd.client.starting import Patience, start_daemon
from tests.kit.fake_daemons import FakeDaemons, daemons

__all__ = ["daemons"]


class Watch:
    """A follower, and a second connection that makes things happen."""

    def __init__(self, daemons: FakeDaemons, *, open_patience_s: float = 10.0, **options: Any) -> None:
        self._daemons = daemons
        self._open_patience_s = open_patience_s
        self.opened: list[bool] = []
        self.updates: AsyncGenerator[Update] = follow(self._open, "g1", **options)

    async def _open(self, start: bool) -> Session:
        self.opened.append(start)
        return await Session.open(workspace=self._daemons.workspace, start=start, patience_s=self._open_patience_s)

    async def next(self) -> Update:
        return await asyncio.wait_for(anext(self.updates), 10)

    async def cause(self, method: str, **params: Any) -> Any:
        async with await Session.open(workspace=self._daemons.workspace) as session:
            return await session.call(method, params)

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.updates.aclose()


def states(update: Update) -> dict[str, str]:
    assert update.snapshot is not None
    return {node["slug"]: node["state"] for node in update.snapshot["nodes"]}


async def test_it_begins_with_the_whole_value_and_goes_on_with_each_change(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        first = await watch.next()
        assert (first.kind, first.graph, states(first)) == ("changed", "g1", {"a": "running", "b": "running"})

        await watch.cause("test/advance", node="a", state="achieved")
        second = await watch.next()

    assert states(second) == {"a": "achieved", "b": "running"}
    assert second.operation == "checkpoint"
    assert second.snapshot is not None
    assert second.snapshot["rev"] == 2


async def test_it_outlives_a_killed_daemon_that_the_keepers_start_again(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        await watch.cause("test/advance", node="a", state="achieved")
        await watch.next()

        daemons.kill()
        keeper = threading.Timer(0.5, start_daemon, [str(daemons.workspace), str(daemons.folder), Patience(5)])
        keeper.start()
        seen = [await watch.next(), await watch.next(), await watch.next()]
        keeper.join()

        assert [update.kind for update in seen] == ["lost", "restarted", "changed"]
        assert seen[1].is_restarted
        assert seen[1].adopted == 1  # b still runs
        assert states(seen[2]) == {"a": "achieved", "b": "running"}
        await watch.cause("test/advance", node="b", state="achieved")
        assert states(await watch.next()) == {"a": "achieved", "b": "achieved"}
    assert watch.opened[0]
    assert not any(watch.opened[1:])  # the start was left to the keepers
    assert len(daemons.starts()) == 2


async def test_where_nothing_runs_it_starts_the_daemon_itself(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        for node in "ab":
            await watch.cause("test/advance", node=node, state="achieved")
            await watch.next()

        daemons.kill()
        seen = [(await watch.next()).kind, (await watch.next()).kind]

    assert seen == ["lost", "restarted"]
    assert watch.opened == [True, True]


async def test_keepers_that_do_not_start_it_are_waited_for_only_a_moment(
    daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEPERS_MOMENT_S", 0.3)
    async with Watch(daemons) as watch:
        await watch.next()
        daemons.kill()
        seen = [(await watch.next()).kind, (await watch.next()).kind]

    assert seen == ["lost", "restarted"]
    assert watch.opened[-1]


async def test_a_change_made_while_it_was_away_is_seen_once(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        daemons.kill()
        await watch.cause("test/advance", node="a", state="failed")  # starts the next daemon
        seen = [await watch.next(), await watch.next(), await watch.next()]

    assert [update.kind for update in seen] == ["lost", "restarted", "changed"]
    assert seen[2].params["from"] == 1
    assert states(seen[2]) == {"a": "failed", "b": "running"}
    assert seen[2].snapshot is not None
    assert [entry["rev"] for entry in seen[2].snapshot["history"]] == [1, 2]


async def test_a_gap_is_closed_by_the_whole_value(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        await watch.cause("test/advance", node="a", state="achieved", lose=True)
        await watch.cause("test/advance", node="b", state="achieved")
        update = await watch.next()

        assert update.params["full"]
        assert states(update) == {"a": "achieved", "b": "achieved"}
        await watch.cause("test/advance", node="b", state="failed")
        assert states(await watch.next()) == {"a": "achieved", "b": "failed"}


async def test_a_cleared_graph_ends_it(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        await watch.cause("test/clear")
        update = await watch.next()

        assert (update.kind, update.operation, update.snapshot) == ("cleared", "clear", None)
        with pytest.raises(StopAsyncIteration):
            await watch.next()


@pytest.mark.parametrize("reconnect", [True, False])
async def test_a_daemon_that_was_told_to_stop_is_not_started_again(daemons: FakeDaemons, reconnect: bool) -> None:
    async with Watch(daemons) as watch:
        await watch.next()
        for node in "ab":
            await watch.cause("test/advance", node=node, state="achieved")
            await watch.next()
        goodbye = {"jsonrpc": "2.0", "method": "graphd/stopping", "params": {"reason": "stop", "reconnect": reconnect}}
        stopping = asyncio.create_task(watch.cause("test/goodbye", message=goodbye))
        with pytest.raises(ConnectionLost):
            await stopping
        if reconnect:
            assert [(await watch.next()).kind, (await watch.next()).kind] == ["lost", "restarted"]
        else:
            with pytest.raises(ConnectionLost, match="the daemon was stopped: stop"):
                await watch.next()
            assert len(daemons.starts()) == 1


async def test_patience_ends_in_the_reason(daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Watch(daemons, patience_s=0.3, open_patience_s=0.2) as watch:
        await watch.next()
        monkeypatch.setenv("GRAPHD_ATTEMPT", "a@1")  # so that it may not start one
        daemons.kill()
        assert (await watch.next()).kind == "lost"
        with pytest.raises(DaemonUnreachable):
            await watch.next()


async def test_a_daemon_that_cannot_start_any_more_ends_it_with_its_log(
    daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEPERS_MOMENT_S", 0.0)
    async with Watch(daemons) as watch:
        await watch.next()
        daemons.use("--die", "no more")
        daemons.kill()
        assert (await watch.next()).kind == "lost"
        with pytest.raises(DaemonStartFailure, match="no more"):
            await watch.next()


async def test_leaving_early_leaks_nothing(daemons: FakeDaemons) -> None:
    async with Watch(daemons) as watch, aclosing(watch.updates) as updates:
        async for update in updates:
            assert update.kind == "changed"
            break
