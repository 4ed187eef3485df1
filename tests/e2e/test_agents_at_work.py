"""Agents under a real daemon: asks, deaths of daemon and agent, stops, checks, rounds. The fake's trace proves it."""

import os
import signal
import subprocess
import sys

import pytest

from tests.kit.agents import AgentWorkspace, asks
from tests.kit.workspaces import Workspace

ONE = """nodes:
  - { id: a, worker: build, prompt: Do the thing }
  - { id: b, needs: [a], run: 'cat $GRAPHD_INPUT_DIR/a' }
"""


def test_a_graph_of_agent_and_shell_runs_to_its_end(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "made it"}])
    code, said = agent.run(ONE)
    assert code == 0, said
    assert workspace.graphd("output", "--graph", "@last").stdout.strip() == "made it"
    (prompt,) = agent.trace(got="session/prompt")
    assert prompt["params"]["prompt"][0]["text"].startswith("Do the thing")
    assert "made it" in workspace.graphd("logs", "a", "--graph", "@last").stdout
    assert not workspace.keepers()


def test_an_ask_outlives_the_daemon_and_is_answered_once(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"effect": "changed"}, {"say": "done"}])
    code, said = agent.run(ONE)
    assert code == 6, said
    (before,) = agent.asks()
    (pid,) = agent.agent_pids()
    agent.kill_daemon()
    (after,) = agent.asks()
    assert after == before
    agent.until(lambda: agent.nodes()["a"].get("phase") == "awaiting_permission")
    answered = workspace.graphd("answer", after["id"], "allow")
    assert answered.returncode == 0, answered.stderr
    again = workspace.graphd("answer", after["id"], "reject")
    assert again.returncode != 0
    agent.until(lambda: agent.nodes()["b"]["state"] == "achieved")
    assert (
        len(agent.trace(did="start")) == len(agent.trace(got="session/prompt")) == len(agent.trace(did="effect")) == 1
    )
    assert agent.trace(did="start")[0]["pid"] == pid
    assert agent.asks() == []


def test_a_reject_reaches_the_agent_which_is_asked_once_for_its_result(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"say": "could not"}], [{"say": "nothing more"}])
    agent.run(ONE)
    (ask,) = agent.asks()
    workspace.graphd("answer", ask["id"], "reject")
    agent.until(lambda: agent.nodes()["a"]["state"] != "running")
    assert agent.trace(did="asked")[0]["outcome"] == {"outcome": "selected", "optionId": "no"}
    assert len(agent.trace(got="session/prompt")) == 2, "one nudge"


def test_a_standing_answer_for_the_graph_covers_the_other_nodes(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks("/elsewhere/x"), {"effect": "changed"}, {"say": "done"}])
    two = "nodes:\n  - { id: a, worker: build, prompt: A }\n  - { id: c, worker: build, prompt: C, needs: [a] }\n"
    agent.run(two)
    (ask,) = agent.asks()
    workspace.graphd("answer", ask["id"], "allow", "--scope", "graph")
    agent.until(lambda: agent.nodes()["c"]["state"] == "achieved")
    assert agent.asks() == []
    assert len(agent.trace(did="asked")) == 2
    events = agent.history()
    (ruled,) = [e for e in events if e["kind"] == "ask_answered" and e["payload"]["by"].startswith("rule")]
    assert ruled["payload"]["by"] == f"rule {ask['id']}"


def test_nobody_attached_and_asks_detached_deny(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"wait": 1}, asks(), {"say": "without it"}], asks={"detached": "deny"})
    agent.run(ONE, "--detach")
    agent.until(lambda: workspace.graphd("status", "--json").returncode == 0)
    agent.until(lambda: agent.trace(did="asked"))
    assert agent.trace(did="asked")[0]["outcome"]["optionId"] == "no"


def test_an_agent_that_is_killed_goes_on_in_the_same_session(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"effect": "first"}, asks(), {"say": "first"}], [{"say": "went on"}])
    agent.run(ONE)
    agent.until(agent.asks)
    session = agent.nodes()["a"]["childSession"]
    (pid,) = agent.agent_pids()
    os.kill(pid, signal.SIGKILL)
    agent.until(lambda: agent.nodes()["b"]["state"] == "achieved")
    assert (agent.nodes()["a"]["childSession"], agent.nodes()["a"]["output"]["text"]) == (session, "went on")
    assert [len(agent.trace(got=f"session/{how}")) for how in ("new", "resume")] == [1, 1]
    assert len(agent.trace(did="effect")) == 1


