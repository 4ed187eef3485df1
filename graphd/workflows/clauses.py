"""What a node of a file asks for beside its work, as values of the core. Source: spec workflow.md, Node."""

from typing import Any

from graphd.core.definition import Approval, ForEach, Gate, Review, Verify, Wait
from graphd.workflows.contracts import contract_text
from graphd.workflows.read import Field, Fields


def clauses(fields: Fields) -> dict[str, Any]:
    """Keyword arguments of `Definition` for what the node says itself; defaults are left out.

    What the reader told already stands for something harmless, so that the plan is checked all the same.
    """
    found = {name: make(fields[name]) for name, make in _MAKERS.items() if name in fields}
    return {name: value for name, value in found.items() if value is not None}


def _plain(fields: Fields, name: str, default: Any = None) -> Any:
    return fields[name].value if name in fields else default


def _gate(field: Field) -> Gate:
    usual = Gate()
    return Gate(_plain(field.value, "revise"), _plain(field.value, "max_revisions", usual.max_revisions))


def _approval(field: Field) -> Approval | None:
    if isinstance(field.value, bool):
        return Approval() if field.value else None
    return Approval(_plain(field.value, "prompt", ""), _plain(field.value, "default"))


def _verify(field: Field) -> Verify:
    inner: Fields = field.value
    if ("run" in inner) == ("worker_type" in inner):
        return Verify("-")
    return Verify(_plain(inner, "run"), _plain(inner, "worker_type"), _plain(inner, "criteria", ""))


def _wait(field: Field) -> Wait:
    inner: Fields = field.value
    if ("until" in inner) == ("signal" in inner):
        return Wait("0s")
    return Wait(_plain(inner, "until"), _plain(inner, "signal"), _plain(inner, "timeout_s"))


def _for_each(field: Field) -> ForEach | None:
    inner: Fields = field.value
    if "in" not in inner or "as" not in inner:
        return None  # told by the reader
    return ForEach(inner["in"].value, inner["as"].value, _plain(inner, "max", 50))


def _review(field: Field) -> Review | None:
    inner: Fields = field.value
    if "phase" not in inner:
        return None
    return Review(inner["phase"].value, _plain(inner, "implementation_node_id"), _plain(inner, "verification_node_id"))


def _texts(field: Field) -> tuple[str, ...]:
    return tuple(entry.value for entry in field.value)


def _value(field: Field) -> Any:
    return field.value


def _contract(field: Field) -> str:
    return contract_text(field.value)


_MAKERS = {
    "gate": _gate,
    "approval": _approval,
    "verify": _verify,
    "wait": _wait,
    "for_each": _for_each,
    "review": _review,
    "artifacts": _texts,
    "writes": _texts,
    "output_schema": _contract,
    "unattended_extensions": _value,
}
