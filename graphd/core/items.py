"""`for_each`: a node makes one node per item of a list, and joins what they came to (workflow.md, Node).

The list is fixed in the change that makes the items. Where it is read again, after a retry or a revision, what stands
at a place keeps its node: only an item that changed is worked on again.
"""

import json
import re
from typing import Any, Final

from graphd.base.text import Text, t
from graphd.core.definition import ForEach
from graphd.core.draft import Draft
from graphd.core.model import Graph, Node, Output
from graphd.core.settle import achieve, report
from graphd_protocol.ids import node_id
from graphd_protocol.states import FailureClass

INLINE_LIMIT_BYTES: Final = 65_536
SLUG_LIMIT: Final = 64
HARD_CAP: Final = 10_000


class ListMissing(Exception):
    """There is no list to make items of: the class of the failure, and a reason for people."""

    def __init__(self, failure_class: FailureClass, reason: Text) -> None:
        super().__init__(reason)
        self.failure_class = failure_class
        self.reason = reason


def read_list(graph: Graph, each: ForEach) -> list[Any]:
    """The items, from the need's output. Raises ListMissing: `verdict_fail` for no list, `limit` for a long one."""
    slug, _, rest = each.source.partition(".")
    output = graph.nodes[node_id(slug)].output
    if output is None:
        raise ListMissing("verdict_fail", t("{source}: {node} has no output", source=each.source, node=slug))
    if output.is_cut:
        reason = t("{source}: the output of {node} is longer than 64 KiB", source=each.source, node=slug)
        raise ListMissing("verdict_fail", reason)
    try:
        value: Any = json.loads(output.text)
    except (ValueError, RecursionError):
        reason = t("{source}: the output of {node} is not JSON", source=each.source, node=slug)
        raise ListMissing("verdict_fail", reason) from None
    for name in rest.split(".")[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise ListMissing("verdict_fail", t("{source} is no list", source=each.source))
    if len(value) > each.max:
        reason = t("{source} has {count} items; at most {limit}", source=each.source, count=len(value), limit=each.max)
        raise ListMissing("limit", reason)
    return value


def expand(draft: Draft, maker: Node, each: ForEach) -> list[Node]:
    """Fix the list and make its items, all in this change. The nodes to look at next."""
    graph = draft.graph
    try:
        values = [json.dumps(value, ensure_ascii=False) for value in read_list(graph, each)]
        rows = _rows(graph, maker, values)
    except ListMissing as trouble:
        draft.emit("node_failed", maker, **{"class": trouble.failure_class}, reason=trouble.reason)
        report(draft, maker)
        return [maker]
    draft.emit("items_made", maker, items=rows, width=len(values))
    for node in _left_over(graph, maker):
        draft.emit("node_cancelled", node, reason=t("removed: its list has only {count} items", count=len(values)))
    changed = {node_id(slug) for slug, *_ in rows}
    items = items_of(graph, maker)
    for item in items:
        if item.id in changed and item.state != "waiting":
            draft.emit("node_retried", item)
    return [*items, *join(draft, maker)]


def _rows(graph: Graph, maker: Node, values: list[str]) -> list[list[Any]]:
    """(slug, place, JSON) of each item that is new, or is another one than before."""
    known = {_index(item): item for item in map(graph.nodes.__getitem__, maker.items) if not _is_removed(item)}
    rows: list[list[Any]] = []
    taken: set[str] = set()
    for place, value in enumerate(values, 1):
        item = known.get(place)
        if item is None:
            slug = _fresh_slug(graph, f"{maker.slug}-{place}", taken)
            taken.add(node_id(slug))
            rows.append([slug, place, value])
        elif item.definition.item is not None and item.definition.item.value != value:
            rows.append([item.slug, place, value])
    limit = min(graph.limits.max_nodes, HARD_CAP)
    if taken and len(graph.nodes) + len(taken) > limit:
        reason = t("{count} more nodes than the {limit} that the graph may have",
                   count=len(graph.nodes) + len(taken) - limit, limit=limit)  # fmt: skip
        raise ListMissing("limit", reason)
    return rows


def _fresh_slug(graph: Graph, wanted: str, taken: set[str]) -> str:
    """`wanted`, or with `-2`, `-3` … behind it where that is taken: the daemon made this name (model.md, Ids)."""
    base, number, slug = wanted, 1, wanted
    while len(slug) > SLUG_LIMIT or node_id(slug) in graph.nodes or node_id(slug) in taken:
        number += 1
        end = f"-{number}"
        slug = re.sub(r"[-_]*\Z", "", base[: SLUG_LIMIT - len(end)]) + end
    return slug


def _index(item: Node) -> int:
    return item.definition.item.index if item.definition.item is not None else 0


def _is_removed(item: Node) -> bool:
    return item.state == "cancelled" and (item.cancel_reason or "").startswith("removed: ")


def items_of(graph: Graph, maker: Node) -> list[Node]:
    """The items of its list as it is now, in item order."""
    found = {_index(graph.nodes[i]): graph.nodes[i] for i in maker.items}  # of two at one place, the later made
    return [item for place, item in sorted(found.items()) if place <= (maker.width or 0)]


def _left_over(graph: Graph, maker: Node) -> list[Node]:
    """Items behind the end of the list, which was longer before."""
    nodes = [graph.nodes[i] for i in maker.items]
    return [node for node in nodes if _index(node) > (maker.width or 0) and node.state in ("waiting", "blocked")]


def join(draft: Draft, maker: Node) -> list[Node]:
    """Settle the node whose items are all settled; the nodes to look at next."""
    items = items_of(draft.graph, maker)
    if maker.state != "running" or not all(item.is_settled for item in items):
        return []
    failed = [item for item in items if item.state != "achieved"]
    if not items or (len(failed) < len(items) and not (maker.required and failed)):
        return achieve(draft, maker, joined_output(items))
    first = next((item for item in failed if item.failure is not None), failed[0])
    why = first.failure.reason if first.failure is not None else first.state
    draft.emit(
        "node_failed", maker, **{"class": first.failure.failure_class if first.failure is not None else "exec_failed"},
        reason=t("{count} of {all} items were not achieved; {node}: {reason}", count=len(failed), all=len(items),
                 node=first.slug, reason=why),
        output=None,
    )  # fmt: skip
    report(draft, maker)
    return [maker]


def joined_output(items: list[Node]) -> Output:
    """The list of what the items came to, in item order, null for those without; inline up to 64 KiB."""
    text = json.dumps([_value(item) for item in items], ensure_ascii=False)
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= INLINE_LIMIT_BYTES:
        return Output(text, len(raw), "application/json")
    return Output(raw[:INLINE_LIMIT_BYTES].decode(errors="ignore"), len(raw), "application/json", is_cut=True)


def _value(item: Node) -> Any:
    if item.state != "achieved" or item.output is None:
        return None
    return value_of(item.output.text, item.output.media_type)


def value_of(text: str, media_type: str) -> Any:
    """What a result is as a JSON value: itself where it is JSON, else its text."""
    if media_type.partition(";")[0].strip() == "application/json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # cut at the inline limit
    return text.rstrip("\r\n")
