"""`$/progress` for each graph that runs, where the editor can show it: created first, told seldom, ended always.

A token of its own for each run of a graph: a paused one ends its progress, a resumed one begins another. Source: spec
protocol.md, Notifications; research sidecar.md §2 (throttle to 4 to 10 reports a second).
"""

import itertools
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pygls.exceptions import JsonRpcException

from graphd.base.text import t
from graphd.core.model import Graph
from graphd.server.lsp.glue import EditorGone
from graphd.server.lsp.pace import Pace

Json = dict[str, Any]
Ask = Callable[[str, Json | None], Coroutine[Any, Any, Any]]
Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
Tell = Callable[[Hashable, str, Json], None]
INTERVAL_S: Final = 0.25
CREATING_LIMIT: Final = 8
_NAMED: Final = 3
_SETTLED: Final = ("achieved", "failed", "skipped", "cancelled")


@dataclass(slots=True)
class _Run:
    """One graph's progress. `is_begun` once the editor took the token and was told of the beginning."""

    token: str
    title: str
    done: int = 0
    total: int = 0
    names: tuple[str, ...] = ()
    told: tuple[int, int, tuple[str, ...]] | None = None
    is_begun: bool = False
    ended_as: str | None = None


class Progress:
    """The running graphs of one editor's workspace."""

    def __init__(self, *, ask: Ask, tell: Tell, spawn: Spawn) -> None:
        self._ask = ask
        self._tell = tell
        self._spawn = spawn
        self._runs: dict[str, _Run] = {}
        self._numbers = itertools.count(1)
        self._creating = 0
        self._pace = Pace(self._report, delay_s=0.05, interval_s=INTERVAL_S)

    def see(self, graph: str, now: Graph | None) -> None:
        """At a committed moment: how a graph stands; None where it is gone."""
        run = self._runs.get(graph)
        if now is None or now.status != "active":
            if run is not None and run.ended_as is None:
                run.ended_as = now.status.replace("_", " ") if now is not None else "cleared"
                self._pace.touch()
            return
        if run is None or run.ended_as is not None:
            if run is not None:
                self._end(run)
            run = self._runs[graph] = _Run(f"graphd/{graph}/{next(self._numbers)}", now.title)
            if self._creating < CREATING_LIMIT:  # more wait for an editor that does not answer: it is shown no more
                self._creating += 1
                self._spawn(partial(self._create, run))
        run.done = sum(now.counts.get(state, 0) for state in _SETTLED)
        run.total = len(now.nodes)
        live = dict.fromkeys(
            now.nodes[key[0]].slug for key in itertools.islice(now.live, _NAMED) if key[0] in now.nodes
        )
        run.names = tuple(live)
        self._pace.touch()

    def close(self) -> None:
        """The editor leaves."""
        self._pace.close()

    async def _create(self, run: _Run) -> None:
        try:
            await self._ask("window/workDoneProgress/create", {"token": run.token})
        except (EditorGone, JsonRpcException, ConnectionError):
            return  # it has left, or does not want this one
        finally:
            self._creating -= 1
        if run.ended_as is None:
            run.is_begun = True
            begin = {"kind": "begin", "title": run.title, "cancellable": False, **_shown(run)}
            self._tell((run.token, "begin"), "$/progress", {"token": run.token, "value": begin})
            self._pace.touch()

    def _report(self) -> None:
        for graph, run in list(self._runs.items()):
            if run.ended_as is not None:
                self._end(run)
                del self._runs[graph]
            elif run.is_begun and (run.done, run.total, run.names) != run.told:
                run.told = (run.done, run.total, run.names)
                value = {"kind": "report", **_shown(run)}
                self._tell((run.token, "report"), "$/progress", {"token": run.token, "value": value})

    def _end(self, run: _Run) -> None:
        if run.is_begun:
            run.is_begun = False
            value = {"kind": "end", "message": run.ended_as}
            self._tell((run.token, "end"), "$/progress", {"token": run.token, "value": value})


def _shown(run: _Run) -> Json:
    names = ", ".join(run.names)
    message = t("{done} of {total}", done=run.done, total=run.total)
    if names:
        message = t("{done} of {total}: {names}", done=run.done, total=run.total, names=names)
    percentage = min(100, 100 * run.done // run.total) if run.total else 0
    return {"message": message, "percentage": percentage}
