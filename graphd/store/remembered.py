"""The request ids that were applied, and their answers, in memory (spec protocol.md, Types).

Each is remembered for its graph's life. Those of the workspace, and that of a `clear`, which outlives its graph, are
forgotten after `KEPT_DAYS`.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from graphd.core.commands import Done

KEPT_DAYS: Final = 7
KEPT_MS: Final = KEPT_DAYS * 24 * 3600 * 1000


@dataclass(slots=True)
class RequestRow:
    """A request id that was applied, with the hash of its params and its answer (protocol.md, Errors).

    `scope`: its graph, or "" for the workspace; `at`: when, in ms since 1970.
    """

    scope: str
    request_id: str
    fingerprint: str
    done: Done
    at: int = 0


class Remembered:
    """Bounded by the graphs that there are, and by what a workspace is asked in `KEPT_DAYS`."""

    def __init__(self, rows: Iterable[RequestRow] = (), *, graphs: Collection[str] = (), now: int = 0) -> None:
        """`rows` are the stored ones, the oldest first."""
        self._by_scope: dict[str, dict[str, RequestRow]] = {}
        self._ageing: deque[RequestRow] = deque()
        found = list(rows)
        self.note(found, gone={row.scope for row in found}.difference(graphs), now=now)

    def __len__(self) -> int:
        return sum(map(len, self._by_scope.values()))

    def find(self, scope: str, request_id: str) -> RequestRow | None:
        """What came with this id before."""
        return self._by_scope.get(scope, {}).get(request_id)

    def graph_of(self, request_id: str) -> str | None:
        """The graph that a request of this id was carried out on; None where none was, or where it made the graph."""
        return next((scope for scope, rows in self._by_scope.items() if scope and request_id in rows), None)

    def note(self, rows: Iterable[RequestRow], *, gone: Collection[str], now: int) -> None:
        """A commit applied these; graphs that are `gone` with it are forgotten, and what is too old."""
        for scope in gone:
            self._by_scope.pop(scope, None)
        for row in rows:
            self._by_scope.setdefault(row.scope, {})[row.request_id] = row
            if not row.scope or row.scope in gone:
                self._ageing.append(row)
        while self._ageing and self._ageing[0].at < now - KEPT_MS:
            self._forget(self._ageing.popleft())

    def _forget(self, row: RequestRow) -> None:
        rows = self._by_scope.get(row.scope, {})
        if rows.get(row.request_id) is row:
            del rows[row.request_id]
        if not rows:
            self._by_scope.pop(row.scope, None)
