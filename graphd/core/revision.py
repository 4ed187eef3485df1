"""Edits against a graph as it stands: what they come to, or all that is wrong with them. Changes nothing.

The cost is that of one plan check. Source: spec model.md, Verbs (replan) and Node (a replan's `restart`).
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.core.budget import check_reports
from graphd.core.definition import Definition
from graphd.core.edits import Edits, is_timeout_alone
from graphd.core.model import Graph, Node
from graphd.core.plan import HARD_CAP, PlanTrouble, check_plan, collapse, effective_required, sinks
from graphd.core.verbs import find_node
from graphd_protocol.ids import FINAL_ID, node_id
from graphd_protocol.states import Reports

_APART: Final = ("waiting", "cancelled")


@dataclass(slots=True)
class Revision:
    """What edits come to. `plan`: every node of it afterwards, by slug, the added apart; `restarted`: readers too."""

    added: list[Definition] = field(default_factory=list)
    changed: list[tuple[Node, Definition]] = field(default_factory=list)
    removed: list[tuple[Node, str]] = field(default_factory=list)
    cancelled: list[Node] = field(default_factory=list)
    restarted: list[Node] = field(default_factory=list)
    plan: dict[str, Definition] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)

    @property
    def defined(self) -> list[Definition]:
        """What nodes are from now on, added and changed ones."""
        return [*self.added, *(definition for _, definition in self.changed)]

    @property
    def is_change(self) -> bool:
        """It comes to something: a node redefined as it was is nothing."""
        return bool(self.added or self.changed or self.removed or self.cancelled or self.restarted)


Missing = tuple[tuple[str, str], ...]
"""Workers that no installed agent serves, each with the reason."""
Reporting = tuple[tuple[str, Reports], ...]
"""Workers with what the agent that serves them says of its usage."""


def revise(graph: Graph, edits: Edits, *, missing: Missing = (), reports: Reporting = ()) -> Revision:
    """Check edits as a whole. Raises Refused (notFound, invalidTransition, capacity, invalidPlan, agentMissing,
    invalidBudget).
    """
    if edits.is_empty:
        raise _invalid([_trouble("edits.empty", "", t("nothing to change"), t("name nodes to add, change or remove"))])
    revision = _Resolved(graph, edits).revision()
    _check_plan(graph, revision, dict(missing))
    check_reports(graph.budget, revision.defined, dict(reports))
    return revision


def still_in_plan(graph: Graph, name: str) -> Node:
    """The node of this slug or id; refuses an unknown one, and one that was removed."""
    node = find_node(graph, name)
    if node.removed_in is not None:
        message = t("{node} was removed in plan version {version}", node=node.slug, version=node.removed_in)
        raise Refused(
            "invalidTransition", message, t("a removed node stays removed; add one under another id"),
            graph=graph.id, node=node.slug, **{"from": node.state, "to": "changed"}, rev=graph.rev,
        )  # fmt: skip
    return node


def _trouble(code: str, slug: str, message: Text, hint: Text) -> PlanTrouble:
    return PlanTrouble(code, slug, message, hint)


def _invalid(troubles: list[PlanTrouble]) -> Refused:
    rows = [{"code": x.code, "slug": x.slug, "message": x.message, "hint": x.hint} for x in troubles]
    return Refused("invalidPlan", troubles[0].message, troubles[0].hint, diagnostics=rows)


class _Resolved:
    """Names resolved to nodes, each held to what its state allows."""

    def __init__(self, graph: Graph, edits: Edits) -> None:
        self._graph = graph
        self._patches = [(still_in_plan(graph, patch.slug), patch) for patch in edits.change]
        self._removed = [(still_in_plan(graph, name), reason) for name, reason in edits.remove]
        self._cancelled = [still_in_plan(graph, name) for name in edits.cancel]
        restarts = [still_in_plan(graph, name) for name in edits.restart]
        ended = [*(node for node, _ in self._removed), *self._cancelled]
        _check_contradictions([*ended, *restarts], [*ended, *(node for node, _ in self._patches)])
        self._ended = {node.id for node in ended}
        self._check_lists([*ended, *restarts, *(node for node, _ in self._patches)])
        self._restarted = {node.id: node for node in _readers(graph, restarts, self._ended)}
        self._added = [_by_slugs(graph, definition) for definition in collapse(edits.add)]

    def revision(self) -> Revision:
        """What it comes to."""
        for node in (*(node for node, _ in self._removed), *self._cancelled):
            self._check_end(node)
        revision = Revision(self._added, self._changes(), self._removed, self._cancelled)
        gone = {node.id for node, _ in revision.removed}
        redefined = {node.id: definition for node, definition in revision.changed}
        in_force: list[Definition] = []
        for node in self._graph.nodes.values():
            if node.removed_in is None and node.id not in gone and node.definition.item is None:
                definition = revision.plan[node.slug] = redefined.get(node.id, node.definition)
                if not self._is_out(node) and node.id != FINAL_ID:
                    in_force.append(definition)
        in_force += self._added
        self._rewire_final(revision, in_force)
        revision.restarted = sorted(self._restarted.values(), key=lambda node: node.index)
        for node in revision.restarted:
            self._check_attempts(node)
        self._check_needs(revision)
        delivery = self._graph.nodes[self._graph.delivery_node].slug if self._graph.delivery_node else None
        revision.required = effective_required(in_force, delivery)
        revision.required |= {d.slug for d in revision.plan.values() if d.required or d.slug == FINAL_ID}
        return revision

    def _is_out(self, node: Node) -> bool:
        """It does nothing any more: removed or cancelled, before or by these edits."""
        is_cancelled = node.state == "cancelled" and node.id not in self._restarted
        return is_cancelled or node.removed_in is not None or node.id in self._ended

    def _check_lists(self, named: list[Node]) -> None:
        """A list that was made, and its items, stay as they are: what they stand for was handed out already."""
        for node in [*named, *_readers(self._graph, named, set())]:
            if node.items or node.definition.item is not None:
                raise _refuse_move(
                    self._graph, node, "restarted", t("its list was made already; graphd rerun starts all of it anew")
                )

    def _changes(self) -> list[tuple[Node, Definition]]:
        """Nodes whose definition really becomes another one."""
        found = []
        for node, patch in self._patches:
            try:
                definition = _by_slugs(self._graph, collapse([patch.applied(node.definition)])[0])
            except (TypeError, KeyError, ValueError) as trouble:
                message = t("{node} can't be changed like this: {trouble}", node=node.slug, trouble=repr(trouble))
                raise _invalid([_trouble("edits.malformed", node.slug, message, t("use the keys of a node"))]) from None
            if definition != node.definition:
                self._check_change(node, definition)
                found.append((node, definition))
        return found

    def _check_change(self, node: Node, definition: Definition) -> None:
        if node.state == "running" and definition.takes_no_slot != node.definition.takes_no_slot:
            raise _refuse_move(
                self._graph, node, "another kind", t("add a node under the new name, and remove this one")
            )
        if definition.slug != node.slug or node.id == FINAL_ID:
            raise _refuse_move(self._graph, node, "renamed", t("add a node under the new name, and remove this one"))
        was = node.definition
        if was.gate is not None and (definition.gate is None or (was.required and not definition.required)):
            raise _refuse_move(self._graph, node, "no gate", t("a gate stays a gate, and required"))
        if node.id in self._restarted or node.state in ("waiting", "ready", "blocked"):
            return
        if node.state == "running" and is_timeout_alone(node.definition, definition):
            return
        hint = t("restart it in the same replan: graphd replan --restart {node}", node=node.slug)
        raise _refuse_move(self._graph, node, "changed", hint)

    def _check_end(self, node: Node) -> None:
        if node.definition.gate is not None or node.id == FINAL_ID:
            raise _refuse_move(self._graph, node, "cancelled", t("a gate stays: change what it asks for"))
        if node.is_settled:
            raise _refuse_move(self._graph, node, "cancelled", t("it is at rest already, and costs nothing"))

    def _check_attempts(self, node: Node) -> None:
        limit = self._graph.limits.attempts_per_node
        if node.attempts >= limit:
            raise Refused(
                "capacity",
                t("can't restart {node}: it had {count} of {limit} attempts", node=node.slug, count=node.attempts,
                  limit=limit),
                t("run the workflow again as a new graph"), graph=self._graph.id, node=node.slug,
            )  # fmt: skip

    def _rewire_final(self, revision: Revision, in_force: list[Definition]) -> None:
        """The final check reads every end of the plan, and checks again what changed."""
        final = self._graph.nodes.get(FINAL_ID)
        touched = self._added or revision.changed or self._ended or self._restarted
        if final is None or not touched:
            return
        needs = tuple(sinks(in_force))
        if needs != final.definition.needs:
            definition = replace(final.definition, needs=needs)
            revision.changed.append((final, definition))
            revision.plan[FINAL_ID] = definition
        if final.state != "waiting":
            self._restarted[FINAL_ID] = final

    def _check_needs(self, revision: Revision) -> None:
        """No node that is yet to run is left needing one that these edits end, or that is out already."""
        nodes = self._graph.nodes
        redefined = {node.id: definition for node, definition in revision.changed}
        touched = [*self._added, *redefined.values()]
        touched += [node.definition for node in self._restarted.values() if node.id not in redefined]
        dead = []
        for definition in touched:
            needs = [(need, nodes.get(node_id(need))) for need in definition.needs]
            dead += [(definition.slug, need) for need, node in needs if node is not None and self._is_out(node)]
        for identity in self._ended:
            for dependant in (nodes[reader] for reader in nodes[identity].dependants):
                is_touched = dependant.id in redefined or dependant.id in self._restarted
                if not (is_touched or dependant.is_settled or dependant.id in self._ended):
                    dead.append((dependant.slug, nodes[identity].slug))
        if dead:
            raise _invalid([_need_gone(slug, need) for slug, need in dead])


def _need_gone(slug: str, need: str) -> PlanTrouble:
    message = t("{node} needs {need}, which is removed or cancelled", node=slug, need=need)
    return _trouble("need.gone", slug, message, t("change the needs of {node}, or remove it too", node=slug))


def _by_slugs(graph: Graph, definition: Definition) -> Definition:
    """Its needs by slug: whoever was shown ids may name them so."""
    needs = tuple(graph.nodes[need].slug if need in graph.nodes else need for need in definition.needs)
    return definition if needs == definition.needs else replace(definition, needs=needs)


def _check_contradictions(moved: list[Node], changed: list[Node]) -> None:
    """Each node is named once: removed, cancelled or restarted; changed or ended."""
    twice = {node.slug for nodes in (moved, changed) for node, count in _counted(nodes) if count > 1}
    if twice:
        raise _invalid(
            [
                _trouble(
                    "edits.contradiction", slug, t("{node} is edited in two ways that exclude each other", node=slug),
                    t("keep one of the two"),
                )
                for slug in sorted(twice)
            ]
        )  # fmt: skip


def _counted(nodes: list[Node]) -> list[tuple[Node, int]]:
    counts = Counter(node.id for node in nodes)
    return [(node, counts[node.id]) for node in nodes]


def _readers(graph: Graph, restarts: list[Node], ended: set[str]) -> list[Node]:
    """These nodes and, to any depth, all that read their output or were about to; what waits anyway is left out."""
    found = {node.id: node for node in restarts if node.state != "waiting"}
    todo = list(found.values())
    while todo:
        for dependant_id in todo.pop().dependants:
            dependant = graph.nodes[dependant_id]
            if dependant_id not in found and dependant_id not in ended and dependant.state not in _APART:
                found[dependant_id] = dependant
                todo.append(dependant)
    return list(found.values())


def _refuse_move(graph: Graph, node: Node, to: str, hint: Text) -> Refused:
    return Refused(
        "invalidTransition", t("can't edit {node}: it is {state}", node=node.slug, state=node.state), hint,
        graph=graph.id, node=node.slug, **{"from": node.state, "to": to}, rev=graph.rev,
    )  # fmt: skip


# ---- the plan that comes out --------------------------------------------------------------------------------------


def _check_plan(graph: Graph, revision: Revision, missing: dict[str, str]) -> None:
    taken = [d for d in revision.added if node_id(d.slug) in graph.nodes]
    troubles = [
        _trouble(
            "slug.taken", d.slug, t("{node} names a node that this graph has or had", node=d.slug),
            t("ids are never used again; choose another one"),
        )
        for d in taken
    ]  # fmt: skip
    count, limit = len(graph.nodes) + len(revision.added), min(graph.limits.max_nodes, HARD_CAP)
    if count > limit:
        message = t("{count} nodes over its life; this graph may have {limit}", count=count, limit=limit)
        troubles.append(_trouble("plan.tooLarge", "", message, t("run the rest as another graph")))
    if not troubles:
        # A need on the final check itself, or on nothing, is found here as any other unknown one.
        plan = [d for d in (*revision.plan.values(), *revision.added) if d.slug != FINAL_ID]
        delivery = graph.nodes[graph.delivery_node].slug if graph.delivery_node else None
        troubles = check_plan(plan, limits=replace(graph.limits, max_nodes=HARD_CAP), delivery_node=delivery)
    if troubles:
        raise _invalid(troubles)
    for definition in revision.defined:
        why = next((missing[worker] for worker in definition.workers if worker in missing), None)
        if definition.slug in revision.required and why is not None:
            message = t("node {node}: {why}", node=definition.slug, why=why)
            raise Refused("agentMissing", message, t("graphd agents shows what is installed"), node=definition.slug)
