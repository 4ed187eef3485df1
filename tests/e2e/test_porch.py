"""A hello is answered while the daemon still loads; all else waits for the server, in order, and is answered once."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphd.server.farewell import see_off
from graphd.server.hello import CONNECTION_LIMIT, Host
from graphd.server.porch import Porch
from graphd.server.service import Server
from graphd.store.refusals import StoreCorrupt
from tests.kit.lsp import Editor
from tests.kit.wire import Client, InMemoryDaemon, WireError, frame, hello_params, refused_by

A_MOMENT_S = 0.1
"""How long nothing may come: too short a time can only let a mistake pass, never fail a right answer."""


class Entrance:
    """A porch, and the house behind it once `open_house` was called."""

    def __init__(self, porch: Porch, daemon: InMemoryDaemon, path: Path, tasks: asyncio.TaskGroup) -> None:
        self.porch = porch
        self.path = path
        self.tasks = tasks
        self.server: Server | None = None
        self._daemon = daemon

    def open_house(self) -> Server:
        self.server = Server(self._daemon, porch=self.porch)
        self.tasks.create_task(self.server.run())
        return self.server

    async def guest(self, *, hello: bool = True, **params: Any) -> Client:
        return await Client.connect(self.path, hello=hello, **params)


@contextlib.asynccontextmanager
async def entrance(*, knows_callers: bool = True) -> AsyncIterator[Entrance]:
    with tempfile.TemporaryDirectory(prefix="gd") as name:
        folder = Path(name).resolve()
        daemon = InMemoryDaemon(folder=folder, workspace=folder)
        host = Host(str(folder), daemon.store_id, "1", 1, daemon.epoch)
        porch = Porch(host, is_ours=daemon.is_lock_ours, knows_callers=knows_callers, folder=folder)
        async with asyncio.TaskGroup() as tasks:
            porch.open(tasks)
            made = Entrance(porch, daemon, folder / "socket", tasks)
            yield made
            if made.server is not None:
                made.server.request_stop("the test ends")
            porch.listener.close()


async def is_silent(client: Client) -> bool:
    try:
        async with asyncio.timeout(A_MOMENT_S):
            await client.read()
    except TimeoutError:
        return True
    return False


async def test_hello_is_answered_before_there_is_a_server_and_the_same_connection_goes_on() -> None:
    async with entrance() as door:
        client = await door.guest(hello=False)
        hello, listing = (
            frame({"jsonrpc": "2.0", "id": 1, "method": "graphd/hello", "params": hello_params()}),
            frame({"jsonrpc": "2.0", "id": 2, "method": "workgraph/list"}),
        )
        await client.send(hello + listing + listing[:10])
        greeted = (await client.answer(1))["result"]
        assert await is_silent(client), "what is not a hello waits"
        server = door.open_house()
        assert (await client.answer(2))["result"] == {"graphs": []}
        await client.send(listing[10:])
        assert (await client.answer(2))["result"] == {"graphs": []}
        assert greeted == await client.call("graphd/hello", hello_params()), "one hello is as the other"
        assert [row["client"] for row in server.connections()] == [hello_params()["client"]["name"]]
        await client.close()


async def test_initialize_is_answered_on_the_porch_too_and_the_editor_served_behind_it() -> None:
    async with entrance() as door:
        editor = await Editor.connect(door.path)
        assert (await editor.initialize())["serverInfo"]["name"] == "graphd"
        opened = asyncio.create_task(editor.call("shutdown"))
        door.open_house()
        assert await opened is None
        await editor.close()


@pytest.mark.parametrize(
    "params",
    [{"attemptToken": "x"}, {"protocol": [7, 9]}, {"ownr": 1}, {"workspace": "/elsewhere"}],
    ids=["token", "protocol", "field", "workspace"],
)
async def test_what_needs_the_state_or_is_refused_waits_for_the_server(params: dict[str, Any]) -> None:
    async with entrance() as door:
        client = await door.guest(hello=False)
        number = await client.request("graphd/hello", hello_params(**params, locale="zh-CN"))
        assert await is_silent(client)
        door.open_house()
        error = (await client.answer(number))["error"]
        assert not error["message"].isascii(), "in the reader's language"
        await client.close()


async def test_while_an_attempt_is_unsettled_nobody_is_known_on_the_porch() -> None:
    async with entrance(knows_callers=False) as door:
        client = await door.guest(hello=False)
        number = await client.request("graphd/hello", hello_params())
        assert await is_silent(client)
        door.open_house()
        assert (await client.answer(number))["result"]["principal"] == "user"
        await client.close()


async def test_once_recovery_begins_nobody_is_greeted_any_more() -> None:
    async with entrance() as door:
        early = await door.guest(hello=False)
        door.porch.hold_all()
        late = await door.guest(hello=False)
        numbers = [await client.request("graphd/hello", hello_params()) for client in (early, late)]
        assert await is_silent(early)
        assert await is_silent(late)
        door.open_house()
        for client, number in zip((early, late), numbers, strict=True):
            assert (await client.answer(number))["result"]["principal"] == "user"
            await client.close()


@pytest.mark.parametrize("odd", ['"\\ud800"', "NaN", "1e999", '"\\u00e9"', "[[", str(10**30)])
async def test_odd_json_is_read_as_the_server_reads_it(odd: str) -> None:
    body = '{"jsonrpc":"2.0","id":1,"method":"graphd/hello","params":{"client":{"name":"a","version":"1"},'
    raw = f'{body}"protocol":[1,1],"cwd":{odd}}}}}'.encode()
    raw = b"Content-Length: %d\r\n\r\n%b" % (len(raw), raw)
    assert await said_to(raw, is_early=True) == await said_to(raw, is_early=False)


async def said_to(raw: bytes, *, is_early: bool) -> Any:
    """The answer to a first frame that comes while there is a porch alone; without what differs from start to start."""
    async with entrance(knows_callers=is_early) as door:
        client = await door.guest(hello=False)
        await client.send(raw)
        for _ in range(5):
            await door.porch.answer_door()
        door.open_house()
        answer = await client.read()
        await client.close()
    for name in ("store", "workspace", "daemon"):
        answer.get("result", {}).pop(name, None)
    return answer


async def test_a_guest_that_leaves_takes_no_seat_and_one_that_asked_before_is_served() -> None:
    async with entrance() as door:
        for _ in range(CONNECTION_LIMIT):
            await (await door.guest()).close()
        asked = await door.guest(hello=False)
        number = await asked.request("graphd/hello", hello_params())
        asked.half_close()
        await asyncio.sleep(0)
        stayed = await door.guest(hello=False)
        later = await stayed.request("graphd/hello", hello_params())
        server = door.open_house()
        assert (await asked.answer(number))["result"]["principal"] == "user"
        assert (await stayed.answer(later))["result"]["principal"] == "user"
        assert [row["client"] for row in server.connections()][-1:] == [hello_params()["client"]["name"]]
        await stayed.close()
        await asked.close()


async def test_whoever_comes_beyond_the_limit_is_told_by_the_server() -> None:
    async with entrance() as door:
        seated = [await door.guest() for _ in range(CONNECTION_LIMIT)]
        beyond = await door.guest(hello=False)
        number = await beyond.request("graphd/hello", hello_params())
        assert await is_silent(beyond)
        door.open_house()
        with pytest.raises(WireError) as refusal:
            raise WireError((await beyond.answer(number))["error"])
        assert refused_by(refusal.value) == "overloaded"
        for client in seated:
            assert await client.call("workgraph/list") == {"graphs": []}
            await client.close()
        await beyond.close()


async def test_a_stop_on_the_porch_is_the_servers_and_so_is_the_lost_lock() -> None:
    async with entrance() as door:
        client = await door.guest()
        door.porch.request_stop("enough")
        door.porch.request_stop("later")
        door.open_house()
        assert (await client.rest())[-1]["params"] == {"reason": "enough", "reconnect": False}
        await client.close()


async def test_a_failed_start_answers_whoever_was_let_in_and_whoever_is_on_the_way() -> None:
    trouble = StoreCorrupt("torn", path=Path("/x/graph.db"))
    async with entrance() as door:
        greeted = await door.guest()
        waiting = await door.guest(hello=False)
        number = await waiting.request("graphd/hello", hello_params(protocol=[7, 9], locale="zh-CN"))
        group = ExceptionGroup("start", [trouble])
        ending = asyncio.create_task(see_off(door.porch, door.tasks, group, is_awaited=True))
        for client, asked in ((greeted, await greeted.request("workgraph/list")), (waiting, number)):
            error = (await client.answer(asked))["error"]
            assert error["data"]["code"] == "malformedLog"
            assert error["data"]["hint"]
            assert error["message"].isascii() is (client is greeted)
        late = await door.guest(hello=False)
        late_number = await late.request("graphd/hello", hello_params())
        assert (await late.answer(late_number))["error"]["message"] == trouble.message
        for client in (greeted, waiting, late):
            await client.close()
        assert await ending == 1
        assert not door.path.exists()


async def test_a_defect_at_the_start_is_answered_by_its_name_and_raised_for_the_log() -> None:
    async with entrance() as door:
        client = await door.guest()
        ending = asyncio.create_task(see_off(door.porch, door.tasks, KeyError("secret"), is_awaited=False))
        error = (await client.answer(await client.request("workgraph/list")))["error"]
        assert error["data"]["code"] == "internal"
        assert "secret" not in str(error)
        await client.close()
        with pytest.raises(KeyError):
            await ending
