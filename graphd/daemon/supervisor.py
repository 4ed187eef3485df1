"""Carries out effects and reports facts: one task per live attempt, which owns its run. Decides nothing."""

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from graphd.base.clock import Clock
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.children.driver import Fact, Order, Run, RunFactory
from graphd.core.commands import (
    AttemptIdentified,
    AttemptStuck,
    AttemptUsed,
    Busy,
    Command,
    DeadlineReached,
    Done,
    MachineSlept,
    ProfileCooling,
    Request,
    Tick,
)
from graphd.core.events import (
    AdoptAttempt,
    AnswerAsk,
    AttemptKey,
    CollectAttempt,
    Effect,
    MoveDeadline,
    PromptAttempt,
    RecheckAttempt,
    RemoveGraphFiles,
    SendLines,
    StartAttempt,
    StopAttempt,
    WakeAt,
)
from graphd.core.model import Identity
from graphd.core.policy import Leave
from graphd.daemon.log import log
from graphd.daemon.talking import busy, said, used, words_of
from graphd.daemon.texts import Texts

COLLECT_S = 2.0
SESSION_S = 0.5  # between two looks at a session's lock
SLEPT_MS = 1000  # less is how the two clocks are read one after the other
VOLATILE = frozenset({"item", "usage"})
"""Facts that no commit waits for: folded again after a crash, they say the same."""

LiveKey = tuple[str, AttemptKey]
Printed = Callable[[str, str, int, int, bytes], None]
"""(graph, node id, attempt number, offset, bytes)"""


