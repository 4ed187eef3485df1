"""`protocol.json`: the method table in the shape of LSP's metaModel, with JSON Schema of every model under `$defs`.

Params are read in validation mode, closed to unknown fields; results in serialization mode, open to fields of later
versions, and a field with a default is always there unless the default says nothing (null, an empty list).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from graphd_protocol import PROTOCOL_MAX, PROTOCOL_MIN, model, states
from graphd_protocol.errors import ERROR_CODES, RETRYABLE
from graphd_protocol.methods import JSON_RPC_CODES, NOTIFICATIONS, REQUESTS, Notification, Request, errors_of

Json = dict[str, Any]
REF: Final = "#/$defs/"
ALWAYS_THERE: Final = "alwaysThere"
_FACTS: Final = "ErrorFacts"


class _Schema(GenerateJsonSchema):
    """Without titles, which say what names say already; and with our rule of what stands in every result."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "validation" or super().field_is_required(field, total):
            return super().field_is_required(field, total)
        default = field["schema"].get("default")
        extra = (field.get("metadata") or {}).get("pydantic_js_extra") or {}
        return default not in (None, []) or bool(extra.get(ALWAYS_THERE))


def protocol() -> Json:
    """The whole of `protocol.json`."""
    defs = _definitions()
    renamed = {name.removesuffix("Input") for name in defs if name.endswith("Input")}
    return {
        "metaData": {
            "name": "graphd",
            "protocol": [PROTOCOL_MIN, PROTOCOL_MAX],
            "framing": "LSP base protocol: Content-Length, then UTF-8 JSON-RPC 2.0",
        },
        "requests": [_request(request, renamed) for request in REQUESTS],
        "notifications": [_notification(notification, renamed) for notification in NOTIFICATIONS],
        "errorCodes": [
            *({"name": name, "value": value, "retryable": False} for name, value in JSON_RPC_CODES.items()),
            *({"name": name, "value": n, "retryable": name in RETRYABLE} for name, n in ERROR_CODES.items()),
        ],
        "$defs": defs,
    }


def text() -> str:
    """The file's text."""
    return json.dumps(protocol(), indent=1, ensure_ascii=False) + "\n"


def _request(request: Request, renamed: set[str]) -> Json:
    row: Json = {"method": request.method, "messageDirection": request.direction}
    if request.params is not None:
        row["params"] = _ref(request.params + ("Input" if request.params in renamed else ""))
    one = _ref(request.result)
    shapes: dict[str, Json] = {
        "one": one,
        "list": {"type": "array", "items": one},
        "oneOrNull": {"anyOf": [one, {"type": "null"}]},
    }
    return {
        **row,
        "result": shapes[request.shape],
        "errorData": _ref(_FACTS),
        "errorCodes": list(errors_of(request)),
        "callers": list(request.callers),
        "since": request.since,
        "documentation": request.summary,
    }


def _notification(notification: Notification, renamed: set[str]) -> Json:
    is_input = notification.direction == "clientToServer" and notification.params in renamed
    return {
        "method": notification.method,
        "messageDirection": notification.direction,
        "params": _ref(notification.params + ("Input" if is_input else "")),
        "since": notification.since,
        "documentation": notification.summary,
    }


def _ref(name: str) -> Json:
    return {"$ref": REF + name}


# ---- $defs --------------------------------------------------------------------------------------------------------


def _definitions() -> Json:
    """Every model by its name. One that reads otherwise as params than as a result is there as `<Name>Input` too."""
    taken = [r.params for r in REQUESTS if r.params] + [
        n.params for n in NOTIFICATIONS if n.direction == "clientToServer"
    ]
    given = [r.result for r in REQUESTS] + [n.params for n in NOTIFICATIONS if n.direction == "serverToClient"]
    inputs = _of_mode(taken, "validation")
    outputs = _of_mode([*given, _FACTS], "serialization")
    apart: set[str] = set()
    while True:
        renamed = {name: _renamed(value, apart) for name, value in inputs.items()}
        more = {name for name in renamed.keys() & outputs.keys() if not _agree(renamed[name], outputs[name])}
        if more <= apart:
            break
        apart |= more
    found = {name + ("Input" if name in apart else ""): value for name, value in renamed.items()}
    aliases = _aliases()
    defs = {**outputs, **found}
    named = {name: _with_aliases(value, aliases) for name, value in defs.items()}
    used = {ref for value in named.values() for ref in _refs(value)}
    for values, name in aliases.items():
        if name in used:
            named[name] = {"type": "string", "enum": list(values)}
    return dict(sorted(named.items()))


def _of_mode(names: Iterable[str], mode: Literal["validation", "serialization"]) -> Json:
    wanted: list[type[BaseModel]] = [getattr(model, name) for name in dict.fromkeys(names)]
    pairs = [(item, mode) for item in wanted]
    _, schema = models_json_schema(pairs, by_alias=True, ref_template=REF + "{model}", schema_generator=_Schema)
    return {name: _tidy(value, is_result=mode == "serialization") for name, value in schema["$defs"].items()}


def _tidy(value: Any, *, is_result: bool) -> Any:
    """Without titles and markers; a result without defaults, and open."""
    if isinstance(value, list):
        return [_tidy(item, is_result=is_result) for item in value]
    if not isinstance(value, dict):
        return value
    dropped = {"title", ALWAYS_THERE} | ({"default"} if is_result else set())
    tidied = {}
    for key, item in value.items():
        if key == "properties":
            tidied[key] = {name: _tidy(field, is_result=is_result) for name, field in item.items()}
        elif key == "additionalProperties" and is_result and item is False:
            continue
        elif key not in dropped:
            tidied[key] = _tidy(item, is_result=is_result)
    return tidied


def _agree(one: Json, other: Json) -> bool:
    return {**one, "additionalProperties": None} == {**other, "additionalProperties": None}


def _renamed(value: Any, names: set[str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"{item}Input" if key == "$ref" and item.removeprefix(REF) in names else _renamed(item, names)
        for key, item in value.items()
    }


def _aliases() -> dict[tuple[str, ...], str]:
    """The literal types of `graphd_protocol.states`, by their values."""
    found = {}
    for name, value in vars(states).items():
        values = get_args(value)
        if name[0].isupper() and name != name.upper() and values and all(isinstance(item, str) for item in values):
            found[values] = name
    return found


def _with_aliases(value: Any, aliases: dict[tuple[str, ...], str]) -> Any:
    if isinstance(value, list):
        return [_with_aliases(item, aliases) for item in value]
    if not isinstance(value, dict):
        return value
    name = aliases.get(tuple(value["enum"])) if isinstance(value.get("enum"), list) else None
    if name is not None:
        return {"$ref": REF + name, **{key: item for key, item in value.items() if key not in ("enum", "type")}}
    return {key: _with_aliases(item, aliases) for key, item in value.items()}


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _refs(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item.removeprefix(REF)
            else:
                yield from _refs(item)
