"""Which folder the graphs belong to: moved, replaced, forgotten, or inside another one that is live."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from graphd.base.refusal import Refused
from graphd.cli import workspaces
from graphd.client import paths
from graphd.server import place as served
from graphd.store import place as kept
from tests.kit.workspaces import Workspace

Wire = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    found = Workspace(tmp_path)
    (found.root / ".agents").mkdir()
    try:
        yield found
    finally:
        found.end()


def ask(place: Workspace, *words: str, code: int = 0, cwd: Path | None = None) -> str:
    words = (*words, "--workspace", str(cwd)) if cwd is not None else words
    done = place.graphd(*words)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def with_paused_graph(place: Workspace) -> str:
    """A graph that waits, and no daemon."""
    text = f"nodes:\n  - {{ id: where, run: pwd >> {place.oracle} }}\n"
    (place.root / "w.yaml").write_text(text)
    graph = json.loads(ask(place, "run", "./w.yaml", "--detach", "--json"))["graph"]
    ask(place, "watch", "@last")
    ask(place, "stop")
    return str(graph)


def listed(place: Workspace) -> list[Wire]:
    return list(json.loads(ask(place, "workspace", "list", "--json")))


def test_a_project_that_was_moved_takes_its_graphs_along(place: Workspace) -> None:
    graph = with_paused_graph(place)
    new = place.base / "renamed"
    place.root.rename(new)
    place.root = new

    assert [(row["workspace"], row["standing"], row["graphs"]) for row in listed(place)] == [
        (str(place.base / "workspace"), "gone", 1)
    ]
    assert f"graphd workspace move {place.base / 'workspace'} {new}" in ask(place, "workspace", "list")
    assert json.loads(ask(place, "status", "--json"))["graphs"] == [], "a fresh place until a person says"
    ask(place, "daemon", "--start")  # even where a daemon has begun afresh there
    ask(place, "stop")

    ask(place, "workspace", "move", str(place.base / "workspace"), str(new))

    assert [(row["workspace"], row["standing"], row["live"]) for row in listed(place)] == [(str(new), "here", 0)]
    ask(place, "daemon", "--start")
    found = json.loads(ask(place, "status", "@last", "--json"))["graphs"][0]
    assert (found["id"], found["workspace"]) == (graph, str(new))
    ask(place, "run", "./w.yaml", "--yes")
    assert place.lines() == [str(place.base / "workspace"), str(new)]
    assert "tables agree" in ask(place, "doctor")


def replaced(place: Workspace) -> str:
    """Another project stands where the graphs' one did; answers the refusal of a start."""
    with_paused_graph(place)
    place.root.rename(place.base / "away")
    place.root.mkdir()
    (place.root / ".agents").mkdir()
    return ask(place, "daemon", "--start", code=5)


def test_another_project_at_the_same_path_is_asked_about(place: Workspace) -> None:
    said = replaced(place)
    assert f"graphd workspace move {place.root} {place.root}" in said
    assert f"graphd workspace forget {place.root}" in said
    assert listed(place)[0]["standing"] == "replaced"
    assert place.daemons() == []

    ask(place, "workspace", "move", str(place.root), str(place.root))
    ask(place, "daemon", "--start")
    assert len(json.loads(ask(place, "status", "--json"))["graphs"]) == 1


def test_a_run_that_says_yes_keeps_the_graphs_of_the_folder_it_replaced(place: Workspace) -> None:
    """A fresh clone where an older one lay: `make demo` has nobody to ask."""
    replaced(place)
    ask(place, "run", "--sh", "true", "--yes")
    assert len(json.loads(ask(place, "status", "--json"))["graphs"]) == 2


def test_what_was_forgotten_is_gone_and_the_next_daemon_begins_afresh(place: Workspace) -> None:
    replaced(place)
    assert "--yes" in ask(place, "workspace", "forget", str(place.root), code=2)
    assert len(listed(place)) == 1

    ask(place, "workspace", "forget", str(place.root), "--yes")

    assert listed(place) == []
    assert os.listdir(place.base / "state") == []
    ask(place, "daemon", "--start")
    assert json.loads(ask(place, "status", "--json"))["graphs"] == []


