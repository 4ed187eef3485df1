"""A plan written as a workflow file: what `graphd save` puts into `.agents/workflows/`. Pure; the inverse of compiling.

Compiled again, the text gives the same definitions, limits, budget and terms. What only a running graph has is left
out: nodes that `for_each` made, `gn-final` (`final_check` makes it anew), where a node was discovered, and the brief
behind a deep run's fingerprint, which is why such a graph is written as a standard one and says so.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from graphd.core.definition import Budget, Definition, Retry, Terms
from graphd.core.model import Limits
from graphd.workflows import schema
from graphd.workflows.long_form import long_config, long_form
from graphd.workflows.scalars import ScalarMisread, read_scalar
from graphd.workflows.source import is_printable
from graphd_protocol.ids import FINAL_ID

_PLAIN: Final = re.compile(r"[A-Za-z_][\w./@%+-]*(?: [\w./@%+-]+)*\Z", re.ASCII)
_ELSEWHERE: Final = frozenset({"yes", "no", "on", "off", "y", "n", "null"})
_LIMITS: Final = Limits()
_TERMS: Final = Terms()
_CONFIG: Final = {"timeout_ms": 600_000}
_FIRST: Final = ("name", "worker", "needs", "required", "condition", "wait", "run", "prompt")


def to_yaml(  # noqa: PLR0913  # all that a graph is set with
    title: str,
    objective: str,
    definitions: Sequence[Definition],
    *,
    limits: Limits = _LIMITS,
    budget: Budget | None = None,
    terms: Terms = _TERMS,
    delivery_node: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """The file's text. `variables` are inputs of the graph: they become inputs whose default is the value."""
    lines = [f"title: {_text(title)}"]
    if terms.mode == "deep":
        lines.append(f"# It was a deep run; its brief is not kept, only the fingerprint {terms.admission}.")
    if variables:
        lines += ["inputs:", *(f"  {name}: {{ default: {quoted(value)} }}" for name, value in variables.items())]
    lines += ["config:", f"  objective: {_text(objective)}"]
    config = long_config(limits=limits, budget=budget, terms=terms, delivery_node=delivery_node)
    lines += [f"  {key}: {_value(value)}" for key, value in config.items()]
    lines.append("  nodes:")
    for definition in definitions:
        if definition.item is None and definition.slug != FINAL_ID:
            lines += _node(definition)
    return "".join(f"{line}\n" for line in lines)


def _node(definition: Definition) -> Iterator[str]:
    yield f"    - id: {_text(definition.slug)}"
    keys = _short(definition)
    for key in [k for k in _FIRST if k in keys] + [k for k in keys if k not in _FIRST]:
        yield from _key(key, keys[key])


def _short(definition: Definition) -> dict[str, Any]:
    """The node's keys in the short spelling, without what is at its default."""
    keys = long_form(definition, is_required=definition.required)
    del keys["id"]
    keys["needs"] = keys.pop("depends_on")
    worker = keys.pop("worker_type", None)
    template = keys.pop("prompt_template", None)
    if worker == "shell":
        keys["run"] = template["inline"]
    elif worker is not None:
        keys |= {"worker": worker, "prompt": template["inline"]}
    if keys.get("worker_config") == _CONFIG:
        del keys["worker_config"]
    if definition.retry == Retry():
        keys.pop("retry", None)
    usual = {"name": definition.slug, "needs": [], "required": False}
    return {key: value for key, value in keys.items() if key not in usual or usual[key] != value}


def _key(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and _is_block(value):
        end = len(value) - len(value.rstrip("\n"))
        yield f"      {key}: |{'-' if end == 0 else '' if end == 1 else '+'}"
        for line in value.removesuffix("\n").split("\n"):
            yield f"        {line}" if line else ""
    elif key == "output_schema":
        yield f"      {key}: {_json(value)}"
    else:
        yield f"      {key}: {_value(value)}"


def _is_block(text: str) -> bool:
    """Whether a text of several lines comes back from a literal block as it is."""
    return "\n" in text and not text[0].isspace() and "\r" not in text and is_printable(text)


def _value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_text(key)}: {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _text(text: str) -> str:
    """A text: plain where every reader of YAML takes it for one, else in double quotes."""
    if _PLAIN.match(text) and text.lower() not in _ELSEWHERE:
        try:
            read_scalar(schema.Text(), text, is_plain=True)
        except ScalarMisread:
            return quoted(text)
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """A text in double quotes, whatever is in it."""
    return "".join(c if is_printable(c) else _escaped(c) for c in json.dumps(text, ensure_ascii=False))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json(value: Any) -> str:
    """A JSON value as JSON, its texts always in quotes: what it holds is not ours to read."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)}: {_json(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return json.dumps(value)
