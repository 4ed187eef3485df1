"""Agents from a terminal: which there are, what each serves and says of itself, work done by one, and one that goes."""

import asyncio
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd.core.commands import Request, Set
from graphd.core.model import Definition, Graph, Source, State
from graphd.daemon import agents
from graphd.daemon.house import Daemon
from tests.kit.fake_runs import World
from tests.kit.workspaces import ROOT, Workspace

PROGRAMS = ROOT / "tests" / "kit" / "programs"
BUILD = "nodes:\n  - {{ id: make, worker: build, required: true, prompt: 'case: {case}' }}\n"


def put(folder: Path, name: str, *words: str) -> None:
    """A program on PATH that runs one of ours."""
    folder.mkdir(parents=True, exist_ok=True)
    quoted = " ".join(f"'{word}'" for word in words)
    (folder / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    (folder / name).chmod(0o755)


@pytest.fixture
def house(workspace: Workspace) -> Workspace:
    """A workspace whose PATH has the folder `bin` of the test before a bare system."""
    (workspace.base / "bin").mkdir()
    (workspace.base / "home").mkdir()
    workspace.environment |= {
        "PATH": f"{workspace.base / 'bin'}:/usr/bin:/bin", "HOME": str(workspace.base / "home"), "TERM": "xterm",
    }  # fmt: skip
    return workspace


def rows(house: Workspace, *words: str) -> dict[str, dict[str, Any]]:
    done = house.graphd("agents", "--json", *words)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_agents_are_found_on_the_callers_path_with_what_each_serves(house: Workspace) -> None:
    put(house.base / "bin", "gemini", "true")
    put(house.base / "bin", "pi-acp", "true")
    found = rows(house)
    assert found["gemini"]["installed"]
    assert found["gemini"]["path"] == str(house.base / "bin" / "gemini")
    assert "build" in found["gemini"]["workers"]
    assert found["shell"]["workers"] == ["shell"]
    assert found["pi"]["problems"] == ["it does not ask before it acts: for permissions full only"]
    assert found["opencode"]["problems"] == ["not found; install it with: npm install -g opencode-ai"]
    assert found["opencode"]["searched"][0] == str(house.base / "bin")
    assert "capabilities" not in found["gemini"]
    printed = house.graphd("agents").stdout
    assert "SERVES" in printed
    assert f"searched: {house.base / 'bin'}:" in printed


def test_a_probe_starts_each_and_says_version_and_capabilities(house: Workspace) -> None:
    script = house.base / "script.json"
    script.write_text(json.dumps({"trace": str(house.base / "trace"), "store": str(house.base / "store")}))
    put(house.base / "bin", "opencode", sys.executable, str(PROGRAMS / "fake_acp_agent.py"), str(script))
    put(house.base / "bin", "claude", "echo", "2.1.332 (an agent)")
    put(house.base / "bin", "qwen", "sh", "-c", "echo broken >&2")
    house.settings(
        json.dumps({"agents": {"mute": {"driver": "acp", "command": [f"{house.base}/bin/mute"], "initTimeoutS": 1}}})
    )
    put(house.base / "bin", "mute", "sleep", "600")
    found = rows(house, "--probe")
    assert "loadSession" in found["opencode"]["capabilities"]
    assert found["claude-headless"]["version"].startswith("2.1.332")
    assert "it did not answer initialize: broken" in found["qwen"]["problems"]
    assert "it did not answer initialize: it said nothing" in found["mute"]["problems"]
    assert "VERSION" in house.graphd("agents", "--probe").stdout
    assert not any("sleep 600" in line for line in house.processes().values())


def test_work_for_an_agent_that_is_not_there_says_what_to_install(house: Workspace) -> None:
    (house.root / "w.yaml").write_text(BUILD.format(case="ok"))
    done = house.graphd("run", "w.yaml", "--yes")
    assert done.returncode != 0
    assert "node make: the worker build needs an agent, and none was found on PATH=" in done.stderr
    assert f"PATH={house.base / 'bin'}:/usr/bin:/bin of graphd-cli" in done.stderr
    assert "npm install -g opencode-ai" in done.stderr
    house.settings('{"defaultAgent": "pi"}')
    put(house.base / "bin", "pi-acp", "true")
    done = house.graphd("run", "w.yaml", "--yes")
    assert (
        "pi does not ask before it acts, so it may serve permissions full only, and this asks for edit" in done.stderr
    )


def test_a_headless_agent_does_a_nodes_work_with_its_own_key(house: Workspace) -> None:
    put(house.base / "bin", "claude", sys.executable, str(PROGRAMS / "fake_headless.py"), "claude")
    trace = house.base / "trace"
    worker = {"agent": "claude-headless", "permissions": "full", "model": "advanced"}
    house.settings(
        json.dumps({"workers": {"build": worker}, "agents": {"claude-headless": {"env": {"FAKE_TRACE": str(trace)}}}})
    )
    (house.root / "w.yaml").write_text(
        "config:\n  objective: Ship it.\n  nodes:\n"
        "    - { id: list, worker: shell, prompt: 'echo one two; echo ${ANTHROPIC_API_KEY-none}' }\n"
        "    - { id: make, worker: build, needs: [list], required: true, prompt: 'Do it.' }\n"
    )
    done = house.graphd("run", "w.yaml", "--yes", "--json", ANTHROPIC_API_KEY="test-key-of-the-user")
    assert done.returncode == 0, done.stdout + done.stderr
    (asked,) = [json.loads(line) for line in trace.read_text().splitlines()]
    words = asked["words"]
    assert words[words.index("--model") + 1] == "opus"
    assert words[words.index("--permission-mode") + 1] == "bypassPermissions"
    places = [asked["prompt"].index(part) for part in ("Do it.", "Ship it.", "one two\nnone", "your last message")]
    assert places == sorted(places)
    assert house.graphd("output", "make").stdout.strip() == "all done"


def test_a_program_that_is_gone_when_its_slot_is_there_puts_the_node_back(house: Workspace) -> None:
    put(house.base / "bin", "claude", sys.executable, str(PROGRAMS / "fake_headless.py"), "claude")
    house.settings('{"workers": {"build": {"agent": "claude-headless", "permissions": "full"}}}')
    gone = house.base / "bin" / "claude"
    (house.root / "w.yaml").write_text(
        f"nodes:\n  - {{ id: first, run: 'rm {gone}' }}\n"
        "  - { id: make, worker: build, needs: [first], required: true, prompt: 'Do it.' }\n"
    )
    assert house.graphd("run", "w.yaml", "--yes", "--detach").returncode == 0
    status = _until(house, lambda wire: wire["status"] == "infra_paused")
    assert "no installed agent serves worker build" in status["pauseReason"]
    doctor = json.loads(house.graphd("doctor", "--json").stdout)
    assert [check["id"] for check in doctor if not check["ok"]] == ["agents"]
    put(house.base / "bin", "claude", sys.executable, str(PROGRAMS / "fake_headless.py"), "claude")
    house.settings('{"workers": {"build": {"agent": "claude-headless", "permissions": "full"}}, "concurrency": 7}')
    _until(house, lambda wire: wire["status"] == "complete")


def test_a_headless_session_that_is_gone_is_replaced_by_one_that_is_told_so(house: Workspace) -> None:
    put(house.base / "bin", "claude", sys.executable, str(PROGRAMS / "fake_headless.py"), "claude")
    home, trace = house.base / "agent-home", house.base / "trace"
    home.mkdir()
    agent = {"env": {"FAKE_TRACE": str(trace)}, "home": str(home)}
    worker = {"agent": "claude-headless", "permissions": "full"}
    house.settings(json.dumps({"workers": {"build": worker}, "agents": {"claude-headless": agent}}))
    (house.root / "w.yaml").write_text("nodes:\n  - { id: make, worker: build, prompt: 'case-hang, then do it.' }\n")
    assert house.graphd("run", "w.yaml", "--yes", "--detach").returncode == 0
    _until(house, lambda wire: bool(wire["nodes"][0].get("childSession")))
    assert house.graphd("pause", "--stop", "--wait").returncode == 0
    for session in (home / "sessions-claude").iterdir():
        session.unlink()
    house.graphd("resume")
    _until(house, lambda wire: wire["status"] == "complete")
    first, second, third = [json.loads(line) for line in trace.read_text().splitlines()]
    assert (second["case"], second["session"]) == ("gone", first["session"])
    assert third["session"] != first["session"]
    assert third["prompt"].startswith("case-hang, then do it.")
    assert "could not be taken up again" in third["prompt"]


def _until(house: Workspace, claim: Any) -> dict[str, Any]:
    wire: Any = None
    for _ in range(40):
        (wire,) = json.loads(house.graphd("status", "--json").stdout)["graphs"]
        if claim(wire):
            return dict(wire)
    raise AssertionError(wire)


# ---- in this process: the watch ------------------------------------------------------------------------------------


async def until(daemon: Daemon, claim: Any) -> None:
    async with asyncio.timeout(20):
        while not await daemon.view(claim):
            await asyncio.sleep(0.01)


async def test_a_graph_that_waits_for_an_agent_goes_on_by_itself_when_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "PROBE_S", 0.05)
    path = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/bin")
    for name in ("w", "state", "config"):
        (tmp_path / name).mkdir(mode=0o700)
    world = World()
    async with Daemon.open(tmp_path / "w", tmp_path / "state", config=tmp_path / "config", factory=world.run) as daemon:
        definitions = (Definition("a", "ok 1", "build", required=True),)
        command = Set("g1", "t", "o", Source("nodes"), str(tmp_path / "w"), definitions)
        await daemon.execute(Request(command))

        def is_held(state: State) -> bool:
            graph: Graph = state.graphs["g1"]
            return graph.status == "infra_paused" and graph.pause_cause == "agent"

        await until(daemon, is_held)
        put(path, "opencode", "true")
        await until(daemon, lambda state: state.graphs["g1"].status == "complete")
        assert sum(world.starts.values()) == 1


