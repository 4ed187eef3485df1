"""Checks of what single nodes ask for beside their work: gates, waits, lists of items, reviews, checks, globs.

Part of `plan.check_plan`. What compares nodes along paths (`revise`) comes only where needs and slugs are sound.
Source: spec workflow.md, Node; model.md, Gates.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from graphd.base.text import Text, t
from graphd.core.definition import Definition, Wait
from graphd.core.durations import duration_ms, moment_ms
from graphd.core.overlap import glob_reason
from graphd.core.reach import Reach
from graphd.core.trouble import SOURCE, PlanTrouble, suggestion, unknown_worker

MAX_GLOBS: Final = 64
_PATHS_TOLD: Final = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_SIGNAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")
_BESIDE_WAIT: Final = ("gate", "for_each", "verify", "output_schema", "artifacts", "approval", "writes")


def clause_troubles(index: int, definition: Definition, workers: Collection[str] | None) -> Iterator[PlanTrouble]:
    """What is wrong with one node's clauses, seen alone. `workers` None: their names are not checked."""
    if definition.wait is not None:
        yield from _wait_troubles(index, definition, definition.wait)
    if definition.for_each is not None:
        yield from _items_troubles(index, definition)
    if definition.verify is not None:
        yield from _verify_troubles(index, definition, workers)
    for part, globs in (("artifacts", definition.artifacts), ("writes", definition.writes)):
        yield from _glob_troubles(index, definition.slug, part, globs)


def path_troubles(definitions: Sequence[Definition]) -> Iterator[PlanTrouble]:
    """What is wrong between nodes: `revise` that leads nowhere or leaks, reviews of nodes that did not come before.

    The first of them: a leak is one of a gate and a reader, and a plan may have millions of such pairs.
    """
    return islice(_path_troubles(definitions), _PATHS_TOLD)


def _path_troubles(definitions: Sequence[Definition]) -> Iterator[PlanTrouble]:
    reach = Reach(definitions)
    known = {d.slug for d in definitions}
    for index, definition in enumerate(definitions):
        if definition.gate is not None and definition.gate.revise is not None:
            yield from _revise_troubles(index, definitions, reach, known)
        if definition.review is not None:
            yield from _review_troubles(index, definition, reach, known)


def _wait_troubles(index: int, definition: Definition, wait: Wait) -> Iterator[PlanTrouble]:
    slug = definition.slug
    beside = [name for name in _BESIDE_WAIT if getattr(definition, name)]
    if definition.worker or definition.spec.strip():
        message = t("{node} waits, so nobody works on it", node=slug)
        yield PlanTrouble("wait.worker", slug, message, t("remove its worker and prompt"), index, "wait")
    if beside:
        message = t("{node} waits: {keys} has no effect on it", node=slug, keys=", ".join(beside))
        yield PlanTrouble("wait.beside", slug, message, t("put it on a node of its own"), index, beside[0])
    if (wait.until is None) == (wait.signal is None):
        message = t("{node} waits for either a time or a signal", node=slug)
        yield PlanTrouble("wait.malformed", slug, message, t("write until or signal"), index, "wait")
    elif wait.until is not None and duration_ms(wait.until) is None and moment_ms(wait.until) is None:
        message = t("{text!r} is neither a duration nor a time", text=wait.until[:40])
        hint = t("write 90s, 1h30m or 2026-12-01T09:00+01:00, with its offset or Z")
        yield PlanTrouble("wait.malformed", slug, message, hint, index, "wait", "until")
    elif wait.signal is not None and not _SIGNAL.match(wait.signal):
        message = t("{text!r} is no name of a signal", text=wait.signal[:40])
        hint = t("1 to 128 of A-Z a-z 0-9 _ . : -, a letter or digit first")
        yield PlanTrouble("wait.malformed", slug, message, hint, index, "wait", "signal")
    elif wait.timeout_s is not None and (wait.until is not None or wait.timeout_s <= 0):
        message = t("{node}: timeout_s bounds the waiting for a signal, in seconds above 0", node=slug)
        yield PlanTrouble("wait.malformed", slug, message, t("remove timeout_s"), index, "wait", "timeout_s")


