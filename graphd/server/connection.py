"""One client: reads frames, answers every request exactly once, and owns its cursors and its writer.

Answers come in the order in which they are ready. A client that leaves ends its reads; what is with the store's
writer is committed all the same. Source: spec protocol.md, Errors and Limits; architecture.md, The connection.
"""

import asyncio
import select
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from graphd.base.catalogue import localised, negotiated, translate
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.events import Change
from graphd.core.model import State
from graphd.daemon.log import log
from graphd.server import frames
from graphd.server.errors import CallRefused, MethodUnknown, error_object, shown, where
from graphd.server.feeds import notification
from graphd.server.hello import GREETINGS, REQUEST_LIMIT, AttemptRef, Caller, Greeting, Host, greeting
from graphd.server.lsp.session import KNOWN, SERVED, LspSession, changes_graphs, is_ours
from graphd.server.outbox import Outbox
from graphd.server.routes import Call, Household, Reply, all_routes, dispatch, is_cancellable
from graphd.server.subscriptions import Subscriptions
from graphd_protocol.errors import INVALID_REQUEST, REQUEST_CANCELLED

CHUNK_BYTES: Final = 65536
LEAVE_S: Final = 2.0
FLUSH_S: Final = 30.0
NOT_GREETED: Final = -32002


class Quitting(Exception):
    """Ends a connection's task group in an orderly way."""


