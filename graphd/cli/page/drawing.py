"""The daemon's picture as SVG: boxes that can be reached by keyboard and lead to their node's section."""

from typing import Any, Final

from graphd.base.text import t
from graphd.cli.page.markup import Markup, tag
from graphd.cli.page.taking import Taken
from graphd.cli.speech import say

Wire = dict[str, Any]
MARKS: Final = {
    "achieved": "✓", "failed": "✗", "blocked": "■", "skipped": "–", "cancelled": "✕", "waiting": "○", "ready": "◌",
    "running": "●",
}  # fmt: skip
_MARGIN: Final = 8
_TIP: Final = 5


def anchor(slug: str) -> str:
    """The id of a node's section. A slug has no character that an id may not have (graphd_protocol.ids)."""
    return f"node-{slug}"


def drawing(taken: Taken) -> Markup:
    """The whole picture; wider than the page it scrolls."""
    picture = taken.picture
    width, height = picture["width"] + 2 * _MARGIN, picture["height"] + 2 * _MARGIN
    edges = [_edge(edge) for edge in picture["edges"]]
    boxes = [_box(node) for node in picture["nodes"]]
    moved = tag("g", *edges, *boxes, transform=f"translate({_MARGIN} {_MARGIN})")
    svg = tag(
        "svg", moved, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height,
        role="group", aria_label=say(t("the graph in layers; the table below says the same")),
    )  # fmt: skip
    return tag("div", svg, class_="wide")


def _edge(edge: Wire) -> Markup:
    points = edge["points"]
    x, y = points[-1]
    tip = f"M{x} {y}l-{_TIP} -{_TIP * 2}h{_TIP * 2}z"
    return tag(
        "g", tag("polyline", points=" ".join(f"{a},{b}" for a, b in points), class_="edge"),
        tag("path", d=tip, class_="tip"), aria_hidden="true",
    )  # fmt: skip


def _box(node: Wire) -> Markup:
    x, y, w, h = node["x"], node["y"], node["w"], node["h"]
    mark = tag("tspan", MARKS[node["state"]], class_="mark")
    text = tag("text", mark, f" {node['label']}", x=x + w / 2, y=y + h / 2 + 5, text_anchor="middle")
    return tag(
        "a", tag("title", f"{node['id']}: {node['state']}"), tag("rect", x=x, y=y, width=w, height=h, rx=6), text,
        href=f"#{anchor(node['id'])}", class_=f"box {node['state']}", aria_label=f"{node['label']}: {node['state']}",
    )  # fmt: skip
