"""Mends of plans that can't run, or that may not mean what they say: needs, cycles, conditions, mappings, prompts."""

import re
from collections import deque
from collections.abc import Iterable

from graphd.base.text import t
from graphd.core.conditions import VERDICTS
from graphd.core.plan import HARD_CAP, PLACEHOLDER
from graphd.workflows import schema
from graphd.workflows.language.case import Case, Mend, Mends, closest
from graphd.workflows.language.names import Outcome, config_of, end_of, inputs_of, long_entries
from graphd.workflows.language.writing import (
    Edit,
    column_of,
    is_flow,
    line_end,
    scalar_for,
    template_input,
    with_item,
    with_key,
    with_need,
    without_item,
    without_key,
)
from graphd.workflows.source import YamlList, YamlMap, YamlScalar
from graphd_protocol.ids import CONDITION_WORDS, slug_trouble
from graphd_protocol.states import NODE_STATES

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_FOREIGN = (("&&", "and"), ("||", "or"), ("!", "not "), ("=", "=="))
_SIDE = re.compile(r"""\s*(?:==|!=|in\s*\[)\s*(["']?)([A-Za-z_]+)\1""")
_SINKS_OFFERED = 3


# ---- needs ----------------------------------------------------------------------------------------------------------


def unknown_need(case: Case) -> Mends:
    """A need that is no node: the one that was meant, a new node, or no need."""
    if case.listed is None:
        return
    held, item = case.listed
    own = case.node.slug if case.node is not None else ""
    there = {other.text for other in held.items if isinstance(other, YamlScalar)}
    meant = closest(item.text, set(case.analysis.slugs) - there - {own})
    if meant is not None:
        edit = (item.start, item.end, scalar_for(meant))
        yield Mend(t("write {name} for {written}", name=meant, written=item.text[:60]), (edit,), is_preferred=True)
    if slug_trouble(item.text) is None and (edit_made := new_node(case, item.text)) is not None:
        yield Mend(t("add the node {name}", name=item.text), (edit_made,), meant is None)
    yield Mend(t("remove {name} from the needs", name=item.text[:60]), (without_item(case.page, held, item),))


def new_node(case: Case, slug: str) -> Edit | None:
    """One more node, before the one that the case is in, in its style."""
    text = f"id: {scalar_for(slug)}, run: {scalar_for('echo ' + slug)}"
    listed = config_of(case.analysis.tree).get("nodes")
    if listed is None or not isinstance(listed[1], YamlList) or not listed[1].items:
        return None
    held = listed[1]
    before = case.node.tree if case.node is not None else held.items[-1]
    if is_flow(case.body, held):
        return before.start, before.start, f"{{ {text} }}, "
    dash = case.body.rfind("-", 0, before.start)
    line = case.page.starts[case.page.line_of(dash)]
    if dash < held.start or case.body[line:dash].strip():
        return with_item(case.page, held, f"{{ {text} }}")
    indent = case.body[line:dash]
    return line, line, f"{indent}- {{ {text} }}{case.page.line_break}"


def no_need(case: Case) -> Mends:
    """A need of itself, one that is there twice, or one that nothing uses."""
    if case.listed is not None:
        held, item = case.listed
        edit = without_item(case.page, held, item)
        yield Mend(t("remove {name} from the needs", name=item.text[:60]), (edit,), is_preferred=True)


def cycle(case: Case) -> Mends:
    """A cycle: each of its edges may go."""
    for node, need in cycle_edges(case):
        listed = node.entries["depends_on"][1]
        item = next((i for i in getattr(listed, "items", ()) if isinstance(i, YamlScalar) and i.text == need), None)
        if isinstance(listed, YamlList) and item is not None:
            title = t("break this cycle: {node} no longer needs {need}", node=node.slug, need=need)
            yield Mend(title, (without_item(case.page, listed, item),))


def cycle_edges(case: Case) -> list[tuple[Outcome, str]]:
    """The edges of the shortest cycle through the need that the case points at, in order."""
    if case.listed is None or case.node is None:
        return []
    slugs = case.analysis.slugs
    first, second = case.node.slug, case.listed[1].text
    came: dict[str, str] = {second: first}
    todo = deque([second])
    while todo and first not in came:
        slug = todo.popleft()
        for need, _, _ in slugs[slug].needs if slug in slugs else ():
            if need not in came:
                came[need] = slug
                todo.append(need)
    if first not in came:
        return []
    way = [first]
    while way[-1] != second:
        way.append(came[way[-1]])
    way.append(first)
    way.reverse()
    return [(slugs[a], b) for a, b in zip(way, way[1:], strict=False)]


# ---- names ----------------------------------------------------------------------------------------------------------


