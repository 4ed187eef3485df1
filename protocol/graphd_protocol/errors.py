"""Our error codes on the wire. Standard library alone. Source: spec protocol.md, Errors."""

from typing import Final

ERROR_CODES: Final[dict[str, int]] = {
    "notFound": -32050,
    "alreadyExists": -32051,
    "invalidObjective": -32052,
    "invalidBudget": -32053,
    "invalidPlan": -32054,
    "invalidTransition": -32055,
    "upstreamNotAchieved": -32056,
    "conflict": -32057,
    "staleAttempt": -32058,
    "staleInput": -32059,
    "capacity": -32060,
    "unauthorised": -32061,
    "untrusted": -32062,
    "agentMissing": -32063,
    "malformedLog": -32064,
    "locked": -32065,
    "storeUnavailable": -32066,
    "protocolMismatch": -32067,
    "askGone": -32068,
    "overloaded": -32070,
    "inputMissing": -32071,
    "childInputRefused": -32072,
    "ambiguous": -32075,
    "unsavedChanges": -32076,
    "agentFailed": -32077,
    "cursorInvalid": -32078,
    "tooLarge": -32079,
    "notSupported": -32080,
    "requestIdReused": -32081,
    "stuck": -32082,
}
RETRYABLE: Final = frozenset({"conflict", "capacity", "storeUnavailable", "overloaded", "locked"})

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
