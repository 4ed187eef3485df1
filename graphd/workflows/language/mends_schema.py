"""Mends of keys and values that the schema does not take."""

import re

from graphd.base.text import t
from graphd.workflows import schema
from graphd.workflows.language.case import Case, Mend, Mends, closest
from graphd.workflows.language.names import end_of, long_entries
from graphd.workflows.language.writing import Edit, column_of, is_flow, scalar_for, with_key, without_key
from graphd.workflows.scalars import ScalarMisread, read_scalar
from graphd.workflows.source import YamlMap, YamlScalar
from graphd.workflows.writing import quoted

_TRUE = frozenset({"true", "yes", "on", "y", "1"})
_FALSE = frozenset({"false", "no", "off", "n", "0"})
_DIGITS = re.compile(r"[-+]?[0-9][0-9_,]*(?:\.[0-9]+)?")


def unknown_key(case: Case) -> Mends:
    """A key that is none: the one that was meant, or away with it."""
    table, step = case.table, case.steps[-1] if case.steps else None
    if table is None or step is None or step.key is None or not isinstance(step.held, YamlMap):
        return
    taken = set(long_entries(table, step.held))
    known = {s for s in table.spellings if (k := table.key(s)) is not None and k.name not in taken and not k.later}
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", step.key.text).lower().replace("-", "_")
    meant = snake if snake in known else closest(snake, known)
    if meant is not None:
        title = t("write {key} for {written}", key=meant, written=step.key.text[:60])
        yield Mend(title, ((step.key.start, step.key.end, meant),), is_preferred=True)
    yield from _removed(case)


def twice(case: Case) -> Mends:
    """Two spellings of one key: the second goes."""
    if case.steps and case.steps[-1].name not in ("config", "nodes", "blocks"):
        yield from _removed(case, is_preferred=case.steps[-1].name not in ("run", "prompt", "prompt_template"))


def _removed(case: Case, *, is_preferred: bool = False) -> Mends:
    step = case.steps[-1] if case.steps else None
    if step is None or step.name is None or not isinstance(step.held, YamlMap):
        return
    edit = without_key(case.page, step.held, step.name)
    is_last = len(step.held.entries) == 1 and not is_flow(case.body, step.held)  # nothing is no map
    if edit is not None and not is_last:
        yield Mend(t("remove {key}", key=step.name[:60]), (edit,), is_preferred)


def not_supported(case: Case) -> Mends:
    """What this version does not carry out: away with it."""
    yield from _removed(case, is_preferred=True)


def missing_key(case: Case) -> Mends:
    """A node without id, worker or prompt."""
    held = next((s.value for s in reversed(case.steps) if s.name is None and isinstance(s.value, YamlMap)), None)
    if held is None or [s.name for s in case.steps][:1] not in (["nodes"], ["config"]):
        return
    entries = long_entries(schema.NODE, held)
    if "id" not in entries:
        yield _with_id(case, held)
        return
    told = {"run", "prompt", "prompt_template", "wait"} & set(entries)
    named = entries["id"][1]
    slug = named.text if isinstance(named, YamlScalar) else "it"
    if not told and "worker_type" not in entries:
        edit = with_key(case.page, held, f"run: {scalar_for('echo ' + slug)}")
        yield Mend(t("add a script with run"), (edit,), is_preferred=True)
        at, _, worker = with_key(case.page, held, "worker: build")
        _, _, prompt = with_key(case.page, held, f"prompt: {scalar_for(slug)}")
        yield Mend(t("add a worker and a prompt"), ((at, at, worker + prompt),))
    elif not told:
        edit = with_key(case.page, held, f"prompt: {scalar_for(slug)}")
        yield Mend(t("add a prompt"), (edit,), is_preferred=True)
    elif "worker_type" not in entries and "run" not in entries:
        for worker in ("build", "shell"):
            edit = with_key(case.page, held, f"worker: {worker}")
            yield Mend(t("add worker: {worker}", worker=worker), (edit,), worker == "build")