def test_pause_with_stop_keeps_the_session_and_resume_goes_on_in_it(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"say": "first"}], [{"say": "went on"}])
    agent.run(ONE)
    session = agent.nodes()["a"]["childSession"]
    paused = workspace.graphd("pause", "--stop", "--wait")
    assert paused.returncode == 0, paused.stderr
    assert agent.asks() == []
    assert agent.trace(did="asked")[0]["outcome"]["outcome"] == "cancelled"
    assert not agent.agent_pids()
    workspace.graphd("resume")
    agent.until(lambda: agent.nodes()["b"]["state"] == "achieved")
    assert agent.nodes()["a"]["childSession"] == session
    assert len(agent.trace(got="session/resume")) == 1
    assert len(agent.trace(got="session/new")) == 1


def test_cancel_while_it_waits_ends_the_turn_first_and_leaves_nothing(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks(), {"say": "never"}])
    agent.run(ONE)
    agent.until(agent.asks)
    assert workspace.graphd("cancel", "--wait").returncode == 0
    assert agent.trace(did="asked")[0]["outcome"]["outcome"] == "cancelled"
    assert not agent.agent_pids()
    assert not workspace.keepers()
    assert agent.graph()["status"] == "cancelled"


def test_more_tool_calls_than_a_node_allows_end_it(workspace: Workspace) -> None:
    tools = [{"tool": {"toolCallId": f"t{n}", "title": f"Read {n}", "kind": "read"}} for n in range(5)]
    agent = AgentWorkspace(workspace, [*tools, {"until_cancel": True}])
    limited = "nodes: [{ id: a, worker: build, prompt: x, worker_config: { max_tool_calls: 3 } }]"
    code, said = agent.run(limited)
    assert code == 1, said
    failure = agent.nodes()["a"]["failure"]
    assert (failure["class"], failure["reason"]) == ("limit", "more than 3 tool calls")


def test_tool_calls_are_counted_over_the_death_of_a_daemon(workspace: Workspace) -> None:
    def tool(number: int) -> dict[str, object]:
        return {"tool": {"toolCallId": f"t{number}", "title": f"Read {number}", "kind": "read"}}

    gate = workspace.base / "gate"
    inside = asks(str(workspace.root / "x"))  # allowed by its rule, in a commit of its own
    agent = AgentWorkspace(workspace, [tool(1), tool(2), inside, {"until": str(gate)}, tool(3), {"until_cancel": True}])
    agent.run("nodes: [{ id: a, worker: build, prompt: x, worker_config: { max_tool_calls: 2 } }]", "--detach")
    agent.until(lambda: agent.trace(did="asked"))
    agent.kill_daemon()
    agent.until(lambda: agent.nodes()["a"].get("phase") == "working")
    gate.touch()
    agent.until(lambda: agent.nodes()["a"]["state"] == "failed")
    assert agent.nodes()["a"]["failure"]["class"] == "limit"


CHECKED = """nodes:
  - id: a
    worker: build
    prompt: Do the thing
    verify: {verify}
"""


def test_a_result_that_a_child_finds_wanting_goes_on_in_the_same_session(workspace: Workspace) -> None:
    judge = ([{"say": '{"verdict": "not_achieved", "gaps": ["no tests"]}'}],)
    agent = AgentWorkspace(workspace, [{"say": "one"}], [{"say": "two"}], judge=judge)
    text = CHECKED.format(verify="{ worker_type: verify, criteria: has tests }")
    code, said = agent.run(text + "    retry: { max: 0 }\n")
    assert code == 1, said
    node = agent.nodes()["a"]
    assert (node["state"], node["rounds"], node["failure"]["class"]) == ("failed", 3, "verdict_fail")
    assert node["failure"]["reason"] == "no tests"
    prompts = [p["params"]["prompt"][0]["text"] for p in agent.trace(got="session/prompt")]
    assert len(prompts) == 3
    assert all("no tests" in prompt for prompt in prompts[1:])
    assert len({p["params"]["sessionId"] for p in agent.trace(got="session/prompt")}) == 1
    checks = agent.trace("judge", got="session/prompt")
    assert len(checks) == 3
    assert "has tests" in checks[0]["params"]["prompt"][0]["text"]
    assert len({p["params"]["sessionId"] for p in checks}) == 3, "each check is a fresh child"


@pytest.mark.parametrize(("command", "state"), [("true", "achieved"), ("echo red >&2; exit 3", "failed")])
def test_a_command_checks_what_a_shell_made(workspace: Workspace, command: str, state: str) -> None:
    agent = AgentWorkspace(workspace, [{"say": "unused"}])
    text = f"nodes:\n  - {{ id: a, run: echo made, verify: {{ run: '{command}' }} }}\n"
    agent.run(text)
    node = agent.nodes()["a"]
    assert node["state"] == state
    assert node.get("output", {}).get("text", "").strip() == "made"
    if state == "failed":
        assert "red" in node["failure"]["reason"]


