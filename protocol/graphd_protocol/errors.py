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

ERROR_MEANINGS: Final[dict[str, str]] = {
    "notFound": "no such graph, node, workflow, subscription or workspace; `suggestions` has the nearest names",
    "alreadyExists": "the id is taken, or the owner has a live graph",
    "invalidObjective": "the objective is blank",
    "invalidBudget": "a budget that is none",
    "invalidPlan": "the plan has findings; `diagnostics` lists them",
    "invalidTransition": "the state does not admit the verb; `from`, `to`, `rev`",
    "upstreamNotAchieved": "a node that it needs has to be tried again first",
    "conflict": "the graph moved on since; `rev`, `planVersion`",
    "staleAttempt": "the attempt is over",
    "staleInput": "an input changed since",
    "capacity": "a limit is reached",
    "unauthorised": "this principal may not do that",
    "untrusted": "the workflow has to be trusted first; `path`, `hash`, `diff`",
    "agentMissing": "the agent's program is not installed; `searched`",
    "malformedLog": "lines that are no log of ours",
    "locked": "another daemon holds the workspace",
    "storeUnavailable": "the database takes nothing now, or the daemon is stopping",
    "protocolMismatch": "no protocol number that both sides speak",
    "askGone": "the ask was answered or withdrawn; `by`",
    "overloaded": "too many requests or connections",
    "inputMissing": "an input of the workflow was not given; `inputs`",
    "childInputRefused": "a child sent what does not fit",
    "ambiguous": "the name fits several graphs; `graphs` lists them",
    "unsavedChanges": "the file has unsaved changes in the editor",
    "agentFailed": "the agent ended badly; the end of its stderr, redacted",
    "cursorInvalid": "the cursor is none of ours, or of something that is gone",
    "tooLarge": "the answer does not fit into a frame",
    "notSupported": "not in this version",
    "requestIdReused": "the request id stands for other params",
    "stuck": "the pids are not those that the stuck attempt shows",
    "parseError": "the body is no JSON",
    "invalidRequest": "JSON, but no request; or its id is in use",
    "methodNotFound": "no such method; `suggestions`",
    "invalidParams": "params that do not fit; `fields` of `{path, message, expected, got}`",
    "internalError": "a fault of ours; the daemon's log has the rest",
    "notGreeted": "`graphd/hello` has not been sent",
    "requestCancelled": "the client cancelled it",
}
