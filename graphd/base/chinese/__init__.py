"""The Chinese catalogue as data: English template → Chinese template with the same placeholders, by area.

`CATALOGUE` has exactly the templates that `t(…)` is called with (tests/meta/test_catalogue.py); `STORED` are those
whose English sentences the log keeps. Product words stay as they are; commands, states and codes are never translated.
"""

from typing import Final

from graphd.base.chinese import (
    agents,
    asks,
    bounds,
    children,
    diffs,
    editor,
    explanations,
    files,
    gates,
    house,
    keys,
    page,
    plans,
    replan,
    rules,
    runs,
    talks,
    terminal,
    wire,
)

AREAS: Final = (
    runs.TEXTS, rules.TEXTS, asks.TEXTS, agents.TEXTS, plans.TEXTS, files.TEXTS, explanations.TEXTS, editor.TEXTS,
    wire.TEXTS, house.TEXTS, terminal.TEXTS, talks.TEXTS, gates.TEXTS, bounds.TEXTS, replan.TEXTS, children.TEXTS,
    diffs.TEXTS, page.TEXTS, keys.TEXTS,
)  # fmt: skip
CATALOGUE: Final[dict[str, str]] = {template: chinese for area in AREAS for template, chinese in area.items()}
STORED: Final = (
    frozenset(runs.TEXTS)
    | frozenset(talks.TEXTS)
    | frozenset(agents.STORED)
    | frozenset(gates.TEXTS)
    | frozenset(bounds.KEPT)
    | frozenset(asks.KEPT)
    | frozenset(replan.REASONS)
)
