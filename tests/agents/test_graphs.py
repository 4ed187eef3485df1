"""Whole graphs with real agents: the seed's workflow file on a git repository, and one of four kinds of children."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents.bare import require
from tests.agents.through import Through, settings_of
from tests.kit.model_server import ModelServer
from tests.kit.real_agents import AGENTS, CACHE, ROOT
from tests.kit.through_results import noted
from tests.kit.workspaces import Workspace

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

SEED = ROOT / "tests" / "data" / "workflows" / "seed" / "parallel-migrate.yaml"
DISCOVER = "列出所有需要迁移到新 API 的包。"
AUTH, SERVER = "把 auth 包迁移到新 API。", "把 server 包迁移到新 API。"
ASSEMBLE = "跑集成测试,汇总结果。"
OLD = "import old_api\n"
CHECK = "grep -l new_api auth/api.py server/api.py"


def migrates(package: str) -> list[dict[str, Any]]:
    """What the model says to the node of one package: held until both were asked."""
    content = f"import new_api  # {package}\n"
    return [{"hold": "both", "write": {"path": f"{package}/api.py", "content": content}}, {"say": f"{package}: done"}]


SCRIPTS = {
    DISCOVER: [{"say": "auth and server"}],
    AUTH: migrates("auth"),
    SERVER: migrates("server"),
    ASSEMBLE: [{"shell": f"{CHECK} > integration.txt"}, {"say": "both pass"}],
}


def repository(folder: Path) -> None:
    """A small project under git, with three packages on the old API, of which one is to stay."""
    for package in ("auth", "server", "docs"):
        (folder / package).mkdir()
        (folder / package / "api.py").write_text(OLD)
    shutil.copy(SEED, folder / SEED.name)
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "Old API")):
        subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True)


def changed(folder: Path) -> list[str]:
    """What git says is not as it was committed."""
    words = ("git", "status", "--porcelain", "--untracked-files=all")
    said = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    return sorted(line[3:] for line in said.splitlines())


def asked_of(server: ModelServer, phrase: str) -> list[str]:
    """Everything that the model was told by the agent of one node."""
    return ["\n".join(row.user_texts) for row in server.scripted if any(phrase in text for text in row.user_texts)]


def test_the_seeds_workflow_migrates_a_repository(workspace: Workspace) -> None:
    require("opencode")
    with ModelServer(by_phrase=SCRIPTS) as server, noted("opencode", "migrated"):
        repository(workspace.root)
        at = Through("opencode", workspace, server)
        ran = workspace.graphd("run", SEED.name, "--yes", "--detach")
        assert ran.returncode == 0, ran.stderr
        server.wait_for(lambda rows: len({row.script_id for row in rows if row.step == 0}) == 3, 120)
        at.wait(
            lambda: [at.nodes()[f"migrate-{package}"]["state"] for package in ("auth", "server")] == ["running"] * 2
        )
        assert at.nodes()["assemble"]["state"] == "waiting"
        assert changed(workspace.root) == [], "neither began to write before both were there"
        server.release("both")
        (ask,) = at.wait(at.asks)
        assert ask["node"] == "assemble"
        assert workspace.graphd("answer", ask["id"], "allow").returncode == 0
        at.wait(lambda: at.graph()["status"] == "complete")
        check_tree(workspace.root)
        check_told(server)


def check_tree(folder: Path) -> None:
    """Each package was changed by its own node; nothing else was touched."""
    assert [line.strip() for line in changed(folder) if line.strip()] == [
        "auth/api.py",
        "integration.txt",
        "server/api.py",
    ]
    assert (folder / "auth/api.py").read_text() == "import new_api  # auth\n"
    assert (folder / "server/api.py").read_text() == "import new_api  # server\n"
    assert (folder / "integration.txt").read_text().split() == ["auth/api.py", "server/api.py"]


def check_told(server: ModelServer) -> None:
    """Each node was told the outputs of what it needs, and of nothing else."""
    for phrase in (AUTH, SERVER):
        told = asked_of(server, phrase)
        assert told
        assert all("auth and server" in text and ": done" not in text for text in told)
    told = asked_of(server, ASSEMBLE)
    assert told
    assert all("auth: done" in text and "server: done" in text for text in told)


def headless() -> dict[str, Any]:
    """claude without a protocol: the program that its ACP package brings along."""
    (program,) = (CACHE / "main" / "node_modules").glob("@anthropic-ai/claude-agent-sdk-linux-*[!l]/claude")
    return {"command": [str(program)]}


def test_a_graph_of_shell_two_acp_agents_and_a_headless_one(workspace: Workspace) -> None:
    require("claude")
    require("opencode")
    with ModelServer() as server, noted("opencode", "mixed"), noted("claude", "mixed"):
        at = Through("opencode", workspace, server)
        agents = {
            name: settings_of(AGENTS[name], workspace.base / f"home-{name}", server) for name in ("opencode", "claude")
        }
        agents["claude-headless"] = agents["claude"] | headless()
        agents["claude-headless"]["env"] = agents["claude"]["env"] | {
            "IS_SANDBOX": "1"
        }  # else it refuses full permissions to root
        workers = {
            "build": {"agent": "opencode"}, "review": {"agent": "claude"},
            "synthesize": {"agent": "claude-headless", "permissions": "full"},
        }  # fmt: skip
        workspace.settings(json.dumps({"agents": agents, "workers": workers}))
        write = {"write": {"path": "made.txt", "content": "by opencode"}}
        at.begin_nodes(
            {"id": "list", "worker": "shell", "prompt": "echo from the shell"},
            {**at.made("make", write, {"say": "made it"}), "depends_on": ["list"]},
            {**at.made("look", {"read": {"path": "made.txt"}}, {"say": "seen it"}), "worker": "review",
                "depends_on": ["make"]},
            {**at.made("sum", {"shell": "cp made.txt sum.txt"}, {"say": "all of it"}), "worker": "synthesize",
                "depends_on": ["list", "make", "look"], "required": True},
        )  # fmt: skip
        at.wait(lambda: at.graph()["status"] not in ("active", "running"))
        assert at.graph()["status"] == "complete", at.nodes()
        profiles = {event["node"]: event["payload"]["profile"] for event in at.events("attempt_started")}
        assert profiles == {"list": "shell", "make": "opencode", "look": "claude", "sum": "claude-headless"}
        assert (workspace.root / "sum.txt").read_text() == "by opencode"
        last = server.scripted[-1].user_texts
        assert all(any(said in text for text in last) for said in ("from the shell", "made it", "seen it"))
        assert workspace.graphd("output", "sum", "--graph", "@last").stdout.strip() == "all of it"
        assert not workspace.keepers()
