"""Follow one graph to its end: the loop behind `run` and `watch`.

It outlives the daemon (`graphd.client.follow`), hands keys on (`steering`), offers detach, pause and cancel at Ctrl-C,
and turns the end into an exit code. Leaving never stops the graph.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphd.cli.asking import Asking
from graphd.cli.closing import also, closing, final_output, is_at_rest
from graphd.cli.exits import CANCELLED, DETACHED, OK, PERSON_NEEDED, TIMED_OUT, CommandRefused, code_of_graph
from graphd.cli.keyboard import is_in_front, single_keys
from graphd.cli.options import print_json
from graphd.cli.people import response
from graphd.cli.talk import call, call_once, is_at_terminal, open_session, refused
from graphd.cli.views import View, view_for
from graphd.cli.words import counted, duration, harmless, short_id
from graphd_protocol.states import ENDED_STATUSES

if TYPE_CHECKING:
    from graphd.cli.steering import Steering
    from graphd.client.follow import Update
    from graphd.client.session import Session

Wire = dict[str, Any]
_MENU = "Ctrl-C again or d: detach (it goes on)   p: pause   c: cancel   any other key: go on watching"


@dataclass(slots=True, frozen=True)
class Wishes:
    """How to follow: what to print, for how long since the command began, and what counts as success."""

    as_json: bool = False
    timeout_s: float | None = None
    begun_s: float = field(default_factory=time.monotonic)
    allow_failures: bool = False
    asks: bool = True
    shows_output: bool = False
    steers: bool = False
    """Keys steer the graph, where somebody sits at a terminal that can be drawn on."""
    stays: bool = False
    """Somebody who can steer it stays with a graph at rest, until they leave or it ends."""

    @property
    def left_s(self) -> float | None:
        """Seconds of the timeout that are left, 0 at its end; None without one."""
        return None if self.timeout_s is None else max(0.0, self.begun_s + self.timeout_s - time.monotonic())


async def follow_to_the_end(workspace: Path | None, graph: str, wishes: Wishes, *, view: View | None = None) -> int:
    """Follow `graph` (an id) until it is at rest, is left, or the time is over; returns the exit code."""
    return await Follower(workspace, graph, wishes, view=view or view_for(as_json=wishes.as_json)).run()


class Follower:
    """One follower of one graph. `snapshot` is the last value seen."""

    def __init__(self, workspace: Path | None, graph: str, wishes: Wishes, *, view: View) -> None:
        self.snapshot: Wire | None = None
        self._workspace = workspace
        self._graph = graph
        self._wishes = wishes
        self._view = view
        self._activity: dict[str, Wire] = {}
        self._is_cleared = False
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_menu = False
        self._was_at_rest = False
        self._keyboard = contextlib.ExitStack()
        self._has_keys = not wishes.as_json and is_at_terminal() and sys.stdout.isatty() and is_in_front()
        self._steering = self._steered() if wishes.steers and self._has_keys else None
        self._asking = Asking(show=view.ask, answer=self._answer, types=self._steering is not None)
        self._verbs: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """To the end; see `follow_to_the_end`."""
        self._view.open()
        watching = asyncio.create_task(self._watch())
        try:
            if self._has_keys:
                self._keyboard.enter_context(single_keys(self._pressed, **self._around_a_stop()))
            with self._signals():
                waited: set[asyncio.Future[Any]] = {watching, self._left}
                await asyncio.wait(waited, timeout=self._wishes.left_s, return_when=asyncio.FIRST_COMPLETED)
            code = await self._code(watching)
            if code not in (OK, DETACHED):
                self._view.bell()
        finally:
            await self._put_back(watching)
        await self._last_words(code)
        return code

    async def _code(self, watching: "asyncio.Task[None]") -> int:
        if watching.done():
            await watching
            if self._is_cleared or self.snapshot is None:
                return CANCELLED
            if self._needs_person() and not is_at_rest(self.snapshot):
                return PERSON_NEEDED
            return code_of_graph(self.snapshot, allow_failures=self._wishes.allow_failures)
        if not self._left.done():
            return TIMED_OUT
        if self._stays() and self.snapshot is not None and is_at_rest(self.snapshot):
            return code_of_graph(self.snapshot, allow_failures=self._wishes.allow_failures)
        return DETACHED

    async def _put_back(self, watching: "asyncio.Task[None]") -> None:
        """End the tasks, give keyboard and terminal back."""
        self._keyboard.close()
        if self._left.done() and self._verbs:
            await asyncio.wait(self._verbs, timeout=5)
        for task in (watching, *self._verbs):
            task.cancel()
        await asyncio.gather(watching, *self._verbs, return_exceptions=True)
        await self._view.close()

    # ---- watching -------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Take updates until nothing more happens by itself. Raises CommandRefused when the daemon is gone for good."""
        from graphd.client.follow import follow
        from graphd.client.paths import AttachFailure
        from graphd.client.session import ConnectionLost, RemoteRefused

        try:
            async with aclosing(follow(self._open, self._graph, activity=not self._wishes.as_json)) as updates:
                async for update in updates:
                    self._take(update)
                    if self._is_over():
                        return
        except RemoteRefused as refusal:
            raise refused(refusal) from None
        except AttachFailure as failure:
            raise CommandRefused("unreachable", failure.message, failure.hint, exit_code=failure.exit_code) from None
        except ConnectionLost as loss:
            text = str(loss).strip().rstrip(":")
            raise CommandRefused("unreachable", text, f"graphd watch {short_id(self._graph)}") from None

    async def _open(self, may_start: bool) -> "Session":
        from graphd.client.session import Session

        return await Session.open(
            workspace=self._workspace, start=may_start, client="graphd-cli", interactive=is_at_terminal()
        )

    def _take(self, update: "Update") -> None:
        if update.snapshot is not None:
            self.snapshot = update.snapshot
        if self._wishes.as_json:
            _print_update(update)
        if update.kind == "activity":
            self._activity = self._activity | {entry["node"]: entry for entry in update.params["nodes"]}
        elif update.kind == "cleared":
            self._is_cleared = True
        elif update.kind == "lost":
            self._view.note("the daemon went away; what runs goes on under its keepers")
        elif update.is_restarted:
            self._view.note(f"daemon restarted, {counted(update.adopted or 0, 'child', 'children')} adopted", "cyan")
        elif update.kind == "notice":
            self._view.note(harmless(update.params.get("text", "")))
        if self.snapshot is not None:
            if self._steering is not None:
                self._steering.take(self.snapshot)
            self._view.show(self.snapshot, self._activity)
            self._offer(self.snapshot.get("asks", []))
            self._ring_at_rest(self.snapshot)

    def _ring_at_rest(self, snapshot: Wire) -> None:
        """Whoever stays is told when it needs them."""
        rests = is_at_rest(snapshot)
        if rests and not self._was_at_rest and self._stays():
            self._view.bell()
        self._was_at_rest = rests

    def _offer(self, asks: list[Wire]) -> None:
        """Show the first open ask, where somebody sits here and is not asked something else."""
        if not self._can_ask() or self._is_busy():
            return
        was_shown = self._asking.ask
        if self._asking.take(asks) and was_shown is None:
            self._view.bell()

    def _is_busy(self) -> bool:
        """The line for questions has one of ours."""
        return self._has_menu or (self._steering is not None and self._steering.is_asking)

    def _answer(self, ask: Wire, option: str, scope: str) -> None:
        self._begin(self._respond(ask, response(ask, option=option, scope=scope)))

    def _answer_in_words(self, text: str) -> None:
        if (ask := self._asking.typed()) is not None:
            self._begin(self._respond(ask, response(ask, option=None, text=text)))

    async def _respond(self, ask: Wire, params: Wire) -> None:
        try:
            session = await open_session(self._workspace)
            try:
                await call_once(session, "workgraph/respond", params)
            finally:
                await session.close()
        except CommandRefused as refusal:
            self._view.note(f"{ask['id']}: {refusal.message}", "red")
            if refusal.code != "askGone":
                self._asking.again(ask)
        if self.snapshot is not None:
            self._offer([other for other in self.snapshot.get("asks", []) if other["id"] != ask["id"]])

    def _is_over(self) -> bool:
        if self._is_cleared:
            return True
        if self.snapshot is None:
            return False
        return self._needs_person() or (is_at_rest(self.snapshot) and not self._stays())

    def _stays(self) -> bool:
        """Somebody is here who can steer it on from where it rests."""
        if self._steering is None or self.snapshot is None or self.snapshot["status"] in ENDED_STATUSES:
            return False
        return self._wishes.stays or self._steering.has_steered

    def _needs_person(self) -> bool:
        """A question is open and nobody here can answer it; a proposal holds nothing up."""
        asks = (self.snapshot or {}).get("asks") or []
        return any(ask["kind"] != "proposal" for ask in asks) and not self._can_ask()

    def _can_ask(self) -> bool:
        return self._wishes.asks and self._has_keys

    # ---- the keyboard ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        loop.add_signal_handler(signal.SIGTERM, self._leave)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)

    def _interrupted(self) -> None:
        """Once offers, twice detaches; where no key can be read there is nothing to offer."""
        if self._has_menu or not self._has_keys:
            self._leave()
            return
        self._has_menu = True
        if self._steering is not None:
            self._steering.cover(is_covered=True)
        self._view.ask(_MENU)

    def _leave(self) -> None:
        if self._steering is not None:
            self._steering.let_go()
        if not self._left.done():
            self._left.set_result(None)

    def _pressed(self, key: str) -> None:
        """A key: of the menu, of a question of ours, of the ask that is shown, else it steers."""
        steering = self._steering
        if self._has_menu:
            self._choose(key)
        elif steering is not None and steering.is_asking:
            steering.press(key)
        elif self._asking.wants_text(key) and steering is not None and self._asking.ask is not None:
            steering.ask_for_text(f"{harmless(self._asking.ask['title'])}:", self._answer_in_words)
        elif self._asking.wants(key):
            self._asking.press(key)
        elif steering is not None:
            steering.press(key)
        if not self._is_busy() and self.snapshot is not None:
            self._asking.draw()
            self._offer(self.snapshot.get("asks", []))

    def _choose(self, key: str) -> None:
        """A key of the menu."""
        self._has_menu = False
        if self._steering is not None:
            self._steering.cover(is_covered=False)
        self._view.ask("")
        if key == "d":
            self._leave()
        elif key in ("p", "c"):
            self._begin(self._send("pause" if key == "p" else "cancel"))

    def _steered(self) -> "Steering | None":
        """Where the tree is drawn, it can be steered."""
        from graphd.cli.screen import Screen

        if not isinstance(self._view, Screen):
            return None
        from graphd.cli.doing import Doing
        from graphd.cli.steering import Steering

        doing = Doing(
            self._workspace, self._graph, self._view, begin=self._begin, leave=self._leave,
            ended=lambda node: steering.ended(node),
        )  # fmt: skip
        steering = Steering(doing, self._view.face)
        return steering

    def _around_a_stop(self) -> dict[str, Any]:
        from graphd.cli.screen import Screen

        screen = self._view
        return {"stops": screen.rest, "goes_on": screen.go_on} if isinstance(screen, Screen) else {}

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._verbs.add(task)
        task.add_done_callback(self._verbs.discard)
        return task

    async def _send(self, verb: str) -> None:
        self._view.note(f"{verb} asked for")
        try:
            session = await open_session(self._workspace)
            try:
                await call(session, f"workgraph/{verb}", {"graph": self._graph})
            finally:
                await session.close()
        except CommandRefused as refusal:
            self._view.note(f"{verb}: {refusal.message}", "red")

    # ---- the end --------------------------------------------------------------------------------------------------

    async def _last_words(self, code: int) -> None:
        if self._wishes.as_json:
            print_json({"type": "snapshot", "snapshot": self.snapshot})
            return
        if code in (DETACHED, TIMED_OUT):
            what = (
                "detached" if code == DETACHED else f"not done after {duration((self._wishes.timeout_s or 0) * 1000)}"
            )
            _say(f"{what}; the graph goes on", f"graphd watch {short_id(self._graph)}")
        elif self._is_cleared or self.snapshot is None:
            _say("the graph was cleared", "graphd status")
        elif code == PERSON_NEEDED:
            _say("a person is needed, and nobody can be asked here", f"graphd ask --graph {short_id(self._graph)}")
        else:
            await self._print_output(self.snapshot)
            more = also(self.snapshot)
            _say(closing(self.snapshot)[0], closing(self.snapshot)[1], *([more] if more else []))

    async def _print_output(self, snapshot: Wire) -> None:
        """The graph's own result, as it is, on stdout."""
        from graphd.cli.printed import whole_output

        slug = final_output(snapshot) if snapshot["status"] == "complete" and self._wishes.shows_output else None
        node: Wire = next((n for n in snapshot["nodes"] if n["slug"] == slug), {})
        if slug is None or not node.get("output"):
            return
        session = await open_session(self._workspace)
        try:
            text = (await whole_output(session, self._graph, slug))["text"]
        finally:
            await session.close()
        if sys.stdout.isatty():
            text = "\n" + harmless(text).rstrip("\n") + "\n\n"
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
        sys.stdout.flush()


def _say(happened: str, *commands: str) -> None:
    print("\n  ".join((happened, *commands)), file=sys.stderr, flush=True)


def _print_update(update: "Update") -> None:
    if update.kind in ("restarted", "lost"):
        told: Wire = {"graph": update.graph} | ({"adopted": update.adopted} if update.kind == "restarted" else {})
        print_json({"type": update.kind, **told})
    else:
        print_json({"type": update.kind, **update.params})
