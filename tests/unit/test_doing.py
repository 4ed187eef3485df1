"""What a node prints, above the tree: whole lines, harmless, and of a flood the end."""

from graphd.cli.doing import HELD_CHARS, LINES_AT_ONCE, Lines


def test_pieces_become_whole_lines_and_the_last_one_comes_at_the_end() -> None:
    lines = Lines("graphd logs a")
    lines.add("one\ntw")
    assert lines.take() == ["one"]
    assert lines.take() == []
    lines.add("o\x1b[2J\n\nthree")
    assert lines.take() == ["two", ""]
    assert lines.take(is_all=True) == ["three"]
    assert lines.take(is_all=True) == []


def test_of_a_flood_the_end_is_said_and_where_all_of_it_is() -> None:
    lines = Lines("graphd logs a")
    lines.add("".join(f"{number}\n" for number in range(1000)))
    said = lines.take()
    assert said[0] == "… some is left out: graphd logs a"
    assert said[1:] == [str(number) for number in range(1000 - LINES_AT_ONCE, 1000)]
    lines.add("next\n")
    assert lines.take() == ["next"]


def test_a_line_that_never_ends_is_not_held_whole() -> None:
    lines = Lines("graphd logs a")
    for _ in range(5):
        lines.add("x" * (HELD_CHARS // 2))
    said = lines.take(is_all=True)
    assert said[0].startswith("… some is left out")
    assert len(said[1]) == HELD_CHARS
