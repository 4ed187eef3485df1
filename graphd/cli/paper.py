"""The last lines of a terminal, drawn over in place; what is said above them stays in its scrollback, to be copied.

No alternate screen: nothing is hidden, and nothing is lost at the end. Only lines that changed are written, so a
selection elsewhere lives on. Source: spec product.md, Command line; research editors.md §5.
"""

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


class Paper:
    """Where a frame is drawn. The cursor rests on the line below it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[str] = []
        self._cells: list[int] = []
        self._width = 0

    def open(self) -> None:
        """Hide the cursor; the next frame begins where the cursor is."""
        self._lines, self._cells = [], []
        self._write(_HIDE)

    def close(self) -> None:
        """The last frame stays."""
        self._write(_SHOW)

    def draw(self, frame: RenderableType) -> None:
        """Put the frame in the place of the last one; what has no room is left out at its end."""
        with self._console.capture() as captured:
            self._console.print(frame)
        lines = captured.get().rstrip("\n").split("\n")[: max(1, self._console.height - 1)]
        width = self._console.width
        if lines == self._lines and width == self._width:
            return
        written = [self._up()]
        for place, line in enumerate(lines):
            is_same = width == self._width and place < len(self._lines) and line == self._lines[place]
            written.append("\n" if is_same else f"\x1b[2K{line}\n")
        if len(lines) < len(self._lines) or width != self._width:
            written.append("\x1b[J")
        self._lines, self._width = lines, width
        self._cells = [cell_len(Text.from_ansi(line).plain) for line in lines]
        self._write("".join(written))

    def above(self, text: str) -> None:
        """Say something that stays; the frame has to be drawn again below it."""
        self._write(f"{self._up()}\x1b[J{text}\n")
        self._lines, self._cells = [], []

    def _up(self) -> str:
        """To the first line of the frame: a terminal that became narrower has wrapped its lines."""
        width = max(1, self._console.width)
        rows = sum(max(1, -(-cells // width)) for cells in self._cells)
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()