def test_a_daemon_that_dies_while_a_result_is_checked_finishes_the_check(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "unused"}])
    gate = workspace.base / "gate"
    text = f"nodes:\n  - {{ id: a, run: echo made, verify: {{ run: 'while [ ! -e {gate} ]; do sleep 0.05; done' }} }}\n"
    agent.run(text, "--detach")
    agent.until(lambda: len(agent.read("processes")) == 1 and agent.read("processes")[0]["role"] == "verifier")
    agent.kill_daemon()
    agent.until(lambda: agent.nodes()["a"]["state"] == "running")
    gate.touch()
    agent.until(lambda: agent.nodes()["a"]["state"] == "achieved")
    started = [e for e in agent.history() if e["kind"] == "attempt_started"]
    assert [e["payload"]["role"] for e in started] == ["worker", "verifier"]


def mcp(tool: str, **arguments: object) -> dict[str, object]:
    """A step: a call to our MCP server."""
    return {"mcp": {"tool": tool, "arguments": arguments}}


def test_a_child_hands_in_its_result_and_reads_its_inputs_through_mcp(workspace: Workspace) -> None:
    long = "x" * 40_000
    agent = AgentWorkspace(
        workspace,
        [
            mcp("report_progress", text="begun"), mcp("report_discovery", title="More", spec="Do more"),
            mcp("read_input", name="a", offset=16_000),
            mcp("submit_result", output={"n": 1}), {"say": "what I say does not count"},
        ],
    )  # fmt: skip
    text = f"nodes:\n  - {{ id: a, run: 'printf {long}' }}\n  - {{ id: b, worker: build, needs: [a], prompt: Do it }}\n"
    code, said = agent.run(text)
    assert code == 0, said
    assert agent.trace(did="mcp tools")[0]["tools"] == [
        "submit_result", "report_progress", "report_discovery", "ask_parent", "read_input",
    ]  # fmt: skip
    results = {line["tool"]: line for line in agent.trace(did="mcp")}
    assert not any(line["failed"] for line in results.values())
    read = results["read_input"]["text"]
    assert read.endswith('\n[bytes 16000 to 32384 of 40000; read_input {"name":"a","offset":32384}]')
    assert workspace.graphd("output", "b", "--graph", "@last").stdout.strip() == '{"n":1}'
    assert "begun" in workspace.graphd("logs", "b", "--graph", "@last").stdout
    (prompt,) = agent.trace(got="session/prompt")
    assert "read_input" in prompt["params"]["prompt"][0]["text"]
    assert not workspace.processes().keys() - set(workspace.daemons())


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_question_and_a_result_outlive_the_daemon(workspace: Workspace, *, is_killed: bool) -> None:
    agent = AgentWorkspace(workspace, [mcp("submit_result", output="kept"), mcp("ask_parent", question="Which host?")])
    code, said = agent.run(ONE)
    assert code == 6, said
    (ask,) = agent.asks()
    if is_killed:
        agent.kill_daemon()
    else:
        assert workspace.graphd("stop").returncode == 0
    answered = workspace.graphd("answer", ask["id"], "--text", "staging")
    assert answered.returncode == 0, answered.stderr
    agent.until(lambda: agent.nodes()["b"]["state"] == "achieved")
    (told,) = agent.trace(did="mcp", tool="ask_parent")
    assert told["text"].endswith("answered:\nstaging")
    assert workspace.graphd("output", "a", "--graph", "@last").stdout.strip() == "kept"
    assert len(agent.trace(got="session/prompt")) == 1


def interrupted(workspace: Workspace, *, is_session_gone: bool, is_restored: bool = True) -> str:
    """What the agent is told after its attempt was stopped in the middle, in a work tree with a new file."""
    subprocess.run(["git", "init", "-q", str(workspace.root)], check=True)
    agent = AgentWorkspace(workspace, [{"say": "I wrote half of it"}, asks(), {"say": "x"}], [{"say": "went on"}])
    if not is_restored:
        settings = workspace.base / "config" / "settings.json"
        settings.write_text(settings.read_text().replace('["resume", "load"]', '["none"]'))
    agent.run(ONE)
    assert workspace.graphd("pause", "--stop", "--wait").returncode == 0
    (workspace.root / "half.txt").write_text("half")
    if is_session_gone:
        for kept in (workspace.base / "fake-sessions").iterdir():
            kept.unlink()
    workspace.graphd("resume")
    agent.until(lambda: len(agent.trace(got="session/prompt")) > 1)
    return str(agent.trace(got="session/prompt")[1]["params"]["prompt"][0]["text"])


