"""What a profile and a worker are: how one agent program is started, and what a node may ask of it.

Profiles are data: which program, what it reports, what it lies about. Code for a kind of agent is in its driver.
Source: execution.md, Drivers and Settings; the figures of the shipped ones were measured.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from graphd_protocol.states import Permissions

Tier: TypeAlias = Literal["advanced", "standard", "small"]
Thinking: TypeAlias = Literal["low", "medium", "high", "max"]
Reports: TypeAlias = Literal["tokens", "cost", "both", "none", "not_applicable"]
Restore: TypeAlias = Literal["resume", "load", "none"]

PERMISSIONS: Final[tuple[Permissions, ...]] = get_args(Permissions)
"""From the least to the most."""
TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
THINKING: Final[tuple[Thinking, ...]] = get_args(Thinking)
ESTIMATE_TOKENS: Final = 50_000


@dataclass(slots=True, frozen=True)
class Worker:
    """What a worker may do, and what it wants; None: what the profile has. `agent` None: the default one."""

    permissions: Permissions | None
    model: str | None
    agent: str | None = None
    thinking: Thinking | None = None
    mode: str | None = None


@dataclass(slots=True, frozen=True)
class Models:
    """The agent's own names of its models; None: what it takes by itself."""

    advanced: str | None = None
    standard: str | None = None
    small: str | None = None


@dataclass(slots=True, frozen=True)
class Weather:
    """How an agent says that its provider is busy: patterns over the text of an error, without regard to case. They are
    looked for in short answers too, so they must be words of an error, never words that an answer may well have.
    """

    patterns: tuple[str, ...] = ()
    cooldown_s: float = 30.0


@dataclass(slots=True, frozen=True)
class Headless:
    """How a program of the driver `command` is told what. `dialect` names what its lines mean.

    In the options `{session}`, `{model}` and `{thinking}` are replaced. `fresh` opens a session whose id we choose,
    where the program lets us; `full` is what it takes to act without asking. `gone`: how it says that a session to
    resume is not there (a pattern over its words, without regard to case).
    """

    dialect: str
    fresh: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    gone: str = ""


@dataclass(slots=True, frozen=True)
class Profile:
    """How to start one agent program, and what is known of it. Durations in s, memory in MB.

    `restore`: ways to go on with a session, the best first. What an agent of the driver `acp` can't be believed in is
    in that driver's own table.
    """

    name: str
    driver: str
    command: tuple[str, ...]
    install: str
    login: str = ""
    standing: Literal["tested", "documented"] = "documented"
    measured: str = ""
    version_flag: str = "--version"
    needs: str = ""
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    home: str | None = None
    command_prefix: tuple[str, ...] = ()
    max_processes: int | None = None
    mem_mb: int = 200
    init_timeout_s: float = 60.0
    restore: tuple[Restore, ...] = ("none",)
    set_mode: str | None = None
    reports: Reports = "none"
    asks_permission: bool = True
    models: Models = Models()
    thinking: tuple[tuple[Thinking, str], ...] = ()
    estimate: int = ESTIMATE_TOKENS
    weather: Weather = Weather()
    headless: Headless | None = None
    opens: tuple[str, ...] = ()
    """The agent's own program on a session, for a person; `{session}` is replaced. (): none is known."""
    origin: Literal["shipped", "settings"] = field(default="shipped", compare=False)

    @property
    def program(self) -> str:
        """What is looked for on PATH; empty where the user has to name it."""
        words = (*self.command_prefix, *self.command) if self.command else ()
        return words[0] if words else ""

    @property
    def programs(self) -> tuple[str, ...]:
        """Everything that must be there: what wraps the agent, and the agent."""
        return (*self.command_prefix[:1], *self.command[:1]) if self.command else ()
