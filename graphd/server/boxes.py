"""A layout in box characters: boxes row by row, lines between them in tracks of their own. Pure.

All lines of one box leave it together and share a track; each comes in at a place of its own. Where a line of one box
passes a line of another, the upright one is drawn through: a corner or a tee always means that lines belong together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from graphd.server.layout import Layout, Needs, lay_out

GAP: Final = 2
PADDING: Final = 4
BOX_ROWS: Final = 3
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_GLYPHS: Final = dict(zip(range(16), " │││─┘┐┤─└┌├─┴┬┼", strict=True))


@dataclass(slots=True)
class _Canvas:
    rows: list[list[str]] = field(default_factory=list)
    marks: dict[tuple[int, int], int] = field(default_factory=dict)  # (row, column) → sides that a line leaves by
    upright: dict[tuple[int, int], set[str]] = field(default_factory=dict)  # whose lines pass there
    level: dict[tuple[int, int], str] = field(default_factory=dict)

    def mark(self, row: int, column: int, sides: int) -> None:
        self.marks[row, column] = self.marks.get((row, column), 0) | sides

    def draw_down(self, column: int, first: int, last: int, owner: str) -> None:
        for row in range(first, last + 1):
            sides = (UP if row > first else 0) | (DOWN if row < last else 0)
            self.mark(row, column, sides)
            self.upright.setdefault((row, column), set()).add(owner)

    def draw_across(self, row: int, first: int, last: int, owner: str) -> None:
        for column in range(first, last + 1):
            self.mark(row, column, (LEFT if column > first else 0) | (RIGHT if column < last else 0))
            self.level[row, column] = owner

    def write(self, row: int, column: int, text: str) -> None:
        while len(self.rows) <= row:
            self.rows.append([])
        line = self.rows[row]
        line.extend(" " * (column + len(text) - len(line)))
        line[column : column + len(text)] = text

    def text(self) -> str:
        for (row, column), sides in sorted(self.marks.items()):
            owners, across = self.upright.get((row, column), set()), self.level.get((row, column))
            is_passing = across is not None and owners and across not in owners
            self.write(row, column, "│" if is_passing else _GLYPHS[sides])
        return "\n".join("".join(row).rstrip() for row in self.rows) + "\n"


def draw(needs: Needs, labels: Mapping[str, str], *, columns: int) -> str | None:
    """The graph in box characters; None where it is wider than `columns`, or its lines can't be told apart."""
    widths = {node: max(len(label) + PADDING, 2 * len(needs[node]) + 3) for node, label in labels.items()}
    layout = lay_out(needs, widths, gap=GAP, waypoint=1)
    if layout.width > columns:
        return None
    canvas, row = _Canvas(), 0
    for layer, places in enumerate(layout.layers):
        for place in places:
            spot = layout.spots[place]
            if spot.is_node:
                label = labels[spot.source]
                canvas.write(row, spot.x, f"┌{'─' * (spot.width - 2)}┐")
                canvas.write(row + 1, spot.x, f"│ {label:^{spot.width - PADDING}} │")
                canvas.write(row + 2, spot.x, f"└{'─' * (spot.width - 2)}┘")
            else:
                canvas.draw_down(spot.middle, row, row + BOX_ROWS - 1, spot.source)
        row += BOX_ROWS
        if layer + 1 < len(layout.layers):
            lines = _Lines(layout, layer)
            if not lines.find_tracks() and not (lines.shift_entries() and lines.find_tracks()):
                return None
            row = _draw_lines(canvas, lines, row)
    return canvas.text()


def _draw_lines(canvas: _Canvas, lines: "_Lines", row: int) -> int:
    """Lines from one layer to the next; returns the row where that one's boxes begin."""
    bottom = row + max(lines.tracks.values(), default=0) + 1
    for place, track in lines.tracks.items():
        spot, at = lines.spots[place], row + track
        ends = lines.ends(place)
        canvas.draw_down(spot.middle, row - 1, at, spot.source)
        canvas.draw_across(at, min(spot.middle, *ends), max(spot.middle, *ends), spot.source)
        for below, end in zip(spot.below, ends, strict=True):
            canvas.draw_down(end, at, bottom, spot.source)
            # the upper edge of a box gets a tee; a waypoint's own line goes on from here
            canvas.mark(bottom, end, LEFT | RIGHT if lines.spots[below].is_node else DOWN)
        canvas.mark(row - 1, spot.middle, LEFT | RIGHT if spot.is_node else UP)
    return bottom


class _Lines:
    """The lines from one layer to the next: where each comes in, and on which track it goes across."""

    def __init__(self, layout: Layout, layer: int) -> None:
        self.spots = layout.spots
        self.tracks: dict[int, int] = {}
        self._upper = [place for place in layout.layers[layer] if self.spots[place].below]
        self._by_exit = {self.spots[place].middle: place for place in self._upper}
        order = {place: at for at, place in enumerate(self._upper)}
        self._entries: dict[tuple[int, int], int] = {}  # (upper, lower) → the column where the line comes in
        for place in layout.layers[layer + 1]:
            above = sorted((other for other in self.spots[place].above if other in order), key=order.__getitem__)
            for at, other in enumerate(above):
                self._entries[other, place] = self.spots[place].middle + 2 * at - (len(above) - 1)

    def ends(self, place: int) -> list[int]:
        """The columns where the lines of a spot of the upper layer come in."""
        return [self._entries[place, below] for below in self.spots[place].below]

    def shift_entries(self) -> bool:
        """Move what comes in right below a foreign box one column on; False where nothing does."""
        shifted = False
        for (upper, lower), column in self._entries.items():
            if self.spots[lower].is_node and self._by_exit.get(column, upper) != upper:
                self._entries[upper, lower] += 1
                shifted = True
        return shifted

    def find_tracks(self) -> bool:
        """False where two lines would be taken for one.

        A line that comes in right below another box's middle has to go across below where that box's lines do.
        """
        after: dict[int, set[int]] = {}  # what has to lie above
        for place in self._upper:
            exits = (self._by_exit.get(end) for end in self.ends(place))
            after[place] = {other for other in exits if other is not None and other != place}
        tracks: dict[int, int] = {}
        spans: list[list[tuple[int, int]]] = []
        while len(tracks) < len(after):
            free = [place for place in after if place not in tracks and after[place] <= tracks.keys()]
            if not free:
                return False
            for place in free:
                columns = [self.spots[place].middle, *self.ends(place)]
                least = max((tracks[other] + 1 for other in after[place]), default=0)
                tracks[place] = _first_free(spans, (min(columns), max(columns)), least)
        self.tracks = tracks
        return True


def _first_free(spans: list[list[tuple[int, int]]], span: tuple[int, int], least: int) -> int:
    track = least
    while track < len(spans) and any(span[0] <= taken[1] and taken[0] <= span[1] for taken in spans[track]):
        track += 1
    while len(spans) <= track:
        spans.append([])
    spans[track].append(span)
    return track
