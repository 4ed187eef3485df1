"""Refusals and troubles as JSON-RPC error objects. No traceback and no path of the installation ever reaches the wire.

Source: spec protocol.md, Errors.
"""

from collections.abc import Iterable
from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd_protocol.errors import (
    ERROR_CODES,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RETRYABLE,
)

ErrorObject = dict[str, Any]


class CallRefused(Exception):
    """A call that ends in this JSON-RPC error; for JSON-RPC's own codes (ours are base.refusal.Refused)."""

    def __init__(self, code: int, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.error: ErrorObject = {"code": code, "message": message, "data": {"retryable": False, **facts}}


class ParamsRefused(CallRefused):
    """−32602: params that don't fit, field by field, each with `path, message, expected, got`."""

    def __init__(self, fields: list[dict[str, Any]]) -> None:
        first = fields[0]
        super().__init__(
            INVALID_PARAMS,
            t("invalid params: {path}: {message}", path=first["path"] or "params", message=first["message"]),
            fields=fields,
            hint=t("see fields"),
        )


class MethodUnknown(CallRefused):
    """−32601, with the nearest names that exist."""

    def __init__(self, method: str, known: Iterable[str]) -> None:
        near = nearest(method, known)
        hint = t("did you mean {name}?", name=near[0]) if near else t("docs/protocol.md lists the methods")
        super().__init__(
            METHOD_NOT_FOUND, t("unknown method {method}", method=shown(method)), suggestions=near, hint=hint
        )


def where(trouble: BaseException) -> dict[str, Any]:
    """What of an exception may stand in the log: its class and where it came from, never a value of anybody's."""
    import traceback  # not on the way to the first hello

    steps = traceback.extract_tb(trouble.__traceback__)[-12:]
    return {"error": type(trouble).__name__, "trace": [f"{s.filename}:{s.lineno} {s.name}" for s in steps]}


def field(path: str, message: str, *, expected: str, got: object) -> dict[str, Any]:
    """One entry of −32602's `fields`; `got` is shown short."""
    return {"path": path, "message": message, "expected": expected, "got": shown(got)}


def shown(value: object, limit: int = 80) -> str:
    """A value of a client's, short enough to stand in an answer."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three known names that look like this one."""
    import difflib  # not on the way to the first hello

    return difflib.get_close_matches(name[:200], list(known), n=3, cutoff=0.6)


def error_object(trouble: Exception) -> ErrorObject:
    """The error to answer with. Anything that is not a refusal becomes −32603 and names its class alone."""
    if isinstance(trouble, CallRefused):
        return trouble.error
    if isinstance(trouble, Refused) and trouble.code in ERROR_CODES:
        facts = {_camel(name): value for name, value in trouble.facts.items() if value is not None}
        head = {"code": trouble.code, "hint": trouble.hint, "retryable": trouble.code in RETRYABLE}
        return {"code": ERROR_CODES[trouble.code], "message": trouble.message, "data": head | _plain(facts)}
    facts = {"code": "internal", "hint": t("the daemon's log has the rest"), "retryable": False}
    return {"code": INTERNAL_ERROR, "message": t("internal error ({name})", name=type(trouble).__name__), "data": facts}


def _camel(name: str) -> str:
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part.capitalize() for part in rest)


def _plain(value: Any) -> Any:
    """Facts as JSON values: tuples and sets become lists, anything unknown its text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
