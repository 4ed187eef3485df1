"""The one writer: decides all that waits, commits it as one transaction, then answers, notifies and hands on effects.

Commands are decided one after the other, each on the state that the ones before it in the batch leave; the
scheduler runs
once at the end of the batch, its starts in the same transaction. The state is changed in place with old values
kept, and
put back if the commit fails, when every caller of the batch gets the error. No answer, refusals included,
leaves before the
commit it may rest on. A client's cancellation never reaches the writer (architecture.md; reliability.md §2.2).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from graphd.base.clock import Clock
from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Capacity, Done, Import, Request, Set
from graphd.core.decide import decide
from graphd.core.events import AttemptKey, Change, Effect, SendLines
from graphd.core.model import State
from graphd.core.schedule import schedule
from graphd.core.talk import Line, Posted, Talk, post
from graphd.core.tape import Tape
from graphd.store.remembered import Remembered, RequestRow

T = TypeVar("T")
BATCH_LIMIT = 256


@dataclass(slots=True)
class Decided:
    """What one batch decided, to be written in one transaction."""

    changes: list[Change] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    posted: list[Posted] = field(default_factory=list)


class Speech(NamedTuple):
    """What drivers say, as far as the writer has to know. Both are pure and quick.

    `first_seq`: the number of lines that an attempt's driver says by itself at its start. `lines`: the lines for its
    agent that an effect stands for.
    """

    first_seq: Callable[[State, str, AttemptKey], int]
    lines: Callable[[State, Effect], tuple[Line, ...]]


SILENT = Speech(lambda state, graph, attempt: 0, lambda state, effect: ())


@dataclass(slots=True)
class _Waiting:
    request: Request
    answer: asyncio.Future[Done]
    result: Done | Refused | None = None


class Writer:
    """Owns the state, and the only way to change it. `run` is its task."""

    def __init__(
        self, state: State, *, commit: Callable[[Decided, State], Awaitable[None]], capacity: Callable[[], Capacity],
        clock: Clock, requests: Remembered, speech: Speech = SILENT,
    ) -> None:  # fmt: skip
        self.state = state
        self._speech = speech
        self._commit = commit
        self._capacity = capacity
        self._clock = clock
        self._requests = requests
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._is_committing = False
        self._views: list[Callable[[], None]] = []
        self._listeners: list[Callable[[list[Change]], None]] = []
        self.on_effects: Callable[[list[Effect]], None] = lambda effects: None
        self.on_trouble: Callable[[], object] = lambda: None
        self.commits = 0

    async def submit(self, request: Request) -> Done:
        """Have `request` decided and committed. Raises Refused. Cancelling the caller does not take it back."""
        answer: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, answer))
        self._wake.set()
        return await asyncio.shield(answer)

    def graph_of(self, request_id: str) -> str | None:
        """The graph that a request of this id was carried out on; None where none was, or where it made the graph."""
        return self._requests.graph_of(request_id)

    async def view(self, read: Callable[[State], T]) -> T:
        """Run `read` on committed state: at once, or right after the commit that is under way."""
        if not self._is_committing:
            return read(self.state)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if answer.done():
                return
            try:
                answer.set_result(read(self.state))
            except Exception as trouble:  # noqa: BLE001 -- it belongs to the caller, whatever it is
                answer.set_exception(trouble)

        self._views.append(look)
        return await answer

    def listen(self, listener: Callable[[list[Change]], None]) -> Callable[[], None]:
        """Call `listener` synchronously after each commit, on committed state; returns the way to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self) -> None:
        """Decide and commit batches until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_LIMIT], self._waiting[BATCH_LIMIT:]
                await self._one_batch(batch)

    async def drain(self) -> None:
        """Wait until nothing is waiting or under way."""
        while self._waiting or self._is_committing:
            await self.view(lambda state: None)
            await asyncio.sleep(0)  # let the writer's task take what waits

    async def _one_batch(self, batch: list[_Waiting]) -> None:
        tape = Tape()
        decided = Decided()
        now = self._clock.now_ms()
        self._is_committing = True
        try:
            for waiting in batch:
                waiting.result = self._decide(tape, waiting.request, decided, now)
            changes, effects = schedule(self.state, tape, self._capacity(), now)
            decided.changes += changes
            decided.effects += effects
            self._speak(tape, decided)
            if decided.changes or decided.requests or decided.posted:
                await self._commit(decided, self.state)
                self.commits += 1
        except Exception as trouble:
            tape.rollback()
            self.state.are_queues_stale = True
            self._is_committing = False
            self._fail(batch, trouble)
            if not isinstance(trouble, Refused):
                raise
            self.on_trouble()
            return
        self._is_committing = False
        gone = {change.graph for change in decided.changes if change.graph not in self.state.graphs}
        if decided.requests or gone:
            self._requests.note(decided.requests, gone=gone, now=now)
        self._answer(batch, decided)

    def _decide(self, tape: Tape, request: Request, decided: Decided, now: int) -> Done | Refused:
        try:
            known = self._known(request, decided)
            if known is not None:
                return known
            mark = tape.mark()
            decision = decide(self.state, tape, request, now)
        except Refused as refusal:
            return refusal
        if request.preview is not None:
            preview = request.preview(self.state)
            tape.rollback(mark)
            self.state.are_queues_stale = True
            return decision.done._replace(preview=preview)
        if request.talk is not None:
            self._post(tape, decided, request.talk)
        decided.changes += decision.changes
        decided.effects += decision.effects
        if request.request_id is not None:
            row = RequestRow(_scope(request), request.request_id, request.fingerprint or "", decision.done, now)
            decided.requests.append(row)
        return decision.done

    def _post(self, tape: Tape, decided: Decided, talk: Talk) -> None:
        """The lines and the cursor of a fold's step: before what the same step makes the graph say."""
        first = self._speech.first_seq(self.state, talk.graph, talk.attempt)
        posted = post(
            self.state, tape, talk.graph, talk.attempt, lines=talk.lines, first=first, cursor=talk.cursor,
            heard=talk.heard,
        )  # fmt: skip
        self._note_posted(decided, posted)

    def _speak(self, tape: Tape, decided: Decided) -> None:
        """The lines that effects stand for become rows of this transaction; sending them is an effect more."""
        for effect in decided.effects:
            lines = self._speech.lines(self.state, effect)
            if lines:
                attempt: AttemptKey = effect.attempt  # type: ignore[union-attr] # only effects on attempts have lines
                graph: str = effect.graph  # type: ignore[union-attr] # as above
                first = self._speech.first_seq(self.state, graph, attempt)
                self._note_posted(decided, post(self.state, tape, graph, attempt, lines=lines, first=first))
        sends = [SendLines(posted.graph, posted.attempt, posted.rows) for posted in decided.posted if posted.rows]
        decided.effects[:0] = sends  # before a stop that they come with

    def _note_posted(self, decided: Decided, posted: Posted | None) -> None:
        if posted is not None:
            decided.posted.append(posted)

    def _known(self, request: Request, decided: Decided) -> Done | None:
        """The answer that this request id already got; refused when it came with other params."""
        if request.request_id is None:
            return None
        key = (_scope(request), request.request_id)
        known = self._requests.find(*key)
        known = known or next((row for row in decided.requests if (row.scope, row.request_id) == key), None)
        if known is None:
            return None
        if known.fingerprint != (request.fingerprint or ""):
            raise Refused(
                "requestIdReused",
                t("request id {request} came with other params before", request=request.request_id),
                t("use a fresh request id"),
            )
        return known.done

    def _fail(self, batch: list[_Waiting], trouble: Exception) -> None:
        refusal = (
            trouble
            if isinstance(trouble, Refused)
            else Refused("storeUnavailable", t("the change was not written"), t("graphd doctor looks at the store"))
        )
        for waiting in batch:
            if not waiting.answer.done():
                waiting.answer.set_exception(refusal)
                waiting.answer.exception()  # the caller may be gone
        self._serve_views()

    def _answer(self, batch: list[_Waiting], decided: Decided) -> None:
        failpoint("writer.reply.before")
        for waiting in batch:
            if waiting.answer.done():
                continue
            if isinstance(waiting.result, Refused):
                waiting.answer.set_exception(waiting.result)
                waiting.answer.exception()
            elif waiting.result is not None:
                waiting.answer.set_result(waiting.result)
        failpoint("writer.reply.after")
        failpoint("writer.notify.before")
        if decided.changes:
            for listener in list(self._listeners):
                listener(decided.changes)
        failpoint("writer.notify.after")
        self._serve_views()
        self.on_effects(decided.effects)

    def _serve_views(self) -> None:
        views, self._views = self._views, []
        for look in views:
            look()


def _scope(request: Request) -> str:
    """Request ids live as long as their graph; those of `set` and `import`, which make one, belong to the workspace."""
    graph: Any = getattr(request.command, "graph", "")
    return "" if isinstance(request.command, Set | Import) else str(graph)