def slug(case: Case) -> Mends:
    """An id that is none, or is taken: one that is free, everywhere the old one stands if it is the only one."""
    scalar, node = case.scalar, case.node
    if scalar is None or node is None:
        return
    made = re.sub(r"[^A-Za-z0-9_-]+", "-", scalar.text).strip("-_").removeprefix("gn-")[:60] or "node"
    if made in CONDITION_WORDS:
        made += "-node"
    taken = set(case.analysis.slugs)
    free = next(n for i in range(1, len(taken) + 3) if (n := made if i == 1 else f"{made}-{i}") not in taken)
    places = case.analysis.mentions.of(("node", scalar.text, -1))
    is_only = sum(m.role == "definition" for m in places) == 1
    edits: list[Edit] = [(scalar.start, scalar.end, scalar_for(free))]
    if is_only:
        edits += [(m.start, m.end, free) for m in places if not scalar.start <= m.start <= scalar.end]
    yield Mend(t("call it {name}", name=free), tuple(edits), is_preferred=True)


def worker(case: Case) -> Mends:
    """A worker that is none."""
    yield from _meant(case, case.analysis.workers)


def delivery(case: Case) -> Mends:
    """A delivery node that is none."""
    yield from _meant(case, [n.slug for n in case.analysis.outcomes])
    step = case.steps[-1] if case.steps else None
    if step is not None and step.name is not None and isinstance(step.held, YamlMap):
        edit = without_key(case.page, step.held, step.name)
        if edit is not None:
            yield Mend(t("remove {key}", key=step.name), (edit,))


def _meant(case: Case, known: Iterable[str]) -> Mends:
    scalar = case.scalar
    if scalar is None:
        return
    meant = closest(scalar.text, list(known), cutoff=0.5)
    if meant is not None:
        title = t("write {name} for {written}", name=meant, written=scalar.text[:60])
        yield Mend(title, ((scalar.start, scalar.end, scalar_for(meant)),), is_preferred=True)


# ---- conditions and mappings ----------------------------------------------------------------------------------------


def not_a_need(case: Case) -> Mends:
    """A condition or a mapping reads a node that is not needed: another one was meant, or it is to be needed."""
    at = case.start + (1 if case.body[case.start : case.start + 1] in ("'", '"') else 0)
    match = _WORD.match(case.body, at)
    if match is None or case.node is None:
        return
    name = match.group()
    meant = closest(name, [slug for slug, _, _ in case.node.needs])
    if meant is not None:
        title = t("write {name} for {written}", name=meant, written=name)
        yield Mend(title, ((match.start(), match.end(), meant),), is_preferred=True)
    if name in case.analysis.slugs and name != case.node.slug:
        edit = with_need(case.page, case.node.entries, case.node.tree, name)
        if edit is not None:
            yield Mend(t("add {name} to the needs", name=name), (edit,), meant is None)


def condition(case: Case) -> Mends:
    """Signs of other languages, and states or verdicts that are misspelt or lack their quotes."""
    rest = case.body[case.start : case.start + 200]
    for foreign, ours in _FOREIGN:
        if rest.startswith(foreign) and not rest.startswith(("==", "!=")):
            edit = (case.start, case.start + len(foreign), ours)
            yield Mend(t("write {name} for {written}", name=ours.strip(), written=foreign), (edit,), is_preferred=True)
            return
    match = _SIDE.match(rest)
    bare = _WORD.match(rest)
    word = match.group(2) if match else bare.group() if bare else ""
    known = (*NODE_STATES, *VERDICTS)
    meant = word if word in known else closest(word, known, cutoff=0.5)
    if not word or meant is None or (bare is not None and not match and "." in rest[len(word) : len(word) + 1]):
        return
    start = case.start + (match.start(1) if match else 0)
    end = case.start + (match.end() if match else len(word))
    mark = (match.group(1) if match else "") or ("'" if _is_double(case) else '"')
    yield Mend(
        t("write {text}", text=f"{mark}{meant}{mark}"), ((start, end, f"{mark}{meant}{mark}"),), is_preferred=True
    )


def _is_double(case: Case) -> bool:
    return case.scalar is not None and case.body[case.scalar.start : case.scalar.start + 1] == '"'


# ---- prompts --------------------------------------------------------------------------------------------------------


