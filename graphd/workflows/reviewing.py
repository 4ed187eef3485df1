"""The life of a review: what it is of, what it has seen, and who waits for its verdict. Source: spec workflow.md, Node.

In a standard run these are warnings, in a deep one errors: there the review is what a result may be trusted for.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from graphd.base.text import Text, t
from graphd.core.conditions import parse, references
from graphd.core.definition import Definition
from graphd.core.reach import Reach
from graphd.workflows.diagnostics import Findings
from graphd.workflows.read import Field

_WRITERS: Final = ("build", "debug", "prototype")


@dataclass(slots=True, frozen=True)
class _Remark:
    code: str
    message: Text
    hint: Text


def review_lifecycle(
    nodes: Sequence[Field], definitions: Sequence[Definition], findings: Findings, *, is_deep: bool
) -> None:
    """Tell what is missing around the reviews of a sound plan. `nodes[i]` is where `definitions[i]` stands."""
    tell: Callable[..., None] = findings.error if is_deep else findings.warning
    reviews = [(node, d) for node, d in zip(nodes, definitions, strict=True) if d.review is not None]
    if reviews:
        reach = Reach(definitions)
        by_slug = {d.slug: d for d in definitions}
        for node, definition in reviews:
            field = node.value.get("review") or node.value.get("id") or node
            for remark in _remarks(definition, by_slug, reach):
                tell(remark.code, field.span, field.path, remark.message, remark.hint)
    elif is_deep and any(d.worker in _WRITERS for d in definitions):
        at = next(node for node, d in zip(nodes, definitions, strict=True) if d.worker in _WRITERS)
        message = t("a deep run that changes something needs a review")
        findings.error("review.none", at.value["id"].span, at.path, message, t("add a node with review and gate"))


def _remarks(node: Definition, by_slug: dict[str, Definition], reach: Reach) -> Iterator[_Remark]:
    review = node.review
    assert review is not None  # noqa: S101  # asked by the caller
    slug = node.slug
    if not _is_guarded(node, by_slug):
        message = t("nothing waits for the verdict of the review {node}", node=slug)
        yield _Remark("review.ungated", message, t("make it a gate, or let a gate need it"))
    if review.implementation is None:
        message = t("{node} does not say whose work it reviews", node=slug)
        yield _Remark("review.incomplete", message, t("add implementation_node_id"))
    elif review.implementation not in node.needs:
        message = t("{node} reviews {other} without reading its output", node=slug, other=review.implementation)
        yield _Remark("review.evidence", message, t("add {node} to its needs", node=review.implementation))
    if review.phase == "diff":
        yield from _of_diff(node, by_slug, reach)


def _of_diff(node: Definition, by_slug: dict[str, Definition], reach: Reach) -> Iterator[_Remark]:
    review = node.review
    assert review is not None  # noqa: S101  # asked by the caller
    slug, verification, implementation = node.slug, review.verification, review.implementation
    if verification is None:
        message = t("{node} reviews a diff that nobody verified", node=slug)
        yield _Remark("review.incomplete", message, t("add verification_node_id"))
    else:
        if verification not in node.needs:
            message = t("{node} does not read what {other} verified", node=slug, other=verification)
            yield _Remark("review.evidence", message, t("add {node} to its needs", node=verification))
        if implementation is not None and not reach.waits_for(verification, implementation):
            message = t("{other} does not verify the work of {node}", other=verification, node=implementation)
            yield _Remark("review.order", message, t("let {node} need {need}", node=verification, need=implementation))
        if not by_slug[verification].required and verification not in _conditioned(node):
            message = t("{node} runs even where {other} failed", node=slug, other=verification)
            yield _Remark("review.unproven", message, t("mark {node} as required", node=verification))
    if "fingerprint" not in _asked_for(node):
        message = t("the verdict of {node} does not say which state it is about", node=slug)
        yield _Remark("review.fingerprint", message, t("require a fingerprint in its output_schema"))


def _is_guarded(node: Definition, by_slug: dict[str, Definition]) -> bool:
    """It is a gate itself, or a gate reads it."""
    return node.gate is not None or any(d.gate is not None and node.slug in d.needs for d in by_slug.values())


def _conditioned(node: Definition) -> set[str]:
    return {slug for slug, _ in references(parse(node.condition))} if node.condition is not None else set()


def _asked_for(node: Definition) -> list[str]:
    contract = json.loads(node.output_schema) if node.output_schema is not None else {}
    required = contract.get("required", []) if isinstance(contract, dict) else []
    return [name for name in required if isinstance(name, str)]
