"""The shipped profiles of programs that do one turn and end (driver `command`). None of them can ask: `full` only.

Measured with the versions named here. Source: execution.md, Drivers.
"""

from typing import Final

from graphd.base.text import t
from graphd.children.profiles.agents import (
    CLAUDE_MODELS,
    CLAUDE_NAMES,
    CLAUDE_WEATHER,
    CODEX_NAMES,
    CODEX_WEATHER,
    GEMINI_MODELS,
    GEMINI_NAMES,
    GEMINI_WEATHER,
    OPENCODE_NAMES,
    OPENCODE_WEATHER,
)
from graphd.children.profiles.shape import Headless, Profile

CLAUDE_HEADLESS: Final = Profile(
    name="claude-headless", driver="command", command=("claude",), needs=t("node 22 or newer"),
    install="npm install -g @anthropic-ai/claude-code", login="claude auth login, or ANTHROPIC_API_KEY",
    measured="2.1.332", env=(("DISABLE_AUTOUPDATER", "1"),), pass_env=CLAUDE_NAMES, mem_mb=350, restore=("resume",),
    reports="both", asks_permission=False, models=CLAUDE_MODELS, weather=CLAUDE_WEATHER,
    headless=Headless(
        "claude", fresh=("--session-id", "{session}"), resume=("--resume", "{session}"),
        model=("--model", "{model}"), full=("--permission-mode", "bypassPermissions"),
        gone="no conversation found",
    ),
    opens=("claude", "--resume", "{session}"),
)  # fmt: skip

CODEX_HEADLESS: Final = Profile(
    name="codex-headless", driver="command", command=("codex",), install="npm install -g @openai/codex",
    login="codex login, or OPENAI_API_KEY", measured="0.171.0", pass_env=CODEX_NAMES, mem_mb=250, restore=("resume",),
    reports="tokens", asks_permission=False, weather=CODEX_WEATHER,
    thinking=(("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "xhigh")),
    headless=Headless(
        "codex", resume=("resume", "{session}"), model=("-m", "{model}"),
        thinking=("-c", 'model_reasoning_effort="{thinking}"'), full=("--dangerously-bypass-approvals-and-sandbox",),
        gone="no rollout found",
    ),
    opens=("codex", "resume", "{session}"),
)  # fmt: skip

OPENCODE_HEADLESS: Final = Profile(
    name="opencode-headless", driver="command", command=("opencode",), install="npm install -g opencode-ai",
    login="opencode auth login", measured="1.18.33", env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"),),
    pass_env=OPENCODE_NAMES, mem_mb=700, restore=("resume",), reports="both", asks_permission=False,
    weather=OPENCODE_WEATHER,
    thinking=(("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "max")),
    headless=Headless(
        "opencode", resume=("-s", "{session}"), model=("-m", "{model}"), thinking=("--variant", "{thinking}"),
        full=("--auto",), gone="session not found",
    ),
    opens=("opencode", "--session", "{session}"),
)  # fmt: skip

GEMINI_HEADLESS: Final = Profile(
    name="gemini-headless", driver="command", command=("gemini",), install="npm install -g @google/gemini-cli",
    login="gemini, once at a terminal, or GEMINI_API_KEY", measured="0.61.0", pass_env=GEMINI_NAMES, mem_mb=450,
    restore=("resume",), reports="tokens", asks_permission=False, models=GEMINI_MODELS, weather=GEMINI_WEATHER,
    headless=Headless(
        "gemini", fresh=("--session-id", "{session}"), resume=("--resume", "{session}"), model=("-m", "{model}"),
        full=("--approval-mode", "yolo"),
        gone="invalid session identifier",
    ),
)  # fmt: skip

HEADLESS: Final = (CLAUDE_HEADLESS, CODEX_HEADLESS, OPENCODE_HEADLESS, GEMINI_HEADLESS)
