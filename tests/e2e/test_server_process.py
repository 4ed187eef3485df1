"""The daemon's own process: readiness, one per workspace, clean ends, and nothing lost over a restart."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from graphd.client import paths
from graphd.server.place import config_folder, state_folder
from tests.kit.ready import ReadyProcess
from tests.kit.wire import Client, Folded, WireError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with state and settings of its own."""
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRAPHD_CONFIG_DIR", str(tmp_path / "config"))
    workspace = tmp_path / "wörk space"
    workspace.mkdir()
    return workspace


class Process(ReadyProcess):
    """A daemon process of the test's own."""

    def __init__(self, workspace: Path) -> None:
        super().__init__([sys.executable, "-P", "-m", "graphd.server", "--workspace", str(workspace)])

    @property
    def socket(self) -> str:
        return str(self.line["socket"])


async def stop(client: Client) -> None:
    await client.call("graphd/stop")
    await client.rest()
    await client.close()


def test_places_are_those_of_the_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRAPHD_STATE_DIR", "GRAPHD_CONFIG_DIR"):
        assert str(state_folder(home)) == paths.state_folder(home)
        assert str(config_folder()) == paths.config_folder()
        monkeypatch.delenv(name)
    for value in ("/xdg", "relative", ""):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
        assert str(state_folder(home)) == paths.state_folder(home)
        assert str(config_folder()) == paths.config_folder()


async def test_a_graph_goes_on_where_it_was_after_a_restart(home: Path) -> None:
    first = Process(home)
    assert first.line["ready"] is True
    assert first.line["pid"] == first.process.pid
    folder = Path(first.socket).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    client = await Client.connect(first.socket, env={"PATH": os.environ["PATH"]})
    folded = Folded()
    store = (await client.call("workgraph/subscribe"))["store"]
    node = {"slug": "a", "spec": "echo begin; sleep 2; echo end"}
    graph = (await client.call("workgraph/set", {"title": "t", "nodes": [node]}))["graph"]
    while not (folded.graphs.get(graph) and folded.graphs[graph]["nodes"][0]["state"] == "running"):
        folded.take(await client.next("workgraph/changed"))
    await stop(client)
    assert first.ended() == 0

    second = Process(home)
    client = await Client.connect(second.socket)
    params = {"since": folded.revs, "store": store, "activity": True}
    for value in (await client.call("workgraph/subscribe", params))["graphs"]:
        assert "full" not in value
        folded.take(value)
    while folded.graphs[graph]["status"] != "complete":
        folded.take(await client.next("workgraph/changed"))
    assert folded.graphs[graph]["nodes"][0]["attempts"] == 1, "the same attempt went on"
    assert (await client.call("workgraph/output", {"graph": graph, "node": "a"}))["text"] == "begin\nend\n"
    seen = await client.call("workgraph/observe", {"graph": graph, "node": "a"})
    assert "".join(item["text"] for item in seen["items"]) == "begin\nend\n"
    again = await client.call("workgraph/observe", {"graph": graph, "node": "a", "cursor": seen["cursor"]})
    assert again["items"] == []
    await stop(client)
    assert second.ended() == 0


async def test_a_second_daemon_is_busy_and_sigterm_says_goodbye(home: Path) -> None:
    first = Process(home)
    second = Process(home)
    assert second.line["busy"] is True
    assert second.ended() != 0
    client = await Client.connect(first.socket)
    first.process.send_signal(signal.SIGTERM)
    last = (await client.rest())[-1]
    assert last["method"] == "graphd/stopping"
    assert first.ended() == 0
    assert not Path(first.socket).exists()
    await client.close()


async def test_the_removed_state_folder_ends_the_daemon(home: Path) -> None:
    process = Process(home)
    client = await Client.connect(process.socket)
    subprocess.run(["rm", "-rf", str(Path(process.socket).parent)], check=True)
    assert (await client.rest())[-1]["params"]["reconnect"] is True
    await client.close()
    process.ended()


