"""A peer that plays the daemon's part of a golden conversation: it holds the client to what is written there.

What a placeholder stands for is made up; in `workgraph/changed` the revs go on from each other. What a session does by
itself (its own subscription, with `output`) is answered beside the script.
"""

import itertools
import json
import socket
from pathlib import Path
from typing import Any

from tests.kit.golden import ANSWER_S, filled, framed, match

Wire = dict[str, Any]
_MADE: dict[str, Any] = {"any": [], "integer": 7, "number": 1.5, "string": "words", "time": 1_700_000_000_000}


class Peer:
    """Listens at `address`. One connection at a time."""

    def __init__(self, address: Path) -> None:
        self.values: dict[str, Any] = {"workspace": "/somewhere"}
        self._held: dict[str, int] = {}
        self._revs = itertools.count(1)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(ANSWER_S)
        self._listener.bind(str(address))
        self._listener.listen()
        self._peer: socket.socket | None = None
        self._rest = b""
        self.asked: int | str = 0

    def accept(self) -> None:
        """The next connection."""
        self.hang_up()
        self._peer, _ = self._listener.accept()
        self._peer.settimeout(ANSWER_S)
        self._rest = b""

    def hang_up(self) -> None:
        """End the connection, as a daemon does that dies."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def close(self) -> None:
        """The end."""
        self.hang_up()
        self._listener.close()

    def hear(self, line: Wire) -> None:
        """The client has to say this now. Raises Mismatched."""
        message = self._request()
        expected = filled(line["message"], self.values)
        self.asked = message["id"]
        match({**expected, "id": "$any"}, message, dict(self.values))

    def say(self, line: Wire) -> Wire:
        """Say this; gives what was said."""
        message = line["message"]
        if message.get("method") == "workgraph/changed":
            made = {**message, "params": self._changed(message["params"])}
        elif _starts_cursors(message.get("result")):
            graphs = [self._changed(one) for one in message["result"]["graphs"]]
            made = {**self._made(message), "result": {**self._made(message["result"]), "graphs": graphs}}
        else:
            made = self._made(message)
        said = made if "method" in message else {**made, "id": self.asked}
        self._send(said)
        return said

    def _send(self, message: Wire) -> None:
        assert self._peer is not None
        self._peer.sendall(framed(message))

    def _request(self) -> Wire:
        while True:
            message = self._message()
            own = self._beside(message.get("method"), message.get("params"))
            if own is None:
                return message
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": own})

    def _beside(self, method: str | None, params: Any) -> Wire | None:
        """The answer to what a session does by itself; None for what is written."""
        if method == "workgraph/subscribe" and "output" in params:
            return {"subscription": "own", "store": self.values.get("store", "none"), "graphs": []}
        return params if method == "workgraph/unsubscribe" and params == {"subscription": "own"} else None

    def _message(self) -> Wire:
        assert self._peer is not None
        while True:
            head, found, body = self._rest.partition(b"\r\n\r\n")
            length = int(head.split(b":")[1]) if found else 0
            if found and len(body) >= length:
                self._rest = body[length:]
                message: Wire = json.loads(body[:length])
                return message
            chunk = self._peer.recv(65536)
            assert chunk, "the client left"
            self._rest += chunk

    # ---- what placeholders stand for ------------------------------------------------------------------------------

    def _changed(self, params: Wire) -> Wire:
        graph = self._made(params["graph"])
        first, last = params.get("from", "$integer"), params.get("rev", "$integer")
        first = self._held.get(graph, 0) if first == "$integer" else first
        last = next(self._revs) if last == "$integer" else last
        made = {**self._made(params), "from": self._made(first), "rev": self._made(last)}
        self._held[graph] = made["rev"]
        return made

    def _made(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._made(key): self._made(item) for key, item in value.items() if key != "..."}
        if isinstance(value, list):
            return [self._made(item) for item in value if item != "..."]
        if not isinstance(value, str) or not value.startswith("$") or value.startswith("$/"):
            return value
        name = value[1:]
        if name in _MADE:
            return _MADE[name]
        is_rev = name in ("first", "second", "last", "rev", "ended", "cleared", "retried")
        return self.values.setdefault(name, next(self._revs) if is_rev else f"the-{name}")


def _starts_cursors(result: Any) -> bool:
    return isinstance(result, dict) and "subscription" in result and "graphs" in result