class Hub(Household, Protocol):
    """What a connection needs of the server around it."""

    @property
    def host(self) -> Host:
        """What hello answers with."""

    def watch_workflows(self, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` after workflow or prompt files changed on the disk; gives the way to end that."""


@dataclass(slots=True)
class _Pending:
    """A request that is being served."""

    task: "asyncio.Task[None] | None" = None
    lsp: "asyncio.Future[dict[str, Any]] | None" = None  # its answer to come, where the language server gives it
    is_cancellable: bool = True
    is_started: bool = False
    end: dict[str, Any] | None = None  # the error to answer with once its task is cancelled


class Connection:
    """Serves one accepted socket.

    `kin` is the attempt that the peer's parents lead to; `greeted` is a greeting that was answered before.
    """

    def __init__(
        self, sock: socket.socket, hub: Hub, *, kin: AttemptRef | None = None, greeted: Greeting | None = None
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._hub = hub
        self._kin = kin
        self._greeted = greeted
        self.caller: Caller | None = None
        self.subscriptions = Subscriptions(hub.feeds, hub.activity_of, hub.daemon.store_id)
        self.outbox = Outbox(sock, self._pull, hub.daemon.view, self.subscriptions.pull_change)
        self._reader = frames.FrameReader()
        self._pending: dict[int | str, _Pending] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False
        self._has_exited = False
        self._at_end: list[Callable[[], None]] = []
        self._lsp: LspSession | None = None

    async def run(self, *, is_full: bool = False) -> None:
        """Serve until the client leaves, breaks the framing, or `stop` was called. Closes the socket.

        `is_full`: there are too many connections; the first request is answered `overloaded`, then it ends.
        """
        self._is_full = is_full
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                if self._greeted is not None:
                    self._take_in(self._greeted)
                writing = tasks.create_task(self.outbox.run())
                reading = tasks.create_task(self._read())
                await asyncio.wait({writing, reading}, return_when=asyncio.FIRST_COMPLETED)
                reading.cancel()
                await self._leave(writing)
        except* (OSError, Quitting):
            pass  # the client is gone
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._lsp is not None:
                self._lsp.close()
            self._sock.close()
            for end in self._at_end:
                end()

    async def stop(self, reason: str, *, reconnect: bool) -> None:
        """The daemon ends: what commits is answered, the rest refused, and `graphd/stopping` is the last frame."""
        committing = [p.task for p in self._pending.values() if p.task is not None and not p.is_cancellable]
        if committing:
            await asyncio.wait(committing, timeout=LEAVE_S)
        ends = error_object(Refused("storeUnavailable", t("the daemon is stopping"), t("connect again")))
        for pending in list(self._pending.values()):
            _cut_short(pending, ends)
        if tasks := [p.task for p in self._pending.values() if p.task is not None]:
            await asyncio.wait(tasks, timeout=LEAVE_S)
        params = {"reason": translate(reason, self.subscriptions.language), "reconnect": reconnect}
        self.outbox.finish(notification("graphd/stopping", params))

    async def _leave(self, writing: "asyncio.Task[None]") -> None:
        """Let answers go out to a client that still reads; then end everything."""
        if self._has_exited:
            for pending in self._pending.values():
                if pending.is_cancellable:
                    _cut_short(pending, {"code": REQUEST_CANCELLED, "message": t("cancelled")})
        if not self._is_peer_gone():
            served = [pending.task for pending in self._pending.values() if pending.task is not None]
            if served and not writing.done():
                await asyncio.wait(served)
            self.outbox.finish()
            await asyncio.wait({writing}, timeout=FLUSH_S)
        if self._lsp is not None:
            self._lsp.close()  # its timers may start nothing in a group that ends
        raise Quitting

    def _is_peer_gone(self) -> bool:
        poller = select.poll()
        poller.register(self._sock, 0)
        return bool(poller.poll(0))  # POLLHUP or POLLERR: not only its writing half is closed

    # ---- reading --------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while chunk := await self._receive():
                for frame in self._reader.feed(chunk):
                    await self._take(frame)
                    if self._has_exited:
                        return
        except frames.FramingBroken as broken:
            log("framing_broken", reason=str(broken))
            if broken.answer is not None:
                self._answer({"id": None, "error": broken.answer})
        except TimeoutError:
            log("frame_never_ended")

    async def _receive(self) -> bytes:
        """Bytes, or none at the end. The rest of a frame that has begun is due in BODY_LIMIT_S."""
        loop = asyncio.get_running_loop()
        if not self._reader.is_midway:
            self._deadline_s = loop.time() + frames.BODY_LIMIT_S
            chunk = await loop.sock_recv(self._sock, CHUNK_BYTES)
            self._deadline_s = loop.time() + frames.BODY_LIMIT_S
            return chunk
        async with asyncio.timeout_at(self._deadline_s):
            return await loop.sock_recv(self._sock, CHUNK_BYTES)

    async def _take(self, frame: frames.Frame) -> None:
        message = frames.decode(frame.body)
        self._deadline_s = asyncio.get_running_loop().time() + frames.BODY_LIMIT_S
        if message.trouble is not None:
            self._answer({"id": message.id, "error": message.trouble})
        elif message.answer is not None:
            if self._lsp is not None:
                self._lsp.answer(message.answer)
        elif not message.is_request:
            self._notice(message)
        elif message.id is not None and message.method is not None:
            self._serve(message.id, message.method, message.params)
        await self.outbox.room()
        if self._lsp is not None:
            await self._lsp.room()
        await asyncio.sleep(0)  # what can be answered at once is, before more is taken on

    def _notice(self, message: frames.Message) -> None:
        if message.method == "$/cancelRequest" and isinstance(message.params, dict):
            number = message.params.get("id")
            pending = self._pending.get(number) if isinstance(number, int | str) else None
            if pending is not None and pending.is_cancellable:
                _cut_short(pending, {"code": REQUEST_CANCELLED, "message": t("cancelled")})
        elif message.method == "exit":
            self._has_exited = True
        elif self._lsp is not None and message.method is not None:
            self._lsp.notice(message.method, message.params)

    # ---- answering ------------------------------------------------------------------------------------------------

    def _serve(self, number: int | str, method: str, params: Any) -> None:
        try:
            self._check(number, method)
            if method in GREETINGS:
                self._greet(number, method, params)
            elif method == "shutdown" and self._lsp is not None:
                self._lsp.shut()
                self._answer({"id": number, "result": None})
            else:
                self._begin(number, method, params)
        except (CallRefused, Refused) as refusal:
            if self.caller is None and isinstance(params, dict):
                self._speak(params.get("locale"))
            self._answer({"id": number, "error": error_object(refusal)})
            if self._is_full:
                self.outbox.finish()

    def _check(self, number: int | str, method: str) -> None:
        """Raises where a request cannot be served as things stand."""
        is_greeting = method in GREETINGS
        if self._is_full:
            raise Refused("overloaded", t("too many connections"), t("close another client, or try again"))
        if self._lsp is not None and (self._lsp.is_shut or method == "initialize"):
            said = t("shutdown was sent") if self._lsp.is_shut else t("initialize was sent before")
            raise CallRefused(INVALID_REQUEST, said, hint=t("open another connection"))
        if self.caller is None and not is_greeting:
            hint = t("the first request of a connection is graphd/hello, or initialize")
            raise CallRefused(NOT_GREETED, t("graphd/hello has not been sent"), hint=hint)
        if self._lsp is None and method in KNOWN:
            hint = t("an editor sends initialize first")
            raise CallRefused(NOT_GREETED, t("initialize has not been sent"), hint=hint)
        if number in self._pending:
            hint = t("use an id once until it is answered")
            raise CallRefused(INVALID_REQUEST, t("a request with this id is being served"), hint=hint)
        if len(self._pending) >= REQUEST_LIMIT and not is_greeting and method != "shutdown":
            said = t("{count} requests are being served", count=REQUEST_LIMIT)
            raise Refused("overloaded", said, t("wait for an answer"))

    def _greet(self, number: int | str, method: str, params: Any) -> None:
        """Answered before anything heavy is loaded; an editor's loading begins with it."""
        greeted = greeting(method, params, self._hub.host, earlier=self.caller, kin=self._kin)
        self._answer({"id": number, "result": greeted.result})
        self._take_in(greeted)

    def _take_in(self, greeted: Greeting) -> None:
        """The greeting has been answered, here or on the porch."""
        self.caller = greeted.caller
        self._speak(self.caller.locale)
        if greeted.editor is not None:
            self._lsp = LspSession(self, greeted.editor)
        self._hub.greeted()

    def _speak(self, locale: object) -> None:
        """The user's setting says what is read here, else the client."""
        wish = locale if isinstance(locale, str) else None
        self.subscriptions.language = negotiated(self._hub.daemon.settings.locale, wish)

    def _begin(self, number: int | str, method: str, params: Any) -> None:
        if self._tasks is None:
            return
        if method in SERVED and self._lsp is not None:
            reply = self._lsp.request(number, method, params)
            pending = _Pending(lsp=reply, is_cancellable=not changes_graphs(method, params))
        elif not is_ours(method) and self._lsp is not None:
            raise MethodUnknown(method, [*SERVED, *all_routes()])
        else:
            pending = _Pending(is_cancellable=is_cancellable(method))
        self._pending[number] = pending
        pending.task = self._tasks.create_task(self._work(number, pending, method, params))

    async def _work(self, number: int | str, pending: _Pending, method: str, params: Any) -> None:
        reply: Reply | None = None
        pending.is_started = True
        try:
            if pending.end is not None:  # cancelled before it began
                raise asyncio.CancelledError
            if pending.lsp is not None:
                answer = {"id": number, **await pending.lsp}
            else:
                reply = await dispatch(self.call(), method, params)
                answer = {"id": number, "result": reply.result}
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if pending.end is None or task is None:
                raise
            task.uncancel()
            if pending.lsp is not None and self._lsp is not None:
                self._lsp.cancel(number)
            answer = {"id": number, "error": pending.end}
        except (CallRefused, Refused) as refusal:
            answer = {"id": number, "error": error_object(refusal)}
        except Exception as trouble:  # noqa: BLE001 - every request gets exactly one answer
            log("request_failed", method=shown(method), **where(trouble))
            answer = {"id": number, "error": error_object(trouble)}
        del self._pending[number]
        self._answer(answer)
        if reply is not None and reply.then is not None:
            reply.then()
            self.outbox.pull_soon()

    def _answer(self, answer: dict[str, Any]) -> None:
        answer = localised(answer, self.subscriptions.language)
        try:
            frame = frames.encode({"jsonrpc": "2.0", **answer})
        except TypeError as trouble:  # a result that is no JSON is our mistake, and still wants an answer
            log("result_not_json", **where(trouble))
            frame = frames.encode({"jsonrpc": "2.0", "id": answer["id"], "error": error_object(trouble)})
        if len(frame) > frames.BODY_LIMIT_BYTES:
            refusal = Refused("tooLarge", t("the answer does not fit into a frame"), t("ask for less at a time"))
            error = localised(error_object(refusal), self.subscriptions.language)
            frame = frames.encode({"jsonrpc": "2.0", "id": answer["id"], "error": error})
        self.outbox.reply(frame)

    # ---- what the language server needs ---------------------------------------------------------------------------

    def call(self) -> Call:
        """The surroundings of a request that is made for this client, which has been greeted."""
        if self.caller is None:
            raise CallRefused(NOT_GREETED, t("graphd/hello has not been sent"))
        return Call(self._hub, self.caller, self.subscriptions, self._at_end)

    def pull_soon(self) -> None:
        """A frame waits for the writer."""
        self.outbox.pull_soon()

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that ends with the connection; its faults are logged and end nothing."""
        running = _kept_apart(work)
        try:
            if self._tasks is not None:
                self._tasks.create_task(running)
                return
        except RuntimeError:
            pass  # the connection is ending
        running.close()

    def watch_workflows(self, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` after workflow or prompt files changed on the disk."""
        return self._hub.watch_workflows(stirred)

    # ---- notifications --------------------------------------------------------------------------------------------

    def committed(self, changes: list[Change], state: State) -> None:
        """Right after a commit, while the state is committed."""
        outbox = self.outbox
        if outbox.is_idle and (frame := self.subscriptions.lone_change(state)) is not None:
            outbox.notify(frame)
        else:
            self._follow(changes, state)
        if self._lsp is not None:
            self._lsp.committed(changes, state)

    def _follow(self, changes: list[Change], state: State) -> None:
        """The same for commits and clients of every kind."""
        if self.subscriptions.committed(changes):
            self.outbox.pull_now(state)
        if self.subscriptions.moved_asks:
            self.outbox.pull_soon()

    def phase_moved(self, graph: str, node: str) -> None:
        """A phase or a last line changed."""
        if self.subscriptions.phase_moved(graph, node):
            self._plan_activity()
        if self._lsp is not None:
            self._lsp.phase_moved(graph, node)

    def printed(self, graph: str, node: str, number: int, offset: int, chunk: bytes) -> None:
        """An attempt printed."""
        if self.subscriptions.printed(graph, node, number, offset, chunk):
            self.outbox.pull_soon()

    def _pull(self, state: State) -> bytes | None:
        frame = self.subscriptions.pull(state, asyncio.get_running_loop().time())
        if frame is not None:
            return frame
        self._plan_activity()
        return self._lsp.pull() if self._lsp is not None else None

    def _plan_activity(self) -> None:
        """One timer, only while something waits for its turn."""
        due_s = self.subscriptions.activity_due_s()
        if due_s is None or self._timer is not None:
            return
        self._timer = asyncio.get_running_loop().call_at(due_s, self._activity_due)

    def _activity_due(self) -> None:
        self._timer = None
        self.outbox.pull_soon()


def _cut_short(pending: _Pending, end: dict[str, Any]) -> None:
    pending.end = end
    if pending.is_started and pending.task is not None:
        pending.task.cancel()


async def _kept_apart(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await work()
    except Exception as trouble:  # noqa: BLE001 -- one feature's fault ends no connection
        log("lsp_work_failed", **where(trouble))
