"""Warnings: files that run, but may not mean what they say. Source: spec workflow.md, Warnings beyond errors."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from graphd.base.text import t
from graphd.core.conditions import parse, references
from graphd.core.definition import Definition, Terms
from graphd.core.overlap import overlaps
from graphd.core.plan import SOURCE, effective_required, sinks
from graphd.core.reach import Reach
from graphd.workflows.diagnostics import Findings
from graphd.workflows.read import Field, Fields

_OVERLAPS_TOLD: Final = 20


@dataclass(slots=True, frozen=True)
class Subject:
    """A compiled file without errors. `nodes[i]` is where `definitions[i]` stands."""

    config: Fields
    nodes: tuple[Field, ...]
    definitions: tuple[Definition, ...]
    delivery_node: str | None
    terms: Terms


def warn(subject: Subject, file_name: str | None, findings: Findings) -> None:
    """Tell all warnings of a plan without errors."""
    _name(subject.config, file_name, findings)
    _required(subject, findings)
    reach = Reach(subject.definitions)
    for node, definition in zip(subject.nodes, subject.definitions, strict=True):
        if "depends_on" in node.value and "kind" not in node.value:  # a block's nodes read what it needs, all of it
            _edges(node.value["depends_on"].value, definition, reach, findings)
    gates = {d.slug for d in subject.definitions if d.gate is not None}
    for node, definition in zip(subject.nodes, subject.definitions, strict=True):
        if definition.condition is not None and gates:
            _unguarded(node.value["condition"], definition, gates, findings)
    if sum(1 for d in subject.definitions if d.writes) > 1:
        _overlaps(subject, reach, findings)


def _name(config: Fields, file_name: str | None, findings: Findings) -> None:
    if "name" in config and file_name is not None and config["name"].value != file_name:
        field = config["name"]
        message = t("the file is {file}, its config.name {name}", file=file_name, name=field.value)
        findings.warning(
            "name.mismatch", field.span, field.path, message, t("run it as {file}; rename one of them", file=file_name)
        )


def _required(subject: Subject, findings: Findings) -> None:
    if subject.terms.final_check or effective_required(subject.definitions, subject.delivery_node):
        return
    ends = ", ".join(sinks(subject.definitions)[:5])
    at = subject.config.get("nodes")
    span = at.name if at is not None else subject.nodes[0].span
    message = t("no node is required: every failure ends as withFailures (the ends are {ends})", ends=ends)
    hint = t("mark what matters with required: true, or name a delivery_node")
    findings.warning("required.none", span, at.path if at is not None else "nodes", message, hint)


def _unguarded(condition: Field, definition: Definition, gates: Iterable[str], findings: Findings) -> None:
    """A condition decides alone, so one that does not look at a gate takes its guard away."""
    read = _used(definition)
    for gate in definition.needs:
        if gate in gates and gate not in read:
            message = t(
                "{node} runs whatever the gate {gate} says: its condition decides alone",
                node=definition.slug,
                gate=gate,
            )
            hint = t('add: and {gate}.verdict == "ACCEPT"', gate=gate)
            findings.warning("gate.unguarded", condition.span, condition.path, message, hint)


def _overlaps(subject: Subject, reach: Reach, findings: Findings) -> None:
    at = {d.slug: node for node, d in zip(subject.nodes, subject.definitions, strict=True)}
    pairs = overlaps(subject.definitions, reach, isolation=subject.terms.isolation)
    for first, second in islice(pairs, _OVERLAPS_TOLD):
        field = at[second].value["writes"]
        message = t(
            "{node} and {other} write the same files and may run together, so they take turns", node=second, other=first
        )
        hint = t("let one need the other, or give them other files")
        findings.warning("writes.overlap", field.name, field.path, message, hint)


def _edges(listed: list[Field], definition: Definition, reach: Reach, findings: Findings) -> None:
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
            over = next((n for n in definition.needs if n != need and reach.waits_for(n, need)), None)
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
    """Needs that mapping, items and condition name."""
    sources = [source for _, source in definition.input_mapping]
    sources += [definition.for_each.source] if definition.for_each is not None else []
    used = {match.group(1) for source in sources if (match := SOURCE.match(source))}
    if definition.condition is not None:
        used |= {slug for slug, _ in references(parse(definition.condition))}
    return used


def _reads_inputs(definition: Definition) -> bool:
    """Agents are told every input; a script reads them only through the folder (or a program that it calls does)."""
    return definition.worker != "shell" or "GRAPHD_INPUT_DIR" in definition.spec