def test_a_session_that_goes_on_is_told_what_the_work_tree_looks_like(workspace: Workspace) -> None:
    told = interrupted(workspace, is_session_gone=False)
    assert told.startswith("You were interrupted")
    assert "\n?? half.txt\n" in told
    assert "I wrote half of it" not in told


@pytest.mark.parametrize("is_restored", [True, False])
def test_a_session_that_can_not_go_on_is_replaced_by_one_that_is_told_its_end(
    workspace: Workspace, is_restored: bool
) -> None:
    told = interrupted(workspace, is_session_gone=True, is_restored=is_restored)
    assert told.startswith("Do the thing")
    assert "could not be taken up again" in told
    assert "\n?? half.txt\n" in told
    assert "I wrote half of it" in told


def test_a_check_reads_the_whole_of_a_long_result(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "x" * 100_000}])
    command = 'test "$(wc -c < $GRAPHD_INPUT_DIR/result)" = 100000'
    code, said = agent.run(CHECKED.format(verify="{ run: '" + command + "' }") + "    retry: { max: 0 }\n")
    assert code == 0, said
    assert agent.nodes()["a"]["state"] == "achieved"


def test_a_check_by_an_agent_finds_it_after_a_restart_though_no_worker_is_one(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "unused"}], judge=([{"say": '{"verdict": "achieved", "gaps": []}'}],))
    gate = workspace.base / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo made"
    verify = "{ worker_type: verify, criteria: it is made }"
    agent.run(f"nodes:\n  - {{ id: a, run: '{wait}', verify: {verify} }}\n", "--detach")
    agent.until(lambda: bool(agent.read("processes")))
    agent.kill_daemon()
    agent.until(lambda: agent.nodes()["a"]["state"] == "running")
    gate.touch()
    agent.until(lambda: agent.nodes()["a"]["state"] in ("achieved", "failed"))
    assert agent.nodes()["a"]["state"] == "achieved", agent.nodes()["a"]["failure"]


def test_a_part_of_a_result_that_is_too_long_for_the_database_is_found(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "unused"}])
    (workspace.root / "long.py").write_text(
        'import json; print(json.dumps({"pad": "x" * 100_000, "k": {"v": "found"}}))'
    )
    text = f"nodes:\n  - {{ id: a, run: '{sys.executable} long.py' }}\n"
    text += "  - { id: b, needs: [a], input_mapping: { v: a.output.k.v }, run: 'cat $GRAPHD_INPUT_DIR/v' }\n"
    code, said = agent.run(text)
    assert code == 0, said
    assert workspace.graphd("output", "b", "--graph", "@last").stdout.strip() == "found"


def test_a_result_that_breaks_its_contract_is_mended_in_its_session_before_the_check_sees_it(
    workspace: Workspace,
) -> None:
    seen = workspace.base / "seen"
    agent = AgentWorkspace(workspace, [{"say": '{"m": 1}'}], [{"say": '{"n": 2}'}])
    text = CHECKED.format(verify=f'{{ run: "cat $GRAPHD_INPUT_DIR/result >> {seen}" }}')
    code, said = agent.run(text + "    output_schema: { type: object, required: [n] }\n")
    assert code == 0, said
    assert seen.read_text() == '{"n": 2}'
    first, second = agent.trace(got="session/prompt")
    assert "breaks output_schema at $" in second["params"]["prompt"][0]["text"]
    assert first["params"]["sessionId"] == second["params"]["sessionId"]


def test_a_contract_without_a_check_is_asked_for_once_more(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": '{"m": 1}'}])
    plan = "nodes: [{ id: a, worker: build, prompt: x, retry: { max: 0 }, output_schema: { required: [n] } }]"
    assert agent.run(plan)[0] == 1
    assert len(agent.trace(got="session/prompt")) == 2
    failure = agent.nodes()["a"]["failure"]
    assert failure["class"] == "verdict_fail"
    assert failure["reason"].startswith("its result breaks output_schema at $")


def test_files_that_were_missing_are_asked_for_and_what_is_said_then_is_the_result(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [{"say": "one"}], [{"files": {"made.txt": "x"}}, {"say": "two"}])
    code, said = agent.run("nodes: [{ id: a, worker: build, prompt: x, artifacts: ['made.*'] }]")
    assert code == 0, said
    assert workspace.graphd("output", "--graph", "@last").stdout.strip() == "two"
    assert "made.*" in agent.trace(got="session/prompt")[1]["params"]["prompt"][0]["text"]
