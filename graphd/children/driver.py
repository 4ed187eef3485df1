"""The contract between a supervisor and one attempt, and between an attempt and its kind of agent.

A driver says how an agent is started and what its lines mean. It has no process and no socket of its own: `run` has
these. Its fold reads journal records and nothing else, so a live run and a recovered one go through the same code.
Source: execution.md, Exactly once over a crash, Drivers.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from graphd.children.acp.quirks import Quirks
from graphd.children.profiles.shape import Headless
from graphd.children.telling import Contract, Reader
from graphd.core.commands import AttemptEnded
from graphd.core.model import Identity, Output
from graphd.core.talk import Line
from graphd_protocol.states import AttemptOutcome, FailureClass, Permissions, Role

if TYPE_CHECKING:
    from graphd.children.journal import Record


@dataclass(slots=True, frozen=True)
class Input:
    """One needed result. `path` is the upstream attempt's whole output, if that file still exists."""

    name: str
    text: str
    path: Path | None = None
    total_bytes: int | None = None


@dataclass(slots=True, frozen=True)
class Before:
    """What is known of an interrupted attempt: why it ended, its folder, and what is still wanted of its session."""

    cause: str
    folder: Path
    contract: Contract
    reader: Reader


@dataclass(slots=True, frozen=True)
class Order:
    """Everything that one attempt needs, made from committed state. Durations are in s on the monotonic clock."""

    graph: str
    node: str
    slug: str
    number: int
    role: Role
    cookie: str
    folder: Path
    profile: str
    spec: str
    inputs: tuple[Input, ...]
    environment: dict[str, str]
    cwd: Path
    workspace: Path
    variables: dict[str, str]
    timeout_s: float | None
    grace_s: float = 5.0
    linger_s: float = 900.0
    restart_argv: tuple[str, ...] = ()
    store: str = ""
    epoch: int = 0
    output_limit_bytes: int = 16 << 20
    driver: str = "shell"
    cursor: tuple[int, int] = (0, -1)
    """How far its journal was folded and committed."""
    argv: tuple[str, ...] = ()
    """The profile's command, its program resolved."""
    told: str = ""
    """The whole first prompt."""
    model: str | None = None
    mode: str | None = None
    thinking: str | None = None
    permissions: Permissions | None = None
    sessions: Path | None = None
    """Where the locks of child sessions lie; None: they are not locked."""
    resume_session: str | None = None
    """The child session of an earlier attempt, whose tree is proven dead."""
    interrupted: str | None = None
    """What to tell a session that goes on."""
    summary: str | None = None
    """What a fresh session is told of the one that could not be taken up again."""
    before: "Before | None" = None
    """The attempt whose session goes on, or could not: the run looks at what it left, and completes the two above."""
    mcp_argv: tuple[str, ...] = ()
    """How the agent starts our MCP server; () where it can't."""
    mcp_env: tuple[tuple[str, str], ...] = ()
    """What that server has to know, for agents that hand nothing of their own environment on. No secrets."""
    max_tool_calls: int | None = None
    output_schema: str | None = None
    """The contract of the result, JSON text."""
    quirks: Quirks = Quirks()
    secrets: tuple[str, ...] = ()
    """Exact values to redact from all that it says."""
    headless: Headless | None = None
    """How a program of the driver `command` is told what."""
    refusal: str | None = None
    """Why it must not be started after all, for people."""
    is_agent_gone: bool = False
    """The refusal is that its program is not there: it may come again."""
    findings: str | None = None
    """What the gate said that sent this work back."""
    artifacts: tuple[str, ...] = ()
    """Globs below `cwd` that have to be made by this attempt."""
    started_at_ms: int = 0
    """When the attempt was committed, on the wall clock."""

    @property
    def is_contracted(self) -> bool:
        """What it achieves is held against declared files or a schema."""
        return bool(self.artifacts) or self.output_schema is not None


