"""A workflow adapted at its start: nodes taken out, each with a reason, and nodes added. Source: workflow.md (`set`).

What a pruned node needed passes to what needed it. A gate stays: it is there to be passed. What still reads a pruned
node by name (a condition, a mapping, a prompt) is told, here or by the plan's checks, never silently left empty.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from graphd.base.text import t
from graphd.core.definition import Definition, Pruned
from graphd.core.plan import PLACEHOLDER
from graphd.core.trouble import PlanTrouble, suggestion

_INPUT_FILE = re.compile(r"GRAPHD_INPUT_DIR\}?[\"']?/([A-Za-z0-9_][A-Za-z0-9_-]*)")


def adapt(
    definitions: Sequence[Definition],
    *,
    prune: Sequence[Pruned],
    extend: Sequence[Definition],
    delivery_node: str | None = None,
) -> tuple[tuple[Definition, ...], list[PlanTrouble]]:
    """The plan without the pruned nodes and with the added ones last, and why it can't be had so, if it can't."""
    troubles = _prune_troubles(definitions, prune, delivery_node)
    gone = {entry.node for entry in prune}
    passed: dict[str, tuple[str, ...]] = {d.slug: d.needs for d in definitions if d.slug in gone}
    kept = [replace(d, needs=_needs(d.needs, passed)) for d in definitions if d.slug not in gone]
    troubles += [trouble for d in kept for trouble in _readers(d, gone)]
    return (*kept, *extend), troubles


def _needs(needs: tuple[str, ...], passed: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Needs with what stands behind pruned ones, in place and once. A plan that was checked has no cycles."""
    found: dict[str, None] = {}
    todo = list(reversed(needs))
    while todo:
        need = todo.pop()
        if need in passed:
            todo += reversed(passed[need])
        else:
            found[need] = None
    return tuple(found)


def _prune_troubles(
    definitions: Sequence[Definition], prune: Sequence[Pruned], delivery_node: str | None
) -> list[PlanTrouble]:
    known = {d.slug: d for d in definitions}
    troubles = []
    for entry in prune:
        slug = entry.node
        if slug not in known:
            message = t("{node} can't be pruned: it is no node of the workflow", node=slug)
            hint = suggestion(slug, known) or t("graphd explain shows its nodes")
            troubles.append(PlanTrouble("prune.unknown", slug, message, hint))
        elif known[slug].gate is not None:
            message = t("{node} is a gate, which can't be pruned", node=slug)
            troubles.append(PlanTrouble("prune.gate", slug, message, t("leave it: its verdict decides")))
        elif slug == delivery_node:
            message = t("{node} is the delivery node, so it can't be pruned", node=slug)
            troubles.append(PlanTrouble("prune.delivery", slug, message, t("name another delivery node")))
        if not entry.reason.strip():
            message = t("{node} is pruned without a reason", node=slug)
            troubles.append(PlanTrouble("prune.reason", slug, message, t("say why it is not needed")))
    return troubles


def _readers(definition: Definition, gone: set[str]) -> list[PlanTrouble]:
    """A text that names a pruned node as its input."""
    if definition.input_mapping:
        return []  # a mapping of a pruned node is told by the plan's checks
    pattern = _INPUT_FILE if definition.worker == "shell" else PLACEHOLDER
    read = {match.group(1) for match in pattern.finditer(definition.spec)} & gone
    message = t(
        "{node} reads the output of what is pruned: {nodes}", node=definition.slug, nodes=", ".join(sorted(read))
    )
    hint = t("prune {node} too, or leave it", node=definition.slug)
    return [PlanTrouble("prune.read", definition.slug, message, hint)] if read else []
