"""The shipped profiles of agents that speak the Agent Client Protocol, in the order in which workers choose.

Everything here was measured with the version that `measured` names, but for those without one: they are known from
their documents. Agents that ask come first. kimi-cli is not here: it says that it is no longer maintained, and exits.
"""

from typing import Final

from graphd.base.text import t
from graphd.children.profiles.shape import Models, Profile, Weather

CLAUDE_NAMES: Final = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
)  # fmt: skip
CODEX_NAMES: Final = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME")
GEMINI_NAMES: Final = (
    "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GEMINI_CLI_TRUST_WORKSPACE",
)  # fmt: skip
OPENCODE_NAMES: Final = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENROUTER_API_KEY",
)  # fmt: skip
CLAUDE_MODELS: Final = Models("opus", "sonnet", "haiku")
GEMINI_MODELS: Final = Models("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash")
CLAUDE_WEATHER: Final = Weather(("overloaded_error", "rate_limit_error", r"usage limit reached"))
CODEX_WEATHER: Final = Weather(
    (
        r"hit your usage.?limit",
        r"usage.?limit(?: has been)?.reached",
        r"stream disconnected before completion",
        r"exceeded retry limit",
        r"experiencing high demand",
    )  # fmt: skip
)
GEMINI_WEATHER: Final = Weather(
    ("RESOURCE_EXHAUSTED", r"status\W{1,6}UNAVAILABLE", r"exhausted your (?:daily )?(?:quota|capacity)")
)
OPENCODE_WEATHER: Final = Weather(("AI_RetryError", "ProviderOverloaded", "ServiceUnavailable"))

OPENCODE: Final = Profile(
    name="opencode", driver="acp", command=("opencode", "acp"), install="npm install -g opencode-ai",
    login="opencode auth login", measured="1.18.33", standing="tested",
    env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_PERMISSION", '{"edit":"ask","bash":"ask","webfetch":"ask"}')),
    pass_env=OPENCODE_NAMES, mem_mb=700, restore=("resume", "load"), reports="both", weather=OPENCODE_WEATHER,
    opens=("opencode", "--session", "{session}"),
)  # fmt: skip

CLAUDE: Final = Profile(
    name="claude", driver="acp", command=("claude-agent-acp",), needs=t("node 22 or newer"),
    install="npm install -g @agentclientprotocol/claude-agent-acp", login="claude auth login, or ANTHROPIC_API_KEY",
    measured="0.101.0", standing="tested", env=(("DISABLE_AUTOUPDATER", "1"),), pass_env=CLAUDE_NAMES, mem_mb=350,
    restore=("resume", "load"), set_mode="default", reports="both", models=CLAUDE_MODELS, weather=CLAUDE_WEATHER,
    opens=("claude", "--resume", "{session}"),
)  # fmt: skip

CODEX: Final = Profile(
    name="codex", driver="acp", command=("codex-acp",), install="npm install -g @agentclientprotocol/codex-acp",
    login="codex login, or OPENAI_API_KEY", measured="2.6.0", pass_env=CODEX_NAMES, mem_mb=350,
    restore=("resume", "load"), set_mode="workspace-write", reports="tokens", weather=CODEX_WEATHER,
    thinking=(("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "xhigh")),
    opens=("codex", "resume", "{session}"),
)  # fmt: skip

CODEX_ZED: Final = Profile(
    name="codex-zed", driver="acp", command=("codex-acp",), install="npm install -g @zed-industries/codex-acp",
    login="codex login, or OPENAI_API_KEY", measured="0.16.0", standing="tested", pass_env=CODEX_NAMES, mem_mb=200,
    restore=("resume", "load"), set_mode="full-access", reports="tokens", asks_permission=False, weather=CODEX_WEATHER,
    opens=("codex", "resume", "{session}"),
)  # fmt: skip

GEMINI: Final = Profile(
    name="gemini", driver="acp", command=("gemini", "--acp"), install="npm install -g @google/gemini-cli",
    login="gemini, once at a terminal, or GEMINI_API_KEY", measured="0.61.0", pass_env=GEMINI_NAMES, mem_mb=450,
    restore=("load",), set_mode="default", reports="tokens", models=GEMINI_MODELS, weather=GEMINI_WEATHER,
)  # fmt: skip

QWEN: Final = Profile(
    name="qwen", driver="acp", command=("qwen", "--acp"), needs=t("node 22 or newer"),
    install="npm install -g @qwen-code/qwen-code", login="qwen, once at a terminal, or OPENAI_API_KEY",
    measured="0.24.4", pass_env=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"), mem_mb=550,
    restore=("resume", "load"), set_mode="default", reports="tokens",
)  # fmt: skip

VIBE: Final = Profile(
    name="vibe", driver="acp", command=("vibe-acp",), needs=t("Python 3.12 or newer"),
    install="pip install mistral-vibe", login="vibe --setup, or MISTRAL_API_KEY", measured="3.0.2",
    pass_env=("MISTRAL_API_KEY", "VIBE_HOME"), mem_mb=200, restore=("load",), set_mode="ask", reports="tokens",
)  # fmt: skip

HERMES: Final = Profile(
    name="hermes", driver="acp", command=("hermes-acp",), needs=t("Python 3.12 or newer"),
    install='pip install "hermes-agent[acp]"', login="hermes setup", measured="0.19.0",
    pass_env=("OPENROUTER_API_KEY", "HERMES_HOME"), mem_mb=150, restore=("load",), set_mode="default",
)  # fmt: skip

DEEPAGENTS: Final = Profile(
    name="deepagents", driver="acp", command=(), needs=t("a program of yours around the library"),
    install="pip install deepagents-acp", login=t("as your program says"), measured="0.0.13", mem_mb=150,
    restore=("load",),
)  # fmt: skip

GOOSE: Final = Profile(
    name="goose", driver="acp", command=("goose", "acp"), install=t("goose, as its documents say"), mem_mb=300,
    login="goose configure", restore=("load",),
)  # fmt: skip

PI: Final = Profile(
    name="pi", driver="acp", command=("pi-acp",), needs=t("node 22 or newer"),
    install="npm install -g pi-acp @earendil-works/pi-coding-agent", login="pi, then /login", measured="0.0.34",
    pass_env=("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), mem_mb=250, restore=("load",), asks_permission=False,
)  # fmt: skip

FAST_AGENT: Final = Profile(
    name="fast-agent", driver="acp", command=("fast-agent-acp", "-x"), needs=t("Python 3.13 or newer"),
    install="pip install fast-agent-mcp", login="fast-agent auth login, or GENERIC_API_KEY", measured="0.10.48",
    pass_env=("GENERIC_API_KEY", "GENERIC_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"), mem_mb=200,
    restore=("load",), asks_permission=False,
)  # fmt: skip

COPILOT: Final = Profile(
    name="copilot", driver="acp", command=("copilot", "--acp", "--stdio"), install="npm install -g @github/copilot",
    login="copilot, then /login", mem_mb=350, restore=("load",), asks_permission=False,
)  # fmt: skip

TALKING: Final = (
    OPENCODE, CLAUDE, CODEX, GEMINI, QWEN, VIBE, HERMES, DEEPAGENTS, GOOSE,
    PI, FAST_AGENT, COPILOT, CODEX_ZED,
)  # fmt: skip
