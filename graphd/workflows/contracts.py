"""Contracts of outputs: JSON Schemas of 2020-12, stricter than its meta-schema. Source: spec workflow.md, Node.

A keyword that 2020-12 does not have would be ignored by every validator, so here it is an error; `x-` is for readers.
Nothing is fetched: `$ref` points into the same schema.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphd.base.text import Text, t

Path: TypeAlias = tuple[str | int, ...]
"""Keys and places from the schema's root."""
MAX_DEPTH: Final = 14
MAX_BYTES: Final = 65_536
MAX_PATTERN: Final = 512
_ONE: Final = frozenset(
    {"not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems",
     "unevaluatedProperties", "contentSchema"}
)  # fmt: skip
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
_PLAIN: Final = frozenset(
    {"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$comment", "type", "enum",
     "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength",
     "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties",
     "required", "dependentRequired", "format", "contentEncoding", "contentMediaType", "title", "description",
     "default", "deprecated", "readOnly", "writeOnly", "examples"}
)  # fmt: skip
KEYWORDS: Final = _ONE | _MANY | _NAMED | _PLAIN
_OLDER: Final = {
    "definitions": "$defs", "dependencies": "dependentRequired", "additionalItems": "items", "id": "$id",
    "$recursiveRef": "$dynamicRef", "$recursiveAnchor": "$dynamicAnchor",
}  # fmt: skip
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@dataclass(slots=True, frozen=True)
class ContractTrouble:
    """What is wrong at a path of a schema."""

    path: Path
    message: Text
    hint: Text


def contract_troubles(schema: dict[str, Any]) -> Iterator[ContractTrouble]:
    """All that is wrong with a schema, in its own order; nothing where outputs can be held to it."""
    if len(json.dumps(schema)) > MAX_BYTES:
        yield ContractTrouble(
            (), t("a schema of more than {limit} bytes", limit=MAX_BYTES), t("leave out what nobody reads")
        )
        return
    if _depth(schema) > MAX_DEPTH:
        yield ContractTrouble((), t("the schema is more than {limit} levels deep", limit=MAX_DEPTH), t("use $defs"))
        return
    found = list(_walk(schema, ()))
    if found:
        yield from found
        return
    from jsonschema import Draft202012Validator, SchemaError  # slow to import, and few files have a schema

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as trouble:
        message = t("no JSON Schema: {trouble}", trouble=trouble.message[:200])
        yield ContractTrouble(tuple(trouble.absolute_path), message, t("see JSON Schema 2020-12"))
        return
    anchors = {anchor for _, anchor in _written(schema, (), "$anchor")}
    for path, reference in _written(schema, (), "$ref"):
        if not _leads_somewhere(schema, reference[1:], anchors):
            message = t("{reference} leads nowhere in this schema", reference=reference[:80])
            yield ContractTrouble(path, message, t("write # and the way to a part of it, as in #/$defs/item"))


def contract_text(schema: dict[str, Any]) -> str:
    """The schema as a definition keeps it."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _walk(schema: Any, path: Path) -> Iterator[ContractTrouble]:
    if not isinstance(schema, dict):
        return  # true, false, or what the meta-schema refuses
    for key, value in schema.items():
        where = (*path, key)
        if key in KEYWORDS:
            yield from _keyword(key, value, where)
        elif not key.startswith("x-"):
            yield _unknown(key, where)


def _keyword(key: str, value: Any, where: Path) -> Iterator[ContractTrouble]:
    if key in _ONE:
        yield from _walk(value, where)
    elif key in _MANY and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _walk(inner, (*where, place))
    elif key in _NAMED and isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, (*where, name))
            if key == "patternProperties":
                yield from _pattern(name, (*where, name))
    elif key == "pattern" and isinstance(value, str):
        yield from _pattern(value, where)
    elif key in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
        message = t("{reference} is outside of this schema; nothing is fetched", reference=value[:80])
        yield ContractTrouble(where, message, t("put it under $defs and write #/$defs/name"))
    elif key == "$id" and len(where) > 1:
        message = t("a part of a schema has no $id of its own: references would begin there")
        yield ContractTrouble(where, message, t("use $anchor"))
    elif key == "$schema" and value != _DIALECT:
        message = t("{dialect} is not the dialect of 2020-12", dialect=str(value)[:80])
        yield ContractTrouble(where, message, t("remove $schema"))


def _pattern(pattern: str, where: Path) -> Iterator[ContractTrouble]:
    if len(pattern) > MAX_PATTERN:
        message = t("a pattern of more than {limit} characters", limit=MAX_PATTERN)
        yield ContractTrouble(where, message, t("split it, or check it in a node of its own"))
        return
    try:
        re.compile(pattern)
    except re.error as trouble:
        message = t("{pattern!r} is no pattern: {trouble}", pattern=pattern[:40], trouble=str(trouble))
        yield ContractTrouble(where, message, t("it is a regular expression as Python reads it"))


def _unknown(key: str, where: Path) -> ContractTrouble:
    close = _OLDER.get(key) or next(iter(difflib.get_close_matches(key, KEYWORDS, 1)), None)
    hint = t("did you mean {name}?", name=close) if close else t("name it x-{key} if it is for readers", key=key[:40])
    return ContractTrouble(where, t("{key} is no keyword of JSON Schema 2020-12", key=key[:40]), hint)


def _written(value: Any, path: Path, keyword: str) -> Iterator[tuple[Path, str]]:
    """Every use of a keyword whose value is a text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == keyword and isinstance(inner, str):
                yield (*path, key), inner
            elif key not in ("const", "enum", "default", "examples"):
                yield from _written(inner, (*path, key), keyword)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _written(inner, (*path, place), keyword)


def _leads_somewhere(schema: Any, fragment: str, anchors: Collection[str]) -> bool:
    if fragment and not fragment.startswith("/"):
        return fragment in anchors
    for step in fragment.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and name.isdecimal() and int(name) < len(schema):
            schema = schema[int(name)]
        elif isinstance(schema, dict) and name in schema:
            schema = schema[name]
        else:
            return False
    return True
