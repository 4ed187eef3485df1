"""The typed refusal: how every layer says no to whoever asked.

It stands below the core because the store refuses an opening before any of the core is imported (ADR 0008).
"""

from typing import Any


class Refused(Exception):
    """A typed refusal: `code` of `graphd_protocol.errors`, a message for people, and what stands in `data`."""

    def __init__(self, code: str, message: str, hint: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.facts = facts
