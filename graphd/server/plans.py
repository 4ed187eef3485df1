"""From the params of `set` to a plan: a workflow by name, file or text, or nodes given inline. Bytes are read once.

Source: spec protocol.md (`set`, nodes); workflow.md; execution.md, Trust 1.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from graphd.base.refusal import Refused
from graphd.base.text import said, t
from graphd.core.adapt import adapt
from graphd.core.change.clauses import budget_of
from graphd.core.definition import Budget, Definition, Pruned, Terms
from graphd.core.final import with_final
from graphd.core.model import Limits, Source
from graphd.core.plan import check_plan
from graphd.server.environments import caller_environment, whose_path
from graphd.server.inline import check_served, definitions_of, refused_plan
from graphd.server.project import Wire
from graphd.server.routes import Call
from graphd_protocol.states import Reports

if TYPE_CHECKING:
    from graphd.workflows import Diagnostic, Located
    from graphd_protocol.model import NodeParams, SetParams
    from graphd_protocol.states import Permissions

PromptReader = Callable[[str], bytes | None]
TITLE_LIMIT: Final = 200


@dataclass(slots=True, frozen=True)
class Plan:
    """What `set` freezes."""

    title: str
    objective: str
    source: Source
    definitions: tuple[Definition, ...]
    limits: Limits
    budget: Budget | None = None
    terms: Terms = Terms()
    delivery_node: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    reports: tuple[tuple[str, Reports], ...] = ()


async def plan_of(call: Call, params: "SetParams") -> Plan:
    """The plan that the params name, checked as far as it can be without the graph's state. Raises Refused."""
    if params.nodes is not None:
        plan = _inline(params, params.nodes)
    else:
        plan = await asyncio.to_thread(_from_workflow, call, params)
    plan = _adapted(plan, params)
    found = await service_of(call, plan.definitions, final_check=plan.terms.final_check)
    return replace(plan, missing=found.missing, reports=found.reports)


async def plan_of_file(call: Call, file: str, text: str | None, variables: Mapping[str, str]) -> Plan:
    """The plan in a file, with the inputs that its graph was started with, as far as the file still asks for them."""
    from graphd_protocol.model import SetParams

    def work() -> Plan:
        from graphd.workflows import summarise

        located = located_workflow(call, None, file)
        content = text if text is not None else located.content if located is not None else ""
        declared = summarise(content).inputs
        inputs = {name: value for name, value in variables.items() if name in declared}
        try:
            read = content.decode() if isinstance(content, bytes) else content
        except UnicodeDecodeError:
            read = None  # read again, and refused with the place
        return _from_workflow(call, SetParams(file=file, text=read, inputs=inputs))

    plan = await asyncio.to_thread(work)
    found = await service_of(call, plan.definitions)
    return replace(plan, missing=found.missing, reports=found.reports)


class Service(NamedTuple):
    """Who would serve the workers of a plan. Pairs of worker and value."""

    missing: tuple[tuple[str, str], ...] = ()  # no installed agent, and why
    reports: tuple[tuple[str, Reports], ...] = ()  # what its agent says of its usage


async def service_of(call: Call, definitions: Iterable[Definition], *, final_check: bool = False) -> Service:
    """Who serves the workers of these nodes for the caller."""
    found = tuple(definitions)
    search_path = (await caller_environment(call)).get("PATH", os.defpath)
    full = frozenset(d.worker for d in found if d.worker and d.permissions == "full")
    if full:
        await call.daemon.look_for_agents(search_path, full)
    return await asyncio.to_thread(_service, call, with_final(found) if final_check else found, search_path)


def _service(call: Call, definitions: tuple[Definition, ...], search_path: str) -> Service:
    """For the least permissions that a node of a worker asks."""
    from graphd.children.profiles.choosing import Unserved, least, serve

    agents = call.daemon.settings.agents
    asked: dict[str, list[Permissions]] = {}
    for definition in definitions:
        if definition.worker:
            held = agents.workers[definition.worker].permissions
            wanted = definition.permissions or held
            asked.setdefault(definition.worker, []).extend([wanted] if wanted else [])
        if definition.verify is not None and definition.verify.worker is not None:
            asked.setdefault(definition.verify.worker, []).append("read")
    missing, reports = [], []
    for worker, permissions in sorted(asked.items()):
        answer = serve(agents, worker, search_path, whose=whose_path(call), permissions=least(permissions))
        if isinstance(answer, Unserved):
            missing.append((worker, answer.reason))
        else:
            reports.append((worker, answer.reports))
    return Service(tuple(missing), tuple(reports))


def _inline(params: "SetParams", nodes: "list[NodeParams]") -> Plan:
    title = params.title or params.objective or ""
    digest = hashlib.sha256(orjson.dumps([node.model_dump(by_alias=True) for node in nodes])).hexdigest()
    return Plan(
        title=title.strip()[:TITLE_LIMIT],
        objective=params.objective or params.title or "",
        source=Source("nodes", sha256=digest),
        definitions=definitions_of(nodes),
        limits=Limits(),
    )


