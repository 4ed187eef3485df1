"""Every bundled workflow runs to its end with an agent: the fake one, whose one answer fits all of their contracts."""

import json
import subprocess

import pytest

from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

ANSWER = {
    "verdict": "ACCEPT", "summary": "fine", "findings": [], "changes": ["a"], "cause": "a slip", "evidence": ["a test"],
    "elsewhere": [], "fingerprint": "f",
    "places": [{"name": "auth", "files": ["a"]}, {"name": "server", "files": ["b"]}],
    "recipe": "as in auth", "remarks": "none", "questions": [{"question": "how?"}, {"question": "why?"}],
}  # fmt: skip
INPUTS = {
    "review": [], "implement-review": ["--input", "task=do it", "--input", "check=true"],
    "debug": ["--input", "symptom=it fails", "--input", "command=false"], "research": ["--input", "question=how?"],
    "parallel-migrate": ["--input", "change=the new client"],
}  # fmt: skip
NODES = {"review": 4, "implement-review": 6, "debug": 5, "research": 6, "parallel-migrate": 7}
"""How many nodes there are at least at the end, items of lists included."""


@pytest.mark.parametrize("name", INPUTS)
def test_a_bundled_workflow_runs_to_its_end(workspace: Workspace, name: str) -> None:
    git(workspace, "init", "-q", "-b", "main")
    (workspace.root / "a").write_text("one\n")
    git(workspace, "add", "-A")
    git(workspace, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")
    agent = AgentWorkspace(workspace, [{"say": json.dumps(ANSWER)}])

    ran = workspace.graphd("run", name, "--yes", *INPUTS[name], timeout_s=120)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    graph = agent.graph()
    assert (graph["status"], graph["outcome"]) == ("complete", "ok")
    assert len(graph["nodes"]) >= NODES[name]
    assert {node["state"] for node in graph["nodes"]} == {"achieved"}
    asked = [p["params"]["prompt"][0]["text"] for p in agent.trace(got="session/prompt")]
    assert all("{{" not in text for text in asked), "every placeholder is filled"


def git(workspace: Workspace, *words: str) -> None:
    subprocess.run(["git", "-C", str(workspace.root), *words], check=True, capture_output=True)  # noqa: S607  # git of the PATH
