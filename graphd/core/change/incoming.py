"""What a decoded change asks for when it is imported: the command that makes the graph.

Version 2 is the wire's snapshot, so input mappings, workflow inputs and attempts are not in it; version 1 has neither
slugs nor workers, so slugs are made from titles and the worker is `build`. Source: model.md, Log, snapshot,
interchange.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from graphd.core.change.clauses import budget_of, clauses_of, terms_of
from graphd.core.change.values import GraphValue
from graphd.core.commands import Import, ImportedNode
from graphd.core.model import Definition, Failure, Limits, Output, Retry, Source, Spent
from graphd_protocol.ids import FINAL_ID, node_id, slug_trouble

WORKER_1: Final = "build"
_FAILED_1: Final = re.compile(
    r"(exec_failed|timeout|verdict_fail|merge_failed|limit|refused|agent_missing|lost): (.*)", re.DOTALL
)


def command_of(value: GraphValue, *, graph: str, workspace: str, owner: str | None, environment: str | None) -> Import:
    """The command that imports `value` as the graph `graph`."""
    raw = value.graph
    slugs = _slugs_1(value) if value.version == 1 else {}
    of_node: Callable[[Any], tuple[Definition, ImportedNode]] = (
        (lambda node: _node_1(node, slugs)) if value.version == 1 else _node_2
    )
    rows = [of_node(node) for node in raw["nodes"]]
    limits = raw.get("limits", {})
    return Import(
        graph=graph, workspace=workspace, owner=owner, environment=environment, status=raw["status"],
        title=raw.get("title") or _title(raw["objective"]), objective=raw["objective"],
        source=Source(**(raw.get("source") or {"kind": "nodes"})), definitions=tuple(row[0] for row in rows),
        nodes=tuple(row[1] for row in rows), created_at=value.created_at, plan_version=max(1, value.plan_version),
        pause_reason=value.pause_reason, outcome=raw.get("outcome"), delivery_node=raw.get("deliveryNode"),
        limits=Limits(
            **{_LIMITS[name]: number for name, number in limits.items()},
            **({} if "maxNodes" in limits else {"max_nodes": max(Limits().max_nodes, len(rows))}),
        ),
        budget=budget_of(raw.get("budget")), terms=terms_of(raw.get("terms")),
        spent=Spent(value.tokens, value.cost_usd, value.wall_ms),
    )  # fmt: skip


_LIMITS: Final = {
    "concurrency": "concurrency", "maxNodes": "max_nodes", "attemptsPerNode": "attempts_per_node",
    "roundsPerAttempt": "rounds_per_attempt", "replans": "replans", "timeoutExtensions": "timeout_extensions",
}  # fmt: skip


def _title(objective: str) -> str:
    return objective.strip().splitlines()[0][:80]


def _node_2(row: dict[str, Any]) -> tuple[Definition, ImportedNode]:
    retry, spent, output, failure = row["retry"], row["spent"], row.get("output"), row.get("failure")
    plain = Retry()
    definition = Definition(
        slug=row["slug"], spec=row["spec"], worker=row["worker"], title=row["title"], needs=tuple(row["needs"]),
        condition=row.get("condition"), required=row["required"], timeout_ms=row["timeoutMs"],
        retry=Retry(
            retry.get("max", plain.max), retry.get("backoffS", plain.backoff_s), tuple(retry.get("on", plain.on))
        ),
        priority=row["priority"], report_to_parent=row["reportToParent"],
        discovered_from=tuple(row.get("discoveredFrom", ())), **clauses_of(row),
    )  # fmt: skip
    return definition, ImportedNode(
        slug=row["slug"], state=row["state"], rounds=row["rounds"], skip=row.get("skip"),
        cancel_reason=row.get("cancelReason"), removed_in=row.get("removedIn"),
        started_at=row.get("startedAt"), ended_at=row.get("endedAt"),
        spent=Spent(spent.get("tokens", 0), spent.get("costUsd", 0.0), spent.get("wallMs", 0)),
        output=Output(output["text"], output["total"], output["mediaType"], output.get("isCut", False))
        if output else None,
        failure=Failure(failure["class"], failure["reason"]) if failure else None, verdict=row.get("verdict"),
    )  # fmt: skip


def _node_1(row: dict[str, Any], slugs: dict[str, str]) -> tuple[Definition, ImportedNode]:
    definition = Definition(
        slug=slugs[row["id"]], spec=row["spec"], worker=WORKER_1, title=row["title"], required=True,
        needs=tuple(slugs[need] for need in row["blocks"]),
        discovered_from=tuple(slugs[source] for source in row.get("discoveredFrom", ())),
    )  # fmt: skip
    failure = None
    if row["state"] == "failed":
        text = row.get("failure", "failed")
        found = _FAILED_1.match(text)
        failure = Failure(found[1], found[2]) if found else Failure("exec_failed", text)  # type: ignore[arg-type]  # the pattern lists the classes
    return definition, ImportedNode(definition.slug, row["state"], rounds=row["rounds"], failure=failure)


def _slugs_1(value: GraphValue) -> dict[str, str]:
    """A slug for each node: one that hashes to its id where the title says it, else made from the title."""
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for node in value.nodes:
        made = node.title if node.id != FINAL_ID else "final"
        if node_id(made) != node.id or slug_trouble(made):
            made = re.sub(r"[^A-Za-z0-9]+", "-", made).strip("-")[:56] or "node"
            if slug_trouble(made):  # a word of the condition language, or gn-…
                made = f"node-{made}"
        slug, number = made, 1
        while slug in taken:
            number += 1
            slug = f"{made}-{number}"
        taken.add(slug)
        slugs[node.id] = slug
    return slugs
