"""Two versions on one machine: the newer takes over by a clean stop, the older is served, and no work is lost."""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphd import __version__
from tests.kit.releases import Release, previous_release, same_release
from tests.kit.workspaces import Workspace

Wire = dict[str, Any]
OURS = Release(__version__)
OLD = "0.0.9"
NEW = "99.0"


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    release = previous_release(tmp_path_factory.mktemp("releases") / "previous", OLD)
    if release is None:
        pytest.skip("no repository to take the previous commit's package from")
    return release


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return same_release(tmp_path_factory.mktemp("releases") / "older", OLD)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    found = Workspace(tmp_path)
    try:
        yield found
    finally:
        found.end()


def started(place: Workspace, release: Release, *names: str) -> str:
    """A graph of nodes that note their start and wait until `go` is there."""
    wait = f"while [ ! -e {place.base}/go ]; do sleep 0.05; done; echo done"
    words = [part for name in names for part in ("--sh", f": {name}; echo {name} >> {place.oracle}; {wait}")]
    return str(release.json(place, "run", "--detach", *words)["graph"])


def until(place: Workspace, release: Release, graph: str, state: str, count: int) -> Wire:
    deadline = time.monotonic() + 30
    while True:
        snapshot: Wire = release.json(place, "status", graph)["graphs"][0]
        if snapshot["counts"].get(state, 0) >= count:
            return snapshot
        assert time.monotonic() < deadline, snapshot["counts"]
        time.sleep(0.1)


def health(place: Workspace, release: Release = OURS) -> Wire:
    return dict(release.json(place, "status")["daemon"])


def trees(place: Workspace) -> set[tuple[str, int, int]]:
    return {(row["node"], row["attempt"], row["pid"]) for row in OURS.json(place, "processes")}


def checked_end(place: Workspace, graph: str, names: tuple[str, ...]) -> None:
    """Everything ends well, and every node ran exactly once."""
    (place.base / "go").touch()
    until(place, OURS, graph, "achieved", len(names))
    assert sorted(place.lines()) == sorted(names)


@pytest.mark.parametrize("which", ["previous", "older"])
def test_a_newer_client_takes_over_and_what_runs_goes_on(
    place: Workspace, which: str, request: pytest.FixtureRequest
) -> None:
    old: Release = request.getfixturevalue(which)
    names = ("a", "b", "c")
    graph = started(place, old, *names)
    until(place, old, graph, "running", 3)
    before = health(place, old)
    assert before["version"] == OLD
    running = {(row["node"], row["attempt"], row["pid"]) for row in old.json(place, "processes")}
    assert len(running) == 3

    OURS.graphd(place, "daemon", "--start")

    after = health(place)
    assert (after["version"], after["epoch"]) == (__version__, before["epoch"] + 1)
    assert trees(place) == running, "the same processes of the same attempts"
    assert len(place.daemons()) == 1

    # the other direction: the older client is served by the newer daemon, and replaces nothing
    for words in (["status"], ["pause"], ["resume"], ["daemon", "--start"], ["why", "sh"]):
        done = place.graphd(*words, timeout_s=60, **old.environment)
        assert done.returncode == 0 or words[0] == "why", f"{words}\n{done.stdout}\n{done.stderr}"
    assert health(place)["pid"] == after["pid"]
    checked_end(place, graph, names)


def test_under_load_one_take_over_serves_everybody(place: Workspace, previous: Release) -> None:
    names = tuple(f"n{i}" for i in range(4))
    graph = started(place, previous, *names)
    until(place, previous, graph, "running", 4)
    answers: list[tuple[str, str]] = []

    def client(release: Release, name: str) -> None:
        done = place.graphd(
            "run", "--sh", f"echo {name} >> {place.oracle}", "--detach", "--json", timeout_s=60, **release.environment
        )
        answers.append((name, done.stdout if done.returncode == 0 else done.stdout + done.stderr))

    clients = [
        threading.Thread(target=client, args=(OURS if i % 2 else previous, f"extra{i}")) for i in range(8)
    ]  # fmt: skip
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()

    refused = [(name, said) for name, said in answers if "graph" not in json.loads(said.splitlines()[0])]
    assert refused == [], "a request that meets the take-over goes again, once"
    assert health(place)["version"] == __version__
    deadline = time.monotonic() + 30
    extra = [f"extra{i}" for i in range(8)]
    while sorted(line for line in place.lines() if line.startswith("extra")) != extra:
        assert time.monotonic() < deadline, place.lines()
        time.sleep(0.1)
    (place.base / "go").touch()
    until(place, OURS, graph, "achieved", 4)
    assert sorted(place.lines()) == sorted([*names, *extra]), "nothing was started twice"


