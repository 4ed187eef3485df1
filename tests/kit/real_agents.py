"""Real agent programs against the scripted model server: where they lie, how each is started, and what it must be told.

Nothing here is a default of the product: each agent gets a home of its own, with a file or variables that point it at a
server on 127.0.0.1 and turn its calls to anywhere else off. `agent_setup` installs them.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = Path(os.environ.get("AGENTS_CACHE") or ROOT / ".agents-cache")
INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SHELL")
KEY: Final = "scripted-key"
SILENT: Final = "it tries again in silence"
NEVER_ASKS: Final = "it never asks"
_Files = Callable[[str], dict[str, str]]


@dataclass(frozen=True)
class RealAgent:
    """One agent program. `mode`: what `session/set_mode` must say so that it asks for permission, None: nothing.
    `reads_through_us`: it understands our answer that a file is not there; one that doesn't can't make new
    files. `escalates`: it asks only for what is to leave its sandbox. `is_restored`: it takes a session up again; one
    that doesn't gets a fresh one, told how the other ended. `lacks`: scenario → why it can't be played with it."""

    name: str
    package: str
    version: str
    part: str
    command: tuple[str, ...]
    mode: str | None = None
    reads_through_us: bool = True
    escalates: bool = False
    is_python: bool = False
    is_restored: bool = True
    lacks: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    files: _Files = lambda url: {}

    @property
    def bin(self) -> Path:
        """The folder of its executable."""
        if self.is_python:
            return CACHE / self.part / "venv" / "bin"
        return CACHE / self.part / "node_modules" / ".bin"

    @property
    def is_there(self) -> bool:
        """It is installed, in this version."""
        return (CACHE / self.part / ".ready").is_file()

    def argv(self) -> tuple[str, ...]:
        """How it is started, the program as a path."""
        return (str(self.bin / self.command[0]), *self.command[1:])

    def environment(self, home: Path, url: str) -> dict[str, str]:
        """What it gets; writes its configuration into `home`."""
        for name, text in self.files(url).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        folders = [str(self.bin), *map(str, node_folders()), kept.get("PATH", os.defpath)]
        told = {name: value.format(url=url, home=home) for name, value in self.variables.items()}
        return {**kept, "PATH": os.pathsep.join(folders), "HOME": str(home), "TMPDIR": str(home), **told}


def node_folders() -> list[Path]:
    """The folder of the pinned node, where it is installed; it goes before any other on PATH."""
    return sorted((CACHE / "main" / "node_modules").glob("node-linux-*/bin"))


def _opencode(url: str) -> dict[str, str]:
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "local", "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": model},
    }  # fmt: skip
    settings = {
        "model": "local/scripted", "small_model": "local/scripted", "autoupdate": False, "share": "disabled",
        "permission": {"edit": "ask", "bash": "ask"}, "provider": {"local": provider},
    }  # fmt: skip
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _codex(url: str, first: str = "") -> dict[str, str]:
    return {
        ".codex/config.toml": f"""model = "scripted"
model_provider = "local"
{first}
[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
request_max_retries = 3
stream_max_retries = 3
"""
    }


def _codex_zed(url: str) -> dict[str, str]:
    """It asks only under this policy; its sandbox wants bubblewrap, and without that each command dies unseen."""
    return _codex(url, 'approval_policy = "untrusted"\nsandbox_mode = "danger-full-access"\n')


def _gemini(url: str) -> dict[str, str]:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _qwen(url: str) -> dict[str, str]:
    settings = {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}}
    return {".qwen/settings.json": json.dumps(settings)}


def _pi(url: str) -> dict[str, str]:
    model = {"id": "scripted", "contextWindow": 200000, "maxTokens": 8000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    return {
        ".pi/agent/models.json": json.dumps({"providers": {"local": provider}}),
        ".pi/agent/settings.json": json.dumps({"defaultProvider": "local", "defaultModel": "scripted"}),
    }


def _vibe(url: str) -> dict[str, str]:
    return {
        ".vibe/config.toml": f"""active_model = "scripted"
enable_telemetry = false
enable_update_checks = false

[[providers]]
name = "local"
api_base = "{url}/v1"
api_key_env_var = "LOCAL_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "scripted"
provider = "local"
alias = "scripted"
"""
    }


AGENTS: Final[dict[str, RealAgent]] = {
    agent.name: agent
    for agent in (
        RealAgent(
            "codex-zed", "@zed-industries/codex-acp", "0.16.0", "small", ("codex-acp",),
            variables={"LOCAL_KEY": KEY, "CODEX_HOME": "{home}/.codex"}, files=_codex_zed,
        ),
        RealAgent(
            "opencode", "opencode-ai", "1.18.33", "main", ("opencode", "acp"),
            variables={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}, files=_opencode,
        ),
        RealAgent(
            "claude", "@agentclientprotocol/claude-agent-acp", "0.101.0", "main", ("claude-agent-acp",),
            mode="default",
            variables={
                "ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_MODEL": "scripted",
                "ANTHROPIC_SMALL_FAST_MODEL": "scripted-small", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_MAX_RETRIES": "3",
                "ENABLE_TOOL_SEARCH": "false",
            },
        ),
        RealAgent(
            "codex", "@agentclientprotocol/codex-acp", "2.6.0", "more", ("codex-acp",), mode="workspace-write",
            escalates=True,
            variables={"LOCAL_KEY": KEY, "CODEX_HOME": "{home}/.codex"}, files=_codex,
        ),
        RealAgent(
            "gemini", "@google/gemini-cli", "0.61.0", "more", ("gemini", "--acp", "-m", "gemini-2.5-flash"),
            mode="default", reads_through_us=False, is_restored=False, lacks={"cooled_down": SILENT},
            variables={
                "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
            files=_gemini,
        ),
        RealAgent(
            "qwen", "@qwen-code/qwen-code", "0.24.4", "more", ("qwen", "--acp"), mode="default",
            lacks={"cooled_down": SILENT},
            variables={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "scripted"}, files=_qwen,
        ),
        RealAgent(
            "pi", "pi-acp", "0.0.34", "more", ("pi-acp",), variables={"PI_OFFLINE": "1"}, files=_pi,
            lacks={"rejected": NEVER_ASKS, "asked_over_death": NEVER_ASKS},
        ),
        RealAgent(
            "vibe", "mistral-vibe", "3.0.2", "vibe", ("vibe-acp",), mode="ask", is_python=True,
            lacks={"cooled_down": SILENT}, variables={"LOCAL_KEY": KEY}, files=_vibe,
        ),
    )
}  # fmt: skip


def has_npm() -> bool:
    """The programs that the set-up needs are there."""
    return shutil.which("npm") is not None and shutil.which("node") is not None
