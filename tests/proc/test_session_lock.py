"""The lock of a session, with real keepers: who has it, how long, by which name, and over whose death."""

import asyncio
import fcntl
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from graphd.children.attempt import Nothing, look, make_folder
from graphd.children.driver import Launch, Order
from graphd.children.keeping.session import SessionLock
from graphd.children.link import CallRefused, Link
from graphd.children.run import KeptRun
from graphd.children.session_lock import is_taken, lock_of_order, remove_free
from graphd.children.shell import ShellDriver
from graphd.children.spawn import spawn_keeper
from tests.kit.acp import Core, acp_order, traced
from tests.kit.kept import STORE, Heard, is_gone, make_order, raw_keeper, until
from tests.proc.test_keeper import collect, reading


class ProgramDriver(ShellDriver):
    """A script that counts as an agent: it has a session."""

    def start(self, order: Order) -> Launch:
        return Launch(("/bin/sh", "-c", order.spec))


def order_of(tmp_path: Path, name: str, spec: str = "exec sleep 600", **changes: Any) -> Order:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return make_order(folder, spec, **{"driver": "acp", "sessions": tmp_path / "sessions"} | changes)


def lock(order: Order, session: str) -> Path:
    path = lock_of_order(order, session)
    assert path is not None
    return path


async def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        await until(lambda pid=pid: is_gone(pid))  # type: ignore[misc]  # mypy wants no default here


async def test_a_session_that_is_taken_up_again_is_locked_before_anything_is_claimed(tmp_path: Path) -> None:
    first, second = (order_of(tmp_path, name, resume_session="s1") for name in ("one", "two"))
    keeper = await raw_keeper(first, driver=ProgramDriver())
    assert is_taken(lock(first, "s1"))
    launch = await asyncio.to_thread(make_folder, second, ProgramDriver())
    late = await spawn_keeper(second.folder, launch, {"PATH": os.environ["PATH"]})
    assert await late.first_word() == "taken"
    assert await late.gone() == 0
    assert (second.folder / "intent").exists()
    assert isinstance(look(second.folder), Nothing), "nothing ran, and nothing can any more"
    async with reading(await Link.attach(first.folder, store=STORE, epoch=1)):
        pass
    link = await Link.attach(first.folder, store=STORE, epoch=1)
    async with reading(link):
        await link.call("kill")
    await collect(first.folder)
    assert await keeper.gone() == 0
    assert not is_taken(lock(first, "s1"))


async def test_a_run_whose_session_is_taken_is_put_back_and_says_why(tmp_path: Path) -> None:
    order = order_of(tmp_path, "one", "echo ran", resume_session="s1")
    (tmp_path / "sessions").mkdir()
    with lock(order, "s1").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = await KeptRun(order, Heard(), driver=ProgramDriver()).start()
        assert (ended.outcome, ended.reason) == ("put_back", "another process has its session open")
        assert not (order.folder / "journal").exists()


async def test_a_new_session_gets_its_name_when_it_is_known_and_keeps_it_over_daemons(tmp_path: Path) -> None:
    order = order_of(tmp_path, "one")
    keeper = await raw_keeper(order, driver=ProgramDriver())
    path = str(lock(order, "s1"))
    for epoch in (1, 2):  # a second daemon says the same
        link = await Link.attach(order.folder, store=STORE, epoch=epoch)
        async with reading(link):
            assert not (is_taken(Path(path)) and epoch == 1)
            await link.call("holdSession", path=path)
            assert is_taken(Path(path))
    assert is_taken(Path(path)), "no daemon is there"
    remove_free(tmp_path / "sessions")
    assert is_taken(Path(path)), "what is locked is not removed"
    link = await Link.attach(order.folder, store=STORE, epoch=3)
    async with reading(link):
        await link.call("kill")
    await collect(order.folder)
    await keeper.gone()
    remove_free(tmp_path / "sessions")
    assert list((tmp_path / "sessions").iterdir()) == []


async def test_a_name_that_somebody_has_is_refused_and_a_stale_one_is_taken(tmp_path: Path) -> None:
    order = order_of(tmp_path, "one")
    keeper = await raw_keeper(order, driver=ProgramDriver())
    path = lock(order, "s1")
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(reading(link))
        with path.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(CallRefused, match="taken"):
                await link.call("holdSession", path=str(path))
        await link.call("holdSession", path=str(path))
        assert is_taken(path)
        with pytest.raises(CallRefused, match="noLink"):
            await link.call("holdSession", path=str(tmp_path / "nowhere" / "x"))
        await link.call("kill")
    await collect(order.folder)
    await keeper.gone()


@pytest.mark.parametrize("resumed", [None, "s1"])
async def test_what_outlives_a_killed_keeper_has_the_session_until_it_ends(tmp_path: Path, resumed: str | None) -> None:
    order = order_of(tmp_path, "one", resume_session=resumed)
    keeper = await raw_keeper(order, driver=ProgramDriver())
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link):
        await link.call("holdSession", path=str(lock(order, "s1")))
    await kill(keeper.pid)
    agent = link.standing["agentPid"]
    assert not is_gone(agent)
    assert is_taken(lock(order, "s1"))
    await kill(agent)
    assert not is_taken(lock(order, "s1"))


async def test_a_script_has_no_session_and_no_descriptor_of_one(tmp_path: Path) -> None:
    order = order_of(tmp_path, "one", "ls -l /proc/self/fd", driver="shell")
    ended = await (run := KeptRun(order, Heard())).start()
    await run.collect()
    assert ended.output is not None
    assert "session" not in ended.output.text
    assert not (tmp_path / "sessions").exists()


async def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its opening and its lock: whoever comes next would lock another file."""
    path = tmp_path / "s1"
    real = fcntl.flock
    taken: list[int] = []

    def flock(fd: int, how: int) -> None:
        real(fd, how)
        if not taken:
            path.unlink()
        taken.append(fd)

    monkeypatch.setattr("graphd.children.keeping.session.fcntl.flock", flock)
    mine = SessionLock()
    assert mine.take(str(path))
    assert os.path.samestat(os.fstat(mine.fd), path.stat())
    assert not SessionLock().take(str(path))
    os.close(mine.fd)


async def test_a_daemon_that_dies_before_it_says_the_session_has_the_next_one_say_it(tmp_path: Path) -> None:
    """Killed in the commit of the session's fact: the next daemon folds it again, and the keeper learns its name."""
    go = tmp_path / "go"
    order = acp_order(tmp_path, {"turns": [[{"until": str(go)}, {"say": "done"}]]}, sessions=tmp_path / "sessions",
                      driver="acp")  # fmt: skip
    core = Core(order)
    stopped = asyncio.Event()

    async def pause() -> None:
        if not stopped.is_set():
            stopped.set()
            await asyncio.Event().wait()

    core.pause = pause
    task = asyncio.create_task(core.make().start())
    await stopped.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await core.run.let_go()
    task = asyncio.create_task(core.make().adopt())
    await until(lambda: traced(tmp_path, got="session/prompt"))
    await until(lambda: is_taken(lock_of_order(order, "session-1")))
    go.touch()
    ended = await task
    await core.run.collect()
    assert ended.outcome == "achieved"
    await until(lambda: not is_taken(lock_of_order(order, "session-1")))
