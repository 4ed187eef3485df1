"""Folds `workgraph/changed` values to snapshots. Pure. Source: spec protocol.md, Notifications.

A subscription is a cursor: each value says where it starts (`from`) and ends (`rev`), and carries whole
nodes. A value that does not start where the mirror stands is refused, never guessed at.
"""

from typing import Any

HISTORY_LIMIT = 64


class ChainBroken(Exception):
    """A change that does not follow on the rev held: subscribe again without `since`."""

    def __init__(self, graph: str, *, held: int, start: int) -> None:
        super().__init__(f"{graph}: a change from rev {start}, but rev {held} is held")
        self.graph = graph
        self.held = held
        self.start = start


class Mirror:
    """What a client knows of its graphs: `graphs` by id, `cleared` the tombstones by id.

    A snapshot, once given out, is never changed: each change makes a new one that shares the nodes that
    stayed.
    """

    def __init__(self) -> None:
        self.graphs: dict[str, dict[str, Any]] = {}
        self.cleared: dict[str, dict[str, Any]] = {}
        self._places: dict[str, dict[str, int]] = {}  # graph -> slug -> place in `nodes`

    def revs(self) -> dict[str, int]:
        """The rev held of each graph, as `since` of `workgraph/subscribe` takes it."""
        return {graph: int(snapshot["rev"]) for graph, snapshot in self.graphs.items()}

    def apply(self, changed: dict[str, Any]) -> str:
        """Fold one value in; returns the graph's id. Raises `ChainBroken` and then has changed nothing."""
        graph = str(changed["graph"])
        if changed.get("cleared") is not None:
            self.graphs.pop(graph, None)
            self._places.pop(graph, None)
            self.cleared[graph] = changed["cleared"]
            return graph
        held = None if changed.get("full") else self.graphs.get(graph)
        if not changed.get("full"):
            self._check_chain(graph, held, changed)
        header = changed.get("header") or _header_of(held)
        places = dict(self._places.get(graph, {})) if held else {}
        self.graphs[graph] = {
            **header,
            "rev": changed["rev"],
            "nodes": _merged(held["nodes"] if held else [], places, changed.get("nodes") or []),
            "proposals": _replaced(held, changed, "proposals"),
            "asks": _replaced(held, changed, "asks"),
            "history": [*(held["history"] if held else []), *(changed.get("history") or [])][-HISTORY_LIMIT:],
        }
        self._places[graph] = places
        self.cleared.pop(graph, None)
        return graph

    def _check_chain(self, graph: str, held: dict[str, Any] | None, changed: dict[str, Any]) -> None:
        rev = int(held["rev"]) if held else 0
        if changed["from"] != rev or changed["rev"] < rev or (held is None and not changed.get("header")):
            raise ChainBroken(graph, held=rev, start=changed["from"])


_LISTS = frozenset({"nodes", "proposals", "asks", "history"})


def _header_of(held: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (held or {}).items() if name not in _LISTS}


def _merged(nodes: list[dict[str, Any]], places: dict[str, int], newer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged = list(nodes)
    for node in newer:
        place = places.setdefault(node["slug"], len(merged))
        if place == len(merged):
            merged.append(node)
        else:
            merged[place] = node
    return merged


def _replaced(held: dict[str, Any] | None, changed: dict[str, Any], name: str) -> list[Any]:
    whole = changed.get(name)
    return whole if whole is not None else (held[name] if held else [])
