"""What both versions of `workgraph/change` share: ids, states, history kinds, tombstones (spec model.md).

Repairs are here: an unknown node state is read as `ready`, never as done or stuck.
"""

from typing import Any, Final

from graphd.base.text import t
from graphd.core.change.reading import (
    Key,
    MalformedChange,
    Reader,
    one_of,
    read_count,
    read_filled,
    read_integer,
    read_text,
    show,
)
from graphd.core.slugs import slug_reason
from graphd_protocol.ids import FINAL_ID, NODE_ID

# Our event kinds, and what version 1 calls them: many to one; what it has no word for is `unknown`.
HISTORY_KINDS: Final[dict[str, str]] = {
    "graph_set": "created",
    "plan_installed": "planning-completed",
    "states_imported": "unknown",
    "workspace_moved": "unknown",
    "epoch_started": "unknown",
    "environment_set": "unknown",
    "paused": "paused",
    "resumed": "resumed",
    "reopened": "resumed",
    "stop_requested": "unknown",
    "finish_requested": "unknown",
    "blocked": "paused",
    "completed": "completed",
    "cancelled": "unknown",
    "cleared": "cleared",
    "graph_extended": "replanned",
    "graph_replanned": "replanned",
    "proposal_made": "unknown",
    "proposal_settled": "unknown",
    "node_defined": "unknown",
    "node_recalled": "unknown",
    "node_ready": "unknown",
    "node_put_back": "node-retried",
    "node_skipped": "unknown",
    "node_blocked": "unknown",
    "node_achieved": "node-achieved",
    "node_failed": "node-failed",
    "node_retried": "node-retried",
    "node_cancelled": "unknown",
    "attempt_started": "node-started",
    "attempt_identified": "unknown",
    "attempt_stopping": "unknown",
    "attempt_stuck": "unknown",
    "attempt_settled": "unknown",
    "ask_opened": "unknown",
    "ask_answered": "unknown",
    "ask_withdrawn": "unknown",
    "ask_spent": "unknown",
    "scope_revoked": "unknown",
    "attempt_session": "unknown",
    "attempt_failing": "unknown",
    "round_ended": "unknown",
    "node_verified": "unknown",
    "budget_reached": "budget-exceeded",
    "stepped": "resumed",
    "timeout_escalated": "unknown",
    "deadline_extended": "unknown",
    "attempt_waited": "unknown",
    "machine_slept": "unknown",
    "provider_cooling": "unknown",
    "delivery_created": "unknown",
    "delivery_acknowledged": "unknown",
    "gate_decided": "unknown",
    "revision_started": "node-retried",
    "hold_released": "unknown",
    "items_made": "node-started",
    "wait_started": "node-started",
    "signal_kept": "unknown",
    "node_approved": "unknown",
    "failure_stopped": "unknown",
}


def read_node_id(value: Any) -> str:
    """A node's id."""
    if not isinstance(value, str) or not NODE_ID.match(value):
        raise MalformedChange(
            t(
                "{value} is no node id (gn- and 8 lowercase hex digits, or {final_id})",
                value=show(value),
                final_id=FINAL_ID,
            )
        )
    return value


def read_slug(value: Any) -> str:
    """A slug, or the final check's own name."""
    if value == FINAL_ID:
        return FINAL_ID
    if reason := slug_reason(read_text(value)):
        raise MalformedChange(t("{value}: {reason}", value=show(value), reason=reason))
    return str(value)


def state_or_ready(states: tuple[str, ...]) -> Reader:
    """A node state; whatever is none of `states` is read as `ready`."""
    known = frozenset(states)

    def read(value: Any) -> str:
        return value if isinstance(value, str) and value in known else "ready"

    return read


def read_kind(value: Any) -> str:
    """A history kind as written; `decode` repairs unknown ones, which needs the whole entry."""
    return value if isinstance(value, str) else "unknown"


TOMBSTONE: Final[dict[str, Key]] = {
    "kind": Key(read_text),
    "version": Key(read_integer),
    "operation": Key(one_of(("clear",))),
    "cleared": Key(read_filled),
    "clearedAt": Key(read_count),
}
