"""Keys of a terminal: names of sequences, characters of several bytes, pastes that are no commands."""

import pytest

from graphd.cli.keyboard import Decoder, Pasted


@pytest.mark.parametrize(
    ("read", "keys"),
    [
        (b"j", ["j"]), (b"jjk", ["j", "j", "k"]), (b"\x1b[A", ["up"]), (b"\x1bOB", ["down"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]), (b"\r\n", ["enter", "enter"]), (b"\x1b", ["escape"]),
        (b"\x1b\x1b[A", ["escape", "up"]), (b"\x7f", ["backspace"]), (b"\x1bx", []), (b"\x1b[99;5u", []),
        (b"\x1b[200", []), (b"\x01\x00", []), ("前".encode(), ["前"]), (b"\xff", ["\ufffd"]),
    ],
)  # fmt: skip
def test_what_is_read_becomes_keys(read: bytes, keys: list[str]) -> None:
    assert Decoder().feed(read) == keys


def test_a_character_over_two_reads_is_one_key() -> None:
    decoder, whole = Decoder(), "前".encode()
    assert decoder.feed(whole[:2]) == []
    assert decoder.feed(whole[2:] + b"q") == ["前", "q"]


def test_a_paste_is_one_piece_however_long_it_takes_and_whatever_is_in_it() -> None:
    decoder = Decoder()
    assert decoder.feed(b"j\x1b[200~cy\n") == ["j"]
    assert decoder.feed(b"\x1b[A more") == []
    keys = decoder.feed(b"\x1b[201~k")
    assert keys == ["cy\n\x1b[A more", "k"]
    assert isinstance(keys[0], Pasted)
    assert not isinstance(keys[1], Pasted)