def unbound(case: Case) -> Mends:
    """A placeholder that nothing binds: another name, one more need, or one more input."""
    match = PLACEHOLDER.search(case.body, case.start, max(case.end, case.start))
    if match is None or case.node is None:
        return
    name, (start, end) = match.group(1), match.span(1)
    inputs = inputs_of(case.analysis.tree)
    mapped = case.node.entries.get("input_mapping")
    names = set(mapped[1].entries) if mapped and isinstance(mapped[1], YamlMap) else {n[0] for n in case.node.needs}
    names |= {f"inputs.{n}" for n in inputs} | set(template_input(case.node.entries))
    meant = f"inputs.{name}" if name in inputs else closest(name, names)
    if meant is not None:
        title = t("write {name} for {written}", name=meant, written=name[:60])
        yield Mend(title, ((start, end, meant),), is_preferred=True)
    if name in case.analysis.slugs and name != case.node.slug and mapped is None:
        edit = with_need(case.page, case.node.entries, case.node.tree, name)
        if edit is not None:
            yield Mend(t("add {name} to the needs", name=name), (edit,), meant is None)
    short = name.removeprefix("inputs.")
    if short not in inputs and name not in case.analysis.slugs and (edit := _new_input(case, short)) is not None:
        edits = (edit,) if name != short else (edit, (start, end, f"inputs.{name}"))
        yield Mend(t("declare the input {name}", name=short), edits, meant is None and name != short)


def _new_input(case: Case, name: str) -> Edit | None:
    if not re.fullmatch(schema.INPUTS.pattern, name):
        return None
    text = f"{name}: {{ type: string }}"
    root = case.analysis.tree
    held = long_entries(schema.ROOT, root).get("inputs")
    if held is not None:
        return with_key(case.page, held[1], text) if isinstance(held[1], YamlMap) else None
    if not isinstance(root, YamlMap) or is_flow(case.body, root) or column_of(case.page, root.start):
        return None
    gap = case.page.line_break
    return root.start, root.start, f"inputs:{gap}  {text}{gap}"


def in_shell(case: Case) -> Mends:
    """A placeholder in a script: the variable or the file that has the same."""
    match = PLACEHOLDER.search(case.body, case.start, max(case.end, case.start))
    if match is None:
        step = case.steps[-1] if case.steps else None
        if step is not None and step.name == "input" and isinstance(step.held, YamlMap):
            edit = without_key(case.page, step.held, "input")
            if edit is not None:
                yield Mend(t("remove {key}", key="input"), (edit,), is_preferred=True)
        return
    name = match.group(1)
    mark = '\\"' if _is_double(case) else '"'
    text = f"$(cat {mark}$GRAPHD_INPUT_DIR{mark}/{name})"
    if name.startswith("inputs.") or name in inputs_of(case.analysis.tree):
        text = f"${{GRAPHD_VAR_{name.removeprefix('inputs.')}}}"
    edit = (match.start(), match.end(), text)
    yield Mend(t("write {name} for {written}", name=text, written=match.group()), (edit,), is_preferred=True)


# ---- the whole graph ------------------------------------------------------------------------------------------------


def none_required(case: Case) -> Mends:
    """No node matters: one of the ends may."""
    needed = {need for node in case.analysis.outcomes for need, _, _ in node.needs}
    ends = [node for node in case.analysis.outcomes if node.slug not in needed]
    for node in ends[:_SINKS_OFFERED]:
        edit: Edit
        if "required" in node.entries:
            held = node.entries["required"][1]
            edit = (held.start, max(held.start, end_of(case.body, held)), "true")
        else:
            edit = with_key(case.page, node.tree, "required: true")
        yield Mend(t("{name} is required", name=node.slug), (edit,))


def too_large(case: Case) -> Mends:
    """More nodes than the graph may have."""
    count = len(case.analysis.outcomes)
    config = config_of(case.analysis.tree)
    if count > HARD_CAP:
        return
    title = t("write max_total_nodes: {count}", count=count)
    root = long_entries(schema.ROOT, case.analysis.tree)
    if "max_total_nodes" in config and isinstance(held := config["max_total_nodes"][1], YamlScalar):
        yield Mend(title, ((held.start, held.end, str(count)),), is_preferred=True)
    elif "config" in root and isinstance(table := root["config"][1], YamlMap) and not is_flow(case.body, table):
        gap = case.page.line_break + " " * column_of(case.page, table.start)
        edit = (table.start, table.start, f"max_total_nodes: {count}{gap}")
        yield Mend(title, (edit,), is_preferred=True)


def no_nodes(case: Case) -> Mends:
    """A graph without nodes."""
    listed = config_of(case.analysis.tree).get("nodes")
    if listed is None:
        return
    key, held = listed
    text = "{ id: hello, run: echo hello }"
    if isinstance(held, YamlList) and is_flow(case.body, held) and not held.items:
        yield Mend(t("add a node"), ((held.start + 1, held.start + 1, text),), is_preferred=True)
    elif isinstance(held, YamlScalar) and not held.text:
        at = line_end(case.page, key.start)
        indent = " " * (column_of(case.page, key.start) + 2)
        yield Mend(t("add a node"), ((at, at, f"{case.page.line_break}{indent}- {text}"),), is_preferred=True)
