"""The key tables of version 2: the snapshot as on the wire. A test holds them to the pydantic models."""

from typing import Final, get_args

from graphd.core.change.clauses import BUDGET_2, NODE_CLAUSES, TERMS_2
from graphd.core.change.keys import read_kind, read_node_id, read_slug, state_or_ready
from graphd.core.change.reading import (
    Key,
    left_out,
    list_of,
    map_of,
    maybe,
    object_of,
    one_of,
    read_amount,
    read_count,
    read_filled,
    read_flag,
    read_free_object,
    read_integer,
    read_positive,
    read_text,
)
from graphd.core.model import HISTORY_CAP
from graphd_protocol.states import (
    GRAPH_STATUSES,
    NODE_STATES,
    AskKind,
    AskState,
    FailureClass,
    Outcome,
    Phase,
    SkipReason,
    StopVerb,
    Verdict,
)

OUTPUT_2: Final[dict[str, Key]] = {
    "text": Key(read_text),
    "total": Key(read_count),
    "mediaType": Key(read_text),
    "isCut": left_out(read_flag),
}
FAILURE_2: Final[dict[str, Key]] = {
    "class": Key(one_of(get_args(FailureClass))),
    "reason": Key(read_text),
    "attempt": maybe(read_text),
}
SPENT_2: Final[dict[str, Key]] = {
    "tokens": left_out(read_count),
    "costUsd": maybe(read_amount),
    "wallMs": left_out(read_count),
}
SPENDING_2: Final[dict[str, Key]] = {
    **SPENT_2,
    "costIsPartial": left_out(read_flag),
    "roles": left_out(map_of(object_of(SPENT_2))),
}
RETRY_2: Final[dict[str, Key]] = {
    "max": left_out(read_count),
    "backoffS": left_out(read_amount),
    "on": left_out(list_of(one_of(get_args(FailureClass)))),
}
NODE_2: Final[dict[str, Key]] = {
    "id": Key(read_node_id),
    "slug": Key(read_slug),
    "title": Key(read_text),
    "spec": Key(read_text),
    "worker": Key(read_text),
    "needs": Key(list_of(read_slug)),
    "condition": maybe(read_text),
    "required": Key(read_flag),
    "state": Key(state_or_ready(NODE_STATES)),
    "phase": maybe(one_of(get_args(Phase))),
    "attempts": Key(read_count),
    "rounds": Key(read_count),
    "output": maybe(object_of(OUTPUT_2)),
    "failure": maybe(object_of(FAILURE_2)),
    "skip": maybe(one_of(get_args(SkipReason))),
    "cancelReason": maybe(read_text),
    "blockedBy": maybe(read_slug),
    "removedIn": maybe(read_positive),
    "childSession": maybe(read_text),
    "discoveredFrom": left_out(list_of(read_slug)),
    "timeoutMs": Key(read_count),
    "retry": Key(object_of(RETRY_2)),
    "reportToParent": Key(read_flag),
    "priority": Key(read_integer),
    **NODE_CLAUSES,
    "verdict": maybe(one_of(get_args(Verdict))),
    "findings": maybe(read_text),
    "wakeAt": maybe(read_count),
    "notBefore": maybe(read_count),
    "changedAt": Key(read_count),
    "startedAt": maybe(read_count),
    "endedAt": maybe(read_count),
    "spent": Key(object_of(SPENT_2)),
}
STOPPING_2: Final[dict[str, Key]] = {
    "verb": Key(one_of(get_args(StopVerb))),
    "by": Key(read_text),
    "at": Key(read_count),
    "left": Key(list_of(read_slug)),
}
HISTORY_2: Final[dict[str, Key]] = {
    "at": Key(read_count),
    "rev": Key(read_count),
    "kind": Key(read_kind),
    "node": maybe(read_slug),
    "detail": maybe(read_text),
}
LIMITS_2: Final[dict[str, Key]] = {
    "concurrency": left_out(read_positive),
    "maxNodes": left_out(read_positive),
    "attemptsPerNode": left_out(read_positive),
    "roundsPerAttempt": left_out(read_positive),
    "replans": left_out(read_count),
    "timeoutExtensions": left_out(read_count),
}
SOURCE_2: Final[dict[str, Key]] = {
    "kind": Key(one_of(("workflow", "file", "text", "nodes"))),
    "name": maybe(read_text),
    "path": maybe(read_text),
    "sha256": maybe(read_text),
}
ASK_2: Final[dict[str, Key]] = {
    "id": Key(read_filled),
    "kind": Key(one_of(get_args(AskKind))),
    "graph": maybe(read_text),
    "node": maybe(read_slug),
    "attempt": maybe(read_count),
    "title": Key(read_text),
    "action": Key(read_free_object),
    "actionHash": Key(read_text),
    "options": Key(list_of(map_of(read_text))),
    "scopes": Key(list_of(read_text)),
    "openedAt": Key(read_count),
    "deadlineAt": maybe(read_count),
    "default": maybe(read_text),
    "state": Key(one_of(get_args(AskState))),
    "answeredBy": maybe(read_text),
    "option": maybe(read_text),
    "text": maybe(read_text),
    "scope": maybe(read_text),
    "comment": maybe(read_text),
    "rule": maybe(read_text),
}
GRAPH_2: Final[dict[str, Key]] = {
    "id": Key(read_filled),
    "owner": maybe(read_text),
    "title": Key(read_text),
    "objective": Key(read_text),
    "status": Key(one_of(GRAPH_STATUSES)),
    "pauseReason": maybe(read_filled),
    "outcome": maybe(one_of(get_args(Outcome))),
    "stopping": maybe(object_of(STOPPING_2)),
    "stepping": maybe(read_slug),
    "planVersion": Key(read_count),
    "rev": Key(read_count),
    "counts": Key(map_of(read_count)),
    "spent": Key(object_of(SPENDING_2)),
    "limits": Key(object_of(LIMITS_2)),
    "budget": maybe(object_of(BUDGET_2)),
    "terms": maybe(object_of(TERMS_2)),
    "workspace": Key(read_text),
    "source": Key(object_of(SOURCE_2)),
    "deliveryNode": maybe(read_slug),
    "createdAt": Key(read_count),
    "updatedAt": Key(read_count),
    "nodes": Key(list_of(object_of(NODE_2))),
    "proposals": left_out(list_of(read_free_object)),
    "asks": left_out(list_of(object_of(ASK_2))),
    "history": Key(list_of(object_of(HISTORY_2), cap=HISTORY_CAP)),
}
