"""A person's own rules, through a real daemon: they answer an ask, leave it to people, deny it, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.agents import AgentWorkspace
from tests.kit.workspaces import Workspace

ONE = "nodes: [{ id: a, worker: build, prompt: Do it }]\n"


def tool(number: int, kind: str, **call: Any) -> dict[str, Any]:
    return {"ask": {"toolCall": {"toolCallId": f"t{number}", "title": f"step {number}", "kind": kind, **call}}}


def at(*paths: str) -> dict[str, Any]:
    return {"locations": [{"path": path} for path in paths]}


def ruled(agent: AgentWorkspace) -> list[tuple[str, str | None]]:
    """Who answered each ask, and whether it was allowed."""
    opened = [event["payload"] for event in agent.history() if event["kind"] == "ask_opened"]
    answers = {e["payload"]["ask"]: e["payload"] for e in agent.history() if e["kind"] == "ask_answered"}
    return [(answers[ask["id"]]["by"], answers[ask["id"]]["option"]) if ask["id"] in answers else ("", None)
            for ask in opened]  # fmt: skip


def test_rules_allow_and_deny_in_their_order_and_the_table_is_what_it_was(workspace: Workspace) -> None:
    root = workspace.root
    steps = [
        tool(1, "edit", **at("/elsewhere/ok/x")),  # the table alone: ask
        tool(2, "execute", rawInput={"command": "make all"}),  # the same
        tool(3, "edit", **at(f"{root}/secret/key")),  # the table alone: allow
        tool(4, "edit", **at(f"{root}/src/a", f"{root}/secret/key")),
        tool(5, "execute", rawInput={"command": "make all; rm -rf x"}),
        tool(6, "edit", **at(f"{root}/src/a")),  # no rule: the table
        {"say": "done"},
    ]
    rules = {
        "allow": ["edit:/elsewhere/ok/**", "execute:make *", "edit:secret/**"],
        "deny": ["*:secret/**", "execute:rm *"],
    }
    agent = AgentWorkspace(workspace, steps, [{"say": "done"}], permissions=rules)
    code, said = agent.run(ONE)
    assert code == 0, said
    assert ruled(agent) == [
        ("rule allow edit:/elsewhere/ok/**", "proceed_once"), ("rule allow execute:make *", "proceed_once"),
        ("rule deny *:secret/**", "no"), ("rule deny *:secret/**", "no"), ("rule deny execute:rm *", "no"),
        ("rule edit/edit", "proceed_once"),
    ]  # fmt: skip


def test_a_rule_leaves_to_a_person_what_the_table_would_allow_and_changes_at_once(workspace: Workspace) -> None:
    step = tool(1, "edit", **at(f"{workspace.root}/plan.md"))
    agent = AgentWorkspace(workspace, [step, tool(2, "fetch"), {"say": "done"}], permissions={"ask": ["edit:*.md"]})
    code, said = agent.run(ONE)
    assert code == 6, said
    (ask,) = agent.asks()
    settings = json.loads((workspace.base / "config" / "settings.json").read_text())
    settings["permissions"] = {"allow": ["fetch"]}
    workspace.settings(json.dumps(settings))
    agent.until(lambda: '["fetch"]' in workspace.graphd("config", "get", "permissions.allow").stdout)
    assert [open_ask["id"] for open_ask in agent.asks()] == [ask["id"]], "what is asked already is a person's"
    assert workspace.graphd("answer", ask["id"], "allow").returncode == 0
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    assert [by for by, _ in ruled(agent)][1:] == ["rule allow fetch"]


@pytest.mark.parametrize("theirs", [{"allow": ["*"]}, {"ask": ["edit"]}, {"allow": ["edit:secret/**"], "deny": []}])
def test_a_workspace_can_not_widen_what_a_person_said(workspace: Workspace, theirs: dict[str, Any]) -> None:
    """Not by allowing, not by having asked what is denied, and not by a file that is refused."""
    write_ours(workspace.root, {"permissions": theirs})
    steps = [tool(1, "edit", **at(f"{workspace.root}/secret/key")), tool(2, "fetch"), {"say": "done"}]
    agent = AgentWorkspace(workspace, steps, permissions={"deny": ["edit:secret/**"]})
    code, said = agent.run(ONE)
    assert code == 6, said
    assert [ask["title"] for ask in agent.asks()] == ["step 2"], "the table's ask is still one"
    assert ruled(agent)[0] == ("rule deny edit:secret/**", "no")
    assert "a workspace may not set permissions." in workspace.graphd("doctor").stdout
    workspace.graphd("cancel", "--wait")


def test_a_workspace_may_deny_more(workspace: Workspace) -> None:
    write_ours(workspace.root, {"permissions": {"deny": ["edit:vendor/**", "execute:make *"]}})
    steps = [
        tool(1, "edit", **at(f"{workspace.root}/vendor/x")),
        tool(2, "execute", rawInput={"command": "make all"}),
        {"say": "done"},
    ]
    agent = AgentWorkspace(workspace, steps, [{"say": "done"}], permissions={"allow": ["execute:make *"]})
    code, said = agent.run(ONE)
    assert code == 0, said
    assert ruled(agent) == [("rule deny edit:vendor/**", "no"), ("rule deny execute:make *", "no")]


def write_ours(root: Path, settings: dict[str, Any]) -> None:
    (root / ".agents").mkdir(exist_ok=True)
    (root / ".agents" / "settings.json").write_text(json.dumps(settings))
