"""The daemon's process on its porch: what it has imported when it answers, who waits, how it ends, how it fails."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.ready import ReadyProcess
from tests.kit.wire import Client, hello_params
from tests.kit.workspaces import Workspace

GATED = Path(__file__).parents[1] / "kit" / "programs" / "gated.py"
A_MOMENT_S = 0.2
"""How long nothing may come: too short a time can only let a mistake pass, never fail a right answer."""


class Gated(ReadyProcess):
    """A daemon that loads nothing until `open_gate`."""

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root
        (self._root / "go").unlink(missing_ok=True)
        super().__init__([sys.executable, "-P", str(GATED), "--workspace", str(workspace.root)], workspace.environment)
        self.socket = Path(self.line["socket"])

    def open_gate(self) -> None:
        (self._root / "go").touch()

    @property
    def imported(self) -> str:
        return (self._root / "imported").read_text()


@pytest.fixture
def home(workspace: Workspace) -> Workspace:
    """A workspace of its own, whose keepers start no daemon again."""
    (workspace.root / ".agents").mkdir()
    workspace.settings('{"keepersRestartDaemon": false}')
    return workspace


async def test_ready_and_greeted_before_anything_heavy_is_imported(home: Workspace) -> None:
    daemon = Gated(home)
    assert daemon.line["ready"] is True
    client = await Client.connect(daemon.socket)
    listing = await client.request("workgraph/list")
    daemon.open_gate()
    assert (await client.answer(listing))["result"] == {"graphs": []}
    assert daemon.imported == ""
    await client.call("graphd/stop")
    await client.rest()
    await client.close()
    assert daemon.ended() == 0


async def test_a_signal_on_the_porch_ends_it_cleanly(home: Workspace) -> None:
    daemon = Gated(home)
    client = await Client.connect(daemon.socket)
    daemon.process.send_signal(signal.SIGTERM)
    daemon.open_gate()
    assert (await client.rest())[-1]["method"] == "graphd/stopping"
    await client.close()
    assert daemon.ended() == 0
    assert not daemon.socket.exists()


async def test_a_second_signal_on_the_porch_ends_it_at_once(home: Workspace) -> None:
    daemon = Gated(home)
    await (await Client.connect(daemon.socket)).close()
    for _ in range(200):
        daemon.process.send_signal(signal.SIGTERM)  # two that come together are one
        if daemon.process.poll() is not None:
            break
        await asyncio.sleep(0.02)
    assert daemon.ended() == 130


async def test_the_state_folder_that_goes_meanwhile_ends_it(home: Workspace) -> None:
    daemon = Gated(home)
    client = await Client.connect(daemon.socket)
    subprocess.run(["rm", "-rf", str(daemon.socket.parent)], check=True)
    daemon.open_gate()
    assert (await client.rest())[-1]["params"]["reconnect"] is True
    await client.close()
    daemon.ended()


async def test_while_an_attempt_is_unsettled_a_hello_waits_for_the_state(home: Workspace) -> None:
    assert home.graphd("daemon", "--start").returncode == 0
    client = await Client.connect(home.folder / "socket", env={"PATH": os.environ["PATH"]})
    pid = (await client.call("graphd/hello", hello_params()))["daemon"]["pid"]
    await client.call("workgraph/subscribe")
    await client.call("workgraph/set", {"title": "t", "nodes": [{"slug": "a", "spec": "sleep 60"}]})
    while not any(row["state"] == "running" for row in (await client.next("workgraph/changed")).get("nodes", [])):
        pass
    os.kill(pid, signal.SIGKILL)
    await client.close()
    daemon = Gated(home)
    client = await Client.connect(daemon.socket, hello=False)
    number = await client.request("graphd/hello", hello_params())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(A_MOMENT_S):
            await client.read()
    daemon.open_gate()
    assert (await client.answer(number))["result"]["principal"] == "user"
    (graph,) = (await client.call("workgraph/list"))["graphs"]
    await client.call("workgraph/cancel", {"graph": graph["id"]})
    await client.call("graphd/stop")
    await client.rest()
    await client.close()
    assert daemon.ended() == 0


def test_a_log_that_cannot_be_read_is_told_to_whoever_started_the_daemon(home: Workspace) -> None:
    (home.root / "w.yaml").write_text("title: t\nnodes:\n  - {id: a, prompt: 'true'}\n")
    assert home.graphd("daemon", "--start").returncode == 0
    assert home.graphd("stop").returncode == 0
    with sqlite3.connect(home.folder / "graph.db") as database:
        database.execute(
            "INSERT INTO graphs VALUES ('g', 'active', 1, NULL, 't', 0, 0, '{}')",
        )
        database.execute("INSERT INTO events VALUES ('g', 1, 0, 0, 'unheard_of', NULL, '{', '{}')")
    database.close()
    told = home.graphd("history", "g")
    assert told.returncode == 5, told.stderr
    assert "damaged" in told.stderr
    assert "restore a backup" in told.stderr
    assert not (home.folder / "socket").exists() or home.graphd("history", "g").returncode == 5
