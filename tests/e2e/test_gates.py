"""Gates, lists, waits, approvals and contracts with real processes, by what a person types."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.workspaces import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    found = Workspace(tmp_path)
    (found.root / ".agents").mkdir()  # a workspace of its own, whatever lies above it
    yield found
    found.end()


def run(workspace: Workspace, plan: str, *words: str) -> "tuple[int, str]":
    (workspace.root / "plan.yaml").write_text(plan)
    ran = workspace.graphd("run", "plan.yaml", "--yes", *words)
    return ran.returncode, ran.stdout + ran.stderr


def graph(workspace: Workspace) -> dict[str, Any]:
    (found,) = json.loads(workspace.graphd("status", "@last", "--json").stdout)["graphs"]
    return dict(found)


def states(workspace: Workspace) -> dict[str, str]:
    return {node["slug"]: node["state"] for node in graph(workspace)["nodes"]}


def until(workspace: Workspace, wanted: str, **expected: str) -> None:
    """Wait until the nodes are in these states."""
    deadline = time.monotonic() + 30
    while not expected.items() <= (found := states(workspace)).items():
        assert time.monotonic() < deadline, (wanted, found)
        time.sleep(0.05)


REVISED = """
nodes:
  - id: make
    run: |
      echo "made: ${GRAPHD_VAR_findings:-nothing yet}" >> made
      cat made
  - id: review
    needs: [make]
    gate: { revise: make }
    run: |
      if grep -q smaller made; then echo '{"verdict": "ACCEPT"}'
      else echo '{"verdict": "REVISE", "findings": "smaller"}'; fi
  - { id: ship, needs: [review], run: cat made }
"""


def test_work_is_sent_back_with_what_the_gate_found_and_then_accepted(workspace: Workspace) -> None:
    code, said = run(workspace, REVISED)
    assert code == 0, said
    assert (workspace.root / "made").read_text() == "made: nothing yet\nmade: smaller\n"
    nodes = {node["slug"]: node for node in graph(workspace)["nodes"]}
    assert (nodes["make"]["attempts"], nodes["make"]["findings"]) == (2, "smaller")
    assert nodes["review"]["verdict"] == "ACCEPT"
    assert graph(workspace)["outcome"] == "ok"


def test_a_graph_that_a_gate_rejects_ends_as_rejected_and_the_command_fails(workspace: Workspace) -> None:
    plan = """
nodes:
  - { id: review, gate: {}, run: 'echo "{\\"verdict\\": \\"REJECT\\"}"' }
  - { id: ship, needs: [review], run: touch shipped }
"""
    code, said = run(workspace, plan)
    assert code == 1, said
    assert "rejected" in said
    assert not (workspace.root / "shipped").exists()


LISTED = """
nodes:
  - { id: list, run: 'echo "[\\"a b\\", {\\"n\\": 2}]"' }
  - id: each
    needs: [list]
    for_each: { in: list.output, as: thing }
    run: 'echo "$GRAPHD_VAR_index:$GRAPHD_VAR_thing"'
  - { id: sum, needs: [each], run: 'cat "$GRAPHD_INPUT_DIR/each"' }
"""


def test_a_list_is_worked_on_item_by_item_and_joined(workspace: Workspace) -> None:
    code, said = run(workspace, LISTED)
    assert code == 0, said
    joined = json.loads(workspace.graphd("output", "sum").stdout)
    assert joined == ["1:a b", '2:{"n": 2}']
    assert json.loads(workspace.graphd("output", "each").stdout) == joined


WAITING = """
nodes:
  - { id: first, run: sleep 0.1 }
  - { id: go, needs: [first], wait: { signal: deploy } }
  - { id: calm, wait: { until: 300ms } }
  - { id: use, needs: [go, calm], run: 'cat "$GRAPHD_INPUT_DIR/go"' }
"""


def test_a_signal_is_heard_over_a_restart_of_the_daemon_and_by_its_key_once(workspace: Workspace) -> None:
    run(workspace, WAITING, "--detach")
    until(workspace, "waits", go="running", calm="achieved")
    workspace.graphd("stop")
    sent = workspace.graphd("signal", "deploy", "--payload", '{"v": 1}', "--key", "k1")
    assert sent.stdout.startswith("woke go of "), sent.stderr
    watched = workspace.graphd("watch", "@last")
    assert watched.returncode == 0, watched.stderr
    assert json.loads(workspace.graphd("output", "use").stdout) == {"v": 1}
    again = workspace.graphd("signal", "deploy", "--payload", '{"v": 1}', "--key", "k1")
    assert again.stdout == sent.stdout
    other = workspace.graphd("signal", "deploy", "--payload", "2", "--key", "k1")
    assert other.returncode != 0
    assert workspace.graphd("signal", "deploy").stdout == "nobody waits for deploy\n"
    assert workspace.graphd("signal", "deploy", "--payload", "{").returncode == 2


def test_an_approval_is_answered_from_the_terminal(workspace: Workspace) -> None:
    plan = """
nodes:
  - { id: ship, approval: { prompt: "Ship it?" }, run: touch shipped }
"""
    run(workspace, plan, "--detach")
    until(workspace, "asks", ship="ready")
    (ask,) = graph(workspace)["asks"]
    assert (ask["kind"], ask["title"], ask["node"]) == ("approval", "Ship it?", "ship")
    answered = workspace.graphd("answer", ask["id"], "allow")
    assert answered.returncode == 0, answered.stderr
    assert workspace.graphd("watch", "@last").returncode == 0
    assert (workspace.root / "shipped").exists()


def test_a_result_that_breaks_its_contract_is_not_achieved(workspace: Workspace) -> None:
    plan = """
nodes:
  - { id: files, artifacts: [dist/*.txt], run: mkdir -p dist }
  - { id: made, artifacts: [dist/*.txt], needs: [files], condition: 'files.state == "failed"', run: touch dist/a.txt }
  - id: shape
    output_schema: { type: object, properties: { n: { type: integer } }, required: [n] }
    run: 'echo "{\\"n\\": \\"x\\"}"'
  - { id: number, output_schema: { type: integer }, run: 'echo working; echo 42' }
  - { id: end, needs: [made, shape, number], condition: 'number.output == 42', run: 'cat "$GRAPHD_INPUT_DIR/number"' }
"""
    run(workspace, plan, "--allow-failures")
    found = {node["slug"]: node for node in graph(workspace)["nodes"]}
    assert found["files"]["failure"]["class"] == "verdict_fail"
    assert "dist/*.txt" in found["files"]["failure"]["reason"]
    assert found["made"]["state"] == "achieved"
    assert found["shape"]["failure"]["reason"].startswith("its result breaks output_schema at $.n")
    assert found["end"]["output"]["text"] == "42"


def test_the_first_required_failure_stops_what_runs(workspace: Workspace) -> None:
    plan = """
config:
  on_required_failure: stop
  nodes:
    - { id: bad, required: true, run: 'sleep 0.3; exit 1' }
    - { id: long, required: true, run: 'sleep 600' }
"""
    code, said = run(workspace, plan)
    assert code == 1, said
    assert states(workspace) == {"bad": "failed", "long": "ready"}
    assert graph(workspace)["status"] == "blocked"