async def test_what_runs_inside_a_node_is_that_attempt_whatever_it_says(home: Path) -> None:
    process = Process(home)
    user = await Client.connect(process.socket, env={"PATH": os.environ["PATH"]})
    script = home / "inside.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import asyncio, sys
            sys.path.insert(0, {str(ROOT)!r})
            from tests.kit.wire import Client, WireError, hello_params

            async def main():
                client = await Client.connect({process.socket!r}, hello=False)
                print((await client.call("graphd/hello", hello_params()))["principal"])
                print((await client.call("workgraph/node", {{"node": "inside"}}))["node"]["state"])
                try:
                    await client.call("graphd/stop")
                except WireError as refusal:
                    print(refusal.data["code"])
                await client.close()

            asyncio.run(main())
            """
        )
    )
    await user.call("workgraph/subscribe")
    specs = {
        "inside": f"exec {sys.executable} '{script}'",
        "aside": f"env -u GRAPHD_ATTEMPT setsid {sys.executable} '{script}' || true",
    }
    rows = [{"slug": slug, "spec": spec, "required": False} for slug, spec in specs.items()]
    graph = (await user.call("workgraph/set", {"title": "t", "nodes": rows}))["graph"]
    while (await user.next("workgraph/changed"))["header"]["status"] != "complete":
        pass
    told = await user.call("workgraph/output", {"graph": graph, "node": "inside"})
    assert told["text"].split() == ["attempt", "running", "unauthorised"]
    told = await user.call("workgraph/output", {"graph": graph, "node": "aside"})
    assert told["text"].split() == ["attempt"], "it reads its own node alone"
    await stop(user)
    assert process.ended() == 0


async def test_a_request_id_is_applied_once_over_a_restart_too(home: Path) -> None:
    process = Process(home)
    client = await Client.connect(process.socket)
    params = {"title": "t", "nodes": [{"slug": "a", "spec": "true"}], "start": False, "requestId": "r1"}
    graph = (await client.call("workgraph/set", params))["graph"]
    assert (await client.call("workgraph/set", params))["graph"] == graph
    with pytest.raises(WireError) as refusal:
        await client.call("workgraph/set", {**params, "title": "other"})
    assert refusal.value.data["code"] == "requestIdReused"
    await stop(client)
    assert process.ended() == 0
    process = Process(home)
    client = await Client.connect(process.socket)
    assert (await client.call("workgraph/set", params))["graph"] == graph
    assert len((await client.call("workgraph/list"))["graphs"]) == 1
    await stop(client)
    assert process.ended() == 0


async def test_a_request_that_comes_again_means_the_same_graph_and_gets_the_same_answer(home: Path) -> None:
    """Whatever was started, settled or cleared meanwhile: its first answer may have been lost with a connection."""
    process = Process(home)
    client = await Client.connect(process.socket)
    file = home / "w.yaml"
    file.write_text("nodes:\n  - { id: a, run: 'true' }\n")
    graph = (await client.call("workgraph/set", {"file": str(file), "start": False}))["graph"]
    file.write_text("nodes:\n  - { id: a, run: 'false' }\n")
    proposal = (await client.call("workgraph/apply", {"file": str(file)}))["proposal"]
    asked: dict[str, dict[str, Any]] = {
        "accept": {"proposal": proposal, "requestId": "r1"},
        "cancel": {"requestId": "r2"},
    }
    first = {verb: await client.call(f"workgraph/{verb}", params) for verb, params in asked.items()}
    nodes = [{"slug": "a", "spec": "true"}]
    other = (await client.call("workgraph/set", {"title": "t", "nodes": nodes, "start": False}))["graph"]
    assert {verb: await client.call(f"workgraph/{verb}", params) for verb, params in asked.items()} == first
    assert {answer["graph"] for answer in first.values()} == {graph}
    assert (await client.call("workgraph/status", {"graph": other}))["status"] == "user_paused"
    clear = {"graph": graph, "requestId": "r3"}
    cleared = await client.call("workgraph/clear", clear)
    assert await client.call("workgraph/clear", clear) == cleared
    await stop(client)
    assert process.ended() == 0
    process = Process(home)
    client = await Client.connect(process.socket)
    assert await client.call("workgraph/clear", clear) == cleared
    await stop(client)
    assert process.ended() == 0


def test_a_start_that_fails_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = home / "file"
    blocked.write_text("")
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(blocked / "below"))
    process = Process(home)
    assert "failed" in process.line
    assert process.line["hint"]
    assert process.ended() == 1


def test_the_first_reply_needs_nothing_heavy(home: Path) -> None:
    code = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from graphd.server.__main__ import Readiness, run
        from tests.kit.wire import Client

        HEAVY = {"pydantic", "pygls", "lsprotocol", "yaml", "rich", "click", "structlog", "jsonschema", "watchfiles"}

        async def look(server):
            while not Path("socket").exists():
                await asyncio.sleep(0.01)
            client = await Client.connect("socket")
            found = HEAVY & set(sys.modules)
            print(",".join(sorted(found)) or "light")
            await client.close()

        sys.exit(asyncio.run(run(Path(sys.argv[1]), Readiness(None), served=look)))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, cwd=ROOT, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "light"