class Report(Protocol):
    """What a run tells while it runs. Called on the loop."""

    async def identified(self, identity: Identity) -> None:
        """Its keeper answered. Returns after the commit; may be told again after each attach."""

    async def stuck(self, pids: tuple[int, ...], reason: str) -> None:
        """Its death can't be proven. The run waits for `recheck`."""

    async def deadline(self) -> None:
        """Its time is up. Whoever is told this asks for the stop, or moves the deadline; else it is told again."""

    def printed(self, offset: int, chunk: bytes) -> None:
        """Live stdout and stderr for people. Volatile: after a restart of the daemon it goes on where it is."""


class Run(Protocol):
    """One attempt, from its folder to its settlement."""

    async def start(self) -> AttemptEnded:
        """Begin a new attempt and follow it to its end. Never raises for trouble of the child."""

    async def adopt(self) -> AttemptEnded:
        """Go on with one that an earlier daemon began, by the recovery table."""

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Committed lines for the agent: (seq, rendered line). Sent in order, each once; a repeat changes nothing."""

    def request_stop(self) -> None:
        """End the tree: a running turn gets the grace to end after its cancel lines; then interrupt, grace, TERM,
        grace, KILL. `start` or `adopt` then returns how it ended.
        """

    def request_close(self) -> None:
        """Its result is accepted: what was told is sent, then stdin closed, grace, TERM, grace, KILL."""

    @property
    def heard(self) -> int:
        """How many lines for the agent the journal is known to hold: the first so many need not be kept."""

    def move_deadline(self, total_s: float) -> None:
        """Its time is up `total_s` after its start now, on the clock that stops in sleep."""

    async def recheck(self) -> None:
        """Look at a stuck tree again."""

    async def submit(self, content: bytes) -> bool:
        """Its agent hands in the result of the running turn: durable before this returns. False where it is late."""

    async def collect(self) -> None:
        """The settlement is committed: the keeper may go."""

    async def detach(self) -> None:
        """The daemon stops on purpose: the keeper goes on alone and does not start it again."""


class TalkReport(Report, Protocol):
    """What a run tells whose agent talks."""

    async def said(self, facts: "tuple[Fact, ...]", cursor: tuple[int, int]) -> None:
        """What its agent's bytes mean, and the cursor behind it. Returns after the commit of both."""


RunFactory = Callable[[Order, TalkReport], Run]
FactSink = Callable[[tuple["Fact", ...], tuple[int, int]], Awaitable[None]]
"""(facts in order, the cursor behind them). Returns after the commit of both."""


class PromptRefused(Exception):
    """The driver can't take this prompt or these inputs; the message is for people."""


@dataclass(slots=True, frozen=True)
class Launch:
    """What the keeper runs. Nothing secret is in `argv`."""

    argv: tuple[str, ...]
    stdin: Literal["pipe", "null"] = "null"


@dataclass(slots=True, frozen=True)
class Fact:
    """Something that the agent's bytes mean. (`offset`, `index`) orders facts and is their identity in the attempt."""

    offset: int
    index: int
    kind: str
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def position(self) -> tuple[int, int]:
        """What a cursor is compared with."""
        return (self.offset, self.index)


@dataclass(slots=True, frozen=True)
class Ending:
    """How the driver reads an end: the result is captured and fsynced.

    `weather`: the provider was busy; {retryAfterS} where it said for how long.
    """

    outcome: AttemptOutcome
    failure_class: FailureClass | None = None
    reason: str | None = None
    output: Output | None = None
    weather: dict[str, Any] | None = None


class Due(NamedTuple):
    """By when the agent must have spoken: ns on the monotonic clock, and what is said when it has not."""

    at_ns: int
    reason: str


