"""Lines for an agent, sent each once over any number of daemons and connections.

A line has its sequence number from the transaction that decided it. The keeper takes a line only if that is the
number of lines so far, so what it has already is never sent twice. Source: execution.md, Exactly once over a crash.
"""

import asyncio
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.children.link import CallRefused, Link

FIRST_BACKOFF_S: Final = 0.02
LAST_BACKOFF_S: Final = 1.0


class Outbox:
    """Numbered lines that the journal may lack. Used on the loop alone."""

    def __init__(self) -> None:
        self._lines: dict[int, str] = {}
        self._next = 0
        self._changed = asyncio.Event()

    def put(self, seq: int, line: str) -> None:
        """Line number `seq` was decided and committed. A second time changes nothing."""
        if seq >= self._next:
            self._lines.setdefault(seq, line)
            self._changed.set()

    @property
    def heard(self) -> int:
        """The number of the first line that the journal may lack."""
        return self._next

    @property
    def is_empty(self) -> bool:
        """The journal has all that was put."""
        return not self._lines

    async def send_over(self, link: Link) -> None:
        """Send what the journal lacks, in order, as it comes. Ends when the agent takes no input, or with LinkLost."""
        self._next = link.standing["inCount"]
        self._lines = {seq: line for seq, line in self._lines.items() if seq >= self._next}
        backoff_s = FIRST_BACKOFF_S
        while True:
            self._changed.clear()
            while (line := self._lines.get(self._next)) is not None:
                try:
                    failpoint("outbox.send.before")
                    await link.call("append", seq=self._next, line=line)
                    failpoint("outbox.send.after")
                except CallRefused as refusal:
                    if refusal.code not in ("busy", "full"):
                        return
                    await asyncio.sleep(backoff_s)
                    backoff_s = min(2 * backoff_s, LAST_BACKOFF_S)
                    continue
                backoff_s = FIRST_BACKOFF_S
                del self._lines[self._next]
                self._next += 1
            await self._changed.wait()
