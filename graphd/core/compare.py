"""An edited plan against the one that runs: the edits that make the one of the other (workflow.md, `graphd apply`).

Nodes are told by their slugs. What is at rest and no longer in the file stays: it is done. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from graphd.base.text import t
from graphd.core.definition import Definition
from graphd.core.edits import Edits, is_timeout_alone, patch_to
from graphd.core.model import Graph, Node
from graphd.core.plan import collapse
from graphd.core.verbs import find_node
from graphd_protocol.ids import FINAL_ID

_UNTOUCHED: Final = ("waiting", "ready", "blocked")


@dataclass(slots=True, frozen=True)
class Comparison:
    """`kept` are slugs of nodes at rest that the new plan no longer names."""

    edits: Edits
    kept: tuple[str, ...] = ()


def compare(graph: Graph, definitions: Iterable[Definition]) -> Comparison:
    """The edits that lead from the graph's plan to these definitions; only what differs is touched.

    A node that was changed and is at work or at rest restarts, with what read its output.
    """
    wanted = {definition.slug: definition for definition in collapse(definitions)}
    known = {node.slug: node for node in graph.nodes.values() if _is_of_file(node)}
    change, restart = [], []
    for slug, definition in wanted.items():
        node = known.get(slug)
        if node is None or node.definition == definition:
            continue
        change.append(patch_to(node.definition, definition))
        if _has_to_restart(node, definition):
            restart.append(slug)
    gone = [node for slug, node in known.items() if slug not in wanted and node.state != "cancelled"]
    return Comparison(
        Edits(
            add=tuple(definition for slug, definition in wanted.items() if slug not in known),
            change=tuple(change),
            remove=tuple((node.slug, str(t("no longer in the file"))) for node in gone if not node.is_settled),
            restart=tuple(restart),
        ),
        kept=tuple(node.slug for node in gone if node.is_settled),
    )


def caught_up(graph: Graph, edits: Edits) -> Edits:
    """The edits of a file as the graph stands now: what began since restarts too, what came to rest since stays."""
    restart = dict.fromkeys(edits.restart)
    for patch in edits.change:
        node = find_node(graph, patch.slug)
        definition = patch.applied(node.definition)
        if node.definition != definition and _has_to_restart(node, definition):
            restart[patch.slug] = None
    remove = tuple((name, reason) for name, reason in edits.remove if not find_node(graph, name).is_settled)
    return edits._replace(restart=tuple(restart), remove=remove)


def _has_to_restart(node: Node, definition: Definition) -> bool:
    is_free = node.state == "running" and is_timeout_alone(node.definition, definition)
    return node.state not in _UNTOUCHED and not is_free


def _is_of_file(node: Node) -> bool:
    """Neither removed, nor made by the daemon: the final check, the items of a `for_each`."""
    return node.removed_in is None and node.id != FINAL_ID and node.definition.item is None


def plan_of(graph: Graph) -> tuple[Definition, ...]:
    """The graph's plan as it could be set again: without what was removed, and what the daemon made."""
    return tuple(node.definition for node in graph.nodes.values() if _is_of_file(node))


# ---- what a change did --------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Stand:
    """How a graph stood before a change; definitions are immutable, so this costs one entry a node."""

    nodes: Mapping[str, tuple[str, Definition, str | None]]

    @classmethod
    def of(cls, graph: Graph) -> "Stand":
        """As it stands now."""
        found = {n.slug: (n.state, n.definition, n.after_stop) for n in graph.nodes.values() if n.removed_in is None}
        return cls(found)


@dataclass(slots=True, frozen=True)
class PlanDiff:
    """What became of a plan between two moments, by slug."""

    added: tuple[str, ...]
    changed: tuple[tuple[str, tuple[str, ...]], ...]  # node, fields
    removed: tuple[tuple[str, str], ...]  # node, reason
    stopped: tuple[tuple[str, str], ...]  # running node, what it becomes once its tree is empty
    moved: tuple[tuple[str, str, str], ...]  # node, from, to

    @property
    def is_empty(self) -> bool:
        """Nothing came of it."""
        return self == PlanDiff((), (), (), (), ())


def diff_since(stand: Stand, graph: Graph) -> PlanDiff:
    """What changed from `stand` to now."""
    added, changed, removed, stopped, moved = [], [], [], [], []
    for node in graph.nodes.values():
        was = stand.nodes.get(node.slug)
        if was is None:
            if node.removed_in is None:
                added.append(node.slug)
            continue
        state, definition, after_stop = was
        if node.removed_in is not None:
            removed.append((node.slug, (node.cancel_reason or "").removeprefix("removed: ")))
        elif node.definition != definition:
            changed.append((node.slug, tuple(sorted(patch_to(definition, node.definition).row))))
        if node.after_stop is not None and node.after_stop != after_stop:
            stopped.append((node.slug, node.after_stop))
        if node.state != state:
            moved.append((node.slug, state, node.state))
    return PlanDiff(tuple(added), tuple(changed), tuple(removed), tuple(stopped), tuple(moved))
