"""The keys as they are drawn: a bar of those that do something now, and the list of all with why the others do not."""

from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from graphd.base.text import t
from graphd.cli.keymap import Key
from graphd.cli.speech import say

_ALWAYS: Final = ("leave", "help")
_ROWS: Final = 2
_NAMES: Final = {"enter": "⏎"}


class Keys:
    """Draws keys on lines of `width` cells."""

    def __init__(self, width: int, *, is_unicode: bool) -> None:
        self._width = width
        self._is_unicode = is_unicode

    def bar(self, keys: list[Key]) -> list[Text]:
        """At most two lines; what has no room is left out, but never how to leave and how to see all."""
        shown = [self._shown(key) for key in keys if not key.refusal and key.command not in _ALWAYS]
        always = [self._shown(key) for key in keys if key.command in _ALWAYS]
        if not always:
            return []
        kept = sum(cell_len(text.plain) for text in always)
        rows = [_line(Text.assemble((" ↑↓" if self._is_unicode else " j k", "bold cyan")))]
        for at, text in enumerate([*shown, *always]):
            left = self._width - cell_len(rows[-1].plain) - cell_len(text.plain)
            begins_row = left < 0 and len(rows) < _ROWS
            if begins_row:
                left = self._width - cell_len(text.plain)
            is_last_row = len(rows) + begins_row == _ROWS
            if is_last_row and at < len(shown) and left < kept:
                continue
            if begins_row:
                rows.append(_line(Text()))
            rows[-1].append_text(text)
        return rows

    def _shown(self, key: Key) -> Text:
        return Text.assemble("  ", (self._name(key), "bold cyan"), f" {say(key.label)}")

    def _name(self, key: Key) -> str:
        return _NAMES.get(key.key, key.key) if self._is_unicode else key.key

    def help(self, keys: list[Key], room: int) -> list[Text]:
        """Every key on its line, with the reason where it does nothing now; in columns where `room` is short."""
        entries = [
            Text.assemble((f" {self._name(key):>5}  ", "dim" if key.refusal else "bold cyan"),
                          (say(key.label), "dim" if key.refusal else ""))
            for key in keys
        ]  # fmt: skip
        more = Text.assemble((f" {'1-9':>5}  ", "bold cyan"), say(t("answer")))
        entries.append(more)
        if len(entries) <= room:
            for entry, key in zip(entries, keys, strict=False):
                if key.refusal:
                    entry.append(f"  ({say(key.refusal)})", style="dim")
            return [_line(entry) for entry in entries]
        rows = max(1, room)
        columns = [entries[at : at + rows] for at in range(0, len(entries), rows)]
        widths = [max(cell_len(entry.plain) for entry in column) + 2 for column in columns]
        drawn = []
        for row in zip_longest(*columns):
            line = Text()
            for entry, width in zip(row, widths, strict=True):
                if entry is not None:
                    line.append_text(entry).append(" " * (width - cell_len(entry.plain)))
            drawn.append(_line(line))
        return drawn


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
