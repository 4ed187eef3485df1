"""Checks of a whole plan, and what follows from its shape alone: sinks, required nodes, waves.

Every way in (workflow file, inline nodes) passes `check_plan`. Nothing here recurses over the graph: a chain
of 5,000 nodes is as cheap as a wide one. Source: spec model.md, Ids, Graph, Node.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from graphd.base.text import Text, t
from graphd.core.clauses import clause_troubles, path_troubles
from graphd.core.conditions import ConditionMalformed, comparisons, parse
from graphd.core.model import Definition, Limits
from graphd.core.slugs import slug_reason
from graphd.core.trouble import SOURCE as SOURCE
from graphd.core.trouble import PlanTrouble as PlanTrouble
from graphd.core.trouble import suggestion as suggestion
from graphd.core.trouble import unknown_worker
from graphd_protocol.ids import FINAL_ID, node_id

HARD_CAP: Final = 10_000
PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
_VARIABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\Z")
_WORDS_GUESSED = 40  # the same for each more word that is no node: a hub that is renamed leaves one in every node
_NAMED_IN_CYCLE = 12
_CYCLES_TOLD = 8


def check_plan(
    definitions: Sequence[Definition],
    *,
    limits: Limits,
    delivery_node: str | None = None,
    workers: Collection[str] | None = None,
    may_have_final: bool = False,
) -> list[PlanTrouble]:
    """All that is wrong with the plan, in a stable order (by kind, then by place); empty where it may run.

    `workers` None leaves worker names unchecked. `may_have_final`: the plan comes from a graph, so it may have the node
    `gn-final` that the daemon made; nobody else may.
    """
    if trouble := _size_trouble(definitions, limits):
        return [trouble]
    troubles = _slug_troubles(definitions, may_have_final=may_have_final)
    troubles += _need_troubles(definitions)
    troubles += _cycle_troubles(definitions)
    is_sound = not troubles
    known = {d.slug for d in definitions}
    for index, definition in enumerate(definitions):
        troubles += _condition_troubles(index, definition)
        troubles += _mapping_troubles(index, definition)
        troubles += _spec_troubles(index, definition)
        troubles += _worker_troubles(index, definition, workers)
        troubles += clause_troubles(index, definition, workers)
    if is_sound:
        troubles += path_troubles(definitions)
    if delivery_node is not None and delivery_node not in known:
        hint = suggestion(delivery_node, known) or t("name a node of this plan")
        message = t("delivery node {delivery_node} is no node of this plan", delivery_node=delivery_node)
        troubles.append(PlanTrouble("delivery.unknown", delivery_node, message, hint, part="delivery_node"))
    return troubles


def collapse(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """The same plan with every need named once."""
    return tuple(
        d if len(set(d.needs)) == len(d.needs) else replace(d, needs=tuple(dict.fromkeys(d.needs))) for d in definitions
    )


def _size_trouble(definitions: Sequence[Definition], limits: Limits) -> PlanTrouble | None:
    count = len(definitions)
    if count == 0:
        return PlanTrouble("plan.empty", "", t("the plan has no nodes"), t("give it at least one"))
    if count > HARD_CAP:
        return PlanTrouble(
            "plan.tooLarge",
            "",
            t("{count} nodes; the hard cap is {limit}", count=count, limit=HARD_CAP),
            t("split it into graphs"),
        )
    if count > limits.max_nodes:
        return PlanTrouble(
            "plan.tooLarge", "", t("{count} nodes; this graph may have {limit}", count=count, limit=limits.max_nodes),
            t("raise max_total_nodes (at most {limit})", limit=HARD_CAP),
        )  # fmt: skip
    return None


def _slug_troubles(definitions: Sequence[Definition], *, may_have_final: bool) -> list[PlanTrouble]:
    troubles = []
    seen: dict[str, int] = {}
    ids: dict[str, str] = {}
    for index, definition in enumerate(definitions):
        slug = definition.slug
        if (reason := slug_reason(slug)) and not (may_have_final and slug == FINAL_ID):
            hint = t("the final check makes its own node") if slug == FINAL_ID else t("rename the node")
            troubles.append(
                PlanTrouble(
                    "slug.invalid", slug, t("{slug!r}: {reason}", slug=slug, reason=reason), hint, index, "slug"
                )
            )
        elif slug in seen:
            message = t("{slug} is already node {place} of this plan", slug=slug, place=seen[slug] + 1)
            troubles.append(PlanTrouble("slug.duplicate", slug, message, t("give each node its own id"), index, "slug"))
        elif (other := ids.setdefault(node_id(slug), slug)) != slug:
            message = t("{slug} and {other} have the same node id {id}", slug=slug, other=other, id=node_id(slug))
            troubles.append(PlanTrouble("slug.collision", slug, message, t("rename one of the two"), index, "slug"))
        seen.setdefault(slug, index)
    return troubles


def _need_troubles(definitions: Sequence[Definition]) -> list[PlanTrouble]:
    troubles = []
    guesses: dict[str, Text | None] = {}
    known = {d.slug for d in definitions}
    for index, definition in enumerate(definitions):
        for place, need in enumerate(definition.needs):
            if need == definition.slug:
                message, hint = t("{need} needs itself", need=need), t("remove it from needs")
                troubles.append(PlanTrouble("need.self", need, message, hint, index, "needs", place))
            elif need not in known:
                message = t("{node} needs {need}, which is no node of this plan", node=definition.slug, need=need)
                if need not in guesses:
                    is_cheap = len(guesses) < _WORDS_GUESSED
                    guesses[need] = suggestion(need, known - {definition.slug}) if is_cheap else None
                guess = guesses[need]
                is_other = guess is not None and guess.values["name"] != definition.slug
                hint = guess if guess is not None and is_other else t("add that node, or remove it from needs")
                troubles.append(PlanTrouble("need.unknown", definition.slug, message, hint, index, "needs", place))
    return troubles


def _links(definitions: Sequence[Definition]) -> dict[str, list[str]]:
    """Needs of each node, once each, without those that are no nodes and without itself."""
    known = {d.slug for d in definitions}
    return {d.slug: [n for n in dict.fromkeys(d.needs) if n in known and n != d.slug] for d in definitions}


def _dependants(links: Mapping[str, list[str]]) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {slug: [] for slug in links}
    for slug, needs in links.items():
        for need in needs:
            turned[need].append(slug)
    return turned


def _peel(links: Mapping[str, list[str]], turned: Mapping[str, list[str]], gone: set[str]) -> list[str]:
    """Slugs, needs first; what is on or behind a cycle is left out, needs in `gone` count as met."""
    missing = {slug: sum(1 for n in needs if n not in gone) for slug, needs in links.items() if slug not in gone}
    order = [slug for slug, count in missing.items() if count == 0]
    for slug in order:  # grows while we walk it
        for dependant in turned[slug]:
            if dependant in missing:
                missing[dependant] -= 1
                if missing[dependant] == 0:
                    order.append(dependant)
    return order


def _cycle_troubles(definitions: Sequence[Definition]) -> list[PlanTrouble]:
    links = _links(definitions)
    turned = _dependants(links)
    place = {d.slug: i for i, d in reversed(list(enumerate(definitions)))}
    troubles: list[PlanTrouble] = []
    gone: set[str] = set()
    while len(troubles) < _CYCLES_TOLD:
        gone.update(_peel(links, turned, gone))
        start = next((slug for slug in links if slug not in gone), None)
        if start is None:
            break
        cycle = _cycle_from(start, links, gone, place)
        gone.update(cycle)
        troubles.append(_cycle_trouble(cycle, definitions[place[cycle[0]]], place[cycle[0]]))
    return troubles


def _cycle_from(start: str, links: Mapping[str, list[str]], gone: set[str], place: Mapping[str, int]) -> list[str]:
    """Walk needs until a node comes again: what was not peeled always has a need that was not either."""
    walk: dict[str, int] = {}
    slug = start
    while slug not in walk:
        walk[slug] = len(walk)
        slug = next(need for need in links[slug] if need not in gone)
    cycle = list(walk)[walk[slug] :]
    first = min(range(len(cycle)), key=lambda i: place[cycle[i]])
    return cycle[first:] + cycle[:first]


def _cycle_trouble(cycle: list[str], first: Definition, index: int) -> PlanTrouble:
    shown: list[str] = [*cycle, cycle[0]]
    if len(shown) > _NAMED_IN_CYCLE:
        left_out = len(shown) - _NAMED_IN_CYCLE
        shown = [*shown[: _NAMED_IN_CYCLE - 2], t("… {left_out} more …", left_out=left_out), *shown[-2:]]
    return PlanTrouble(
        "plan.cycle", cycle[0], t("a cycle: {chain}", chain=_chain(shown)), t("remove one of these needs"),
        index, "needs", first.needs.index(cycle[1]), tuple(cycle),
    )  # fmt: skip


def _chain(slugs: list[str]) -> str:
    return reduce(lambda rest, slug: t("{node} needs {rest}", node=slug, rest=rest), reversed(slugs))


def _condition_troubles(index: int, definition: Definition) -> list[PlanTrouble]:
    if definition.condition is None:
        return []
    slug = definition.slug
    try:
        leaves = comparisons(parse(definition.condition))
    except ConditionMalformed as trouble:
        message = t("condition of {slug}: {trouble}", slug=slug, trouble=trouble.message)
        return [PlanTrouble("condition.malformed", slug, message, trouble.hint, index, "condition", trouble.offset)]
    troubles = []
    for reference in (leaf.reference for leaf in leaves):
        if reference.slug not in definition.needs:
            message = t("condition of {slug} reads {node}, which {slug} does not need", slug=slug, node=reference.slug)
            hint = suggestion(reference.slug, definition.needs) or t("add {node} to its needs", node=reference.slug)
            troubles.append(
                PlanTrouble("condition.notANeed", slug, message, hint, index, "condition", reference.offset)
            )
    return troubles


def _mapping_troubles(index: int, definition: Definition) -> list[PlanTrouble]:
    troubles = []
    slug = definition.slug
    for name, source in definition.input_mapping:
        match = SOURCE.match(source)
        if not _VARIABLE.match(name):
            code, message = "mapping.name", t("{name!r} is no name for an input of {slug}", name=name, slug=slug)
            hint = t("1 to 64 of A-Z a-z 0-9 _ -: it becomes a file name")
        elif match is None:
            code, message = "mapping.malformed", t("{source!r} is no source of an input", source=source)
            hint = t("write slug, slug.output or slug.output.a.b")
        elif match.group(1) not in definition.needs:
            code, message = (
                "mapping.notANeed",
                t("{slug} reads {source_slug}, which it does not need", slug=slug, source_slug=match.group(1)),
            )
            hint = suggestion(match.group(1), definition.needs) or t(
                "add {source_slug} to its needs", source_slug=match.group(1)
            )
        else:
            continue
        troubles.append(PlanTrouble(code, slug, message, hint, index, "input_mapping", name))
    return troubles


def _spec_troubles(index: int, definition: Definition) -> list[PlanTrouble]:
    slug, spec = definition.slug, definition.spec
    if definition.wait is not None:
        return []
    if not spec.strip():
        return [
            PlanTrouble(
                "spec.empty",
                slug,
                t("{slug} has nothing to do", slug=slug),
                t("give it a prompt or a script"),
                index,
                "spec",
            )
        ]
    if "\0" in spec:
        return [
            PlanTrouble(
                "spec.malformed",
                slug,
                t("{slug}: a NUL character", slug=slug),
                t("remove it"),
                index,
                "spec",
                spec.index("\0"),
            )
        ]
    if definition.worker != "shell":
        return []
    match = PLACEHOLDER.search(spec)
    if match is None:
        return []
    name = match.group(1)
    variable = name.removeprefix("inputs.").replace("-", "_").replace(".", "_")
    hint = t(
        'use "$GRAPHD_VAR_{variable}" for an input, the file "$GRAPHD_INPUT_DIR/{name}" for a need',
        variable=variable,
        name=name,
    )
    message = t("{slug}: a shell script is no template, {found} would stay as it is", slug=slug, found=match.group())
    return [PlanTrouble("template.inShell", slug, message, hint, index, "spec", match.start())]


def _worker_troubles(index: int, definition: Definition, workers: Collection[str] | None) -> list[PlanTrouble]:
    if workers is None or definition.worker in workers or definition.wait is not None:
        return []
    return [unknown_worker(index, definition.slug, definition.worker, workers)]


def sinks(definitions: Sequence[Definition]) -> list[str]:
    """Slugs that nothing needs, in plan order; `gn-final` is neither a sink nor counted as reading one."""
    ours = [d for d in definitions if d.slug != FINAL_ID]
    needed = {need for d in ours for need in d.needs}
    return [d.slug for d in ours if d.slug not in needed]


def effective_required(definitions: Sequence[Definition], delivery_node: str | None = None) -> set[str]:
    """Slugs whose failure blocks the graph: marked ones, `gn-final`, the delivery node, and the only sink."""
    required = {d.slug for d in definitions if d.required or d.slug == FINAL_ID}
    if delivery_node is not None:
        required.add(delivery_node)
    ends = sinks(definitions)
    if len(ends) == 1:
        required.add(ends[0])
    return required


def waves(definitions: Sequence[Definition]) -> list[list[str]]:
    """Layers by longest path from a start, each in plan order. For plans that `check_plan` accepts."""
    links = _links(definitions)
    layer: dict[str, int] = {}
    for slug in _peel(links, _dependants(links), set()):
        layer[slug] = 1 + max((layer[need] for need in links[slug]), default=-1)
    found: list[list[str]] = [[] for _ in range(1 + max(layer.values(), default=-1))]
    for slug in links:
        if slug in layer:
            found[layer[slug]].append(slug)
    return found