def _with_id(case: Case, held: YamlMap) -> Mend:
    taken = set(case.analysis.slugs)
    slug = next(name for n in range(1, len(taken) + 2) if (name := f"node-{n}") not in taken)
    if is_flow(case.body, held):
        is_empty = case.body[held.start + 1 :].lstrip().startswith("}")
        edit = (held.start + 1, held.start + 1, f" id: {slug}{' ' if is_empty else ','}")
    else:
        gap = case.page.line_break + " " * column_of(case.page, held.start)
        edit = (held.start, held.start, f"id: {slug}{gap}")
    return Mend(t("add id: {slug}", slug=slug), (edit,), is_preferred=True)


def value(case: Case) -> Mends:
    """A value of another type, none of the choices, or out of range."""
    scalar, kind = case.scalar, case.kind
    if scalar is None or kind is None:
        return
    edit = _as(case, kind, scalar)
    if edit is not None:
        yield Mend(t("write {text}", text=edit[2][:60]), (edit,), is_preferred=True)


def _as(case: Case, kind: schema.Kind, scalar: YamlScalar) -> Edit | None:
    kinds = kind.kinds if isinstance(kind, schema.Either) else (kind,)
    for inner in kinds:
        text = _fitting(inner, scalar, case.body[scalar.start : scalar.end])
        if text is not None:
            return scalar.start, scalar.end, text
    return None


def _fitting(kind: schema.Kind, scalar: YamlScalar, raw: str) -> str | None:
    """What of this kind was meant; None where there is no telling."""
    word = scalar.text.strip()
    if isinstance(kind, schema.ListOf):
        if not word:
            return "[]"
        return f"[{raw}]" if "\n" not in raw and not set(raw) & set(",[]{}#|>") else None
    if isinstance(kind, schema.Bool):
        return "true" if word.lower() in _TRUE else "false" if word.lower() in _FALSE else None
    if isinstance(kind, schema.Int | schema.Number):
        return _number(kind, word)
    if isinstance(kind, schema.Text) and kind.choices:
        return closest(word, kind.choices, cutoff=0.4)
    if isinstance(kind, schema.Text | schema.Scalar) and scalar.is_plain and word.isprintable():
        pattern = kind.pattern if isinstance(kind, schema.Text) else ""
        return quoted(scalar.text) if not pattern or re.fullmatch(pattern, scalar.text) else None
    return None


def _number(kind: schema.Int | schema.Number, word: str) -> str | None:
    match = _DIGITS.match(word)
    if match is None or len(match.group()) > 18:
        return None
    found = float(match.group().replace("_", "").replace(",", "") or 0)
    if match.end() < len(word):
        return None  # a unit: nobody knows which was meant
    if kind.low is not None:
        found = max(found, kind.low)
    if kind.high is not None:
        found = min(found, kind.high)
    text = str(round(found)) if isinstance(kind, schema.Int) or found == round(found) else str(found)
    try:
        read_scalar(kind, text, is_plain=True)
    except ScalarMisread:
        return None
    return text


def enum(case: Case) -> Mends:
    """An enum without choices, or choices without an enum."""
    step = case.steps[-1] if case.steps else None
    if step is None or not isinstance(step.value, YamlMap):
        return
    entries = long_entries(schema.INPUT, step.value)
    if "enum" not in entries:
        yield Mend(t("add choices"), (with_key(case.page, step.value, "enum: [a, b]"),), is_preferred=True)
    elif "type" in entries:
        held = entries["type"][1]
        edit = (held.start, max(held.start, end_of(case.body, held)), "enum")
        yield Mend(t("write type: enum"), (edit,), is_preferred=True)
    else:
        yield Mend(t("write type: enum"), (with_key(case.page, step.value, "type: enum"),), is_preferred=True)


def name(case: Case) -> Mends:
    """A `config.name` that is not the file's."""
    if case.analysis.name is not None and case.scalar is not None:
        text = scalar_for(case.analysis.name)
        yield Mend(t("write {text}", text=text), ((case.scalar.start, case.scalar.end, text),), is_preferred=True)
