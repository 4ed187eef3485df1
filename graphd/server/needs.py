"""What the server needs of the daemon, as a protocol: the real one, benchmarks and tests all fit it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from graphd.base.clock import Clock
from graphd.children.profiles.choosing import Agents
from graphd.core.commands import Capacity, Done, Request
from graphd.core.events import AttemptKey, Change, Event
from graphd.core.model import Attempt, State
from graphd.daemon.agent_settings import SettingsRefused

T = TypeVar("T")
Unsubscribe = Callable[[], None]
Printed = Callable[[str, str, int, int, bytes], None]
"""(graph, node id, attempt number, offset of the first byte, bytes)."""

PhaseMoved = Callable[[str, str], None]
"""(graph, node id)."""


class DaemonSettings(Protocol):
    """The settings that the server reads."""

    @property
    def agents(self) -> Agents:
        """Profiles and workers in force."""

    @property
    def concurrency(self) -> int:
        """Slots of the whole daemon."""

    @property
    def idle_minutes(self) -> float:
        """How long the daemon stays with nothing to do."""

    @property
    def settle_s(self) -> float:
        """How long `settle: true` waits."""

    @property
    def ask_parent_s(self) -> float:
        """How long `askParent` waits where it is not said."""

    @property
    def detached_asks(self) -> str:
        """`wait` or `deny`, with nobody there."""

    @property
    def locale(self) -> str:
        """The language of messages, whatever clients say; empty: they do."""


class Daemon(Protocol):
    """The daemon, as the server sees it."""

    async def submit_result(self, graph: str, attempt: AttemptKey, content: bytes) -> bool:
        """A result that an attempt hands in; False where none of its turns runs. OSError where it can't be kept."""

    def report_progress(self, graph: str, attempt: AttemptKey, text: str) -> None:
        """What an attempt says of how far it is."""

    @property
    def store_id(self) -> str:
        """The database's uuid."""

    @property
    def epoch(self) -> int:
        """Generation of the daemon."""

    @property
    def starts(self) -> int:
        """Daemon starts in the last ten minutes, this one included."""

    @property
    def folder(self) -> Path:
        """The state folder, absolute."""

    @property
    def workspace(self) -> Path:
        """Real path."""

    @property
    def settings(self) -> DaemonSettings:
        """In force now."""

    @property
    def clock(self) -> Clock:
        """Wall and monotonic time."""

    @property
    def state(self) -> State:
        """Committed only while a listener or a `view` is being called: read it nowhere else."""

    @property
    def phases(self) -> Mapping[tuple[str, str], tuple[str, int]]:
        """(graph, node id) → (phase, since in ms). Volatile."""

    @property
    def last_lines(self) -> Mapping[tuple[str, str], str]:
        """(graph, node id) → the last line that it printed. Volatile."""

    @property
    def on_printed(self) -> list[Printed]:
        """Called with what attempts print, as it comes."""

    @property
    def on_phase(self) -> list[PhaseMoved]:
        """Called after a phase or a last line changed."""

    @property
    def is_busy(self) -> bool:
        """Something runs, or will by itself: the daemon has a reason to stay."""

    def hold(self, graph: str, node: str) -> bool:
        """Start this node no more until `let_go`; False where somebody else has it. Volatile."""

    def let_go(self, graph: str, node: str) -> None:
        """It may be started again."""

    def session_lock(self, attempt: Attempt) -> Path:
        """What whoever opens the session of an attempt locks before."""

    @property
    def capacity(self) -> Capacity:
        """What the scheduler may fill now."""

    @property
    def store_health(self) -> str:
        """`ok`, `full` or `readOnly`."""

    async def look_for_agents(self, search_path: str, full_workers: frozenset[str]) -> None:
        """Look for agents on this PATH too, before a graph that has it is set or goes on.

        `full_workers`: those of which a node may do anything, which an agent that does not ask may serve.
        """

    @property
    def settings_trouble(self) -> SettingsRefused | None:
        """Why the newest settings are not in force, where they are not."""

    def attended_by(self, is_attended: Callable[[], bool]) -> None:
        """Who knows whether somebody is there who could answer; asked with every batch."""

    def left(self) -> None:
        """Somebody went: what has waited for an answer for long may get its default."""

    async def execute(self, request: Request) -> Done:
        """Commit a command. Raises Refused. A cancelled wait takes nothing back."""

    def graph_of(self, request_id: str) -> str | None:
        """The graph that a request of this id was carried out on; None where none was, or where it made the graph."""

    async def rehearse(self, request: Request, read: Callable[[State], T]) -> T:
        """Decide a command on committed state, run `read` on what it would leave, and take all of it back.

        Raises Refused.
        """

    async def view(self, read: Callable[[State], T]) -> T:
        """Run `read` on committed state."""

    async def history(self, graph: str, after: int, limit: int, kinds: list[str] | None) -> list[Event]:
        """Events of whole revs after `after`: at most `limit`, or all of one rev where that alone is longer."""

    def subscribe(self, listener: Callable[[list[Change]], None]) -> Unsubscribe:
        """Call `listener` right after each commit, while the state is committed."""

    def is_lock_ours(self) -> bool:
        """The lock file on disk is the one that we hold."""

    async def doctor(self) -> list[str]:
        """Where the tables differ from the log. Empty is well."""
