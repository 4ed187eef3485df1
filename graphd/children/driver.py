"""The contract between a supervisor and one attempt, and between an attempt and its kind of agent.

A driver says how an agent is started and what its lines mean. It has no process and no socket of its own: `run` has
these. Its fold reads journal records and nothing else, so a live run and a recovered one go through the same code.
Source: execution.md, Exactly once over a crash, Drivers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from graphd.core.commands import AttemptEnded
from graphd.core.model import Identity, Output
from graphd_protocol.states import AttemptOutcome, FailureClass, Role

if TYPE_CHECKING:
    from graphd.children.journal import Record


@dataclass(slots=True, frozen=True)
class Input:
    """One needed result. `path` is the upstream attempt's whole output, if that file still exists."""

    name: str
    text: str
    path: Path | None = None


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


class Report(Protocol):
    """What a run tells while it runs. Called on the loop."""

    async def identified(self, identity: Identity) -> None:
        """Its keeper answered. Returns after the commit; may be told again after each attach."""

    async def stuck(self, pids: tuple[int, ...], reason: str) -> None:
        """Its death can't be proven. The run waits for `recheck`."""

    async def deadline(self) -> None:
        """The hard deadline passed; the stop is asked for by whom this is told."""

    def printed(self, offset: int, chunk: bytes) -> None:
        """Live stdout and stderr for people. Volatile: after a restart of the daemon it goes on where it is."""


class Run(Protocol):
    """One attempt, from its folder to its settlement."""

    async def start(self) -> AttemptEnded:
        """Begin a new attempt and follow it to its end. Never raises for trouble of the child."""

    async def adopt(self) -> AttemptEnded:
        """Go on with one that an earlier daemon began, by the recovery table."""

    def request_stop(self) -> None:
        """End the tree: interrupt, grace, TERM, grace, KILL. `start` or `adopt` then returns how it ended."""

    async def recheck(self) -> None:
        """Look at a stuck tree again."""

    async def collect(self) -> None:
        """The settlement is committed: the keeper may go."""

    async def detach(self) -> None:
        """The daemon stops on purpose: the keeper goes on alone and does not start it again."""


RunFactory = Callable[[Order, Report], Run]


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
    """How the driver reads an end: the result is captured and fsynced."""

    outcome: AttemptOutcome
    failure_class: FailureClass | None = None
    reason: str | None = None
    output: Output | None = None


class Fold(Protocol):
    """The state that journal records add up to, from the last trim on. Used by one task."""

    def feed(self, record: "Record") -> list[Fact]:
        """Take one record; the facts that it completes, in order. Blocks for no more than a page-cache write."""

    def release(self) -> int:
        """Make durable what it took; the offset up to which it needs the journal no more, 0 for none. May block."""

    def end(self, exit_record: dict[str, Any]) -> Ending:
        """Its process ended and all records were fed: capture the result, fsynced. May block."""


class Driver(Protocol):
    """How to speak one kind of agent: five functions and the fold. Lines are without their newline."""

    def start(self, order: Order) -> Launch:
        """Write the files that the agent reads into the folder and say what to run. May block; PromptRefused."""

    def prompt(self, order: Order) -> tuple[str, ...]:
        """The first lines for its stdin."""

    def answer(self, ask: dict[str, Any], option: str) -> tuple[str, ...]:
        """The lines that answer what it asked."""

    def cancel(self) -> tuple[str, ...]:
        """The lines that ask it to stop its turn, before any signal."""

    def close(self) -> tuple[str, ...]:
        """The lines that end its session."""

    def fold(self, order: Order, *, out_bytes: int) -> Fold:
        """A fold that begins after `out_bytes` of stdout. Blocks for reading what an earlier one made durable."""