@pytest.mark.parametrize(("key", "is_settled", "graphs"), [("k", True, 1), ("f", True, None), ("q", False, 1)])
def test_a_person_is_asked_once(place: Workspace, key: str, is_settled: bool, graphs: int | None) -> None:
    replaced(place)
    with mock.patch.dict(os.environ, place.environment), mock.patch("click.prompt", return_value=key):
        assert workspaces.settle_place(str(place.root), "was", "is") == is_settled
        found = kept.place_of(place.folder)
        assert (found.graphs if found else None) == graphs
        assert found is None or (found.standing == "here") == (key == "k")


def test_nothing_is_moved_or_forgotten_under_a_daemon_or_a_keeper(place: Workspace) -> None:
    wait = f"while [ ! -e {place.base}/go ]; do sleep 0.05; done"
    ask(place, "run", "--detach", "--sh", wait)
    other = place.base / "other"
    other.mkdir()
    for words in (["move", str(place.root), str(other)], ["forget", str(place.root), "--yes"]):
        assert "serves this workspace" in ask(place, "workspace", *words, code=5)
    while not place.keepers():
        pass
    ask(place, "stop")
    for words in (["move", str(place.root), str(other)], ["forget", str(place.root), "--yes"]):
        assert "run under their keepers" in ask(place, "workspace", *words, code=5)
    assert listed(place)[0]["live"] == 1
    (place.base / "go").touch()


def test_a_folder_with_graphs_of_its_own_takes_no_others(place: Workspace) -> None:
    with_paused_graph(place)
    other = Workspace(place.base / "second", environment={"GRAPHD_STATE_DIR": str(place.base / "state")})
    with_paused_graph(other)
    assert "graphs of its own" in ask(place, "workspace", "move", str(place.root), str(other.root), code=1)
    assert "no graphs are kept" in ask(place, "workspace", "move", str(place.base / "x"), str(place.root), code=1)
    assert "no folder" in ask(place, "workspace", "move", str(place.root), str(place.base / "x"), code=1)
    assert "no graphs are kept" in ask(place, "workspace", "forget", str(place.base / "x"), code=1)
    assert len(listed(place)) == 2


def test_a_folder_inside_a_live_workspace_says_which_one_it_uses(tmp_path: Path) -> None:
    place = Workspace(tmp_path)  # no marker: the directory itself
    inner = place.root / "deep" / "inner"
    inner.mkdir(parents=True)
    try:
        ask(place, "daemon", "--start")
        done = place.graphd("status", "--json", "--workspace", str(inner))
        assert f"{inner} lies inside the live workspace {place.root}" in done.stderr
        assert json.loads(done.stdout)["daemon"] is not None

        (inner / ".agents").mkdir()
        done = place.graphd("status", "--json", "--workspace", str(inner))
        assert (done.stderr, json.loads(done.stdout)["daemon"]) == ("", None)
    finally:
        place.end()


def test_everybody_knows_the_same_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))
    for path in (tmp_path, tmp_path / "gone", Path("/")):
        folders = {Path(paths.state_folder(path)), served.state_folder(path), kept.folder_of(tmp_path / "state", path)}
        assert len(folders) == 1


def test_what_is_no_database_of_ours_is_no_place(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("text", b"not a database"), ("none", None)):
        (tmp_path / name).mkdir()
        if content is not None:
            (tmp_path / name / "graph.db").write_bytes(content)
    assert kept.places(tmp_path) == []
    assert kept.places(tmp_path / "missing") == []
    with pytest.raises(Refused):
        kept.forget(tmp_path, tmp_path)


def test_an_empty_list_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path))
    assert "no folder has graphs yet" in CliRunner().invoke(workspaces.workspace_command, ["list"]).output
