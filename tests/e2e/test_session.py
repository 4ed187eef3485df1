"""The Python client against a real socket: every call ends, notifications keep their order, nothing leaks."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from graphd.cli.exits import CommandRefused
from graphd.cli.talk import call_once
from graphd.client import session as module
from graphd.client.attach import AttachRefused, DaemonUnreachable
from graphd.client.session import ConnectionLost, RemoteRefused, Session
from tests.kit.fake_daemons import FakeDaemons, daemons

__all__ = ["daemons"]


@pytest.fixture
async def session(daemons: FakeDaemons) -> AsyncIterator[Session]:
    async with await Session.open(workspace=daemons.workspace) as opened:
        yield opened


async def test_open_starts_the_daemon_and_says_who_we_are(daemons: FakeDaemons) -> None:
    async with await Session.open(
        workspace=daemons.workspace, client="test", interactive=True, owner="parent"
    ) as session:
        heard = session.hello["heard"]

        assert heard["client"]["name"] == "test"
        assert heard["client"]["pid"] == os.getpid()
        assert (heard["interactive"], heard["owner"]) == (True, {"id": "parent"})
        assert heard["env"]["PATH"] == os.environ["PATH"]
        assert session.workspace == str(daemons.workspace)
        assert session.folder == str(daemons.folder)


async def test_without_start_there_is_no_daemon(daemons: FakeDaemons) -> None:
    with pytest.raises(DaemonUnreachable):
        await Session.open(workspace=daemons.workspace, start=False)
    assert daemons.starts() == []
    assert not daemons.folder.exists()


async def test_a_refused_hello_is_raised(daemons: FakeDaemons) -> None:
    daemons.use("--refuse", "unauthorised")
    with pytest.raises(AttachRefused):
        await Session.open(workspace=daemons.workspace)


async def test_20_sessions_opened_at_once_share_one_daemon(daemons: FakeDaemons) -> None:
    daemons.use("--jitter-s", "0.1")
    sessions = await asyncio.gather(*(Session.open(workspace=daemons.workspace) for _ in range(20)))

    assert len({session.hello["daemon"]["pid"] for session in sessions}) == 1
    assert len(daemons.starts()) == 1
    for session in sessions:
        await session.close()


async def test_many_calls_at_once_each_get_their_own_answer(session: Session) -> None:
    answers = await asyncio.gather(*(session.call("test/echo", {"n": n, "pad": "x" * n * 50}) for n in range(500)))

    assert [answer["n"] for answer in answers] == list(range(500))


async def test_a_refusal_carries_code_number_hint_and_data(session: Session) -> None:
    with pytest.raises(RemoteRefused, match="no such node") as caught:
        await session.call("test/refuse")

    assert (caught.value.code, caught.value.number, caught.value.hint) == ("notFound", -32050, "Look.")
    assert caught.value.data == {"code": "notFound", "hint": "Look."}


def test_json_rpcs_own_errors_have_names_too() -> None:
    assert RemoteRefused({"code": -32601, "message": "m"}).code == "methodNotFound"
    assert RemoteRefused({"code": -32602, "message": "m", "data": {"fields": []}}).code == "invalidParams"


async def test_notifications_come_in_order_and_end_with_the_connection(session: Session) -> None:
    await session.call("test/notify", {"count": 100})
    waiting = asyncio.create_task(session.call("test/die"))

    seen = [params["number"] async for method, params in session.notifications() if method == "test/noted"]

    assert seen == list(range(100))
    with pytest.raises(ConnectionLost):
        await waiting


async def test_all_calls_that_wait_fail_when_the_connection_ends(session: Session) -> None:
    waiting = [asyncio.create_task(session.call("test/hang")) for _ in range(5)]
    waiting.append(asyncio.create_task(session.call("test/die")))

    ended = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(error) for error in ended] == [ConnectionLost] * 6
    with pytest.raises(ConnectionLost):
        await session.call("test/echo")


async def test_calls_that_wait_fail_when_the_session_is_closed(session: Session) -> None:
    waiting = asyncio.create_task(session.call("test/hang"))
    await asyncio.sleep(0.02)

    await session.close()

    with pytest.raises(ConnectionLost, match="closed by this side"):
        await waiting
    await session.close()


async def test_a_goodbye_is_kept(session: Session) -> None:
    with pytest.raises(ConnectionLost) as caught:
        await session.call("test/stop", {"reason": "idle", "reconnect": False})

    assert caught.value.stopping == {"reason": "idle", "reconnect": False}


async def test_a_call_that_takes_too_long_ends_and_the_session_goes_on(session: Session) -> None:
    with pytest.raises(TimeoutError):
        await session.call("test/echo", {"delayS": 0.2}, timeout_s=0.05)

    assert await session.call("test/echo", {"n": 1}) == {"n": 1}  # the late answer to the first was let go


async def test_a_cancelled_call_leaves_the_session_usable(session: Session) -> None:
    task = asyncio.create_task(session.call("test/echo", {"delayS": 0.1}))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert await session.call("test/echo", {"n": 2}) == {"n": 2}


async def test_bytes_that_are_no_frames_end_the_session(session: Session) -> None:
    with pytest.raises(ConnectionLost, match="no frame of ours"):
        await session.call("test/garbage")


async def test_a_request_to_us_is_refused_and_harms_nothing(session: Session) -> None:
    await session.call("test/ask")
    with pytest.raises(ConnectionLost):
        await session.call("test/die")


async def test_unread_notifications_stop_the_reading_but_no_call(session: Session) -> None:
    count = module.NOTIFICATIONS_HELD * 3
    asked = asyncio.create_task(session.call("test/notify", {"count": count, "pad": 500}))
    assert await asked == {"count": count}  # calls get through whatever was not read

    more = asyncio.create_task(session.call("test/notify", {"count": count, "pad": 500}, timeout_s=20))
    await asyncio.sleep(0)
    more.cancel()  # the daemon still sends, and nobody waits: reading stops
    await asyncio.gather(more, return_exceptions=True)
    await asyncio.sleep(0.3)
    held = len(session._notices)

    assert held < 2 * count
    seen = 0
    async for _ in session.notifications():
        seen += 1
        if seen == 2 * count:
            break
    assert await session.call("test/echo", {"n": 3}) == {"n": 3}


async def test_a_cancelled_open_gives_up_soon_and_leaves_no_socket(daemons: FakeDaemons) -> None:
    daemons.use("--boot-s", "3")
    opening = asyncio.create_task(Session.open(workspace=daemons.workspace))
    while not daemons.live():
        await asyncio.sleep(0.01)
    begun = asyncio.get_running_loop().time()

    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()

    assert asyncio.get_running_loop().time() - begun < 1


async def test_a_mutation_that_a_daemon_refuses_as_it_stops_goes_to_the_next_one_with_its_id(
    daemons: FakeDaemons, session: Session
) -> None:
    sent = await call_once(session, "test/unavailable", {"leaves": True, "requestId": "r1"})

    assert sent == {"leaves": True, "requestId": "r1"}
    assert len(daemons.starts()) == 2


async def test_a_store_that_is_in_trouble_is_no_daemon_that_stops(daemons: FakeDaemons, session: Session) -> None:
    with pytest.raises(CommandRefused, match="not now"):
        await call_once(session, "test/unavailable", {"leaves": False})

    assert len(daemons.starts()) == 1
