"""Old values, kept so that a change can be taken back when its command is refused or its commit fails.

Copying state instead costs 13 times as much at 10,000 nodes (architecture.md).
"""

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MISSING = object()


class Tape:
    """Every write to core state goes through here; `rollback(mark)` undoes all writes since `mark()`."""

    __slots__ = ("_undo",)

    def __init__(self) -> None:
        # (target, attribute, old) or (mapping, key, old); a mapping is told by its type (closures cost twice)
        self._undo: list[tuple[Any, Any, Any]] = []

    def set(self, target: object, name: str, value: object) -> None:
        """Assign an attribute."""
        self._undo.append((target, name, getattr(target, name)))
        setattr(target, name, value)

    def put(self, mapping: dict[K, V], key: K, value: V) -> None:
        """Assign a key."""
        self._undo.append((mapping, key, mapping.get(key, _MISSING)))
        mapping[key] = value

    def drop(self, mapping: dict[K, Any], key: K) -> None:
        """Remove a key, if there. A rollback puts it back at the end: no order of these dicts carries meaning."""
        if key in mapping:
            self._undo.append((mapping, key, mapping.pop(key)))

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._undo)

    def rollback(self, mark: int = 0) -> None:
        """Undo the newest write first, down to `mark`."""
        while len(self._undo) > mark:
            target, name, old = self._undo.pop()
            if type(target) is not dict:
                setattr(target, name, old)
            elif old is _MISSING:
                del target[name]
            else:
                target[name] = old

    @classmethod
    def unwound(cls) -> "Tape":
        """One that keeps nothing: for the replay of a log, where nothing is ever taken back."""
        return _Unwound()

    def clear(self) -> None:
        """Forget the old values: the change is committed."""
        self._undo.clear()


class _Unwound(Tape):
    __slots__ = ()

    def set(self, target: object, name: str, value: object) -> None:
        setattr(target, name, value)

    def put(self, mapping: dict[K, V], key: K, value: V) -> None:
        mapping[key] = value

    def drop(self, mapping: dict[K, Any], key: K) -> None:
        mapping.pop(key, None)