def _items_troubles(index: int, definition: Definition) -> Iterator[PlanTrouble]:
    slug, each = definition.slug, definition.for_each
    assert each is not None  # noqa: S101  # asked by the caller
    match = SOURCE.match(each.source)
    if match is None:
        message = t("{source!r} is no list of a need", source=each.source[:80])
        hint = t("write slug, slug.output or slug.output.a.b")
        yield PlanTrouble("forEach.malformed", slug, message, hint, index, "for_each", "in")
    elif match.group(1) not in definition.needs:
        need = match.group(1)
        message = t("{slug} takes its items from {need}, which it does not need", slug=slug, need=need)
        hint = suggestion(need, definition.needs) or t("add {node} to its needs", node=need)
        yield PlanTrouble("forEach.notANeed", slug, message, hint, index, "for_each", "in")
    taken = {*definition.needs, *(name for name, _ in definition.input_mapping), "index", "inputs"}
    if not _NAME.match(each.name) or each.name in taken:
        message = t("an item of {slug} can't be called {name}", slug=slug, name=each.name[:64])
        hint = t("a letter or _ first, and no name that the prompt binds already")
        yield PlanTrouble("forEach.name", slug, message, hint, index, "for_each", "as")
    if definition.gate is not None:
        message = t("{slug} has a list as its output, so it can't be a gate", slug=slug)
        yield PlanTrouble("forEach.gate", slug, message, t("put the gate into a node after it"), index, "gate")
    longest = len(slug) + 1 + len(str(each.max))
    if longest > 64:
        message = t("the items of {slug} would have names of {count} characters", slug=slug, count=longest)
        yield PlanTrouble("slug.tooLong", slug, message, t("at most 64: give it a shorter id"), index, "slug")


def _verify_troubles(index: int, definition: Definition, workers: Collection[str] | None) -> Iterator[PlanTrouble]:
    slug, verify = definition.slug, definition.verify
    assert verify is not None  # noqa: S101  # asked by the caller
    if (verify.run is None) == (verify.worker is None):
        message = t("{node} is verified by either a command or a worker", node=slug)
        yield PlanTrouble("verify.malformed", slug, message, t("keep one of run and worker_type"), index, "verify")
    elif verify.worker is not None:
        if workers is not None and verify.worker not in workers:
            yield unknown_worker(index, slug, verify.worker, workers, part="verify", item="worker_type")
        if not verify.criteria.strip():
            message = t("{node}: nobody can verify without criteria", node=slug)
            yield PlanTrouble("verify.malformed", slug, message, t("say what has to hold"), index, "verify")


def _glob_troubles(index: int, slug: str, part: str, globs: tuple[str, ...]) -> Iterator[PlanTrouble]:
    if len(globs) > MAX_GLOBS:
        message = t("{node}: {count} globs; at most {limit}", node=slug, count=len(globs), limit=MAX_GLOBS)
        yield PlanTrouble("glob.malformed", slug, message, t("name a folder instead"), index, part)
    for place, glob in enumerate(globs[:MAX_GLOBS]):
        reason = glob_reason(glob)
        if reason is not None:
            message = t("{glob!r}: {reason}", glob=glob[:80], reason=reason)
            yield PlanTrouble("glob.malformed", slug, message, t("write for example src/**/*.py"), index, part, place)


def _revise_troubles(
    index: int, definitions: Sequence[Definition], reach: Reach, known: Collection[str]
) -> Iterator[PlanTrouble]:
    gate = definitions[index]
    target = gate.gate.revise if gate.gate is not None else None
    assert target is not None  # noqa: S101  # asked by the caller
    if target not in known or not reach.waits_for(gate.slug, target):
        message = t("{gate} can't send {node} back: it does not come before it", gate=gate.slug, node=target)
        close = suggestion(target, gate.needs) if target not in known else None
        hint: Text = close or t("name a node that {gate} waits for", gate=gate.slug)
        yield PlanTrouble("gate.notAnAncestor", gate.slug, message, hint, index, "gate", "revise")
        return
    path = set(reach.path(target, gate.slug))
    again = path - {gate.slug}
    leaking = {reader for slug in again for reader in reach.readers(slug)} - path
    for place in sorted(map(reach.place, leaking)):
        other = definitions[place]
        if gate.slug in other.needs:
            continue
        found = next(at for at, need in enumerate(other.needs) if need in again)
        message = t(
            "{node} reads {need}, which {gate} may send back, without waiting for {gate}",
            node=other.slug, need=other.needs[found], gate=gate.slug,
        )  # fmt: skip
        hint = t("add {node} to its needs", node=gate.slug)
        yield PlanTrouble("reviseLeaks", other.slug, message, hint, place, "needs", found)


def _review_troubles(index: int, definition: Definition, reach: Reach, known: Collection[str]) -> Iterator[PlanTrouble]:
    slug, review = definition.slug, definition.review
    assert review is not None  # noqa: S101  # asked by the caller
    for key, other in (
        ("implementation_node_id", review.implementation),
        ("verification_node_id", review.verification),
    ):
        if other is not None and (other not in known or not reach.waits_for(slug, other)):
            message = t("{node} reviews {other}, which does not come before it", node=slug, other=other)
            close = suggestion(other, known) if other not in known else None
            hint = close or t("add {node} to its needs", node=other)
            yield PlanTrouble("review.notAnAncestor", slug, message, hint, index, "review", key)
