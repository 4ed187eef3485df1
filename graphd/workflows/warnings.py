"""Warnings: files that run, but may not mean what they say. Source: spec workflow.md, Warnings beyond errors."""

from typing import TypeAlias

from graphd.base.text import t
from graphd.core.conditions import parse, references
from graphd.core.model import Definition
from graphd.core.plan import SOURCE, effective_required, sinks
from graphd.workflows.diagnostics import Findings
from graphd.workflows.read import Field, Fields

Above: TypeAlias = tuple[dict[str, int], dict[str, int]]
"""What each slug waits for, as bits, and the place of each slug's bit."""


def warn(  # noqa: PLR0913  # what one pass over a compiled file needs
    config: Fields,
    nodes: list[Field],
    definitions: tuple[Definition, ...],
    delivery_node: str | None,
    file_name: str | None,
    findings: Findings,
) -> None:
    """Tell all warnings of a plan without errors. `nodes[i]` is where `definitions[i]` stands."""
    if "name" in config and file_name is not None and config["name"].value != file_name:
        field = config["name"]
        message = t("the file is {file}, its config.name {name}", file=file_name, name=field.value)
        findings.warning(
            "name.mismatch", field.span, field.path, message, t("run it as {file}; rename one of them", file=file_name)
        )
    if not effective_required(definitions, delivery_node):
        ends = ", ".join(sinks(definitions)[:5])
        at = config.get("nodes")
        span = at.name if at is not None else nodes[0].span
        message = t("no node is required: every failure ends as withFailures (the ends are {ends})", ends=ends)
        hint = t("mark what matters with required: true, or name a delivery_node")
        findings.warning("required.none", span, at.path if at is not None else "nodes", message, hint)
    ancestors = _ancestors(definitions)
    place = {d.slug: i for i, d in enumerate(definitions)}
    for node, definition in zip(nodes, definitions, strict=True):
        if "depends_on" in node.value:
            _edges(node.value["depends_on"].value, definition, (ancestors, place), findings)


def _edges(listed: list[Field], definition: Definition, above: Above, findings: Findings) -> None:
    ancestors, place = above
    used = _used(definition)
    seen: set[str] = set()
    for entry in listed:
        need: str = entry.value
        if need in seen:
            message = t("{node} needs {need} twice", node=definition.slug, need=need)
            findings.warning("edge.redundant", entry.span, entry.path, message, t("remove one of them"))
        elif definition.input_mapping and need not in used:
            message = t("input_mapping and condition of {node} use nothing of {need}", node=definition.slug, need=need)
            hint = t("remove it from needs, or map its output")
            findings.warning("edge.unused", entry.span, entry.path, message, hint)
        elif not _reads_inputs(definition) and need not in used:
            over = next((n for n in definition.needs if n != need and ancestors[n] >> place[need] & 1), None)
            if over is not None:
                message = t(
                    "{node} already waits for {need} through {over}, and does not read its output",
                    node=definition.slug,
                    need=need,
                    over=over,
                )
                findings.warning("edge.redundant", entry.span, entry.path, message, t("remove it from needs"))
        seen.add(need)


def _used(definition: Definition) -> set[str]:
    """Needs that mapping and condition name."""
    used = {match.group(1) for _, source in definition.input_mapping if (match := SOURCE.match(source))}
    if definition.condition is not None:
        used |= {slug for slug, _ in references(parse(definition.condition))}
    return used


def _reads_inputs(definition: Definition) -> bool:
    """Agents are told every input; a script reads them only through the folder (or a program that it calls does)."""
    return definition.worker != "shell" or "GRAPHD_INPUT_DIR" in definition.spec


def _ancestors(definitions: tuple[Definition, ...]) -> dict[str, int]:
    """For each slug the set of all that it waits for, as bits by plan order; one pass, needs first."""
    place = {d.slug: i for i, d in enumerate(definitions)}
    found: dict[str, int] = {}
    pending = {d.slug: len(d.needs) for d in definitions}
    dependants: dict[str, list[str]] = {slug: [] for slug in place}
    for definition in definitions:
        for need in definition.needs:
            dependants[need].append(definition.slug)
    order = [slug for slug, count in pending.items() if count == 0]
    for slug in order:
        bits = 0
        for need in definitions[place[slug]].needs:
            bits |= found[need] | 1 << place[need]
        found[slug] = bits
        for dependant in dependants[slug]:
            pending[dependant] -= 1
            if pending[dependant] == 0:
                order.append(dependant)
    return {slug: found[slug] for slug in place}
