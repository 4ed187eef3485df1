"""The timeline: a bar for each attempt, queued, at work and ending, and what came of it."""

from dataclasses import dataclass
from typing import Any, Final

from graphd.base.text import t
from graphd.cli.page.drawing import anchor
from graphd.cli.page.markup import Markup, join, tag
from graphd.cli.page.taking import Taken
from graphd.cli.speech import say
from graphd.cli.words import duration

Wire = dict[str, Any]
ROWS_LIMIT: Final = 500
_NAMES, _BARS, _TAIL = 190, 760, 120
_WIDTH: Final = _NAMES + _BARS + _TAIL
_ROW, _TOP = 22, 26
_THIN: Final = 1.5
_NAME_CHARS: Final = 24
_STEPS_S: Final = (
    0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800,
)  # fmt: skip
_TICKS_LIMIT: Final = 8
_MARKS: Final = {
    "achieved": "✓", "failed": "✗", "not_achieved": "✗", "cancelled": "✕", "paused": "◌", "lost": "!", "put_back": "◌",
}  # fmt: skip


@dataclass(slots=True, frozen=True)
class Bar:
    """One attempt, or a node that settles without one. Times in ms; `ending_ms` is where its end was wanted."""

    slug: str
    name: str
    queued_ms: int
    started_ms: int
    ending_ms: int
    ended_ms: int
    said: str
    """Its outcome, or its state while it has none."""

    @property
    def ran_ms(self) -> int:
        """From its start to its end."""
        return self.ended_ms - self.started_ms


def bars(taken: Taken) -> list[Bar]:
    """In the order in which they started; what runs goes on to the moment of the page, what is queued begins there."""
    found = []
    for node in taken.nodes:
        attempts = taken.attempts.get(node["slug"], [])
        found += [_bar(taken, node, attempt) for attempt in attempts]
        if not attempts and node.get("startedAt"):
            end = node.get("endedAt") or taken.at_ms
            slug, start = node["slug"], node["startedAt"]
            found.append(Bar(slug, slug, start, start, end, max(start, end), node["state"]))
        if node["state"] == "ready" and (queued := taken.queued.get(node["slug"])):
            at = taken.at_ms
            found.append(Bar(node["slug"], node["slug"], min(queued[-1], at), at, at, at, "ready"))
    return sorted(found, key=lambda bar: (bar.queued_ms, bar.started_ms))


def _bar(taken: Taken, node: Wire, attempt: Wire) -> Bar:
    slug, role, number = node["slug"], attempt["role"], attempt["number"]
    start = attempt["startedAt"]
    end = max(start, attempt.get("endedAt") or taken.at_ms)
    before = [at for at in taken.queued.get(slug, []) if at <= start] if role == "worker" else []
    ending = min(max(start, taken.stopping.get((slug, role, number), end)), end)
    name = f"{slug}@{number}" + ("" if role == "worker" else f" {role}")
    said = attempt.get("outcome") or attempt["state"]
    return Bar(slug, name, before[-1] if before else start, start, ending, end, said)


def timeline(taken: Taken) -> Markup:
    """The drawing; the table of attempts says the same."""
    shown = bars(taken)
    if not shown:
        return tag("p", say(t("nothing has started yet")), class_="quiet")
    cut = len(shown) - ROWS_LIMIT
    shown = shown[:ROWS_LIMIT]
    first, last = min(bar.queued_ms for bar in shown), max(bar.ended_ms for bar in shown)
    span = max(1, last - first)
    height = _TOP + _ROW * len(shown) + 6
    rows = [_row(bar, place, first, span) for place, bar in enumerate(shown)]
    svg = tag(
        "svg", *_axis(span, height), *rows, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH, height=height, role="group",
        aria_label=say(t("when each attempt was queued and at work; the table below says the same")),
    )  # fmt: skip
    more = tag("p", say(t("{count} later ones are in the table alone", count=cut)), class_="quiet") if cut > 0 else None
    return join(_legend(), tag("div", svg, class_="wide"), more)


def _legend() -> Markup:
    def one(kind: str, word: str) -> Markup:
        patch = tag("svg", tag("rect", width=12, height=12, class_=kind), width=12, height=12, aria_hidden="true")
        return tag("li", patch, word)

    words = (("queue", t("queued")), ("work", t("at work")), ("end", t("ending")))
    return tag("ul", *(one(kind, say(word)) for kind, word in words), class_="legend")


def _axis(span_ms: int, height: int) -> list[Markup]:
    step = next((s for s in _STEPS_S if span_ms / 1000 / s <= _TICKS_LIMIT), span_ms / 1000 / _TICKS_LIMIT)
    drawn = []
    for number in range(int(span_ms / 1000 / step) + 1):
        x = round(_NAMES + number * step * 1000 / span_ms * _BARS, 1)
        drawn.append(tag("line", x1=x, x2=x, y1=_TOP - 6, y2=height, class_="grid"))
        drawn.append(tag("text", f"+{duration(number * step * 1000)}", x=x, y=14, text_anchor="middle", class_="axis"))
    return drawn


def _row(bar: Bar, place: int, first: int, span: int) -> Markup:
    y = _TOP + place * _ROW

    def part(kind: str, begin: int, end: int) -> Markup | None:
        if end <= begin and kind != "work":
            return None
        x, width = _NAMES + (begin - first) / span * _BARS, max(_THIN, (end - begin) / span * _BARS)
        return tag("rect", x=round(x, 1), y=y + 4, width=round(width, 1), height=_ROW - 9, rx=1, class_=kind)

    name = bar.name if len(bar.name) <= _NAME_CHARS else bar.name[: _NAME_CHARS - 1] + "…"
    queue, ran = duration(bar.started_ms - bar.queued_ms), duration(bar.ran_ms)
    told = say(t("{name}: queued {queue}, at work {ran}, {said}", name=bar.name, queue=queue, ran=ran, said=bar.said))
    right = min(_NAMES + _BARS + 6, round(_NAMES + (bar.ended_ms - first) / span * _BARS + 6, 1))
    mark = tag("tspan", _MARKS.get(bar.said, "●" if bar.said != "ready" else "◌"), class_=f"mark {bar.said}")
    is_queued = bar.said == "ready" and bar.started_ms == bar.ended_ms
    return tag(
        "a", tag("title", told),
        tag("text", name, x=_NAMES - 8, y=y + 15, text_anchor="end"),
        part("queue", bar.queued_ms, bar.started_ms),
        None if is_queued else part("work", bar.started_ms, bar.ending_ms),
        part("end", bar.ending_ms, bar.ended_ms),
        tag("text", mark, f" {queue if is_queued else ran}", x=right, y=y + 15, class_="quiet"),
        href=f"#{anchor(bar.slug)}", class_="bar", aria_label=told,
    )  # fmt: skip