class Supervisor:
    """Owns the runs. `tasks` is the daemon's task group; `order_of` reads committed state."""

    def __init__(
        self, *, folder: Path, factory: RunFactory, submit: Callable[[Request], Awaitable[Done]],
        order_of: Callable[[str, AttemptKey], Order], clock: Clock, tasks: asyncio.TaskGroup,
        about: "About", unsent: dict[LiveKey, list[tuple[int, str]]] | None = None,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._factory = factory
        self._submit = submit
        self._order_of = order_of
        self._clock = clock
        self._tasks = tasks
        self._about = about
        self._unsent = unsent or {}
        self._runs: dict[LiveKey, Run] = {}
        self._texts: dict[LiveKey, Texts] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._collecting: set[asyncio.Task[None]] = set()
        self._timer: tuple[int, asyncio.TimerHandle] | None = None
        self._is_leaving = False
        self._slept_s = clock.slept_s()
        self.phases: dict[tuple[str, str], tuple[str, int]] = {}
        self.last_lines: dict[tuple[str, str], str] = {}
        self.on_printed: list[Printed] = []
        self.on_phase: list[Callable[[str, str], None]] = []
        self.adopted = 0

    def carry_out(self, effects: list[Effect]) -> None:
        """Do what a commit decided, in order. Called right after the commit."""
        for effect in effects:
            match effect:
                case StartAttempt():
                    self._live(effect.graph, effect.attempt, is_new=True)
                case AdoptAttempt():
                    self._live(effect.graph, effect.attempt, is_new=False)
                case StopAttempt():
                    self._stop(effect.graph, effect.attempt)
                case SendLines():
                    self._send(effect)
                case AnswerAsk() | PromptAttempt():
                    self.goes_on(effect.graph, effect.attempt)
                case RecheckAttempt():
                    self._recheck(effect)
                case CollectAttempt():
                    self._collect(effect)
                case MoveDeadline():
                    self._move_deadline(effect)
                case RemoveGraphFiles():
                    self._tasks.create_task(self._remove_files(effect.graph))
                case WakeAt():
                    self._wake_at(effect.at)

    def _live(self, graph: str, attempt: AttemptKey, *, is_new: bool) -> None:
        order = self._order_of(graph, attempt)
        run = self._factory(order, _Report(self, graph, attempt))
        self._runs[(graph, attempt)] = run
        self._texts[(graph, attempt)] = Texts(order)
        run.tell(self._unsent.pop((graph, attempt), []))
        self.set_phase(graph, attempt[0], "starting" if is_new else "adopting")
        self._follow_task(self._follow(self._texts[(graph, attempt)], run, is_new=is_new))

    def _follow_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._following.add(task)
        task.add_done_callback(self._following.discard)
        return task

    async def _follow(self, texts: Texts, run: Run, *, is_new: bool) -> None:
        order = texts.order
        ended = await (run.start() if is_new else run.adopt())
        if order.is_contracted and ended.outcome == "achieved":
            from graphd.children.contracts import checked  # few nodes have a contract

            ended = await asyncio.to_thread(checked, order, ended)
        if not self._is_leaving:
            if ended.outcome == "put_back" and order.sessions is not None:
                await self._wait_for_session(order)
            if ended.busy is not None:
                await self._cool_down(texts, ended.busy, ended.reason or "")
            await self.report(texts.of_end(ended))

    async def _wait_for_session(self, order: Order) -> None:
        """Before its end is told: another process has the session, and it must not start again before that ends."""
        from graphd.children.session_lock import is_taken, lock_of_order  # few attempts are put back

        lock, key = lock_of_order(order, order.resume_session), (order.graph, order.node)
        if not await asyncio.to_thread(is_taken, lock):
            return

        async def wait() -> None:
            while await asyncio.to_thread(is_taken, lock):  # noqa: ASYNC110  of another process: nobody tells us
                await asyncio.sleep(SESSION_S)
            self._about.elsewhere.discard(key)
            self.tick()

        self._about.elsewhere.add(key)
        log("session_taken", graph=order.graph, node=order.node, attempt=order.number)
        self._follow_task(wait())

    async def _cool_down(self, texts: Texts, busy: Busy, reason: str) -> None:
        """Before its end is told: what is put back must not start again at once."""
        order = texts.order
        until = self._clock.now_ms() + round(self._about.rest_s(order, busy) * 1000)
        key = (order.node, order.role, order.number)
        await self.report(ProfileCooling(order.graph, key, order.profile, until, reason))

    async def report(self, fact: Command | Request) -> None:
        """Have a fact committed; while the store refuses it, wait and try again: facts are never dropped.

        A sleep of the machine is reported before: what is measured by wall clocks must not count it as work.
        """
        slept_ms = round((self._clock.slept_s() - self._slept_s) * 1000)
        if slept_ms >= SLEPT_MS:
            self._slept_s += slept_ms / 1000
            await self.report(MachineSlept(slept_ms))
        request = fact if isinstance(fact, Request) else Request(fact)
        pause_s = 0.2
        while True:
            try:
                await self._submit(request)
            except Refused as refusal:
                if refusal.code != "storeUnavailable" or self._is_leaving:
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(30.0, pause_s * 2)
            else:
                return

    def _move_deadline(self, effect: MoveDeadline) -> None:
        run = self._runs.get((effect.graph, effect.attempt))
        if run is not None:
            run.move_deadline(effect.total_ms / 1000)

    def _recheck(self, effect: RecheckAttempt) -> None:
        run = self._runs.get((effect.graph, effect.attempt))
        if run is not None:
            self._follow_task(_quietly(run.recheck))

    def _stop(self, graph: str, attempt: AttemptKey) -> None:
        run = self._runs.get((graph, attempt))
        if run is None:
            return
        self.set_phase(graph, attempt[0], "stopping")
        if self._about.is_close(graph, attempt):
            run.request_close()
        else:
            run.request_stop()

    def _send(self, effect: SendLines) -> None:
        run = self._runs.get((effect.graph, effect.attempt))
        if run is not None:
            run.tell(list(effect.rows))

    def goes_on(self, graph: str, attempt: AttemptKey) -> None:
        """It was answered, or has its next turn."""
        if (graph, attempt) in self._runs:
            waits = self._about.waits(graph, attempt)
            self.set_phase(graph, attempt[0], "awaiting_permission" if waits else "working")

    def _collect(self, effect: CollectAttempt) -> None:
        run = self._runs.pop((effect.graph, effect.attempt), None)
        self._texts.pop((effect.graph, effect.attempt), None)
        self.phases.pop((effect.graph, effect.attempt[0]), None)
        self.last_lines.pop((effect.graph, effect.attempt[0]), None)
        if run is not None:
            self._collecting.add(task := self._follow_task(_quietly(run.collect)))
            task.add_done_callback(self._collecting.discard)

    async def _remove_files(self, graph: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder / "attempts" / graph, ignore_errors=True)

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            if self._timer[0] <= at_ms and not self._timer[1].cancelled():
                return
            self._timer[1].cancel()
        delay_s = max(0.0, (at_ms - self._clock.now_ms()) / 1000)
        handle = asyncio.get_running_loop().call_later(delay_s, self.tick)
        self._timer = (at_ms, handle)

    async def said(self, graph: str, attempt: AttemptKey, facts: tuple[Fact, ...], cursor: tuple[int, int]) -> None:
        """An agent said something: the graph learns of it, people see it. Returns after the commit."""
        run, texts = self._runs.get((graph, attempt)), self._texts.get((graph, attempt))
        if run is None or texts is None:
            return
        texts.keep(facts, at_ms=self._clock.now_ms())
        leave = self._about.leave(texts.order)
        too_much = texts.over_limit(facts)
        weather = busy(facts, texts.redactor)
        if weather is not None:
            await self._cool_down(texts, *weather)
        if too_much is not None or any(fact.kind not in VOLATILE for fact in facts):
            step = said(
                graph, attempt, facts, cursor, heard=run.heard, leave=leave, redactor=texts.redactor,
                too_much=too_much, broken=await _broken_by(texts.order, facts),
            )  # fmt: skip
            await self.report(step)
        elif (so_far := used(facts)) is not None:
            await self.report(AttemptUsed(graph, attempt, so_far))
        for fact in facts:
            if fact.kind == "item":
                self._show(graph, attempt, fact)
        if any(fact.kind == "ask" for fact in facts):
            self.goes_on(graph, attempt)

    def _show(self, graph: str, attempt: AttemptKey, fact: Fact) -> None:
        text = words_of(fact.content)
        if text:
            self.printed(graph, attempt, fact.offset, text.encode())

    async def submit(self, graph: str, attempt: AttemptKey, content: bytes) -> bool:
        """A result that an attempt hands in; False where it is late: dropped, and logged."""
        run = self._runs.get((graph, attempt))
        is_taken = run is not None and await run.submit(content)
        if is_taken:
            self.progress(graph, attempt, t("handed in its result ({size} bytes)", size=len(content)))
        else:
            log("result_dropped", graph=graph, node=attempt[0], attempt=attempt[2], reason="no turn of it runs")
        return is_taken

    def progress(self, graph: str, attempt: AttemptKey, text: str) -> None:
        """What an attempt says of how far it is: for people's eyes. A disk without room holds up nothing."""
        texts = self._texts.get((graph, attempt))
        if texts is None:
            return
        shown = texts.progress(text, at_ms=self._clock.now_ms())
        self.last_lines[(graph, attempt[0])] = shown.strip()[:200]
        for listener in self.on_phase:
            listener(graph, attempt[0])

    def tick(self) -> None:
        """Let the scheduler look again."""
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        self._follow_task(self.report(Tick()))

    def is_attended(self) -> bool:
        """Somebody is there who can be asked."""
        return self._about.is_attended()

    @property
    def has_timer(self) -> bool:
        """Something will start by itself."""
        return self._timer is not None

    @property
    def is_busy(self) -> bool:
        """Something runs, or waits for a session that another process has."""
        return bool(self._runs or self._about.elsewhere)

    def set_phase(self, graph: str, node: str, phase: str) -> None:
        """Volatile: shown, never stored."""
        self.phases[(graph, node)] = (phase, self._clock.now_ms())
        for listener in self.on_phase:
            listener(graph, node)

    def printed(self, graph: str, attempt: AttemptKey, offset: int, chunk: bytes) -> None:
        """A child printed something: for people's eyes, volatile."""
        texts = self._texts.get((graph, attempt))
        chunk = texts.printed(chunk) if texts is not None else b""
        if not chunk:
            return
        lines = chunk[-4096:].decode(errors="replace").strip().splitlines()
        if lines:
            self.last_lines[(graph, attempt[0])] = lines[-1][:200]
        for listener in self.on_printed:
            listener(graph, attempt[0], attempt[2], offset, chunk)
        for phase_listener in self.on_phase:
            phase_listener(graph, attempt[0])

    async def leave(self) -> None:
        """A clean stop: keepers are told not to start a daemon again; nothing is killed."""
        self._is_leaving = True
        if self._collecting:  # keepers of settled attempts go with us, not with the next daemon
            await asyncio.wait(self._collecting, timeout=COLLECT_S)
        await asyncio.gather(*(_quietly(run.detach) for run in self._runs.values()))

    def cancel(self) -> None:
        """End all tasks of ours. Children and their keepers live on."""
        if self._timer is not None:
            self._timer[1].cancel()
        for task in self._following:
            task.cancel()


class About(Protocol):
    """What the supervisor reads of committed state."""

    def rest_s(self, order: Order, busy: Busy) -> float:
        """How long the agent of an order rests after this trouble."""

    @property
    def is_attended(self) -> Callable[[], bool]:
        """Whether somebody is there who can be asked."""

    @property
    def elsewhere(self) -> set[tuple[str, str]]:
        """(graph, node id) whose session another process has open."""

    def is_close(self, graph: str, attempt: AttemptKey) -> bool:
        """Its end is wanted because its result is accepted."""

    def waits(self, graph: str, attempt: AttemptKey) -> bool:
        """An ask of it is open."""

    def leave(self, order: Order) -> Leave:
        """What an attempt may do by itself."""


class _Report:
    def __init__(self, supervisor: Supervisor, graph: str, attempt: AttemptKey) -> None:
        self._supervisor = supervisor
        self._graph = graph
        self._attempt = attempt

    async def identified(self, identity: Identity) -> None:
        supervisor = self._supervisor
        if supervisor.phases.get((self._graph, self._attempt[0]), ("", 0))[0] == "adopting":
            supervisor.adopted += 1
        await supervisor.report(AttemptIdentified(self._graph, self._attempt, identity))
        if supervisor.phases.get((self._graph, self._attempt[0]), ("", 0))[0] in ("starting", "adopting"):
            supervisor.goes_on(self._graph, self._attempt)  # with an ask that its last daemon left open, perhaps

    async def stuck(self, pids: tuple[int, ...], reason: str) -> None:
        self._supervisor.set_phase(self._graph, self._attempt[0], "stuck")
        await self._supervisor.report(AttemptStuck(self._graph, self._attempt, pids, reason))

    async def deadline(self) -> None:
        is_attended = self._supervisor.is_attended()
        await self._supervisor.report(DeadlineReached(self._graph, self._attempt, is_attended))

    def printed(self, offset: int, chunk: bytes) -> None:
        self._supervisor.printed(self._graph, self._attempt, offset, chunk)

    async def said(self, facts: tuple[Fact, ...], cursor: tuple[int, int]) -> None:
        await self._supervisor.said(self._graph, self._attempt, facts, cursor)


async def _broken_by(order: Order, facts: tuple[Fact, ...]) -> str | None:
    """How a result that was given now breaks its contract."""
    if not order.is_contracted or all(fact.kind != "candidate" for fact in facts):
        return None
    from graphd.children.contracts import broken_by  # few nodes have a contract

    return await asyncio.to_thread(broken_by, order, facts)


async def _quietly(act: Callable[[], Awaitable[None]]) -> None:
    """A keeper that is gone can't be told anything; its attempt's record says the rest."""
    with contextlib.suppress(OSError, EOFError):
        await act()
