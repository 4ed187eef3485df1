"""Gates: what their output decides, and the bounded way back (model.md, Gates).

Any verdict is a success of the gate. What needs a gate and has no condition runs on ACCEPT alone. REVISE sends the path
from the gate's target back with its findings, at most `max_revisions` times. REPLAN holds what needs the gate until a
person, or a replan, has answered.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, get_args

from graphd.base.text import Text, t
from graphd.core.definition import Gate
from graphd.core.draft import Draft
from graphd.core.model import Graph, Node, Output
from graphd_protocol.ids import node_id
from graphd_protocol.states import Verdict

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
FINDINGS_LIMIT_BYTES: Final = 16_384
_SAID: Final = ("findings", "gaps", "reason")


class VerdictMissing(Exception):
    """The output of a gate has no verdict; the reason is for people."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


def verdict_of(output: Output | None) -> Verdict:
    """`output.verdict`, where a text that is one JSON object counts. Raises VerdictMissing."""
    found = _object(output).get("verdict")
    for verdict in VERDICTS:
        if found == verdict:
            return verdict
    known = ", ".join(VERDICTS)
    if found is None:
        raise VerdictMissing(t("a gate's output has a verdict, one of {known}; there is none", known=known))
    shown = json.dumps(found, ensure_ascii=False)[:80]
    raise VerdictMissing(t("a gate's verdict is one of {known}, not {found}", known=known, found=shown))


def _object(output: Output | None) -> dict[str, Any]:
    if output is None or not output.text.strip():
        raise VerdictMissing(t("a gate's output is a JSON object with a verdict; there is no output"))
    if output.is_cut:
        raise VerdictMissing(t("a gate's output is a JSON object of at most 64 KiB; it is longer"))
    try:
        value = json.loads(output.text)
    except (ValueError, RecursionError):
        raise VerdictMissing(t("a gate's output is a JSON object with a verdict; it is not JSON")) from None
    if not isinstance(value, dict):
        raise VerdictMissing(t("a gate's output is a JSON object with a verdict; it is another JSON value"))
    return value


def findings_of(output: Output | None) -> str:
    """What a gate has to say to the work that it sends back: its findings, gaps or reason, else its whole output."""
    said = next((value for value in map(_object(output).get, _SAID) if value), None)
    if said is None and output is not None:
        said = output.text
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, indent=1)
    return text.encode()[:FINDINGS_LIMIT_BYTES].decode(errors="ignore")


def decide_gate(draft: Draft, gate: Node) -> list[Node]:
    """Log the verdict of a node that was just achieved, if it is a gate, and act on it; the nodes to look at next."""
    clause = gate.definition.gate
    if clause is None:
        return [gate]
    verdict = verdict_of(gate.output)
    way_back = way_to(draft.graph, gate) if verdict == "REVISE" else ()
    hindrance = _hindrance(draft.graph, gate, clause, way_back) if verdict == "REVISE" else None
    acts_as = "REJECT" if hindrance is not None else verdict
    draft.emit("gate_decided", gate, verdict=verdict, acts_as=acts_as, reason=hindrance)
    if verdict == "REPLAN":
        _hold(draft, gate)
    if acts_as != "REVISE":
        return [gate]
    findings, number = findings_of(gate.output), gate.revisions + 1
    for node in way_back:
        told = node.findings if node is gate else findings
        draft.emit("revision_started", node, gate=gate.slug, number=number, findings=told)
    return list(way_back)


def _hindrance(graph: Graph, gate: Node, clause: Gate, way_back: Iterable[Node]) -> Text | None:
    """Why work is not sent back, so that REVISE acts as REJECT; None where it is."""
    if clause.revise is None:
        return t("it names nothing to revise")
    if gate.revisions >= clause.max_revisions:
        return t("the work was sent back {count} times", count=gate.revisions)
    if graph.is_finishing:
        return t("the graph is being finished")
    limit = graph.limits.attempts_per_node
    for node in way_back:
        if node.attempts >= limit:
            return t("{node} had {count} of {limit} attempts", node=node.slug, count=node.attempts, limit=limit)
    return None


def way_to(graph: Graph, gate: Node) -> tuple[Node, ...]:
    """The nodes from the gate's target to the gate, both too, in plan order; empty where it names none.

    With a `for_each` node go its items. What a person or a replan took away stays away.
    """
    clause = gate.definition.gate
    target = graph.nodes.get(node_id(clause.revise)) if clause is not None and clause.revise is not None else None
    if target is None:
        return ()
    after = _reached(graph, target.id, "dependants")
    before = _reached(graph, gate.id, "needs")
    found = set(after & before)
    for node_id_ in after & before:
        found.update(graph.nodes[node_id_].items)
    nodes = [graph.nodes[i] for i in found if graph.nodes[i].state != "cancelled"]
    return tuple(sorted(nodes, key=lambda node: node.index))


def _reached(graph: Graph, start: str, along: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for other in getattr(graph.nodes[todo.pop()], along):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def _hold(draft: Draft, gate: Node) -> None:
    """REPLAN: no start and no skip of what needs it, from this change on, over a crash too."""
    graph = draft.graph
    if graph.stopping is None and graph.status in ("active", "user_paused", "infra_paused"):
        reason = t("gate {gate} asks for a new plan", gate=gate.slug)
        draft.emit("paused", status="user_paused", reason=reason, cause="replan")


def release_holds(draft: Draft) -> list[Node]:
    """A replan, step, resume or finish answers every gate that asked for a new plan; the gates, to be looked at."""
    graph = draft.graph
    gates = [graph.nodes[held] for held in graph.holding]
    if gates:
        draft.emit("hold_released")
    return gates


def refuses(graph: Graph, node: Node) -> bool:
    """A gate that this node needs did not say ACCEPT; asked when every need is settled."""
    needs = (graph.nodes[need] for need in node.needs)
    return any(need.definition.gate is not None and need.verdict != "ACCEPT" for need in needs)


def is_held(graph: Graph, node: Node) -> bool:
    """It needs a gate that asked for a new plan and was not answered."""
    return bool(graph.holding) and not set(graph.holding).isdisjoint(node.needs)


def rejecting(graph: Graph) -> list[Node]:
    """Gates that make the end a rejection: the last verdict is not ACCEPT, and it is a sink or kept a node back."""
    found = []
    for gate in graph.nodes.values():
        if gate.definition.gate is None or gate.verdict in (None, "ACCEPT"):
            continue
        after = [graph.nodes[other] for other in gate.dependants]
        if not after or any(node.skip == "gate_not_accepted" for node in after):
            found.append(gate)
    return found
