"""A YAML tree read by the schema: typed fields with their places, and a finding for all that does not fit."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphd.base.text import either, t
from graphd.core.plan import suggestion
from graphd.workflows import schema
from graphd.workflows.contracts import contract_troubles
from graphd.workflows.diagnostics import Findings, Span
from graphd.workflows.scalars import ScalarMisread, read_scalar
from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(slots=True)
class Field:
    """One value of the file. A table's value is `Fields`, a list's `list[Field]`, a map's `dict[str, Field]`."""

    value: Any
    node: YamlNode
    path: str
    name: Span
    """Where its key stands, or the value itself in a list."""
    written: str = ""

    @property
    def span(self) -> Span:
        """Where to point: a scalar itself, a list or map at its key."""
        return self.node if isinstance(self.node, YamlScalar) else self.name


Fields: TypeAlias = dict[str, Field]
"""By the long name of each key, whatever its spelling."""

_MAPS: Final = (schema.Table, schema.MapOf, schema.Schema)  # a union here would be made anew for each scalar
BROKEN: Final = object()
"""What a value is read as that did not fit; it was told already and is left out."""


class Reader:
    """Walks a tree by the schema. Depth is bounded by `source.MAX_DEPTH`."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._readers: dict[type, Callable[[Any, YamlNode, str], Any]] = {
            schema.Table: self._table,
            schema.ListOf: self._list,
            schema.MapOf: self._map,
            schema.Either: self._either,
            schema.Schema: self._schema,
        }

    def read(self, kind: schema.Kind, node: YamlNode, path: str) -> Any:
        """The value of a node, or `BROKEN` where it is none of this kind (and a finding says why)."""
        if isinstance(node, YamlScalar):
            if node.is_broken:
                return BROKEN
            if not isinstance(kind, schema.Either):
                return self._scalar(kind, node, path)
        reader = self._readers.get(type(kind))
        if reader is None:
            hint = (
                t("write it on one line, without [ and -") if isinstance(node, YamlList) else t("write one value here")
            )
            return self._misfit(kind, node, path, hint)
        return reader(kind, node, path)

    def _misfit(self, kind: schema.Kind, node: YamlNode, path: str, hint: str) -> object:
        found = {YamlScalar: t("a single value"), YamlList: t("a list"), YamlMap: t("a map")}[type(node)]
        self.findings.error(
            "type",
            node,
            path,
            t("{name} is {found}, not {meaning}", name=_last(path), found=found, meaning=kind.meaning),
            hint,
        )
        return BROKEN

    def _scalar(self, kind: schema.Kind, node: YamlScalar, path: str) -> Any:
        if isinstance(kind, schema.ListOf):
            hint = (
                t("write [{text}]", text=node.text)
                if node.text and node.text.isprintable()
                else t("write [] or a list")
            )
            return self._misfit(kind, node, path, hint)
        if isinstance(kind, _MAPS):
            return self._misfit(kind, node, path, t("write key: value lines below it, or {key: value}"))
        try:
            return read_scalar(kind, node.text, node.is_plain)
        except ScalarMisread as trouble:
            self.findings.error(
                trouble.code,
                node,
                path,
                t("{name}: {trouble}", name=_last(path), trouble=trouble.message),
                trouble.hint,
            )
            return BROKEN

    def _either(self, kind: schema.Either, node: YamlNode, path: str) -> Any:
        wants_map = isinstance(node, YamlMap)
        for inner in kind.kinds:
            if isinstance(inner, schema.Table) == wants_map and not isinstance(node, YamlList):
                return self.read(inner, node, path)
        return self._misfit(kind, node, path, t("write {meaning}", meaning=kind.meaning))

    def _list(self, kind: schema.ListOf, node: YamlNode, path: str) -> Any:
        if not isinstance(node, YamlList):
            return self._misfit(kind, node, path, t("start each entry with '- '"))
        fields = []
        for index, item in enumerate(node.items):
            where = f"{path}[{index}]"
            value = self.read(kind.item, item, where)
            if value is not BROKEN:
                fields.append(Field(value, item, where, item))
        return fields

    def _map(self, kind: schema.MapOf, node: YamlNode, path: str) -> Any:
        if not isinstance(node, YamlMap):
            return self._misfit(kind, node, path, t("write name: value lines"))
        fields: Fields = {}
        for written, (key, item) in node.entries.items():
            where = f"{path}.{_shown(written)}"
            if not re.fullmatch(kind.pattern, written):
                message = t("{written} can't be a name here", written=_shown(written))
                self.findings.error("key.name", key, where, message, t("a letter first, then letters, digits and _"))
                continue
            value = self.read(kind.value, item, where)
            if value is not BROKEN:
                fields[written] = Field(value, item, where, key, written)
        return fields

    def _schema(self, kind: schema.Schema, node: YamlNode, path: str) -> Any:
        if not isinstance(node, YamlMap):
            return self._misfit(kind, node, path, t("start with type: object"))
        value = plain(node)
        troubles = list(contract_troubles(value))
        for trouble in troubles:
            at, where = _place(node, trouble.path, path)
            self.findings.error("schema.malformed", at, where, trouble.message, trouble.hint)
        return BROKEN if troubles else value

    def _table(self, table: schema.Table, node: YamlNode, path: str) -> Any:
        if not isinstance(node, YamlMap):
            return self._misfit(table, node, path, t("write key: value, not a list"))
        fields: Fields = {}
        told: set[str] = set()
        for written, (name, item) in node.entries.items():
            where = f"{path}.{written}" if path else written
            key = table.key(written)
            if key is None:
                self._unknown(table, name, f"{path}.{_shown(written)}".lstrip("."))
                continue
            if key.name in told:
                message = t("{written} is another spelling of a key that is already here", written=written)
                self.findings.error("key.twice", name, where, message, t("keep one: {keys}", keys=_spellings(key)))
                continue
            told.add(key.name)
            value = self.read(key.kind, item, where)
            if value is not BROKEN:
                fields[key.name] = Field(value, item, where, name, written)
                self._later(key, fields[key.name])
        self._missing(table, told, node, path)
        return fields

    def _later(self, key: schema.Key, field: Field) -> None:
        if key.later and field.value not in key.harmless:
            message = t("{key} is valid, but this version does not carry it out", key=field.written)
            self.findings.error(
                "notSupported", field.name, field.path, message, t("remove it: {reason}", reason=key.later)
            )

    def _unknown(self, table: schema.Table, name: YamlScalar, path: str) -> None:
        snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.text).lower().replace("-", "_")
        homes = [home for home in schema.home_of(name.text) if home != table.name]
        if table.key(snake):
            hint: str | None = t("did you mean {name}?", name=snake)
        elif homes:
            hint = t("{key} belongs into {tables}", key=name.text, tables=either(homes))
        else:
            hint = suggestion(snake[:80], list(table.spellings))
        known = t("known here: {names}", names=", ".join(k.name for k in table.keys))
        message = t("{key} is no key of {table}", key=_shown(name.text), table=table.name)
        self.findings.error(
            "key.unknown", name, path, message, t("{hint} ({known})", hint=hint, known=known) if hint else known
        )

    def _missing(self, table: schema.Table, told: set[str], node: YamlMap, path: str) -> None:
        where = path or t("the file")
        for key in table.required:
            if key.name not in told:
                message = t("{where} has no {key}", where=where, key=key.name)
                self.findings.error(
                    "key.missing",
                    node,
                    path,
                    message,
                    t("add {key}: {meaning}", key=key.name, meaning=key.kind.meaning),
                )
        for group in table.exactly_one:
            present = [name for name in group if name in told]
            if len(present) == 1:
                continue
            wanted = either(group)
            hint = t("keep one of them") if present else t("add {key}", key=group[0])
            if present:
                message = t("{where} has both {keys}", where=where, keys=wanted)
            else:
                message = t("{where} has no {key}", where=where, key=wanted)
            at = node.entries[present[1]][0] if present and present[1] in node.entries else node
            code = "key.twice" if present else "key.missing"
            self.findings.error(code, at, path, message, hint)


def _place(node: YamlNode, steps: tuple[str | int, ...], path: str) -> tuple[Span, str]:
    """Where a part of a value stands: a key at its name, an entry of a list itself."""
    at: Span = node
    for step in steps:
        if isinstance(node, YamlMap) and isinstance(step, str) and step in node.entries:
            at, node = node.entries[step]
            path = f"{path}.{_shown(step)}"
        elif isinstance(node, YamlList) and isinstance(step, int) and step < len(node.items):
            at = node = node.items[step]
            path = f"{path}[{step}]"
    return at, path


def _last(path: str) -> str:
    return path.rpartition(".")[2] or t("the file")


def _shown(written: str) -> str:
    return written if _BARE.match(written) else repr(written[:40])


def _spellings(key: schema.Key) -> str:
    return either((key.name, *key.short))


def plain(node: YamlNode) -> Any:
    """The node as JSON values, by YAML 1.2's core schema; for what is JSON anyway (an output schema)."""
    if isinstance(node, YamlMap):
        return {name: plain(item) for name, (_, item) in node.entries.items()}
    if isinstance(node, YamlList):
        return [plain(item) for item in node.items]
    if not node.is_plain:
        return node.text
    if node.text in ("", "~", "null"):
        return None
    try:
        return read_scalar(schema.Scalar(), node.text, is_plain=True)
    except ScalarMisread:
        return node.text
