"""Inputs of a workflow: declared in the file, given at the start, checked before anything runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphd.base.text import Text, t
from graphd.core.plan import suggestion
from graphd.workflows import schema
from graphd.workflows.diagnostics import Findings, Span
from graphd.workflows.read import Field, Fields
from graphd.workflows.scalars import ScalarMisread, read_scalar


@dataclass(slots=True, frozen=True)
class Declared:
    """One declared input. `default` None: it has to be given."""

    name: str
    type: str
    description: str
    default: Any
    choices: tuple[str, ...]
    span: Span
    path: str


class InputRefused(ValueError):
    """A value does not fit its declaration."""

    def __init__(self, message: Text, hint: Text) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def declare(field: Field | None, findings: Findings) -> dict[str, Declared]:
    """What the file asks for; unfit defaults and enums are told."""
    found: dict[str, Declared] = {}
    if field is None:
        return found
    entries: Fields = field.value
    for name, entry in entries.items():
        inner: Fields = entry.value
        kind = inner["type"].value if "type" in inner else "string"
        choices = tuple(f.value for f in inner["enum"].value) if "enum" in inner else ()
        if (kind == "enum") != bool(choices):
            message = (
                t("input {name} is an enum without choices", name=name)
                if kind == "enum"
                else t("input {name} is no enum", name=name)
            )
            hint = t("add enum: [a, b]") if kind == "enum" else t("say type: enum, or remove the list")
            findings.error("input.enum", entry.name, entry.path, message, hint)
            continue
        description = inner["description"].value if "description" in inner else ""
        declared = Declared(name, kind, description, None, choices, entry.name, entry.path)
        found[name] = _with_default(declared, inner.get("default"), findings)
    return found


def _with_default(declared: Declared, default: Field | None, findings: Findings) -> Declared:
    if default is None:
        return declared
    try:
        value = fit(declared, default.value, is_typed=True)
    except InputRefused as trouble:
        findings.error(
            "input.default", default.span, default.path, t("default: {trouble}", trouble=trouble.message), trouble.hint
        )
        return declared
    return Declared(
        declared.name, declared.type, declared.description, value, declared.choices, declared.span, declared.path
    )


def bind(declared: Mapping[str, Declared], given: Mapping[str, Any], top: Span, findings: Findings) -> dict[str, Any]:
    """The value of every input: given, else its default. `inputMissing` and what does not fit are told."""
    for name in given:
        if name not in declared:
            known = t("this workflow asks for: {names}", names=", ".join(declared) or t("nothing"))
            close = suggestion(str(name), declared)
            hint = t("{hint} ({known})", hint=close, known=known) if close else known
            findings.error("input.unknown", top, "inputs", t("no input is called {name}", name=str(name)[:80]), hint)
    values: dict[str, Any] = {}
    for name, entry in declared.items():
        if name not in given:
            if entry.default is None:
                if entry.description:
                    message = t("the input {name} ({about}) has no value", name=name, about=entry.description)
                else:
                    message = t("the input {name} has no value", name=name)
                findings.error(
                    "inputMissing", entry.span, entry.path, message, t("give it with --input {name}=…", name=name)
                )
            else:
                values[name] = entry.default
            continue
        try:
            values[name] = fit(entry, given[name], is_typed=not isinstance(given[name], str))
        except InputRefused as trouble:
            findings.error("input.value", entry.span, entry.path, trouble.message, trouble.hint)
    return values


def fit(declared: Declared, value: Any, *, is_typed: bool) -> Any:
    """The value as its type says; texts from a command line are read (`is_typed` False). `InputRefused` else."""
    name, kind = declared.name, declared.type
    if kind in ("int", "number", "bool"):
        return _scalar(name, kind, value, is_typed=is_typed)
    if not isinstance(value, str):
        raise InputRefused(
            t("{name} is {value!r}, not a text", name=name, value=value), t('put it in quotes: "{value}"', value=value)
        )
    if "\0" in value:
        raise InputRefused(t("{name} has a NUL character", name=name), t("remove it"))
    if kind == "enum" and value not in declared.choices:
        hint = suggestion(value, declared.choices) or t("one of {choices}", choices=", ".join(declared.choices))
        raise InputRefused(t("{name} can't be {value!r}", name=name, value=value[:40]), hint)
    if kind == "path" and not value.strip():
        raise InputRefused(t("{name} is an empty path", name=name), t("name a file or folder; . is the workspace"))
    return value


def _scalar(name: str, kind: str, value: Any, *, is_typed: bool) -> Any:
    kinds: dict[str, schema.Bool | schema.Int | schema.Number]
    kinds = {"int": schema.Int(), "number": schema.Number(), "bool": schema.Bool()}
    wanted = kinds[kind]
    if not is_typed:
        try:
            return read_scalar(wanted, value, is_plain=True)
        except ScalarMisread as trouble:
            raise InputRefused(t("{name}: {trouble}", name=name, trouble=trouble.message), trouble.hint) from None
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
        "bool": isinstance(value, bool),
    }[kind]
    if not fits:
        raise InputRefused(
            t("{name} is {value!r}, not {meaning}", name=name, value=str(value)[:40], meaning=wanted.meaning),
            t("write {meaning}", meaning=wanted.meaning),
        )
    return value


def as_text(value: Any) -> str:
    """An input as a prompt or a `GRAPHD_VAR_…` shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
