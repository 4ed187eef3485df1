"""Exit codes and refusals of the command line (spec product.md, Command line)."""

from typing import Any, Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CANCELLED: Final = 3
BUDGET: Final = 4
INFRA: Final = 5
PERSON_NEEDED: Final = 6
PAUSED: Final = 7
TIMED_OUT: Final = 124
DETACHED: Final = 130

_BY_CODE: Final = {
    "usage": USAGE,
    "invalidPlan": USAGE,
    "invalidObjective": USAGE,
    "invalidBudget": USAGE,
    "invalidParams": USAGE,
    "inputMissing": USAGE,
    "untrusted": USAGE,
    "ambiguous": USAGE,
    "notSupported": USAGE,
    "unsavedChanges": USAGE,
    "agentMissing": INFRA,
    "stuck": INFRA,
    "storeUnavailable": INFRA,
    "malformedLog": INFRA,
    "locked": INFRA,
    "protocolMismatch": INFRA,
    "unreachable": INFRA,
}
_BY_STATUS: Final = {
    "cancelled": CANCELLED,
    "blocked": FAILED,
    "budget_limited": BUDGET,
    "infra_paused": INFRA,
    "user_paused": PAUSED,
}


class CommandRefused(Exception):
    """A command cannot be done: `code` as on the wire, what happened, what to do next, and the facts.

    `exit_code` is for the few that do not go by their code.
    """

    def __init__(self, code: str, message: str, hint: str = "", *, exit_code: int | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.facts = facts

    def wire(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
        return {
            "error": {"code": self.code, "message": self.message, "hint": self.hint, "data": self.facts},
        }


class CommandEnded(Exception):
    """A command ended without an error of its own, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


def code_of_refusal(code: str) -> int:
    """Exit code of a refusal; 1 for every one that product.md does not name."""
    return _BY_CODE.get(code, FAILED)


def code_of_graph(snapshot: dict[str, Any], *, allow_failures: bool = False) -> int:
    """Exit code of the end, or the stop, of a graph."""
    if snapshot["status"] != "complete":
        return _BY_STATUS.get(snapshot["status"], FAILED)
    outcome = snapshot.get("outcome") or "ok"
    return OK if outcome == "ok" or (outcome == "withFailures" and allow_failures) else FAILED
