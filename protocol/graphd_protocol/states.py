"""Every state, status and reason of the model, and the tables that say how they move.

Standard library alone: this is all, with `ids` and `errors`, that the core may import of the protocol. Source:
spec model.md.
"""

from typing import Final, Literal, TypeAlias, get_args

GraphStatus: TypeAlias = Literal[
    "active", "user_paused", "infra_paused", "blocked", "budget_limited", "complete", "cancelled"
]
Outcome: TypeAlias = Literal["ok", "withFailures", "rejected"]
NodeState: TypeAlias = Literal["waiting", "ready", "running", "achieved", "failed", "blocked", "skipped", "cancelled"]
AttemptState: TypeAlias = Literal["starting", "live", "stopping", "stuck", "settled"]
AttemptOutcome: TypeAlias = Literal["achieved", "not_achieved", "failed", "cancelled", "paused", "lost", "put_back"]
Role: TypeAlias = Literal["worker", "verifier", "planner", "judge", "hook", "aside"]
FailureClass: TypeAlias = Literal[
    "exec_failed", "timeout", "verdict_fail", "merge_failed", "limit", "refused", "agent_missing", "lost"
]
SkipReason: TypeAlias = Literal["condition_false", "gate_not_accepted", "no_input", "finished_early"]
Phase: TypeAlias = Literal[
    "starting", "adopting", "resuming", "working", "awaiting_permission", "awaiting_input", "verifying",
    "merging", "joining", "stopping", "stuck", "queued", "cooling_down",
]  # fmt: skip
StopReason: TypeAlias = Literal[
    "pause", "cancel", "clear", "timeout", "budget", "required_failure", "end_of_turn", "weather", "replan", "hold"
]
StopVerb: TypeAlias = Literal["budget", "pause", "cancel", "clear"]
ActorKind: TypeAlias = Literal["person", "agent", "attempt", "daemon", "policy"]
AskKind: TypeAlias = Literal["permission", "question", "escalation", "approval", "trust", "proposal"]
Reports: TypeAlias = Literal["tokens", "cost", "both", "none", "not_applicable"]
AskState: TypeAlias = Literal["open", "answered", "withdrawn"]
DeliveryKind: TypeAlias = Literal["result", "failure", "escalation", "end"]
OnLost: TypeAlias = Literal["resume", "pause", "fail"]
Permissions: TypeAlias = Literal["read", "edit", "full"]
Verdict: TypeAlias = Literal["ACCEPT", "REVISE", "REJECT", "BLOCKED", "REPLAN"]

GRAPH_STATUSES: Final[tuple[GraphStatus, ...]] = get_args(GraphStatus)
NODE_STATES: Final[tuple[NodeState, ...]] = get_args(NodeState)
ATTEMPT_STATES: Final[tuple[AttemptState, ...]] = get_args(AttemptState)
PAUSED_STATUSES: Final[frozenset[str]] = frozenset({"user_paused", "infra_paused", "blocked", "budget_limited"})
ENDED_STATUSES: Final[frozenset[str]] = frozenset({"complete", "cancelled"})
STOP_STRENGTH: Final[dict[str, int]] = {"budget": 0, "pause": 1, "cancel": 2, "clear": 3}

# Node moves that one change may make (model.md, Node). `"*"` moves of the spec are written out.
NODE_MOVES: Final[frozenset[tuple[str, str]]] = frozenset(
    [
        ("waiting", "ready"), ("waiting", "skipped"), ("waiting", "blocked"), ("waiting", "failed"),
        ("waiting", "cancelled"), ("ready", "running"), ("ready", "failed"), ("ready", "skipped"),
        ("ready", "cancelled"), ("ready", "waiting"), ("running", "achieved"), ("running", "failed"),
        ("running", "ready"), ("running", "waiting"), ("running", "cancelled"), ("achieved", "waiting"),
        ("failed", "waiting"), ("skipped", "waiting"), ("blocked", "waiting"), ("cancelled", "waiting"),
        ("blocked", "skipped"), ("blocked", "cancelled"), ("failed", "cancelled"),
    ]
)  # fmt: skip

ATTEMPT_MOVES: Final[dict[str, frozenset[str]]] = {
    "starting": frozenset({"live", "stopping", "settled", "stuck"}),
    "live": frozenset({"stopping", "settled", "stuck"}),
    "stopping": frozenset({"settled", "stuck"}),
    "stuck": frozenset({"settled"}),
    "settled": frozenset(),
}

Admission: TypeAlias = Literal[
    "yes", "stays", "then_active", "reopens", "stop_over_drain", "can_start", "top_up", "no"
]  # fmt: skip

_UNTIL_ENDED: Final[dict[str, Admission]] = {
    status: "no" if status in ENDED_STATUSES else "yes" for status in GRAPH_STATUSES
}

# The verbs of this table against the graph's status (model.md, Verbs).
VERB_TABLE: Final[dict[str, dict[str, Admission]]] = {
    "pause": {
        "active": "yes", "user_paused": "stop_over_drain", "infra_paused": "no", "blocked": "yes",
        "budget_limited": "yes", "complete": "no", "cancelled": "no",
    },
    "resume": {
        "active": "no", "user_paused": "yes", "infra_paused": "yes", "blocked": "can_start",
        "budget_limited": "top_up", "complete": "no", "cancelled": "no",
    },
    "retry": {
        "active": "yes", "user_paused": "stays", "infra_paused": "stays", "blocked": "then_active",
        "budget_limited": "stays", "complete": "reopens", "cancelled": "no",
    },
    "step": {
        "active": "yes", "user_paused": "yes", "infra_paused": "yes", "blocked": "no", "budget_limited": "no",
        "complete": "no", "cancelled": "no",
    },
    "extend": {
        "active": "yes", "user_paused": "stays", "infra_paused": "stays", "blocked": "then_active",
        "budget_limited": "stays", "complete": "reopens", "cancelled": "no",
    },
    "replan": {
        "active": "yes", "user_paused": "stays", "infra_paused": "stays", "blocked": "then_active",
        "budget_limited": "stays", "complete": "no", "cancelled": "no",
    },
    "finish": _UNTIL_ENDED,
    "extendTimeout": _UNTIL_ENDED,
    "hold": _UNTIL_ENDED,
    "cancel": _UNTIL_ENDED,
    "release": _UNTIL_ENDED,
    "respond": _UNTIL_ENDED,
    "clear": dict.fromkeys(GRAPH_STATUSES, "yes"),
}  # fmt: skip
