"""The key tables of version 1: exactly the seed's keys, six statuses, six states, 16 history kinds."""

from typing import Final

from graphd.core.change.keys import read_kind, read_node_id, state_or_ready
from graphd.core.change.reading import (
    Key,
    left_out,
    list_of,
    object_of,
    one_of,
    read_count,
    read_filled,
    read_positive,
)
from graphd.core.model import HISTORY_CAP
from graphd_protocol.states import GRAPH_STATUSES

STATUSES_1: Final = tuple(status for status in GRAPH_STATUSES if status != "cancelled")
STATES_1: Final = ("waiting", "ready", "running", "achieved", "failed", "blocked")
HISTORY_KINDS_1: Final = frozenset(
    [
        "created", "planning-started", "planning-completed", "planning-failed", "node-started",
        "node-achieved", "node-failed", "node-retried", "paused", "resumed", "completed", "cleared",
        "budget-exceeded", "replanned",
        "optimized", "unknown",
    ]
)  # fmt: skip

NODE_1: Final[dict[str, Key]] = {
    "id": Key(read_node_id),
    "title": Key(read_filled),
    "spec": Key(read_filled),
    "blocks": Key(list_of(read_node_id)),
    "state": Key(state_or_ready(STATES_1)),
    "rounds": Key(read_count),
    "failure": left_out(read_filled),
    "childSessionId": left_out(read_filled),
    "discoveredFrom": left_out(list_of(read_node_id)),
}
DISCOVERY_1: Final[dict[str, Key]] = {"description": Key(read_filled), "from": Key(read_node_id)}
HISTORY_1: Final[dict[str, Key]] = {
    "at": Key(read_count),
    "kind": Key(read_kind),
    "node": left_out(read_node_id),
    "detail": left_out(read_filled),
}
GRAPH_1: Final[dict[str, Key]] = {
    "id": Key(read_filled),
    "objective": Key(read_filled),
    "status": Key(one_of(STATUSES_1)),
    "pauseReason": left_out(read_filled),
    "planVersion": Key(read_positive),
    "nodes": Key(list_of(object_of(NODE_1))),
    "pendingDiscoveries": Key(list_of(object_of(DISCOVERY_1))),
    "history": Key(list_of(object_of(HISTORY_1), cap=HISTORY_CAP)),
    "tokenBudget": left_out(read_positive),
    "tokensSpent": Key(read_count),
    "replanRuns": Key(read_count),
    "createdAt": Key(read_count),
    "updatedAt": Key(read_count),
}
