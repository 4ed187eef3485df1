"""Drawing in place: one frame stays at the bottom, what is said above it stays above, and little is written."""

from typing import IO, cast

import pytest
from rich.console import Console, Group
from rich.text import Text

from graphd.cli.paper import Paper
from tests.kit.emulator import Emulator


def papered(width: int = 40, height: int = 10, *, colours: bool = True) -> tuple[Paper, Emulator, Console]:
    emulator = Emulator(width)
    console = Console(
        file=cast(IO[str], emulator), width=width, height=height, force_terminal=True, highlight=False,
        no_color=not colours, color_system="standard",
    )  # fmt: skip
    return Paper(console), emulator, console


def frame(*lines: str) -> Group:
    return Group(*(Text(line, style="cyan", no_wrap=True, overflow="ellipsis") for line in lines))


def test_a_frame_takes_the_place_of_the_last_one_longer_or_shorter() -> None:
    paper, terminal, _ = papered()
    paper.open()
    for lines in (["a", "b"], ["a", "c", "d"], ["x"], ["x", "日本"]):
        paper.draw(frame(*lines))
        assert terminal.shown == lines
    paper.close()
    assert terminal.shown == ["x", "日本"], "the last one stays"


def test_what_is_said_above_stays_and_the_frame_goes_on_below_it() -> None:
    paper, terminal, _ = papered()
    paper.draw(frame("tree", "keys"))
    paper.above("output 1\noutput 2")
    paper.draw(frame("tree", "keys"))
    paper.above("output 3")
    paper.draw(frame("tree 2"))
    assert terminal.shown == ["output 1", "output 2", "output 3", "tree 2"]


def test_only_lines_that_changed_are_written() -> None:
    paper, terminal, _ = papered()
    paper.draw(frame("the first line", "the second line", "the third line"))
    before = terminal.written
    paper.draw(frame("the first line", "the second line", "the third line"))
    assert terminal.written == before, "a selection in the terminal lives on"
    paper.draw(frame("the first line", "the 2nd", "the third line"))
    assert terminal.written - before < 40
    assert terminal.shown == ["the first line", "the 2nd", "the third line"]


def test_a_frame_that_is_too_high_is_cut_so_that_nothing_scrolls() -> None:
    paper, terminal, _ = papered(height=5)
    paper.draw(frame(*"abcdefgh"))
    assert terminal.shown == list("abcd")
    paper.draw(frame(*"xyz"))
    assert terminal.shown == list("xyz")


def test_a_terminal_that_became_narrower_has_wrapped_the_old_frame() -> None:
    paper, terminal, console = papered(width=40)
    paper.draw(frame("above all", "x" * 39))
    # what a terminal makes of it at 20 columns: three rows, the cursor below them
    console.width = terminal.width = 20
    terminal.rows = ["above all", "x" * 20, "x" * 19, ""]
    terminal._row, terminal._column = 3, 0
    paper.draw(frame("above all", "y" * 19))
    assert terminal.shown == ["above all", "y" * 19]


@pytest.mark.parametrize("colours", [True, False])
def test_no_colour_where_none_is_wanted(colours: bool) -> None:
    paper, terminal, console = papered(colours=colours)
    said: list[str] = []
    terminal.write = said.append  # type: ignore[method-assign, assignment]
    paper.draw(frame("x"))
    assert ("\x1b[36m" in "".join(said)) == colours
    assert console.no_color != colours
