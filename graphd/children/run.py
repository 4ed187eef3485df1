"""One attempt under its keeper: starts or adopts it, folds its journal, ends its tree, answers how it ended.

Live and recovered runs are the same code: look at the folder, attach where a keeper lives, fold from the last trim on,
mute what the cursor already covers. It decides nothing about the graph. Source: execution.md, One attempt, Exactly once
over a crash, Recovery.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.base.text import said, t
from graphd.children.attempt import Kept, Nothing, Recorded, keeper_log, look, make_folder, void
from graphd.children.deadline import DeadlineWatch
from graphd.children.driver import (
    Driver,
    Ending,
    Fact,
    FactSink,
    Fold,
    Order,
    PromptRefused,
    Report,
)
from graphd.children.environment import keeper_environment
from graphd.children.escalation import Wanted, escalate, watch_start
from graphd.children.identity import Alive, Dead, Unknown, end_survivors, identity_of, is_locked, read_identity
from graphd.children.journal import Decoder, Header, JournalBroken, Record, read_err, read_header, read_records
from graphd.children.keeping.files import OUT
from graphd.children.link import AttachRefused, CallRefused, KeeperSilent, Link, LinkLost
from graphd.children.looking import look_again
from graphd.children.outbox import Outbox
from graphd.children.results import ERR_LIMIT
from graphd.children.session_lock import SessionHold
from graphd.children.shell import ShellDriver
from graphd.children.sink import CaptureShort
from graphd.children.spawn import KeeperProcess, spawn_keeper, word_or_stop
from graphd.children.steady import to_its_end
from graphd.children.submitting import submitted
from graphd.children.trees import trees_at_end, trees_at_start
from graphd.core.commands import AttemptEnded, Busy
from graphd.core.model import Spent
from graphd.core.talk import render
from graphd_protocol.states import AttemptOutcome, FailureClass

RELEASE_EVERY: Final = 8 << 20
FIRST_BACKOFF_S: Final = 0.05
LAST_BACKOFF_S: Final = 5.0
REASON_LIMIT: Final = 4096
BATCH: Final = 64
SETTLE_S: Final = 5.0


class AttemptFenced(Exception):
    """The keeper has seen a newer daemon, or is another database's: this daemon must not speak to it any more."""


