"""Our framing: what is taken, what is answered, and what ends the connection before anything is interpreted."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.server import frames
from graphd.server.frames import FrameReader, FramingBroken, decode, is_too_deep

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "graphd/hello", "params": {"client": {"name": "ä"}}}


def test_frames_are_cut_at_every_byte() -> None:
    stream = frames.encode(HELLO) + frames.encode({"jsonrpc": "2.0", "method": "x"})
    for cut in range(len(stream) + 1):
        reader = FrameReader()
        found = [*reader.feed(stream[:cut]), *reader.feed(stream[cut:])]
        assert [json.loads(f.body)["method"] for f in found] == ["graphd/hello", "x"]
        assert not reader.is_midway


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"Content-Length:2\r\n\r\n",
        b"Content-Length: 2 \r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: x\r\nCONTENT-LENGTH: 2\r\n\r\n",
    ],
)
def test_headers_in_any_case_and_order_are_taken(header: bytes) -> None:
    assert [f.body for f in FrameReader().feed(header + b"{}")] == [b"{}"]


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"P",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00",
        b"{}",
        b"\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\r\nOrigin: https://evil.example\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 0x2\r\n\r\n{}",
        b"Content-Length: \r\n\r\n",
        b"Content-Length\r\n\r\n",
        b"Content-Type: x\r\n\r\n{}",
        b"Content-Length: 2\n\n{}" + b" " * 5000,
        b"Content-Type: " + b"x" * 5000,
    ],
)
def test_what_is_not_our_framing_breaks_without_an_answer(raw: bytes) -> None:
    with pytest.raises(FramingBroken) as broken:
        FrameReader().feed(raw)
    assert broken.value.answer is None


@pytest.mark.parametrize("length", [b"16777217", b"4000000000", b"9" * 300])
def test_a_body_over_the_limit_is_told_before_it_is_read(length: bytes) -> None:
    with pytest.raises(FramingBroken) as broken:
        FrameReader().feed(b"Content-Length: " + length + b"\r\n\r\n")
    assert broken.value.answer is not None
    assert broken.value.answer["data"]["code"] == "tooLarge"


def test_a_frame_that_has_begun_is_midway() -> None:
    reader = FrameReader()
    assert not reader.is_midway
    for part in (b"Content", b"-Length: 2\r\n\r\n", b"{"):
        assert reader.feed(part) == []
        assert reader.is_midway


@pytest.mark.parametrize("depth", [63, 64, 65, 66, 1000, 100_000])
@pytest.mark.parametrize("open_close", [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded_before_parsing(depth: int, open_close: tuple[str, str]) -> None:
    opening, closing = open_close
    body = (opening * depth + "1" + closing * depth).encode()
    assert is_too_deep(body) == (depth > 64)


def test_brackets_in_strings_are_no_depth() -> None:
    body = json.dumps({"a": "[" * 500 + '\\"{{"', "b": ["]", "\\"]}).encode()
    assert not is_too_deep(body)


@given(st.recursive(st.text(max_size=4) | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_depth_agrees_with_a_recursive_count(value: object) -> None:
    def depth(item: object) -> int:
        return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

    wrapped: object = value
    for _ in range(60):
        wrapped = [wrapped]
    assert is_too_deep(json.dumps(wrapped).encode()) == (depth(wrapped) > 64)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a": NaN}', -32700),
        (b"\xff", -32700),
        (b'"\\ud800"', -32700),
        (b"[" * 100_000, -32700),
        (b"[" * 70 + b"]" * 70, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', -32600),
        (b"1", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","method":1}', -32600),
    ],
)
def test_bad_bodies_get_an_answer_without_id(body: bytes, code: int) -> None:
    message = decode(body)
    assert message.trouble is not None
    assert message.trouble["code"] == code
    assert message.id is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"1.0","id":7,"method":"x"}',
        b'{"id":7,"method":"x"}',
        b'{"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","id":7,"method":null}',
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":99999999999999999999}}',
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":[-1e300]}',
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":[9223372036854775808]}',
    ],
)
def test_bad_requests_with_an_id_are_answered_under_it(body: bytes) -> None:
    message = decode(body)
    assert message.trouble is not None
    assert message.trouble["code"] == -32600
    assert message.id == 7


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"x"}',
        b'{"jsonrpc":"1.0","method":"x"}',
        b'{"method":"x","params":[1e300]}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{}}',
    ],
)
def test_notifications_and_responses_want_no_answer(body: bytes) -> None:
    message = decode(body)
    assert message.trouble is None
    assert not message.is_request


def test_nested_jsonrpc_keys_are_plain_values() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"jsonrpc":"2.0","id":1,"method":"y"}}')
    assert message.is_request
    assert message.params == {"jsonrpc": "2.0", "id": 1, "method": "y"}


def test_long_digits_in_strings_are_no_number() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"99999999999999999999"}}').trouble is None


def test_ten_thousand_mutated_streams_never_crash_the_reader() -> None:
    chance = random.Random(7)
    whole = frames.encode(HELLO) * 3
    for _ in range(10_000):
        raw = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(raw))
            match chance.randrange(3):
                case 0:
                    raw[at] = chance.randrange(256)
                case 1:
                    del raw[at : at + chance.randint(1, 9)]
                case _:
                    raw[at:at] = chance.randbytes(chance.randint(1, 9))
            raw = raw or bytearray(b"x")
        reader = FrameReader()
        try:
            found = reader.feed(bytes(raw))
        except FramingBroken:
            continue
        for one in found:
            decode(one.body)
