"""`graphd diff` under a real daemon: what the fake agent changed in a real repository, over the daemon's death too."""

import json
import re
import subprocess
from typing import Any

from tests.e2e.test_answers_at_a_terminal import at_terminal
from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

WORK = {"files": {"changed": "after\n", "new": "new\n", "gone": None, "ignored": "secret\n"}}
ONE = "nodes:\n  - { id: a, worker: build, prompt: Do it }\n"


def repository(workspace: Workspace) -> None:
    root = workspace.root
    for name in ("changed", "gone"):
        (root / name).write_text("before\n")
    (root / ".gitignore").write_text("ignored\nw.yaml\n")
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", str(root), *words], check=True)


def heads(patch: str) -> list[str]:
    return re.findall(r"^diff --git a/(\S+)", patch, re.MULTILINE)


def until_it_waits(agent: AgentWorkspace) -> None:
    agent.until(lambda: (agent.workspace.root / "new").exists())


def test_what_an_agent_changed_is_a_patch_that_git_takes_back(workspace: Workspace) -> None:
    repository(workspace)
    agent = AgentWorkspace(workspace, [WORK, {"say": "done"}])
    code, said = agent.run(ONE)
    assert code == 0, said
    (workspace.root / "later").write_text("by a person\n")
    ran = workspace.graphd("diff", "a@1", "--graph", "@last")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert heads(ran.stdout) == ["changed", "gone", "new"]
    assert agent.read("diff", "a", "--graph", "@last") == {"patch": ran.stdout, "shared": []}
    git = ["git", "-C", str(workspace.root)]
    subprocess.run([*git, "apply", "--reverse"], input=ran.stdout, text=True, check=True)
    status = subprocess.run([*git, "status", "--short"], capture_output=True, text=True, check=True).stdout
    assert status == "?? later\n"


def test_a_terminal_gets_colours(workspace: Workspace) -> None:
    repository(workspace)
    AgentWorkspace(workspace, [WORK, {"say": "done"}]).run(ONE)
    with at_terminal(workspace, "diff", "a", "--graph", "@last") as terminal:
        assert terminal.end() == 0
    assert "+after" in terminal.text
    assert "\x1b[32m+after" in terminal.raw


def test_while_it_runs_it_is_until_now_and_who_works_beside_it_is_named(workspace: Workspace) -> None:
    repository(workspace)
    go = workspace.base / "go"
    agent = AgentWorkspace(workspace, [WORK, {"until": str(go)}, {"say": "done"}])
    two = ONE + f"  - {{ id: b, run: 'until test -e {go}; do sleep 0.05; done' }}\n"
    agent.run(two, "--detach")
    until_it_waits(agent)
    agent.until(lambda: agent.nodes()["b"]["state"] == "running")
    found = agent.read("diff", "a", "--graph", "@last")
    assert "+after" in found["patch"]
    assert [(one["node"], one["attempt"]) for one in found["shared"]] == [("b", 1)]
    said = workspace.graphd("diff", "a", "--graph", "@last").stderr
    assert said.startswith("these ran in the same tree meanwhile: b@1 of ")
    go.touch()
    agent.until(lambda: agent.graph()["status"] == "complete")


def test_the_daemon_is_killed_in_between(workspace: Workspace) -> None:
    repository(workspace)
    go = workspace.base / "go"
    rest = {"files": {"last": "last\n"}}
    agent = AgentWorkspace(workspace, [WORK, {"until": str(go)}, rest, {"say": "done"}])
    agent.run(ONE, "--detach")
    until_it_waits(agent)
    agent.kill_daemon()
    go.touch()
    agent.until(lambda: (workspace.root / "last").exists())
    agent.until(lambda: agent.graph()["status"] == "complete")
    assert heads(agent.read("diff", "a", "--graph", "@last")["patch"]) == ["changed", "gone", "last", "new"]
    assert len(agent.trace(did="start")) == 1


def test_the_daemon_dies_while_a_tree_is_taken(workspace: Workspace) -> None:
    """At the first git of all, before the keeper is spawned: nothing ran, and the next attempt has its own trees."""
    repository(workspace)
    agent = AgentWorkspace(workspace, [WORK, {"say": "done"}])
    once = workspace.base / "once"
    workspace.environment |= {
        "GRAPHD_FAILPOINT": "git.spawn.after:3:kill", "GRAPHD_FAILPOINT_ONCE": str(once)
    }  # fmt: skip
    agent.run(ONE, "--detach")
    agent.until(once.exists)
    agent.until(lambda: agent.graph()["status"] == "complete")
    assert heads(agent.read("diff", "a", "--graph", "@last")["patch"]) == ["changed", "gone", "new"]
    assert len(agent.trace(did="start")) == 1


def refused(workspace: Workspace, node: str) -> dict[str, Any]:
    ran = workspace.graphd("diff", node, "--graph", "@last", "--json")
    assert ran.returncode != 0
    found: dict[str, Any] = json.loads(ran.stdout)["error"]
    return found


def test_where_there_is_no_tree_it_says_so(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [WORK | {"files": {"new": "x"}}, {"say": "done"}])
    agent.run(
        ONE
        + "  - { id: b, run: 'true' }\n  - { id: c, needs: [b], run: 'false' }\n  - { id: d, needs: [c], run: ':' }\n"
    )
    outside = refused(workspace, "a")
    assert outside["code"] == "notSupported"
    assert "not a git repository" in outside["message"]
    assert "graphd logs a" in outside["hint"]
    script = refused(workspace, "b")
    assert script["code"] == "notSupported"
    assert refused(workspace, "d")["code"] == refused(workspace, "a@7")["code"] == "notFound"


def test_a_key_of_the_live_tree_shows_it_above_the_tree_without_colour_where_none_is_wanted(
    workspace: Workspace,
) -> None:
    repository(workspace)
    go = workspace.base / "go"
    AgentWorkspace(workspace, [WORK, {"until": str(go)}, {"say": "done"}])
    (workspace.root / "w.yaml").write_text(ONE)
    workspace.graphd("run", "w.yaml", "--yes", "--detach")
    with at_terminal(workspace, "watch", "@last", NO_COLOR="1") as terminal:
        terminal.until("d diff")
        terminal.press("d")
        terminal.until("── diff a ──")
        terminal.until("+after")
        go.touch()
        assert terminal.end() == 0
    assert "\x1b[32m" not in terminal.raw