async def test_settings_of_a_workspace_are_seen_also_where_their_folder_comes_later(tmp_path: Path) -> None:
    for name in ("w", "config"):
        (tmp_path / name).mkdir()
    async with Daemon.open(
        tmp_path / "w", tmp_path / "state", config=tmp_path / "config", factory=World().run
    ) as daemon:
        (tmp_path / "w" / ".agents").mkdir()
        await asyncio.sleep(0.1)
        (tmp_path / "w" / ".agents" / "settings.json").write_text('{"concurrency": 2}')
        await until(daemon, lambda _: daemon.settings.concurrency == 2)
        (tmp_path / "w" / ".agents" / "settings.json").write_text('{"concurrency": 3}')
        await until(daemon, lambda _: daemon.settings.concurrency == 3)


async def test_a_daemon_that_looks_after_a_silent_keeper_stops_at_once(tmp_path: Path) -> None:
    """It asks again for minutes: a stop must not wait for that."""
    place = tmp_path / "state" / "attempts" / "gone" / "gn-00000000@1"
    place.mkdir(parents=True)
    (place / "claimed").touch()
    (tmp_path / "w").mkdir()
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        async with (
            asyncio.timeout(20),
            Daemon.open(tmp_path / "w", tmp_path / "state", config=tmp_path / "config", factory=World().run),
        ):
            await asyncio.sleep(0.5)
