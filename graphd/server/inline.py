"""Nodes that come with `set`: from the wire to definitions, held to what a workflow file is held to.

Source: spec protocol.md (`set`); workflow.md, Node.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.change.clauses import clauses_of
from graphd.core.codec import dump_definition
from graphd.core.definition import Approval, Definition, Retry
from graphd.core.edits import Patch
from graphd.core.plan import PLACEHOLDER, collapse
from graphd.core.trouble import PlanTrouble, suggestion

if TYPE_CHECKING:
    from graphd_protocol.model import NodeParams, NodePatch

_CLAUSES: Final = {
    "gate", "verify", "output_schema", "wait", "for_each", "review", "artifacts", "writes", "isolation", "permissions",
    "model", "thinking", "mode", "max_tool_calls", "unattended_extensions",
}  # fmt: skip


def definitions_of(nodes: "Sequence[NodeParams]") -> tuple[Definition, ...]:
    """Definitions of nodes given inline. Raises Refused for what no check of the whole plan sees."""
    troubles = [trouble for node in nodes for trouble in _contract_troubles(node)]
    made = [_definition(node) for node in nodes]
    troubles += [trouble for definition in made for trouble in unbound(definition)]
    if troubles:
        raise refused_plan(troubles)
    return collapse(made)


def patch_of(node: "NodePatch") -> Patch:
    """A change of one node: the keys that were sent. Raises Refused for an output schema that is none."""
    if troubles := list(_contract_troubles(node)):
        raise refused_plan(troubles)
    row = dump_definition(_definition(node))
    return Patch(node.slug, {name: row.get(name) for name in sorted(node.model_fields_set - {"slug"})})


def changed_part(node: "NodePatch") -> Definition:
    """What a change says by itself; without a worker where it names none."""
    return replace(_definition(node), worker=node.worker or "")


def refused_plan(troubles: Sequence[PlanTrouble]) -> Refused:
    """The refusal of a plan that came without a file: each finding with the node that it is about."""
    rows = [{"code": x.code, "slug": x.slug, "message": x.message, "hint": x.hint} for x in troubles]
    return Refused("invalidPlan", troubles[0].message, troubles[0].hint, diagnostics=rows)


def check_served(definitions: Sequence[Definition], *, isolation: str, on_shared_tree: str) -> None:
    """Refuse what the model knows and this version does not carry out, as a file that says it is refused."""
    asked = [
        ("isolation", next((d.slug for d in definitions if d.isolation in ("graph", "node")), None)),
        ("isolation", isolation if isolation != "none" else None),
        ("onSharedTree", on_shared_tree if on_shared_tree != "notice" else None),
    ]
    for key, where in asked:
        if where is not None:
            message = t("{key} is valid, but this version does not carry it out", key=key)
            raise Refused("notSupported", message, t("leave it out ({where})", where=where), field=key)


def _definition(node: "NodeParams") -> Definition:
    row: dict[str, Any] = node.model_dump(by_alias=True, include=_CLAUSES)
    made = Definition(
        slug=node.slug,
        spec=node.spec,
        worker=node.worker if node.worker is not None else "" if node.wait is not None else "shell",
        title=node.title or node.slug,
        needs=tuple(node.needs),
        condition=node.condition,
        required=node.required,
        timeout_ms=node.timeout_ms,
        hard_timeout_ms=node.hard_timeout_ms,
        retry=Retry(node.retry.max, node.retry.backoff_s, tuple(node.retry.on)),
        on_lost=node.on_lost,
        priority=node.priority,
        input_mapping=tuple(node.input_mapping.items()),
        report_to_parent=node.report_to_parent,
        **clauses_of(row),
    )
    if node.approval is None or node.approval is False:
        return made
    asked = Approval() if node.approval is True else Approval(node.approval.prompt, node.approval.default)
    return replace(made, approval=asked)


def _contract_troubles(node: "NodeParams") -> Iterator[PlanTrouble]:
    if node.output_schema is None:
        return
    from graphd.workflows.contracts import contract_troubles

    for trouble in contract_troubles(node.output_schema):
        place = "/".join(str(step) for step in trouble.path)
        message = t("{node}, outputSchema/{place}: {message}", node=node.slug, place=place, message=trouble.message)
        yield PlanTrouble("schema.malformed", node.slug, message, trouble.hint)


def unbound(definition: Definition) -> Iterator[PlanTrouble]:
    """Placeholders of a prompt that nothing fills in when the attempt starts."""
    if definition.worker == "shell":
        return
    bound = {name for name, _ in definition.input_mapping} or set(definition.needs)
    if definition.for_each is not None:
        bound |= {"index", definition.for_each.name}
    names = dict.fromkeys(match.group(1) for match in PLACEHOLDER.finditer(definition.spec))
    for name in names:
        if name not in bound:
            known = ", ".join(sorted(bound)) or t("nothing")
            hint = suggestion(name, bound) or t("known: {known}", known=known)
            message = t("{node}: nothing binds {{{{{name}}}}}", node=definition.slug, name=name)
            yield PlanTrouble("template.unbound", definition.slug, message, hint)
