"""What a client says of itself in `graphd/hello`. Standard library alone.

Source: spec protocol.md and execution.md, Environment.

Written by hand beside the wire models, because an editor waits for it; a test reads it with `HelloParams`.
"""

from __future__ import annotations

import os

from graphd import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROTOCOL_RANGE = (1, 1)

PASSED_NAMES = frozenset(
    [
        "PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "TZ", "VIRTUAL_ENV", "SSH_AUTH_SOCK",
        "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE",
    ]
)  # fmt: skip
ASKED_NAMES = frozenset(
    [
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CODEX_API_KEY", "CODEX_HOME",
        "GEMINI_API_KEY", "GEMINI_CLI_TRUST_WORKSPACE", "GENERIC_API_KEY", "GENERIC_BASE_URL", "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL", "HERMES_HOME", "MISTRAL_API_KEY", "OPENAI_API_KEY",
        "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENROUTER_API_KEY",
        "VIBE_HOME",
    ]
)  # fmt: skip
"""What the profiles that ship ask for: a client knows the wire, not the agents. A test holds both to each other."""
PASSED_PREFIXES = ("LC_", "XDG_")


class Greeting:
    """Who connects.

    Its `client` name, whether a person can answer, and the parent agent `owner` it speaks for.
    """

    __slots__ = ("client", "is_interactive", "owner")

    def __init__(self, client: str, *, is_interactive: bool = False, owner: str | None = None) -> None:
        self.client = client
        self.is_interactive = is_interactive
        self.owner = owner

    def params(self, workspace: str, protocol: tuple[int, int] = PROTOCOL_RANGE) -> dict[str, Any]:
        """The params of `graphd/hello` from this process, now.

        Names that are no UTF-8 are left out, never mangled.
        """
        params: dict[str, Any] = {
            "client": {"name": self.client, "version": __version__, "pid": os.getpid()},
            "protocol": list(protocol),
            "workspace": workspace,
            "cwd": _current_folder(),
            "env": environment_snapshot(os.environ),
            "interactive": self.is_interactive,
            "locale": locale_of(os.environ),
            "owner": {"id": self.owner} if self.owner else None,
            "attemptToken": attempt_token(),
        }
        return {name: value for name, value in params.items() if value is not None and _is_sendable(value)}


def environment_snapshot(environment: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed part of an environment that a graph's children are given, with what agents ask for."""
    wanted = PASSED_NAMES | ASKED_NAMES | _asked_names()
    return {
        name: value
        for name, value in environment.items()
        if (name in wanted or name.startswith(PASSED_PREFIXES)) and _is_sendable(name + value)
    }


def _asked_names() -> set[str]:
    """The variables that agents in the user's settings ask for. A file that can't be used is the daemon's to tell."""
    from graphd.client.paths import config_folder

    try:
        with open(os.path.join(config_folder(), "settings.json"), "rb") as file:  # noqa: PTH118, PTH123 - as below
            content = file.read(1 << 20)
        if b'"passEnv"' not in content:
            return set()
        import json  # only here: an editor waits for this module

        agents = json.loads(content)["agents"].values()
        return {name for agent in agents for name in agent.get("passEnv", ()) if isinstance(name, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def locale_of(environment: Mapping[str, str]) -> str | None:
    """The language of messages as a tag (`zh-CN`), or None where none is set."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        tag = environment.get(name, "").partition(".")[0].partition("@")[0]
        if tag:
            return "en" if tag in ("C", "POSIX") else tag.replace("_", "-")
    return None


def attempt_token() -> str | None:
    """The token in `$GRAPHD_TOKEN_FILE`, for a client inside an attempt; None where there is none to read."""
    path = os.environ.get("GRAPHD_TOKEN_FILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - see the module's first lines: no pathlib here
            return file.read(4096).strip() or None
    except (OSError, ValueError):
        return None


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except FileNotFoundError:
        return None


def _is_sendable(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