class KeptRun:
    """The `Run` of an attempt under a keeper. `start` or `adopt` is called once, by one task.

    `outbox` takes the lines for the agent; `on_facts` gets each fact once, in order, those above `cursor` only.
    """

    def __init__(
        self,
        order: Order,
        report: Report,
        *,
        driver: Driver | None = None,
        on_facts: FactSink | None = None,
        cursor: tuple[int, int] = (0, -1),
    ) -> None:
        self._order = order
        self._report = report
        self._driver: Driver = driver or ShellDriver()
        self._on_facts = on_facts
        self._cursor = cursor
        self.outbox = Outbox()
        self._wanted = Wanted()
        self._session = SessionHold(order, self._wanted)
        self._changed = asyncio.Event()
        self._keeper: KeeperProcess | None = None
        self._link: Link | None = None
        self._decoder: Decoder | None = None
        self._fold: Fold | None = None
        self._released = 0
        self._live_from: int | None = None
        self._stalled_end: int | None = None
        self._deadline = DeadlineWatch(order.timeout_s)
        self._is_silence_told = self._is_detached = self._is_following = False

    # --- the interface --------------------------------------------------------------------------------------------

    async def start(self) -> AttemptEnded:
        """New attempt: folder, intent, keeper, follow to the end. Never raises for child trouble."""
        self._live_from = 0
        try:
            return await self._guarded(self._begin())
        except PromptRefused as trouble:
            return self._ended("failed", "exec_failed", said(trouble))
        except OSError as trouble:
            # `_settle` asks again after any OSError of its own: this one is from before there was a keeper.
            with contextlib.suppress(OSError):
                await asyncio.to_thread(void, self._order.folder)
            return self._ended("failed", "exec_failed", t("could not be started: {trouble}", trouble=said(trouble)))

    async def adopt(self) -> AttemptEnded:
        """By the recovery table of execution.md. Never raises for child trouble (but AttemptFenced)."""
        self._order = await to_its_end(lambda: look_again(self._order))
        return await self._guarded(self._settle())

    def request_stop(self) -> None:
        """End the tree; what `start` or `adopt` answers still says how it really ended."""
        self._wanted.stop.set()
        self._wanted.recheck.set()

    def request_close(self) -> None:
        """The result is accepted: send what was told, close stdin, then TERM and KILL."""
        self._wanted.close.set()

    def tell(self, lines: list[tuple[int, str]]) -> None:
        """Committed lines for the agent, by their numbers. A line that is known already changes nothing."""
        for seq, line in lines:
            self.outbox.put(seq, line)

    @property
    def heard(self) -> int:
        """How many lines for the agent the journal is known to hold: the first so many need not be kept."""
        return self.outbox.heard

    def move_deadline(self, total_s: float) -> None:
        """Its time is up so long after its keeper's start."""
        self._deadline.move(total_s)

    async def recheck(self) -> None:
        """Look at a stuck tree again."""
        self._wanted.recheck.set()

    async def submit(self, content: bytes) -> bool:
        """A result of the running turn, durable before this returns; False where it is late."""
        return await submitted(self._order.folder, content, self._wanted.caught_up, lambda: self._fold)

    async def collect(self) -> None:
        """Tell the keeper that its record is settled; it goes, and is reaped where it is our child."""
        link = self._link
        if link is None and await asyncio.to_thread(is_locked, self._order.folder):
            with contextlib.suppress(KeeperSilent, AttachRefused):
                link = await self._attach()
        if link is not None:
            await link.last("collect")
            await link.close()
        self._link = None
        await self._reap()

    async def detach(self) -> None:
        """Tell the keeper `leave` and let go. `start` or `adopt` then waits to be cancelled."""
        self._is_detached = True
        if self._link is not None and not self._is_following:
            await self._link.last("leave")
        elif self._link is not None:
            with contextlib.suppress(LinkLost, CallRefused, TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._link.call("leave")
        await self.let_go()

    # --- from the folder to the settlement ------------------------------------------------------------------------

    async def _guarded(self, steps: Awaitable[AttemptEnded]) -> AttemptEnded:
        try:
            ended = await steps
        except BaseException:
            await self.let_go()
            raise
        await trees_at_end(self._order)
        if self._link is None:
            await self._reap()
        return ended

    async def _reap(self) -> None:
        """Wait for a keeper that goes, where it is our child."""
        if self._keeper is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._keeper.gone()
            self._keeper.abandon()

    async def let_go(self) -> None:
        """Close the connection without a word, as a crash would: the keeper calls the daemon back."""
        await self._unlink()
        if self._keeper is not None:
            self._keeper.abandon()

    async def _begin(self) -> AttemptEnded:
        folder = self._order.folder
        self._order = await to_its_end(lambda: look_again(self._order))
        launch = await asyncio.to_thread(make_folder, self._order, self._driver)
        await trees_at_start(self._order)
        if self._wanted.stop.is_set() and await asyncio.to_thread(void, folder):
            return self._ended("put_back", reason=t("stopped before it was started"))
        self._keeper = await spawn_keeper(folder, launch, keeper_environment())
        word = await word_or_stop(self._keeper, self._wanted.stop)
        if word != "ready" and await asyncio.to_thread(void, folder):
            if word is None:
                self._keeper.kill()
                return self._ended("put_back", reason=t("stopped before it was started"))
            code = await self._keeper.gone()
            if word == "taken":
                return self._ended("put_back", reason=t("another process has its session open"))
            if code > 0:
                return self._ended("failed", "exec_failed", t("its keeper failed: {log}", log=keeper_log(folder)))
            return self._ended("put_back", reason=t("its keeper ended before it began"))
        return await self._settle()

    async def _settle(self) -> AttemptEnded:
        """Go by what is in the folder until there is an end. Silence is never taken for death."""
        backoff_s, silent_since = FIRST_BACKOFF_S, time.monotonic()
        # Adopted too: its daemon may have died before the first lines were sent. What the journal has is not sent.
        self.tell([(seq, render(line, seq)) for seq, line in enumerate(self._driver.prompt(self._order))])
        while True:
            if self._is_detached:
                await asyncio.Event().wait()  # until the caller cancels: the keeper is on its own now
            try:
                return await self._look_and_follow()
            except AttachRefused as refusal:
                raise AttemptFenced(refusal.code) from refusal
            except LinkLost:
                await self._unlink()
                backoff_s, silent_since = FIRST_BACKOFF_S, time.monotonic()
            except (KeeperSilent, OSError) as trouble:  # of ours: no descriptor, no room for what is captured
                if isinstance(trouble, OSError):
                    self._refold_from_start()
                await self._unlink()
                await self._report_silence(time.monotonic() - silent_since)
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, LAST_BACKOFF_S)

    async def _look_and_follow(self) -> AttemptEnded:
        found = await asyncio.to_thread(look, self._order.folder)
        if isinstance(found, Nothing):
            return self._ended("put_back", reason=t("it was never started"))
        if isinstance(found, Recorded):
            return await self._from_record(found.record)
        if not isinstance(found, Kept):
            return await self._lost(t("its keeper died"))
        self._link = await self._attach()
        return await self._follow(self._link)

    async def _unlink(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _refold_from_start(self) -> None:
        """The fold may lack a record that was handed out: begin again at the last trim. What is captured is skipped."""
        if self._decoder is not None:
            self._live_from = max(self._live_from or 0, self._decoder.position)
        self._decoder = self._fold = None

    async def _attach(self) -> Link:
        order, start = self._order, self._decoder.position if self._decoder else 0
        return await Link.attach(order.folder, store=order.store, epoch=order.epoch, start=start)

    async def _report_silence(self, silent_s: float) -> None:
        """A wanted stop that a stopped or wedged keeper does not take is said to people; it stays asked for."""
        if self._wanted.stop.is_set() and silent_s > 2 * self._order.grace_s + SETTLE_S and not self._is_silence_told:
            self._is_silence_told = True
            found = await asyncio.to_thread(read_identity, self._order.folder) or {}
            pids = tuple(found[name] for name in ("keeperPid", "agentPid") if name in found)
            await self._report.stuck(pids, t("its keeper holds its lock and does not answer"))

    # --- live -----------------------------------------------------------------------------------------------------

    async def _follow(self, link: Link) -> AttemptEnded:
        """Fold what the keeper sends until its exit record is reached; LinkLost when the connection ends before."""
        standing = link.standing
        try:
            self._prepare_fold(link.header)
        except CaptureShort as trouble:
            return await self._end_kept(link, said(trouble))
        if standing["end"] < self._cursor[0]:
            return await self._end_kept(link, t("its journal is shorter than what is known of it"))
        self._stalled_end = standing["end"] if standing["stalled"] else None
        pump = asyncio.create_task(self._pump(link))
        assert self._fold is not None  # noqa: S101  made by `_prepare_fold`
        ending = escalate(
            link, self._wanted, order=self._order, report=self._report, fold=self._fold, outbox=self.outbox
        )
        watching = watch_start(self._wanted, self._fold, self._changed)
        timing = self._deadline.watch(standing["startedNs"] / 1e9, self._report.deadline)
        beside = (timing, ending, watching, self.outbox.send_over(link), self._session.hold_over(link))
        tasks: list[asyncio.Task[Any]] = [pump, *(asyncio.create_task(step) for step in beside)]
        self._is_following = True
        try:
            await self._report.identified(identity_of(standing))
            while not pump.done():
                done, _ = await asyncio.wait(
                    [task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
            record = pump.result()
        finally:
            self._is_following = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return await self._ending(record)

    def _prepare_fold(self, header: Header) -> None:
        if self._fold is None or self._decoder is None:
            self._fold = self._driver.fold(self._order, out_bytes=header.out_bytes)
            self._decoder = Decoder(header)
            self._released = header.base

    async def _pump(self, link: Link) -> dict[str, Any]:
        """Feed the fold; the exit record once everything before it was fed."""
        assert self._decoder is not None  # noqa: S101  made by `_prepare_fold`
        record = link.standing["exit"]
        if self._live_from is None:
            self._live_from = link.standing["end"]  # what came before was printed by the daemon that saw it
        events = link.events(self._decoder)
        self._note_caught_up(link)
        try:
            while record is None or self._decoder.position < record["journalEnd"]:
                event = await anext(events)
                if isinstance(event, dict):
                    record = event["exit"] if event["event"] == "ended" else record
                    self._stalled_end = event["end"] if event["event"] == "stalled" else None
                else:
                    await self._take(event)
                position = self._decoder.position
                self._note_caught_up(link)
                has_all = self._stalled_end is not None and position >= self._stalled_end
                if has_all or position - self._released >= RELEASE_EVERY:
                    await self._release(link)
        finally:
            await events.aclose()
        return dict(record)

    def _note_caught_up(self, link: Link) -> None:
        if self._decoder is not None and self._decoder.position >= link.standing["end"]:
            self._wanted.caught_up.set()
        else:
            self._wanted.caught_up.clear()

    async def _take(self, records: list[Record]) -> None:
        assert self._fold is not None  # noqa: S101  made by `_prepare_fold`
        for record in records:
            made = self._fold.feed(record)
            self._session.opened(made)
            facts = tuple(fact for fact in made if fact.position > self._cursor)
            self._changed.set()
            if facts and self._on_facts is not None:
                if any(fact.kind == "candidate" for fact in facts):
                    await to_its_end(self._fold.keep)
                facts = tuple([await self._finished(fact) for fact in facts])
                await self._on_facts(facts, facts[-1].position)
                self._cursor = facts[-1].position
            if self._live_from is not None and record.end > self._live_from:
                self._print(record)

    async def _finished(self, fact: Fact) -> Fact:
        fold = self._fold
        assert fold is not None  # noqa: S101  it made the fact
        return await to_its_end(lambda: fold.finish(fact)) if fact.kind in ("serve", "ask") else fact

    def _print(self, record: Record) -> None:
        if record.kind == OUT:
            if self._driver.is_plain:  # else people see what it means
                self._report.printed(record.offset, record.payload)
        elif span := record.err_span:
            chunk = read_err(self._order.folder, *span, total=sum(span), limit_bytes=ERR_LIMIT)
            self._report.printed(record.offset, chunk)

    async def _release(self, link: Link) -> None:
        assert self._fold is not None  # noqa: S101  made by `_prepare_fold`
        up_to = await to_its_end(self._fold.release)
        if up_to > self._released:
            self._released = up_to
            failpoint("run.trim.before")
            link.post("trim", upTo=up_to)
            failpoint("run.trim.after")

    async def _end_kept(self, link: Link, reason: str) -> AttemptEnded:
        """What it said is gone: its result can't be captured. End it, wait for its end, say lost."""
        decoder = Decoder(link.header)
        link.post("kill")
        record = link.standing["exit"]
        async for event in link.events(decoder):
            if record is not None or (isinstance(event, dict) and event["event"] == "ended"):
                break
        return self._ended("lost", reason=reason)

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _from_record(self, record: dict[str, Any] | None) -> AttemptEnded:
        """The keeper is gone and left its record: settle as if it had been seen live."""
        if record is None or "journalEnd" not in record:
            return await self._lost(t("its exit record is broken"))
        try:
            if self._decoder is None:
                self._prepare_fold(await asyncio.to_thread(read_header, self._order.folder))
            await self._refold()
        except (CaptureShort, JournalBroken, OSError) as trouble:
            return await self._lost(t("its journal can't be read: {trouble}", trouble=said(trouble)))
        if self._decoder is None or self._decoder.position < max(record["journalEnd"], self._cursor[0]):
            return await self._lost(t("its journal is shorter than what is known of it"))
        return await self._ending(record)

    async def _refold(self) -> None:
        assert self._decoder is not None  # noqa: S101  made by `_prepare_fold`
        records = read_records(self._order.folder)
        while batch := await asyncio.to_thread(lambda: list(itertools.islice(records, BATCH))):
            for record in batch:
                if record.end > self._decoder.position:
                    await self._take([record])
                    self._decoder.skip_to(record)

    async def _ending(self, record: dict[str, Any]) -> AttemptEnded:
        assert self._fold is not None  # noqa: S101  made by `_prepare_fold`
        spent = Spent(wall_ms=int(record["wallMs"]))
        if record["endedBy"] is not None:  # by the keeper, for want of a daemon: nobody's verdict
            if record["endedBy"] == "linger":
                why = t("no daemon came back in time; its tree was ended")
            else:
                why = t("its keeper was told to end; its tree was ended")
            return self._ended("lost", reason=why, record=record, spent=spent)._replace(unheard=self._fold.unheard)
        try:
            fold = self._fold
            ending = await to_its_end(lambda: fold.end(record))
        except OSError as trouble:
            ending = Ending(
                "failed", "exec_failed", t("its result could not be captured: {trouble}", trouble=said(trouble))
            )
        if self._wanted.overdue is not None and ending.outcome != "achieved":
            ending = Ending("failed", "exec_failed", self._wanted.overdue)
            record = {**record, "signal": None}  # it was ours: no death to go on after
        return self._ended(
            ending.outcome, ending.failure_class, ending.reason, record=record, ending=ending, spent=spent
        )

    async def _lost(self, reason: str) -> AttemptEnded:
        """Nobody saw its end: prove that all of it is dead, ending what is found; stuck until that is so."""
        order = self._order
        while True:
            self._wanted.recheck.clear()
            proof = await asyncio.to_thread(end_survivors, order.folder, order.cookie, grace_s=order.grace_s)
            match proof:
                case Dead():
                    return self._ended("lost", reason=reason)._replace(unheard=await self._unheard())
                case Alive(pids):
                    await self._report.stuck(pids, t("{reason}, and these could not be ended", reason=reason))
                case Unknown(why, pids):
                    await self._report.stuck(pids, t("{reason}, and {why}", reason=reason, why=why))
            await self._wanted.recheck.wait()

    async def _unheard(self) -> tuple[str, ...]:
        """What the fold of a lost attempt still asks; of an adopted one that is known from its journal, if at all."""
        with contextlib.suppress(CaptureShort, JournalBroken, OSError):
            if self._decoder is None:
                self._on_facts = None  # what was not committed is not guessed
                self._prepare_fold(await asyncio.to_thread(read_header, self._order.folder))
                await self._refold()
        return self._fold.unheard if self._fold is not None else ()

    def _ended(
        self,
        outcome: AttemptOutcome,
        failure_class: FailureClass | None = None,
        reason: str | None = None,
        *,
        record: dict[str, Any] | None = None,
        ending: Ending | None = None,
        spent: Spent | None = None,
    ) -> AttemptEnded:
        order = self._order
        return AttemptEnded(
            graph=order.graph,
            attempt=(order.node, order.role, order.number),
            outcome=outcome,
            failure_class=failure_class,
            reason=_bounded(reason) if reason else None,
            exit_code=record["code"] if record else None,
            signal=record["signal"] if record else None,
            output=ending.output if ending else None,
            spent=spent or Spent(),
            busy=Busy(ending.weather.get("retryAfterS")) if ending and ending.weather is not None else None,
            unheard=self._fold.unheard if ending and self._fold else (),
        )


def _bounded(reason: str) -> str:
    """At most REASON_LIMIT characters; one that fits stays translatable."""
    return reason if len(reason) <= REASON_LIMIT else reason[:REASON_LIMIT]
