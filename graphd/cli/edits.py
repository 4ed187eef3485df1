"""A file of edits as the wire takes it: JSON or YAML, the keys of workflow files or of the wire."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from graphd.cli.exits import CommandRefused

Wire = dict[str, Any]
_SPELLINGS = {"id": "slug", "name": "title", "workerType": "worker", "dependsOn": "needs", "cancel": "cancelNodes"}
_CLAUSES = ("gate", "verify", "approval", "wait", "forEach", "review", "retry")
"""Their keys are words too; those of `input_mapping` and `output_schema` are the user's."""


def read_edits(source: str) -> Any:
    """The value in a file, or on stdin for `-`. Raises CommandRefused."""
    try:
        text = sys.stdin.read() if source == "-" else _read(source)
    except (OSError, UnicodeDecodeError) as trouble:
        raise CommandRefused("usage", f"{source}: {trouble}", "name a readable file, or - for stdin") from None
    try:
        return json.loads(text)
    except ValueError:
        return _yaml(source, text)


def _read(source: str) -> str:
    with open(source, encoding="utf-8") as file:  # noqa: PTH123 -- as it was typed
        return file.read()


def _yaml(source: str, text: str) -> Any:
    from graphd.workflows.plain import read_plain

    try:
        return read_plain(text)
    except ValueError as trouble:
        raise CommandRefused("usage", f"{source}: {trouble}", "edits are JSON or YAML: graphd replan --help") from None


def nodes_of(value: Any, source: str) -> list[Wire]:
    """The nodes of `extend`: a list, `{nodes: […]}`, or a workflow file's `{config: {nodes: […]}}`."""
    if isinstance(value, dict):
        inner = value.get("config", value)
        value = inner.get("nodes") if isinstance(inner, dict) else None
    if not isinstance(value, list) or not all(isinstance(node, dict) for node in value):
        raise CommandRefused("usage", f"{source}: no list of nodes", "- {id: NAME, run: SCRIPT, needs: [OTHER]}")
    return [as_node(node) for node in value]


def edits_of(value: Any, source: str) -> Wire:
    """The params of `replan`."""
    if not isinstance(value, dict):
        hint = "{add: […], change: […], remove: [{node, reason}], restart: […]}"
        raise CommandRefused("usage", f"{source}: no map of edits", hint)
    edits = {_SPELLINGS.get(_camel(key), _camel(key)): item for key, item in value.items()}
    for name in ("add", "change"):
        if name in edits:
            edits[name] = nodes_of(edits[name], source)
    if isinstance(edits.get("remove"), dict):
        edits["remove"] = [{"node": node, "reason": str(reason)} for node, reason in edits["remove"].items()]
    return edits


def reasoned(option: str, given: Iterable[str]) -> list[Wire]:
    """The values `NODE=REASON` of an option, as rows. Raises a usage refusal where a reason is missing."""
    rows = []
    for item in given:
        node, _, why = item.partition("=")
        if not node or not why.strip():
            raise CommandRefused("usage", f"{option} {item}: say why it is left out", f'{option} NODE="why"')
        rows.append({"node": node, "reason": why.strip()})
    return rows


def as_node(node: Wire) -> Wire:
    """One node in the wire's words; `run` is a script for the shell, `prompt` a text for an agent."""
    found = {_SPELLINGS.get(_camel(key), _camel(key)): value for key, value in node.items()}
    if "run" in found:
        found |= {"spec": found.pop("run"), "worker": found.get("worker", "shell")}
    if "prompt" in found:
        found["spec"] = found.pop("prompt")
    if isinstance(found.get("workerConfig"), dict):
        found |= {_camel(key): value for key, value in found.pop("workerConfig").items()}
    for name in _CLAUSES:
        if isinstance(found.get(name), dict):
            found[name] = {_inner(key): value for key, value in found[name].items()}
    return found


def _inner(key: Any) -> str:
    name = _camel(key)
    return "worker" if name == "workerType" else name


def _camel(key: Any) -> str:
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), str(key))