class Fold(Protocol):
    """The state that journal records add up to, from the last trim on. Used by one task.

    It is deterministic: the same records give the same facts, also after a trim and in another process.
    """

    @property
    def is_in_turn(self) -> bool:
        """The agent works on a prompt: a stop waits for the end of its turn."""

    @property
    def is_owed(self) -> bool:
        """A request of ours has no response yet: a close waits for it."""

    @property
    def unheard(self) -> tuple[str, ...]:
        """Keys of asks whose answers are not in the journal: whoever answered was not heard."""

    @property
    def due(self) -> Due | None:
        """By when it must answer its start; None when it may take its time."""

    def feed(self, record: "Record") -> list[Fact]:
        """Take one record; the facts that it completes, in order. Blocks for no more than a page-cache write."""

    def keep(self) -> None:
        """Make durable the results that the last facts say are captured, before anyone is told. May block."""

    def hand_in(self, staged: Path) -> bool:
        """Take a durable file as the result of the running turn, by a rename; False where none runs. Called on the
        loop, between two records.
        """

    def finish(self, fact: Fact) -> Fact:
        """Complete a `serve` or `ask` fact by what only the world knows: a request that is served here becomes the
        `say` of its reply, an ask of what is out of the question that of its refusal, paths become real paths. Done
        again after a crash before the commit. May block.
        """

    def release(self) -> int:
        """Make durable what it took; the offset up to which it needs the journal no more, 0 for none. May block."""

    def end(self, exit_record: dict[str, Any]) -> Ending:
        """Its process ended and all records were fed: capture the result, fsynced. May block."""


class Monologue:
    """What a fold answers whose agent is never spoken to."""

    is_in_turn = False
    is_owed = False
    unheard: tuple[str, ...] = ()
    due: Due | None = None

    def keep(self) -> None:
        """Nothing: its one result is its end."""

    def hand_in(self, staged: Path) -> bool:
        """Its result is what it prints."""
        return False

    def finish(self, fact: Fact) -> Fact:
        """Nothing to look up."""
        return fact


class Unspoken:
    """What a driver says whose agent is never spoken to: nothing, on any occasion. Its cancel is the signals."""

    first_lines = 0

    def prompt(self, order: Order) -> tuple[Line, ...]:
        """The task is in what is started."""
        return ()

    def answer(self, key: str, option: str | None, text: str | None) -> tuple[Line, ...]:
        """It asks nothing."""
        return ()

    def turn(self, session: str, text: str) -> tuple[Line, ...]:
        """A process has one turn."""
        return ()

    def cancel(self, session: str | None, open_asks: tuple[str, ...]) -> tuple[Line, ...]:
        """It gets the signals."""
        return ()

    def close(self, session: str | None) -> tuple[Line, ...]:
        """It ends by itself."""
        return ()


class Driver(Protocol):
    """How to speak one kind of agent: five functions and the fold.

    All but `start` and `fold` are pure and quick: the writer calls them inside a transaction and numbers the lines.
    """

    @property
    def first_lines(self) -> int:
        """How many lines `prompt` gives, whatever the order."""

    @property
    def is_plain(self) -> bool:
        """What it prints is for people as it stands; else they see its items."""

    def start(self, order: Order) -> Launch:
        """Write the files that the agent reads into the folder and say what to run. May block; PromptRefused."""

    def prompt(self, order: Order) -> tuple[Line, ...]:
        """The first lines for its stdin, numbered from 0. The same order gives the same lines."""

    def answer(self, key: str, option: str | None, text: str | None) -> tuple[Line, ...]:
        """The lines that answer the ask `key`: with the id of an option, with a text, or `cancelled`."""

    def turn(self, session: str, text: str) -> tuple[Line, ...]:
        """The lines that prompt it once more in its session."""

    def cancel(self, session: str | None, open_asks: tuple[str, ...]) -> tuple[Line, ...]:
        """The lines that ask it to stop its turn: first what answers its open asks, then the cancel."""

    def close(self, session: str | None) -> tuple[Line, ...]:
        """The lines that end its session."""

    def fold(self, order: Order, *, out_bytes: int) -> Fold:
        """A fold that begins after `out_bytes` of stdout. Blocks for reading what an earlier one made durable."""
