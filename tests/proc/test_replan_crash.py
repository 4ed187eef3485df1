"""A replan stops what runs, and everything that would carry it out is killed: it comes true all the same."""

import json

import pytest

from tests.kit.workspaces import Workspace
from tests.proc.test_promises import TREE, alive, graph, kill, node, pidfds, wait_for

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("way", ["restart", "remove"])
def test_a_replan_comes_true_over_the_death_of_daemon_and_keeper(workspace: Workspace, way: str) -> None:
    script = TREE.format(oracle=workspace.oracle)
    nodes = [
        {"id": "tree", "run": script},
        {"id": "other", "run": f"while [ ! -e {workspace.base}/go ]; do sleep 0.1; done"},
    ]
    (workspace.root / "plan.yaml").write_text(json.dumps({"nodes": nodes}))
    assert workspace.graphd("run", "plan.yaml", "--detach").returncode == 0
    wait_for(lambda: len(workspace.lines()) == 4)
    edits = {"change": [{"id": "tree", "run": "echo anew"}]} if way == "restart" else {}
    (workspace.root / "edits.json").write_text(json.dumps({**edits, "reason": "better"}))
    options = ["--restart", "tree"] if way == "restart" else ["--remove", "tree=not needed"]
    with pidfds([int(line) for line in workspace.lines()]) as handles:
        done = workspace.graphd("replan", "edits.json", *options)
        kill(workspace.daemons() + workspace.keepers())
        assert done.returncode == 0, done.stderr
        assert "tree" in done.stdout
        workspace.graphd("daemon", "--start")
        settled = "achieved" if way == "restart" else "cancelled"
        wait_for(lambda: node(graph(workspace), "tree")["state"] == settled, 60)
        assert alive(handles) == [], "the node moved before its tree was empty"
    (workspace.base / "go").touch()
    assert workspace.graphd("watch", "@last").returncode == 0
    tree = node(graph(workspace), "tree")
    if way == "restart":
        assert (tree["attempts"], tree["output"]["text"].strip()) == (2, "anew")
    else:
        assert (tree["attempts"], tree["removedIn"], tree["cancelReason"]) == (1, 2, "removed: not needed")
    assert graph(workspace)["planVersion"] == 2
    report = workspace.graphd("doctor", "--json")
    checks = json.loads(report.stdout)
    assert [check for check in checks if check["id"] == "tables" and not check["ok"]] == [], report.stdout