def _adapted(plan: Plan, params: "SetParams") -> Plan:
    """The plan as the params change it: nodes pruned and added, bounds and terms of their own; checked as a whole."""
    from graphd.workflows import BUILT_IN_WORKERS

    pruned = tuple(Pruned(entry.node, entry.reason) for entry in params.prune)
    delivery = params.delivery_node or plan.delivery_node
    definitions, troubles = adapt(
        plan.definitions, prune=pruned, extend=definitions_of(params.extend), delivery_node=delivery
    )
    limits = _limits(params, plan.limits)
    troubles += check_plan(definitions, limits=limits, delivery_node=delivery, workers=BUILT_IN_WORKERS)
    if troubles:
        raise refused_plan(troubles)
    terms = _terms(params, plan.terms, pruned)
    check_served(definitions, isolation=terms.isolation, on_shared_tree=terms.on_shared_tree)
    return replace(
        plan, definitions=definitions, limits=limits, terms=terms, delivery_node=delivery,
        budget=_budget(params, plan.budget),
    )  # fmt: skip


def _budget(params: "SetParams", usual: Budget | None) -> Budget | None:
    """Bounds of the params, key by key before those of the workflow."""
    if params.budget is None:
        return usual
    given = budget_of(params.budget.model_dump(by_alias=True, exclude_unset=True))
    base = usual if usual is not None else Budget()
    if given is None:
        return usual
    return Budget(
        *(mine if mine is not None else theirs for mine, theirs in zip(*map(_bounds, (given, base)), strict=True))
    )


def _bounds(budget: Budget) -> tuple[int | None, float | None, int | None]:
    return budget.tokens, budget.cost_usd, budget.wall_ms


def _terms(params: "SetParams", usual: Terms, pruned: tuple[Pruned, ...]) -> Terms:
    names = ("on_required_failure", "isolation", "on_shared_tree", "final_check")
    given = {name: value for name in names if (value := getattr(params, name)) is not None}
    return replace(usual, pruned=pruned, **given)


def _limits(params: "SetParams", usual: Limits) -> Limits:
    if params.limits is None:
        return usual
    return replace(usual, **params.limits.model_dump(exclude_unset=True))


def _from_workflow(call: Call, params: "SetParams") -> Plan:
    """In a thread: it reads files and parses YAML."""
    from graphd.workflows import WorkflowRefused, load, prompt_reader

    located = located_workflow(call, params.workflow, params.file)
    content: bytes | str = params.text or ""
    if located is not None and params.text is None:
        content = located.content
    name = located.name if located is not None else None
    try:
        reader = prompt_reader(call.daemon.workspace)
        compiled = load(content, name=name, inputs=params.inputs, read_prompt=reader)
    except WorkflowRefused as refusal:
        raise refused(refusal.code, refusal.message, refusal.diagnostics) from None
    kind = "text" if located is None else "workflow" if params.workflow is not None else "file"
    title = params.title or compiled.title or compiled.name
    return Plan(
        title=title[:TITLE_LIMIT],
        objective=params.objective or compiled.objective or title,
        source=Source(
            kind,
            name=compiled.name or None,
            path=str(located.path) if located is not None else None,
            sha256=compiled.sha256,
        ),
        definitions=compiled.definitions,
        limits=compiled.limits,
        budget=compiled.budget,
        terms=compiled.terms,
        delivery_node=compiled.delivery_node,
        variables=tuple(sorted(compiled.variables.items())),
    )


def located_workflow(call: Call, name: str | None, file: str | None) -> "Located | None":
    """The workflow of this name or in this file, read once; None where neither is given. Raises Refused."""
    from graphd.workflows import WorkflowNotFound, find, locate_file

    try:
        if name is not None:
            return find(name, call.daemon.workspace)
        if file is not None:
            return locate_file(Path(call.caller.cwd or call.daemon.workspace) / file)
    except WorkflowNotFound as trouble:
        raise Refused("notFound", said(trouble), trouble.hint) from None
    except OSError as trouble:
        raise Refused("notFound", said(trouble), t("make it a readable file")) from None
    return None


def refused(code: str, message: str, diagnostics: "list[Diagnostic]") -> Refused:
    """The refusal of a workflow file, with every finding; `inputs` names what was not given."""
    facts: dict[str, Any] = {"diagnostics": [diagnostic(item) for item in diagnostics]}
    if code == "inputMissing":
        facts["inputs"] = [item.path.rpartition(".")[2] for item in diagnostics if item.code == "inputMissing"]
    hint = next((item.hint for item in diagnostics if item.severity == "error"), "")
    return Refused(code, message, hint, **facts)


def diagnostic(item: "Diagnostic") -> Wire:
    """One finding as the wire shows it."""
    start, end = item.range.start, item.range.end
    return {
        "severity": item.severity,
        "code": item.code,
        "path": item.path,
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        },
        "message": item.message,
        "hint": item.hint,
    }
