"""TypeScript types of `protocol.json`: interfaces, unions of literals, and maps from methods to their types."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from generator.schema import REF, Json

HEAD: Final = (
    "// Written by `make generate` from protocol/protocol.json. Fields that say nothing are left out of results.\n"
)
_PLAIN: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")


def text(protocol: Json) -> str:
    """The whole file."""
    parts = [HEAD, *(_declared(name, value) for name, value in protocol["$defs"].items())]
    parts.append(_table("Requests", "Params and result of every request.", list(_requests(protocol))))
    for name, direction in (("ServerNotifications", "serverToClient"), ("ClientNotifications", "clientToServer")):
        rows = [
            f"  {json.dumps(row['method'])}: {type_of(row['params'])};"
            for row in protocol["notifications"]
            if row["messageDirection"] == direction
        ]
        parts.append(_table(name, f"Params of every notification, {direction}.", rows))
    numbers = [f"  {row['name']}: {row['value']};" for row in protocol["errorCodes"]]
    parts.append(_table("ErrorNumbers", "The number of every error by its name, which stands in `data.code`.", numbers))
    parts.append("export type ErrorName = keyof ErrorNumbers;\n")
    return "\n".join(parts)


def _requests(protocol: Json) -> Iterator[str]:
    for row in protocol["requests"]:
        params = type_of(row["params"]) if "params" in row else "Record<string, never>"
        yield f"  /** {row['documentation']} */"
        yield f"  {json.dumps(row['method'])}: {{ params: {params}; result: {type_of(row['result'])} }};"


def _table(name: str, doc: str, rows: list[str]) -> str:
    return f"/** {doc} */\nexport interface {name} {{\n" + "".join(f"{row}\n" for row in rows) + "}\n"


def _declared(name: str, value: Json) -> str:
    doc = _doc(value.get("description"), "")
    if value.get("type") != "object" or "properties" not in value:
        body = "Record<string, never>" if value.get("type") == "object" else type_of(value)
        return f"{doc}export type {name} = {body};\n"
    lines = [f"{doc}export interface {name} {{"]
    required = value.get("required", [])
    for field, item in value["properties"].items():
        key = field if _NAME.match(field) else json.dumps(field)
        mark = "" if field in required else "?"
        lines.append(f"{_doc(item.get('description'), '  ')}  {key}{mark}: {type_of(item)};")
    if value.get("additionalProperties") is True:
        lines.append("  [fact: string]: unknown;")
    return "\n".join([*lines, "}", ""])


def _doc(text: str | None, indent: str) -> str:
    if not text:
        return ""
    lines = text.replace("*/", "* /").split("\n")
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def type_of(value: Json) -> str:
    """The type of a schema."""
    if "$ref" in value:
        return str(value["$ref"]).removeprefix(REF)
    if "const" in value:
        return json.dumps(value["const"])
    if "enum" in value:
        return " | ".join(json.dumps(item) for item in value["enum"])
    if "anyOf" in value:
        return " | ".join(dict.fromkeys(type_of(item) for item in value["anyOf"]))
    kind = value.get("type")
    if kind == "array":
        return _array(value)
    if kind == "object":
        rest: Any = value.get("additionalProperties")
        return f"Record<string, {type_of(rest) if isinstance(rest, dict) and rest else 'unknown'}>"
    return _PLAIN[kind] if kind is not None else "unknown"


def _array(value: Json) -> str:
    if "prefixItems" in value:
        return f"[{', '.join(type_of(item) for item in value['prefixItems'])}]"
    item = type_of(value.get("items", {}))
    return f"({item})[]" if " | " in item else f"{item}[]"
