"""10,000 mutated streams over real sockets at one real daemon: no crash, no hang, nobody else hurt.

Half of them are broken as bytes, half are well framed and broken as messages. What each is owed is worked out from
the same bytes with the reader's own rules: one answer for each request of a stream that stays framed, and at most one
where it does not; then the end of the connection. None of the messages may start a program.
"""

import copy
import json
import random
import re
import resource
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from graphd.client.frames import FrameBroken, FrameReader, frame
from graphd.server import frames
from tests.kit.raw_wire import HELLO, DaemonProcess, RawClient, daemon_process

STREAMS = 10_000
BATCH = 500
CPU_LIMIT_S = 25.0
ODD: list[Any] = [None, True, False, -1, 0, 2**63, 10**30, 1e308, 1.5, "", "x", "ü\0\u2028", [], {}, [[]], {"a": 1}]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon_process(tmp_path_factory.mktemp("streams")) as running:
        yield running


def conversation() -> list[dict[str, Any]]:
    """An ordinary one, of what can do no harm with any other params."""
    calls: list[tuple[str, Any]] = [
        ("graphd/hello", HELLO),
        ("workgraph/list", {"limit": 5}),
        ("workgraph/subscribe", {"since": {"x": 1}, "activity": True}),
        ("workgraph/status", {"graph": "nothing"}),
        ("workgraph/pause", {"graph": "nothing", "mode": "drain"}),
        ("workgraph/unsubscribe", {"subscription": "s1"}),
        ("graphd/health", None),
    ]
    rows: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": copy.deepcopy(params)}
        for number, (method, params) in enumerate(calls, 1)
    ]
    rows.insert(4, {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 4}})
    return rows


def broken_as_bytes(chance: random.Random) -> bytes:
    """Bytes turned, put in, taken out, doubled; the end cut off."""
    raw = bytearray(b"".join(frame(json.dumps(row).encode()) for row in conversation()[: chance.randint(1, 8)]))
    for _ in range(chance.randint(1, 5)):
        at, span = chance.randrange(len(raw)), chance.randint(1, 12)
        match chance.randrange(5):
            case 0:
                raw[at] = chance.randrange(256)
            case 1:
                raw[at:at] = chance.randbytes(span)
            case 2:
                del raw[at : at + span]
            case 3:
                raw[at:at] = raw[at : at + 5 * span]
            case _:
                del raw[max(at, 1) :]
        raw = raw or bytearray(b"C")
    return bytes(raw)


def broken_as_messages(chance: random.Random) -> bytes:
    """Well framed: values replaced, members lost and added, messages doubled and turned about."""
    rows = conversation()[: chance.randint(1, 8)]
    for _ in range(chance.randint(1, 4)):
        row = chance.choice(rows)
        spot = chance.choice([row, row["params"] if isinstance(row.get("params"), dict) else row])
        name = chance.choice([*spot, "extra", "jsonrpc", "id"])
        match chance.randrange(4):
            case 0:
                spot.pop(name, None)
            case 1 | 2:
                spot[name] = chance.choice(ODD)
            case _:
                rows.insert(chance.randrange(len(rows) + 1), dict(chance.choice(rows)))
    return b"".join(frame(json.dumps(row).encode()) for row in rows)


def owed(raw: bytes) -> tuple[Counter[str], bool]:
    """The ids that are to be answered (as JSON), and whether the stream stays framed to its end."""
    reader = frames.FrameReader()
    try:
        found = [frames.decode(piece.body) for piece in reader.feed(raw)]
    except frames.FramingBroken as trouble:
        return Counter(["null"] if trouble.answer is not None else []), False
    return Counter(json.dumps(message.id) for message in found if message.is_request), True


def answered(daemon: DaemonProcess, raw: bytes) -> tuple[Counter[str], bytes]:
    """Send a stream; the ids of all answers up to the end, and all that came. TimeoutError where there is no end."""
    client = RawClient(daemon.path, hello=False)
    received = bytearray()
    with client.socket:
        try:
            client.socket.sendall(raw)
            client.socket.shutdown(socket.SHUT_WR)
            while chunk := client.socket.recv(1 << 16):
                received += chunk
        except ConnectionError:
            pass  # closed with bytes of ours unread
    reader = FrameReader()
    try:
        bodies = [json.loads(body) for body in reader.feed(bytes(received))]
    except FrameBroken as trouble:
        raise AssertionError(f"not our framing: {received!r}") from trouble
    return Counter(json.dumps(body["id"]) for body in bodies if "method" not in body), bytes(received)


@pytest.mark.parametrize("kind", [broken_as_bytes, broken_as_messages], ids=lambda kind: kind.__name__)
def test_mutated_streams_get_what_they_are_owed_and_harm_nobody(daemon: DaemonProcess, kind: Any) -> None:
    chance = random.Random(3)
    begun_s = daemon.cpu_s() + sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    bystander = daemon.client(name="bystander")
    bystander.call("workgraph/subscribe")
    descriptors, kept = len(daemon.descriptors()), Counter[str]()
    for number in range(STREAMS // 2):
        raw = kind(chance)
        due, is_framed = owed(raw)
        got, received = answered(daemon, raw)
        if is_framed:
            assert got == due, raw
        else:  # whole messages before the break may have been served, each once
            assert all(count <= 1 or key == "null" for key, count in (got - due).items()) or is_doubled(raw), raw
            assert got["null"] >= min(1, due["null"]), raw
        assert b"Traceback" not in received
        assert b"-32603" not in received, raw
        kept["framed" if is_framed else "unframed"] += 1
        kept["answers"] += got.total()
        if number % BATCH == 0:
            assert bystander.call("workgraph/list") == {"graphs": []}
    rows = bystander.call("graphd/health")["connections"]
    assert [row["client"] for row in rows] == ["bystander"]
    bystander.close()
    assert len(daemon.descriptors()) <= descriptors
    told = daemon.log.read_text()
    assert told.count("framing_broken") > STREAMS / 10 or kind is broken_as_messages
    assert not re.search("(request|connection|notifying)_failed|result_not_json", told)
    used_s = daemon.cpu_s() + sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - begun_s
    print(f"{kind.__name__}: {dict(kept)}, {used_s:.1f} s of CPU in both processes")
    assert used_s < CPU_LIMIT_S, "a stream that costs much is a way to slow everybody"


def is_doubled(raw: bytes) -> bool:
    """A mutation copied whole frames, ids and all."""
    ids = re.findall(rb'"id": (\d+)', raw)
    return len(ids) != len(set(ids))
