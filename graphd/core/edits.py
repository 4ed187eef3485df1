"""Edits of a plan as one value: what `extend`, `replan` and every proposal carry, and their JSON rows."""

from dataclasses import replace
from typing import Any, NamedTuple

from graphd.core.codec import Row, dump_definition, load_definition
from graphd.core.definition import Definition


class Patch(NamedTuple):
    """A change of one node: some keys of its definition's row; None puts a key back to its default."""

    slug: str
    row: Row

    def applied(self, definition: Definition) -> Definition:
        """The definition with these keys. Raises TypeError, KeyError or ValueError where a row does not fit."""
        bare = dump_definition(Definition(definition.slug, definition.spec, definition.worker))
        merged = {**dump_definition(definition), **self.row}
        merged = {key: bare.get(key) if value is None else value for key, value in merged.items()}
        return load_definition({key: value for key, value in merged.items() if value is not None})


def patch_to(old: Definition, new: Definition) -> Patch:
    """The patch that makes `new` of `old`."""
    was, now = dump_definition(old), dump_definition(new)
    return Patch(old.slug, {key: now.get(key) for key in {**was, **now} if was.get(key) != now.get(key)})


def is_timeout_alone(old: Definition, new: Definition) -> bool:
    """They differ in nothing but their deadlines: what a running node takes without being stopped."""
    return new == replace(old, timeout_ms=new.timeout_ms, hard_timeout_ms=new.hard_timeout_ms)


class Edits(NamedTuple):
    """Nodes by slug or id. All of it happens, or nothing."""

    add: tuple[Definition, ...] = ()
    change: tuple[Patch, ...] = ()
    remove: tuple[tuple[str, str], ...] = ()  # node, reason
    restart: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    resume: bool = False

    @property
    def is_empty(self) -> bool:
        """Nothing is asked for."""
        return self == Edits()

    @property
    def is_extension(self) -> bool:
        """It only adds."""
        return bool(self.add) and self == Edits(add=self.add)


def dump_edits(edits: Edits) -> Row:
    """As JSON values; what is empty is left out."""
    row: dict[str, Any] = {
        "add": [dump_definition(definition) for definition in edits.add],
        "change": [{"slug": patch.slug, "row": dict(patch.row)} for patch in edits.change],
        "remove": [{"node": node, "reason": reason} for node, reason in edits.remove],
        "restart": list(edits.restart),
        "cancel": list(edits.cancel),
        "resume": edits.resume,
    }
    return {name: value for name, value in row.items() if value}


def load_edits(row: Row) -> Edits:
    """The inverse of `dump_edits`."""
    return Edits(
        add=tuple(load_definition(definition) for definition in row.get("add", ())),
        change=tuple(Patch(patch["slug"], patch["row"]) for patch in row.get("change", ())),
        remove=tuple((item["node"], item["reason"]) for item in row.get("remove", ())),
        restart=tuple(row.get("restart", ())),
        cancel=tuple(row.get("cancel", ())),
        resume=row.get("resume", False),
    )
