"""The language server in a daemon of its own: what its loading costs others, and what an editor costs at all."""

import asyncio
import time
from pathlib import Path

from tests.kit.lsp import Editor
from tests.kit.wire import Client, Wire
from tests.kit.workspaces import Workspace

PLACE: Wire = {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": 0, "character": 0}}
COUNT = 80
ROUNDS = 6


def started(workspace: Workspace) -> Path:
    """The socket of a daemon that nobody has asked anything yet."""
    (workspace.root / ".git").mkdir()
    ran = workspace.graphd("daemon", "--start")
    assert ran.returncode == 0, ran.stderr
    return workspace.folder / "socket"


async def test_loading(workspace: Workspace) -> None:
    """Answered at once; and while pygls is loaded the neighbour waits for a turn, not for the loading."""
    path = started(workspace)
    neighbour = await Client.connect(path)
    await neighbour.call("graphd/health")  # its own first call loads pydantic
    client = await Editor.connect(path)
    began = time.perf_counter()
    await client.initialize()
    answered_s = time.perf_counter() - began
    loading = asyncio.create_task(client.call("textDocument/hover", PLACE))
    waits = []
    while not loading.done():
        at = time.perf_counter()
        await neighbour.call("graphd/health")
        waits.append(time.perf_counter() - at)
        await asyncio.sleep(0.002)
    assert await loading is None
    loaded_s = time.perf_counter() - began
    print(
        f"initialize {answered_s * 1000:.1f} ms, loaded {loaded_s * 1000:.0f} ms, worst wait {max(waits) * 1000:.0f} ms"
    )
    assert answered_s < loaded_s / 4
    assert max(waits) < max(0.1, loaded_s / 3)
    second = await Editor.connect(path)
    began = time.perf_counter()
    await second.initialize()
    assert await second.call("textDocument/hover", PLACE) is None
    assert time.perf_counter() - began < loaded_s / 4, "the loading is shared"
    wrong = {"secretWord": 1, "textDocument": {"uri": "file:///secretWord"}}
    await second.answer(await second.request("textDocument/hover", wrong))
    await second.tell("textDocument/didOpen", wrong)
    await second.call("graphd/health")
    assert "secretWord" not in (workspace.folder / "daemon.log").read_text(), "a frame is never logged"
    for leaving in (neighbour, client, second):
        await leaving.close()


async def test_cost(workspace: Workspace) -> None:
    """Editors that come and go leave nothing behind."""
    path = started(workspace)

    async def visit() -> None:
        client = await Editor.connect(path)
        await client.initialize()
        assert await client.call("textDocument/hover", PLACE) is None
        await client.close()

    watching = await Client.connect(path)
    grown, took = [], []
    before = 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(COUNT):
            await visit()
        took.append((time.perf_counter() - began) / COUNT * 1000)
        now = (await watching.call("graphd/health"))["rssBytes"]
        grown.append((now - before) / COUNT / 1024)
        before = now
    print("ms a connection:", [round(ms, 2) for ms in took], "KiB left of each:", [round(kib, 1) for kib in grown[1:]])
    # The collector works in bursts: what each really leaves behind shows in every round.
    assert min(grown[1:]) < 4, "a protocol object that stays is about 8 KB, without its documents"
    assert len((await watching.call("graphd/health"))["connections"]) <= 2
    await watching.close()
