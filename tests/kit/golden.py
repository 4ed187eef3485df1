"""Golden conversations: whole exchanges in `protocol/examples/*.jsonl`, replayed against a server and matched.

One JSON object a line:

- `{"about": …}` says what the conversation shows; `{"file": path, "text": …}` is there before it starts.
- `{"from": "client", "message": …}` is sent, `{"from": "server", "message": …}` is what comes next. With `skips`, any
  number of notifications of these methods may come before it.
- `{"from": "client", "reconnect": true}` closes the connection and opens another.

In messages `"$name"` is a placeholder: `$any`, `$integer`, `$number`, `$string` and `$time` (ms since the epoch) fit
any such value; any other name stands for one value throughout (`$workspace` is known beforehand). `"...": true` in an
object and `"..."` at the end of a list allow more than is written.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

EXAMPLES = Path(__file__).resolve().parents[2] / "protocol" / "examples"
Wire = dict[str, Any]
ANSWER_S = 30.0
_MORE = "..."


class Mismatched(AssertionError):
    """What came is not what is written."""


class Connection(Protocol):
    """What a replay needs of a connection."""

    async def send(self, raw: bytes) -> None:
        """Write bytes."""

    async def read(self) -> Wire:
        """The next message."""

    async def close(self) -> None:
        """Leave."""


@dataclass
class Conversation:
    """One file."""

    name: str
    about: str
    files: dict[str, str]
    lines: list[Wire]

    @classmethod
    def load(cls, path: Path) -> "Conversation":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return cls(
            name=path.stem,
            about=next(row["about"] for row in rows if "about" in row),
            files={row["file"]: row["text"] for row in rows if "file" in row},
            lines=[row for row in rows if "from" in row],
        )


def conversations() -> list[Conversation]:
    """All of them, by name."""
    return [Conversation.load(path) for path in sorted(EXAMPLES.glob("*.jsonl"))]


@dataclass
class Replay:
    """One conversation under way. `heard` is every message that the server sent, `sent` every one of the client's."""

    connect: Callable[[], Awaitable[Connection]]
    values: dict[str, Any]
    sent: list[Wire] = field(default_factory=list)
    heard: list[Wire] = field(default_factory=list)

    async def run(self, conversation: Conversation) -> None:
        """Send and match every line. Raises Mismatched, which names the line."""
        connection = await self.connect()
        try:
            for number, line in enumerate(conversation.lines, 1):
                if line.get("reconnect"):
                    await connection.close()
                    connection = await self.connect()
                elif line["from"] == "client":
                    message = filled(line["message"], self.values)
                    self.sent.append(message)
                    await connection.send(framed(message))
                else:
                    await self._expect(connection, line, f"{conversation.name}, message {number}")
        finally:
            await connection.close()

    async def _expect(self, connection: Connection, line: Wire, where: str) -> None:
        skipped = line.get("skips", [])
        while True:
            async with asyncio.timeout(ANSWER_S):
                message = await connection.read()
            self.heard.append(message)
            values = dict(self.values)
            try:
                match(line["message"], message, values)
            except Mismatched as trouble:
                if message.get("method") in skipped:
                    continue
                raise Mismatched(f"{where}: {trouble}\n{json.dumps(message, ensure_ascii=False)}") from None
            self.values.update(values)
            return


def framed(message: Wire) -> bytes:
    """As bytes on the wire."""
    body = json.dumps(message, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def filled(value: Any, values: dict[str, Any]) -> Any:
    """What a client sends, with what placeholders stand for."""
    if isinstance(value, dict):
        return {filled(key, values): filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    return values[value[1:]] if isinstance(value, str) and value.startswith("$") and value[1:] in values else value


def match(expected: Any, actual: Any, values: dict[str, Any], at: str = "message") -> None:
    """Compare, and remember what new placeholders stand for. Raises Mismatched."""
    if isinstance(expected, str) and expected.startswith("$") and not expected.startswith("$/"):
        _match_placeholder(expected[1:], actual, values, at)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        wanted = {filled(key, values): item for key, item in expected.items() if key != _MORE}
        odd = wanted.keys() - actual.keys() if _MORE in expected else wanted.keys() ^ actual.keys()
        if odd:
            raise Mismatched(f"{at}: {', '.join(sorted(odd))} is in one of both alone")
        for key, item in wanted.items():
            match(item, actual[key], values, f"{at}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        is_open = bool(expected) and expected[-1] == _MORE
        wanted_items = expected[:-1] if is_open else expected
        if len(actual) < len(wanted_items) or (len(actual) > len(wanted_items) and not is_open):
            raise Mismatched(f"{at}: {len(actual)} items, not {len(wanted_items)}")
        for index, item in enumerate(wanted_items):
            match(item, actual[index], values, f"{at}[{index}]")
    elif expected != actual or type(expected) is not type(actual):
        raise Mismatched(f"{at}: {actual!r}, not {expected!r}")


def _match_placeholder(name: str, actual: Any, values: dict[str, Any], at: str) -> None:
    is_integer = type(actual) is int
    fits = {
        "any": True,
        "integer": is_integer,
        "number": is_integer or isinstance(actual, float),
        "string": isinstance(actual, str),
        "time": is_integer and abs(actual - time.time() * 1000) < 86_400_000,
    }
    if name in fits:
        if not fits[name]:
            raise Mismatched(f"{at}: {actual!r} is no {name}")
    elif values.setdefault(name, actual) != actual:
        raise Mismatched(f"{at}: {actual!r}, but ${name} is {values[name]!r}")


def answers(sent: list[Wire], heard: list[Wire]) -> Iterator[tuple[str, Wire, Wire]]:
    """(method, request, answer) of all that was answered."""
    by_id = {message["id"]: message for message in heard if "method" not in message}
    for message in sent:
        if message.get("id") in by_id:
            yield message["method"], message, by_id[message["id"]]