def test_an_older_follower_comes_back_to_the_newer_daemon(place: Workspace, older: Release) -> None:
    graph = started(place, older, "a")
    until(place, older, graph, "running", 1)
    watching = older.start(place, "watch", graph)
    time.sleep(1)

    OURS.graphd(place, "daemon", "--start")
    (place.base / "go").touch()

    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 0, err
    assert "daemon restarted, 1 child adopted" in err
    assert health(place)["version"] == __version__
    assert place.lines() == ["a"]


def test_an_older_client_starts_the_newest_daemon_recorded(place: Workspace, older: Release, tmp_path: Path) -> None:
    newest = same_release(tmp_path / "newest", NEW)
    newest.graphd(place, "daemon", "--start")
    newest.graphd(place, "stop")

    for release in (older, OURS, older):
        release.graphd(place, "daemon", "--start")
        assert health(place)["version"] == NEW, "whoever starts it"
        release.graphd(place, "stop")

    assert newest.folder is not None
    shutil.rmtree(newest.folder)
    older.graphd(place, "daemon", "--start")
    assert health(place)["version"] == OLD, "a program that is gone is passed over"
    OURS.graphd(place, "daemon", "--start")
    assert health(place)["version"] == __version__


def test_a_newest_daemon_that_does_not_start_is_passed_over(place: Workspace, tmp_path: Path) -> None:
    newest = same_release(tmp_path / "newest", NEW)
    newest.graphd(place, "daemon", "--start")
    newest.graphd(place, "stop")
    assert newest.folder is not None
    (newest.folder / "graphd/server/__main__.py").write_text("raise SystemExit('broken')\n")

    OURS.graphd(place, "daemon", "--start")

    assert health(place)["version"] == __version__


def test_a_keeper_of_an_older_daemon_brings_back_the_newest(place: Workspace, older: Release) -> None:
    """Its command line is the older daemon's: that one becomes the newest recorded."""
    OURS.graphd(place, "daemon", "--start")
    os.kill(int(health(place)["pid"]), signal.SIGKILL)
    restarted = older.server(place, "--restarted")
    try:
        deadline = time.monotonic() + 20
        while (place.graphd("status", "--json").stdout or "null") == '{"daemon":null,"graphs":[]}\n':
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found = health(place)
        assert (found["version"], found["pid"]) == (__version__, restarted.pid)
    finally:
        restarted.kill()
        restarted.wait()


def test_protocols_that_do_not_meet_are_refused_with_both_versions_and_a_command(
    place: Workspace, tmp_path: Path
) -> None:
    newest = same_release(tmp_path / "newest", NEW, protocol=(2, 3))
    graph = started(place, OURS, "a")
    until(place, OURS, graph, "running", 1)

    # whoever may not start a daemon does not replace one either
    refused = newest.graphd(place, "status", code=5)
    assert f"graphd {__version__}" in refused
    assert f"graphd {NEW}" in refused
    assert "graphd daemon --start" in refused

    # the newer one takes over although it does not speak the older protocol any more
    newest.graphd(place, "daemon", "--start")
    assert health(place, newest)["version"] == NEW
    assert newest.json(place, "processes")[0]["attempt"] == 1

    for words in (["status"], ["daemon", "--start"], ["run", "--sh", "true"]):
        refused = OURS.graphd(place, *words, code=5)
        assert f"graphd {__version__}" in refused
        assert f"graphd {NEW}" in refused
        assert "pipx upgrade workgraphd" in refused
        assert "-m graphd" in refused
    (place.base / "go").touch()
    until(place, newest, graph, "achieved", 1)
    assert place.lines() == ["a"]


def test_only_a_newer_version_is_handed_the_workspace(place: Workspace) -> None:
    import asyncio

    from tests.kit.wire import Client, WireError

    OURS.graphd(place, "daemon", "--start")
    pid = health(place)["pid"]

    async def ask() -> list[str]:
        said = []
        for version in (OLD, __version__, "nonsense"):
            client = await Client.connect(place.folder / "socket")
            try:
                with pytest.raises(WireError) as caught:
                    await client.call("graphd/handover", {"version": version, "protocol": [1, 1]})
                said.append(str(caught.value.data["code"]))
            finally:
                await client.close()
        return said

    assert asyncio.run(ask()) == ["conflict"] * 3
    assert health(place)["pid"] == pid


def test_clients_are_told_to_come_back(place: Workspace) -> None:
    import asyncio

    from tests.kit.wire import Client

    OURS.graphd(place, "daemon", "--start")

    async def watch() -> Wire:
        bystander = await Client.connect(place.folder / "socket")
        newer = await Client.connect(place.folder / "socket")
        assert await newer.call("graphd/handover", {"version": NEW, "protocol": [1, 1]}) == {}
        messages = await bystander.rest()
        for client in (bystander, newer):
            await client.close()
        return dict(messages[-1])

    last = asyncio.run(watch())
    assert last["method"] == "graphd/stopping"
    assert last["params"] == {"reason": f"graphd {NEW} takes over", "reconnect": True}
