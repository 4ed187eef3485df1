"""A definition in the long keys of workflow.md: what `explain` prints and `writing` writes."""

import json
from dataclasses import asdict
from typing import Any, Final

from graphd.core.definition import Approval, Budget, Definition, Retry, Review, Terms, Verify
from graphd.core.model import Limits

LIMITS: Final = {
    "max_concurrency": "concurrency", "max_total_nodes": "max_nodes", "max_node_attempts": "attempts_per_node",
    "max_rounds": "rounds_per_attempt", "max_replans": "replans", "max_timeout_extensions": "timeout_extensions",
}  # fmt: skip
"""Keys of `config`, and what the core calls them."""
TERMS: Final = ("on_required_failure", "isolation", "on_shared_tree", "final_check")
"""Keys of `config` that are terms of the graph, under the same name."""
_AGENT_KEYS: Final = ("hard_timeout_ms", "max_tool_calls", "model", "thinking", "mode", "permissions")
_PLAIN: Final[dict[str, Any]] = {
    "condition": None, "on_lost": "resume", "priority": 0, "report_to_parent": False, "isolation": None,
    "unattended_extensions": None,
}  # fmt: skip


def long_form(definition: Definition, *, is_required: bool) -> dict[str, Any]:
    """One node in the long spelling; what is at its default is left out, `required` apart."""
    node: dict[str, Any] = {"id": definition.slug, "name": definition.title or definition.slug}
    if definition.wait is None:
        node["worker_type"] = definition.worker
    node |= {"depends_on": list(definition.needs), "required": is_required}
    if definition.wait is None:
        node["prompt_template"] = {"inline": definition.spec}
    else:
        node["wait"] = _given(definition.wait)
    return node | _attempts(definition) | _clauses(definition)


def long_config(*, limits: Limits, budget: Budget | None, terms: Terms, delivery_node: str | None) -> dict[str, Any]:
    """What `config` says beside objective and nodes; what is at its default is left out."""
    usual = Limits()
    config = {
        key: getattr(limits, ours) for key, ours in LIMITS.items() if getattr(limits, ours) != getattr(usual, ours)
    }
    if budget is not None:
        seconds = budget.wall_ms / 1000 if budget.wall_ms is not None else None
        given = {"tokens": budget.tokens, "cost_usd": budget.cost_usd, "wall_seconds": seconds}
        config["budget"] = {key: bound for key, bound in given.items() if bound is not None}
    plain = Terms()
    config |= {key: getattr(terms, key) for key in TERMS if getattr(terms, key) != getattr(plain, key)}
    if delivery_node is not None:
        config["delivery_node"] = delivery_node
    return config


def _attempts(definition: Definition) -> dict[str, Any]:
    config: dict[str, Any] = {"timeout_ms": definition.timeout_ms}
    config |= {key: value for key in _AGENT_KEYS if (value := getattr(definition, key)) is not None}
    retry = definition.retry
    if definition.wait is not None and config == {"timeout_ms": 600_000} and retry == Retry():
        return {}  # nobody works on it
    return {
        "worker_config": config,
        "retry": {"max": retry.max, "backoff_s": retry.backoff_s, "on": list(retry.on)},
    }


def _clauses(definition: Definition) -> dict[str, Any]:
    found = {key: value for key, usual in _PLAIN.items() if (value := getattr(definition, key)) != usual}
    if definition.input_mapping:
        found["input_mapping"] = dict(definition.input_mapping)
    for key in ("artifacts", "writes"):
        if globs := getattr(definition, key):
            found[key] = list(globs)
    if definition.output_schema is not None:
        found["output_schema"] = json.loads(definition.output_schema)
    if definition.gate is not None:
        found["gate"] = _given(definition.gate)
    if definition.verify is not None:
        found["verify"] = _verify(definition.verify)
    if definition.approval is not None:
        found["approval"] = _approval(definition.approval)
    if definition.for_each is not None:
        each = definition.for_each
        found["for_each"] = {"in": each.source, "as": each.name, "max": each.max}
    if definition.review is not None:
        found["review"] = _review(definition.review)
    return found


def _given(value: Any) -> dict[str, Any]:
    return {key: item for key, item in asdict(value).items() if item is not None}


def _verify(verify: Verify) -> dict[str, Any]:
    if verify.run is not None:
        return {"run": verify.run}
    return {"worker_type": verify.worker, "criteria": verify.criteria}


def _approval(approval: Approval) -> bool | dict[str, Any]:
    return {key: item for key, item in asdict(approval).items() if item} or True


def _review(review: Review) -> dict[str, Any]:
    named = {"implementation_node_id": review.implementation, "verification_node_id": review.verification}
    return {"phase": review.phase, **{key: slug for key, slug in named.items() if slug is not None}}
