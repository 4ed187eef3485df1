"""LuaLS annotations of `protocol.json`: classes, aliases, and a function type for every request."""

import json
from typing import Any, Final

from generator.schema import REF, Json

HEAD: Final = (
    "---@meta graphd\n-- Written by `make generate` from protocol/protocol.json. Results leave out what says nothing.\n"
)
PREFIX: Final = "graphd."
_PLAIN: Final = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "null": "nil"}


def text(protocol: Json) -> str:
    """The whole file."""
    parts = [HEAD, *(_declared(name, value) for name, value in protocol["$defs"].items())]
    lines = ["--- Every request: its params and its result.", f"---@class {PREFIX}Requests"]
    for row in protocol["requests"]:
        params = f"params: {type_of(row['params'])}" if "params" in row else ""
        method = json.dumps(row["method"])
        lines.append(f"---@field [{method}] fun({params}): {type_of(row['result'])} {row['documentation']}")
    lines += ["", "--- Every notification of the daemon: its params.", f"---@class {PREFIX}Notifications"]
    lines += [
        f"---@field [{json.dumps(row['method'])}] {type_of(row['params'])} {row['documentation']}"
        for row in protocol["notifications"]
        if row["messageDirection"] == "serverToClient"
    ]
    lines += ["", "--- The name of an error, in `data.code`.", f"---@alias {PREFIX}ErrorName"]
    lines += [f'---| "{row["name"]}" # {row["value"]}' for row in protocol["errorCodes"]]
    return "\n".join([*parts, *lines, ""])


def _declared(name: str, value: Json) -> str:
    doc = [f"--- {line}".rstrip() for line in value.get("description", "").split("\n") if value.get("description")]
    if "enum" in value:
        options = [f"---| {json.dumps(item)}" for item in value["enum"]]
        return "\n".join([*doc, f"---@alias {PREFIX}{name}", *options, ""])
    lines = [*doc, f"---@class {PREFIX}{name}"]
    required = value.get("required", [])
    for field, item in value.get("properties", {}).items():
        mark = "" if field in required else "?"
        note = " ".join(item.get("description", "").split())
        lines.append(f"---@field {field}{mark} {type_of(item)} {note}".rstrip())
    return "\n".join([*lines, ""])


def type_of(value: Json) -> str:
    """The type of a schema."""
    if "$ref" in value:
        return PREFIX + str(value["$ref"]).removeprefix(REF)
    if "const" in value:
        return json.dumps(value["const"])
    if "enum" in value:
        return "|".join(json.dumps(item) for item in value["enum"])
    if "anyOf" in value:
        return "|".join(dict.fromkeys(type_of(item) for item in value["anyOf"]))
    kind = value.get("type")
    if kind == "array":
        if "prefixItems" in value:
            return f"[{', '.join(type_of(item) for item in value['prefixItems'])}]"
        item = type_of(value.get("items", {}))
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        rest: Any = value.get("additionalProperties")
        return f"table<string, {type_of(rest) if isinstance(rest, dict) and rest else 'any'}>"
    return _PLAIN[kind] if kind is not None else "any"
