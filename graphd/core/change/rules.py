"""The rules of `workgraph/change` that need more than one key or more than one change."""

from collections.abc import Iterable, Mapping
from typing import Any

from graphd.base.text import t
from graphd.core.change.reading import MalformedChange
from graphd.core.change.values import GraphValue, NodeValue
from graphd_protocol.states import PAUSED_STATUSES


def check_unique(nodes: list[dict[str, Any]], key: str) -> dict[str, int]:
    """The index of each node by its `key`; a value that stands twice is refused."""
    seen: dict[str, int] = {}
    for index, node in enumerate(nodes):
        name = node[key]
        if name in seen:
            raise MalformedChange(
                t("{name} is taken by nodes[{index}]", name=name, index=seen[name]), f"nodes[{index}].{key}", index
            )
        seen[name] = index
    return seen


def check_known(names: Iterable[str], known: Mapping[str, int], field: str) -> None:
    """Refuse a reference from `field` to a node that is not there."""
    for name in names:
        if name not in known:
            raise MalformedChange(t("names no node of the graph: {name}", name=name), field, index_in(field))


def index_in(field: str) -> int | None:
    """The first list index in a path, if any."""
    _, bracket, rest = field.partition("[")
    return int(rest.partition("]")[0]) if bracket else None


def check_whole(graph: dict[str, Any], nodes: tuple[NodeValue, ...], key: str) -> None:
    """The rules that need more than one key."""
    if graph["updatedAt"] < graph["createdAt"]:
        raise MalformedChange(t("is before createdAt"), "updatedAt")
    is_paused = graph["status"] in PAUSED_STATUSES
    if is_paused != (graph.get("pauseReason") is not None):
        status = graph["status"]
        if is_paused:
            raise MalformedChange(t("is missing while the status is {status}", status=status), "pauseReason")
        raise MalformedChange(t("must not be there while the status is {status}", status=status), "pauseReason")
    for index, node in enumerate(nodes):
        if node.id in node.needs:
            raise MalformedChange(t("{node} needs itself", node=node.slug or node.id), f"nodes[{index}].{key}", index)
        if len(set(node.needs)) != len(node.needs):
            raise MalformedChange(
                t("{node} names a need twice", node=node.slug or node.id), f"nodes[{index}].{key}", index
            )
    if cycle := find_cycle(nodes):
        names = [nodes[i].slug or nodes[i].id for i in [*cycle, cycle[0]]]
        shown = " → ".join(names if len(names) <= 12 else [*names[:11], "…"])
        raise MalformedChange(
            t("a cycle of {count}: {shown}", count=len(cycle), shown=shown), f"nodes[{cycle[0]}].{key}", cycle[0]
        )


def find_cycle(nodes: tuple[NodeValue, ...]) -> list[int]:
    """The indices of one cycle, each needing the next; empty where there is none. Iterative."""
    index_of = {node.id: index for index, node in enumerate(nodes)}
    left = [len(node.needs) for node in nodes]
    dependants: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for need in node.needs:
            dependants[index_of[need]].append(index)
    free = [index for index, count in enumerate(left) if count == 0]
    while free:
        for dependant in dependants[free.pop()]:
            left[dependant] -= 1
            if left[dependant] == 0:
                free.append(dependant)
    start = next((index for index, count in enumerate(left) if count), None)
    if start is None:
        return []
    path: dict[int, None] = {}
    while start not in path:  # every stranded node has a stranded need, so the walk comes round
        path[start] = None
        start = next(index_of[need] for need in nodes[start].needs if left[index_of[need]])
    steps = list(path)
    return steps[steps.index(start) :]


def check_continuity(old: GraphValue, new: GraphValue) -> None:
    """Refuse what can't follow `old`: another graph or birth, or a time, plan version or sum that fell."""
    if new.id != old.id:
        raise MalformedChange(t("{new} follows {old}, which was not cleared", new=new.id, old=old.id), "graph.id")
    if new.created_at != old.created_at:
        raise MalformedChange(
            t("changed from {before} to {after}", before=old.created_at, after=new.created_at), "graph.createdAt"
        )
    spent = "graph.tokensSpent" if new.version == 1 else "graph.spent.tokens"
    pairs: list[tuple[str, float | None, float | None]] = [
        ("graph.updatedAt", old.updated_at, new.updated_at),
        ("graph.planVersion", old.plan_version, new.plan_version),
        (spent, old.tokens, new.tokens),
        ("graph.replanRuns", old.replans, new.replans),
    ]
    if old.version == new.version:
        pairs += [
            ("graph.spent.costUsd", old.cost_usd, new.cost_usd),
            ("graph.spent.wallMs", old.wall_ms, new.wall_ms),
        ]
    for field, before, after in pairs:
        if before is not None and after is not None and after < before:
            raise MalformedChange(t("fell from {before} to {after}", before=before, after=after), field)
