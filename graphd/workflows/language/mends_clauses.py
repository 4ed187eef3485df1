"""Mends around gates, waits, items, reviews and files that two nodes write."""

from graphd.base.text import Text, t
from graphd.workflows.language.case import Case, Mend, Mends, closest
from graphd.workflows.language.names import inside
from graphd.workflows.language.writing import scalar_for, with_need, without_key


def leak(case: Case) -> Mends:
    """A node reads what a gate may send back: it waits for the gate too."""
    yield from _needing(case, _said(case, "gate"))


def unguarded(case: Case) -> Mends:
    """A condition that does not look at a gate: it asks for ACCEPT."""
    scalar, gate = case.scalar, _gate_of(case)
    if scalar is None or gate is None or "\n" in case.body[scalar.start : scalar.end]:
        return
    start, end = inside(case.body, scalar)
    raw = case.body[start:end]
    mark = "'" if case.body[scalar.start : scalar.start + 1] == '"' else '"'
    condition = f"({raw})" if " or " in raw else raw
    text = f"{condition} and {gate}.verdict == {mark}ACCEPT{mark}"
    yield Mend(t("ask for ACCEPT of {gate}", gate=gate), ((start, end, text),), is_preferred=True)


def not_an_ancestor(case: Case) -> Mends:
    """`revise`, or the subject of a review, does not come before the node: another one was meant, or it is needed."""
    scalar, node = case.scalar, case.node
    if scalar is None or node is None:
        return
    before = case.analysis.before(node.slug)
    meant = closest(scalar.text, list(before), cutoff=0.5)
    if meant is not None and meant != scalar.text:
        title = t("write {name} for {written}", name=meant, written=scalar.text[:60])
        yield Mend(title, ((scalar.start, scalar.end, scalar_for(meant)),), is_preferred=True)
    if scalar.text in case.analysis.slugs and node.slug not in case.analysis.before(scalar.text):
        yield from _needing(case, scalar.text)


def waiting(case: Case) -> Mends:
    """A node that waits has nobody who works on it."""
    node = case.node
    if node is None:
        return
    for key in ("run", "prompt", "prompt_template", "worker_type", "worker"):
        if key in node.tree.entries and (edit := without_key(case.page, node.tree, key)) is not None:
            yield Mend(t("remove {key}", key=key), (edit,), is_preferred=True)
            return


def evidence(case: Case) -> Mends:
    """A review that does not read what it is about: it needs it."""
    yield from _needing(case, _said(case, "other"))


def overlapping(case: Case) -> Mends:
    """Two nodes write the same files: one waits for the other."""
    other = _said(case, "other")
    if case.node is not None and other in case.analysis.slugs:
        yield from _needing(case, other)


def _said(case: Case, name: str) -> str:
    """A value of the diagnostic's message."""
    message = case.diagnostic.message
    return str(message.values.get(name, "")) if isinstance(message, Text) else ""


def _gate_of(case: Case) -> str | None:
    gate = _said(case, "gate")
    return gate if gate in case.analysis.slugs else None


def _needing(case: Case, slug: str) -> Mends:
    node = case.node
    if node is None or slug not in case.analysis.slugs or slug == node.slug:
        return
    edit = with_need(case.page, node.entries, node.tree, slug)
    if edit is not None:
        yield Mend(t("add {name} to the needs", name=slug), (edit,), is_preferred=True)
