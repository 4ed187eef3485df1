"""What may be wrong with a plan, and words for it that all checks share."""

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from graphd.base.text import Text, t

SOURCE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]*)(?:\.output(?:\.[A-Za-z0-9_-]+)*)?\Z")
_SUGGEST_FROM = 2_000  # difflib over more names than this would cost more than the suggestion is worth


@dataclass(slots=True, frozen=True)
class PlanTrouble:
    """One reason why a plan is refused. `index` is the node's place in the plan.

    `part` is `nodes`, `delivery_node`, or the node's part by its name in `Definition`; `item` is an index of `needs`
    or of globs, an offset in `condition` or `spec`, a name of `input_mapping`, or the key of a clause as a workflow
    file spells it; `path` a whole cycle.
    """

    code: str
    slug: str
    message: Text
    hint: Text
    index: int = -1
    part: str = "nodes"
    item: int | str | None = None
    path: tuple[str, ...] = ()


def suggestion(word: str, known: Collection[str]) -> Text | None:
    """`did you mean …?` where a known word is close."""
    if not known or len(known) > _SUGGEST_FROM:
        return None
    by_lower = {k.lower(): k for k in sorted(known, reverse=True)}
    close = difflib.get_close_matches(word.lower(), by_lower, 1)
    return t("did you mean {name}?", name=by_lower[close[0]]) if close else None


def unknown_worker(  # noqa: PLR0913  # the fields of one finding
    index: int, slug: str, worker: str, workers: Collection[str], *, part: str = "worker", item: str | None = None
) -> PlanTrouble:
    """A worker that nobody knows, with the one that may be meant."""
    message = t("{node}: no worker is called {worker}", node=slug, worker=worker)
    known = t("known: {known}", known=", ".join(sorted(workers)))
    close = suggestion(worker, workers)
    hint = t("{hint} ({known})", hint=close, known=known) if close else known
    return PlanTrouble("worker.unknown", slug, message, hint, index, part, item)
