"""A terminal as far as our live tree writes to one: text, line feeds, the cursor up, what erases. All else fails."""

import re

from rich.cells import cell_len

_PART = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n\a])|([^\x1b\r\n\a]+)")


class Emulator:
    """Rows of text without end: the scrollback and the screen are one. Lines that are too long fail the test."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = [""]
        self._row = self._column = 0
        self.written = 0

    def write(self, text: str) -> None:
        at = 0
        self.written += len(text)
        for part in _PART.finditer(text):
            assert part.start() == at, f"not understood: {text[at : at + 20]!r}"
            at = part.end()
            numbers, letter, control, words = part.groups()
            if words:
                self._put(words)
            elif control == "\n":
                self._row, self._column = self._row + 1, 0
                self.rows += [""] * (self._row + 1 - len(self.rows))
            elif control == "\r":
                self._column = 0
            elif letter == "A":
                self._row = max(0, self._row - int(numbers or 1))
            elif letter == "K":
                assert numbers == "2"
                self.rows[self._row] = ""
            elif letter == "J":
                assert numbers == ""
                self.rows = [*self.rows[: self._row], self.rows[self._row][: self._column]]
            else:
                assert letter in "mhl", f"no sequence of ours: {part.group()!r}"
        assert at == len(text), f"not understood: {text[at : at + 20]!r}"

    def flush(self) -> None:
        """As a file has it."""

    def _put(self, words: str) -> None:
        row = self.rows[self._row]
        self.rows[self._row] = row[: self._column].ljust(self._column) + words + row[self._column + len(words) :]
        self._column += len(words)
        assert cell_len(self.rows[self._row]) <= self.width, f"a terminal would wrap {self.rows[self._row]!r}"

    @property
    def shown(self) -> list[str]:
        """Everything, as a person can scroll through it."""
        return [row.rstrip() for row in self.rows if row.strip()]
