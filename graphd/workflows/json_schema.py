"""The workflow schema as a JSON Schema, for editors whose YAML extension takes one. Generated, never written by hand.

It is laxer than the reader: what needs the whole graph, and the traps of YAML's scalars, stay with `graphd validate`.
Where `config` and `prompt` have two forms, both are offered. Run `python -m graphd.workflows.json_schema` to write
`protocol/workflow.schema.json` again; a test holds the two together.
"""

import json
from pathlib import Path
from typing import Any, Final

from graphd.workflows import schema
from graphd.workflows.explanations import doc_of

FILE: Final = Path(__file__).parents[2] / "protocol" / "workflow.schema.json"
_NAMED: Final = (schema.NODE, schema.BLOCK, schema.CONFIG, schema.WORKER_CONFIG, schema.RETRY)
_SLUG: Final = {"type": "string", "pattern": "^(?!gn-)[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}


def document() -> dict[str, Any]:
    """The whole JSON Schema, draft-07 (what YAML extensions know)."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "graphd workflow",
        **_table(schema.ROOT),
        "definitions": {table.name: _table(table) for table in _NAMED},
    }


def render() -> str:
    """The file's text."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _table(table: schema.Table) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for key in table.keys:
        for spelling in (key.name, *key.short):
            properties[spelling] = _property(table, key)
    made: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    every = [_present(key) for key in table.keys if key.is_required and key.short]
    every += [{"oneOf": [_present(_key(table, name)) for name in group]} for group in table.exactly_one]
    every += [{"not": {"required": [key.name, short]}} for key in table.keys for short in key.short]
    required = [key.name for key in table.keys if key.is_required and not key.short]
    if required:
        made["required"] = required
    if every:
        made["allOf"] = every
    return made


def _key(table: schema.Table, name: str) -> schema.Key:
    found = table.key(name)
    assert found is not None  # noqa: S101  # groups name keys of their own table
    return found


def _present(key: schema.Key) -> dict[str, Any]:
    spellings = (key.name, *key.short)
    return {"required": [key.name]} if len(spellings) == 1 else {"anyOf": [{"required": [s]} for s in spellings]}


def _property(table: schema.Table, key: schema.Key) -> dict[str, Any]:
    inner = _kind(key.kind)
    made: dict[str, Any] = {"allOf": [inner]} if "$ref" in inner else inner
    if key.name == "worker_type":
        made = {"type": "string", "examples": list(schema.BUILT_IN_WORKERS)}
    doc = str(doc_of(table, key))
    if key.later:
        doc = f"{doc} Not carried out by this version: {key.later}.".strip()
    if doc:
        made["description"] = doc
    if key.default is not None:
        made["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    return made


def _kind(kind: schema.Kind) -> dict[str, Any]:
    if isinstance(kind, schema.Table):
        return {"$ref": f"#/definitions/{kind.name}"} if kind in _NAMED else _table(kind)
    if kind is schema.SLUG:
        return dict(_SLUG)
    if isinstance(kind, schema.Text):
        more: dict[str, Any] = {"enum": list(kind.choices)} if kind.choices else {}
        return {"type": "string", **more, **({"pattern": f"^(?:{kind.pattern})$"} if kind.pattern else {})}
    if isinstance(kind, schema.Int | schema.Number):
        low = {"minimum": kind.low} if kind.low is not None else {}
        high = {"maximum": kind.high} if kind.high is not None else {}
        return {"type": "integer" if isinstance(kind, schema.Int) else "number", **low, **high}
    if isinstance(kind, schema.ListOf):
        return {"type": "array", "items": _kind(kind.item)}
    if isinstance(kind, schema.MapOf):
        return {"type": "object", "propertyNames": {"pattern": f"^(?:{kind.pattern})$"},
                "additionalProperties": _kind(kind.value)}  # fmt: skip
    if isinstance(kind, schema.Either):
        return {"anyOf": [_kind(inner) for inner in kind.kinds]}
    if isinstance(kind, schema.Bool):
        return {"type": "boolean"}
    return {"type": ["string", "number", "boolean"] if isinstance(kind, schema.Scalar) else "object"}


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
