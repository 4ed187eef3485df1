"""What breaks between a released protocol and this one: such a change needs a higher wire number.

A client of the released one must go on working: what it sends is still taken, what it reads is still there. Names may
be added anywhere. Source: spec protocol.md, Limits and versions.
"""

import json
from collections.abc import Iterator
from typing import Any

from generator.schema import REF, Json

_BOUNDS = {"minimum": 1, "minLength": 1, "minItems": 1, "maximum": -1, "maxLength": -1, "maxItems": -1}


def breaks(released: Json, now: Json) -> list[str]:
    """One line a break; empty where clients of `released` go on working."""
    found: list[str] = []
    for kind in ("requests", "notifications"):
        rows = {row["method"]: row for row in now[kind]}
        for old in released[kind]:
            new = rows.get(old["method"])
            if new is None:
                found.append(f"{old['method']} is gone")
                continue
            is_sent = old["messageDirection"] == "clientToServer"
            look = _Look(released, now)
            if "params" in old or "params" in new:
                params = (old.get("params", _EMPTY), new.get("params", _EMPTY))
                found += look.compare(*params, at=f"{old['method']} params", is_sent=is_sent)
            if "result" in old:
                found += look.compare(old["result"], new["result"], at=f"{old['method']} result", is_sent=False)
    codes = {row["name"]: row["value"] for row in now["errorCodes"]}
    found += [f"error {r['name']} is gone" for r in released["errorCodes"] if codes.get(r["name"]) != r["value"]]
    return list(dict.fromkeys(found))


_EMPTY: Json = {"type": "object", "properties": {}, "additionalProperties": False}


class _Look:
    def __init__(self, released: Json, now: Json) -> None:
        self._old_defs, self._new_defs = released["$defs"], now["$defs"]
        self._seen: set[str] = set()

    def compare(self, old: Json, new: Json, *, at: str, is_sent: bool) -> Iterator[str]:
        """Breaks below one place. `is_sent`: a client writes it; else it reads it."""
        pair = json.dumps([old, new, is_sent], sort_keys=True)
        if "$ref" in old and pair in self._seen:
            return
        self._seen.add(pair)
        old, new = _resolved(old, self._old_defs), _resolved(new, self._new_defs)
        if "properties" in old and new.get("type") == "object":
            yield from self._fields(old, new, at=at, is_sent=is_sent)
            return
        if old.get("type") == new.get("type") == "array" and "items" in old and "items" in new:
            yield from self.compare(old["items"], new["items"], at=f"{at}[]", is_sent=is_sent)
        elif old.get("type") == new.get("type") == "object":
            rest_old, rest_new = old.get("additionalProperties"), new.get("additionalProperties")
            if isinstance(rest_old, dict) and isinstance(rest_new, dict):
                yield from self.compare(rest_old, rest_new, at=f"{at}.*", is_sent=is_sent)
        else:
            yield from self._options(old, new, at=at, is_sent=is_sent)
        if is_sent:
            yield from _bounds(old, new, at)

    def _fields(self, old: Json, new: Json, *, at: str, is_sent: bool) -> Iterator[str]:
        needed_old, needed_new = set(old.get("required", [])), set(new.get("required", []))
        for name, value in old["properties"].items():
            if name not in new.get("properties", {}):
                yield f"{at}.{name} is gone"
            else:
                yield from self.compare(value, new["properties"][name], at=f"{at}.{name}", is_sent=is_sent)
        if is_sent:
            yield from (f"{at}.{name} is required now" for name in sorted(needed_new - needed_old))
        else:
            kept = (needed_old - needed_new) & new.get("properties", {}).keys()
            yield from (f"{at}.{name} may be missing now" for name in sorted(kept))

    def _options(self, old: Json, new: Json, *, at: str, is_sent: bool) -> Iterator[str]:
        """Of a union every option that a client sends is still taken; kinds that it reads are kinds that it knows."""
        before, after = _kinds(old, self._old_defs), _kinds(new, self._new_defs)
        lost = before - after if is_sent else {kind for kind in after - before if not kind.startswith('"')}
        for kind in sorted(lost):
            if kind.startswith('"') and "string" in after:
                continue
            yield f"{at}: {kind} is no longer taken" if is_sent else f"{at}: {kind} is new there"
        for is_of_kind in (_is_object, _is_array):
            insides = [
                [part for part in _parts(value) if is_of_kind(_resolved(part, defs))]
                for value, defs in ((old, self._old_defs), (new, self._new_defs))
            ]
            if [len(parts) for parts in insides] == [1, 1] and "anyOf" in {**old, **new}:
                yield from self.compare(insides[0][0], insides[1][0], at=at, is_sent=is_sent)


def _is_object(value: Json) -> bool:
    return value.get("type") == "object"


def _is_array(value: Json) -> bool:
    return value.get("type") == "array"


def _parts(value: Json) -> list[Json]:
    parts: list[Json] = value.get("anyOf", [value])
    return parts


def _kinds(value: Json, defs: Json) -> set[str]:
    """`string`, `null`, `"a literal"`, …: what a value may be at its top."""
    kinds: set[str] = set()
    for part in _parts(value):
        found = _resolved(part, defs)
        if found is not part and "anyOf" in found:
            kinds |= _kinds(found, defs)
        elif "enum" in found:
            kinds |= {json.dumps(item) for item in found["enum"]}
        elif "const" in found:
            kinds.add(json.dumps(found["const"]))
        else:
            kinds.add(str(found.get("type", "anything")))
    return kinds


def _resolved(value: Json, defs: Json) -> Json:
    while "$ref" in value:
        value = defs[value["$ref"].removeprefix(REF)]
    return value


def _bounds(old: Json, new: Json, at: str) -> Iterator[str]:
    for name, sign in _BOUNDS.items():
        limit: Any = new.get(name)
        if limit is not None and (name not in old or (limit - old[name]) * sign > 0):
            yield f"{at}: {name} is {limit} now"
