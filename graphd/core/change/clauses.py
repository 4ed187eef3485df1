"""What nodes ask for beside their work, and what a graph is set under: as the wire shows it, and back.

Snapshots, exports and imports share these shapes. What is at its default is left out. Source: spec workflow.md.
"""

import json
from operator import attrgetter
from typing import Any, Final, get_args

from graphd.core.change.reading import (
    Key,
    left_out,
    list_of,
    maybe,
    object_of,
    one_of,
    read_amount,
    read_count,
    read_flag,
    read_free_object,
    read_positive,
    read_text,
)
from graphd.core.definition import (
    Approval,
    Budget,
    Definition,
    ForEach,
    Gate,
    Item,
    Pruned,
    Review,
    Terms,
    Verify,
    Wait,
)
from graphd_protocol.states import Permissions

Row = dict[str, Any]

GATE_2: Final[dict[str, Key]] = {"revise": maybe(read_text), "maxRevisions": left_out(read_count)}
VERIFY_2: Final[dict[str, Key]] = {
    "run": maybe(read_text), "worker": maybe(read_text), "criteria": left_out(read_text),
}  # fmt: skip
APPROVAL_2: Final[dict[str, Key]] = {"prompt": left_out(read_text), "default": maybe(one_of(("allow", "deny")))}
WAIT_2: Final[dict[str, Key]] = {
    "until": maybe(read_text), "signal": maybe(read_text), "timeoutS": maybe(read_amount),
}  # fmt: skip
FOR_EACH_2: Final[dict[str, Key]] = {"in": Key(read_text), "as": Key(read_text), "max": left_out(read_positive)}
ITEM_2: Final[dict[str, Key]] = {"of": Key(read_text), "index": Key(read_count), "value": Key(read_text)}
REVIEW_2: Final[dict[str, Key]] = {
    "phase": Key(one_of(("design", "diff"))), "implementationNodeId": maybe(read_text),
    "verificationNodeId": maybe(read_text),
}  # fmt: skip
BUDGET_2: Final[dict[str, Key]] = {
    "tokens": maybe(read_positive), "costUsd": maybe(read_amount), "wallSeconds": maybe(read_amount),
}  # fmt: skip
PRUNED_2: Final[dict[str, Key]] = {"node": Key(read_text), "reason": Key(read_text)}
_ISOLATION: Final = one_of(("none", "graph", "node"))
TERMS_2: Final[dict[str, Key]] = {
    "mode": left_out(one_of(("standard", "deep"))),
    "admission": maybe(read_text),
    "onRequiredFailure": left_out(one_of(("drain", "stop"))),
    "isolation": left_out(_ISOLATION),
    "onSharedTree": left_out(one_of(("notice", "serialise"))),
    "finalCheck": left_out(read_flag),
    "pruned": left_out(list_of(object_of(PRUNED_2))),
}
NODE_CLAUSES: Final[dict[str, Key]] = {
    "gate": maybe(object_of(GATE_2)),
    "verify": maybe(object_of(VERIFY_2)),
    "outputSchema": maybe(read_free_object),
    "approval": maybe(object_of(APPROVAL_2)),
    "wait": maybe(object_of(WAIT_2)),
    "forEach": maybe(object_of(FOR_EACH_2)),
    "item": maybe(object_of(ITEM_2)),
    "review": maybe(object_of(REVIEW_2)),
    "artifacts": left_out(list_of(read_text)),
    "writes": left_out(list_of(read_text)),
    "isolation": maybe(_ISOLATION),
    "permissions": maybe(one_of(get_args(Permissions))),
    "model": maybe(read_text),
    "thinking": maybe(read_text),
    "mode": maybe(read_text),
    "maxToolCalls": maybe(read_count),
    "unattendedExtensions": maybe(read_count),
}
"""Keys of a node that say its clauses."""

_FIELDS: Final = {
    "outputSchema": "output_schema", "forEach": "for_each", "maxToolCalls": "max_tool_calls",
    "unattendedExtensions": "unattended_extensions",
}  # fmt: skip
_FIELD_OF: Final = {key: _FIELDS.get(key, key) for key in NODE_CLAUSES}
_read_all = attrgetter(*_FIELD_OF.values())
_NOTHING: Final = _read_all(Definition("a", "", ""))
_NAMES: Final = {
    "max_revisions": "maxRevisions", "timeout_s": "timeoutS", "source": "in", "name": "as",
    "implementation": "implementationNodeId", "verification": "verificationNodeId",
    "on_required_failure": "onRequiredFailure", "on_shared_tree": "onSharedTree", "final_check": "finalCheck",
    "cost_usd": "costUsd",
}  # fmt: skip
_OF_NAMES: Final = {wire: ours for ours, wire in _NAMES.items()}
_KINDS: Final[dict[str, type]] = {
    "gate": Gate, "verify": Verify, "approval": Approval, "wait": Wait, "forEach": ForEach, "item": Item,
    "review": Review,
}  # fmt: skip


def clauses_row(definition: Definition) -> Row:
    """What the definition asks for beside its work; most ask for nothing, which costs one comparison."""
    values = _read_all(definition)
    if values == _NOTHING:
        return {}
    row: Row = {}
    for key, value in zip(_FIELD_OF, values, strict=True):
        if key in _KINDS:
            if value is not None:
                row[key] = _row(value)
        elif key == "outputSchema":
            if value is not None:
                row[key] = json.loads(value)
        elif value is not None and value != ():
            row[key] = list(value) if isinstance(value, tuple) else value
    return row


def clauses_of(row: Row) -> dict[str, Any]:
    """Keyword arguments of `Definition` for a node's row; the inverse of `clauses_row`."""
    found: dict[str, Any] = {}
    for key, field in _FIELD_OF.items():
        value = row.get(key)
        if value is None:
            continue
        if key in _KINDS:
            value = _KINDS[key](**_fields(value))
        elif key == "outputSchema":
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        elif isinstance(value, list):
            value = tuple(value)
        found[field] = value
    return found


def budget_row(budget: Budget) -> Row:
    """A budget, its time in seconds."""
    row = {"tokens": budget.tokens, "costUsd": budget.cost_usd}
    row |= {"wallSeconds": budget.wall_ms / 1000 if budget.wall_ms is not None else None}
    return {key: bound for key, bound in row.items() if bound is not None}


def budget_of(row: Row | None) -> Budget | None:
    """The inverse of `budget_row`; one that bounds nothing is none."""
    row = row or {}
    seconds = row.get("wallSeconds")
    made = Budget(row.get("tokens"), row.get("costUsd"), round(seconds * 1000) if seconds is not None else None)
    return made if made != Budget() else None


def terms_row(terms: Terms) -> Row:
    """What a graph was set under, where it is not the usual."""
    usual = Terms()
    names = [name for name in Terms.__slots__ if getattr(terms, name) != getattr(usual, name)]
    row = {_NAMES.get(name, name): getattr(terms, name) for name in names}
    if terms.pruned:
        row["pruned"] = [{"node": entry.node, "reason": entry.reason} for entry in terms.pruned]
    return row


def terms_of(row: Row | None) -> Terms:
    """The inverse of `terms_row`."""
    found = _fields(row or {})
    pruned = tuple(Pruned(**entry) for entry in found.pop("pruned", ()))
    return Terms(**found, pruned=pruned)


def _row(value: Any) -> Row:
    row = {_NAMES.get(name, name): getattr(value, name) for name in value.__slots__}
    return {key: item for key, item in row.items() if item is not None}


def _fields(row: Row) -> Row:
    return {_OF_NAMES.get(key, key): value for key, value in row.items() if value is not None}
