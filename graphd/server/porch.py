"""What stands before the house: the socket is open and a hello is answered while the core and the state are loaded.

A guest is one accepted connection. Its first frame is looked at where it lies, in the kernel's buffer; where that is a
greeting that needs no state, it is taken and answered. All else stays where it is, and the server reads it in its order
once it is there. So nothing is queued here, every request still has exactly one answer, and a guest that leaves costs
nothing.

Who has to wait for the state: whoever gives an attempt's token, and everybody while an attempt is unsettled, for then
any peer may be a keeper's child. Refusals wait as well: the settings say in which language they are.

Imports are few: what is imported here is what a start costs before its first answer. Source: ADR 0008; spec
protocol.md, Daemon, socket, lock; performance.md P11.
"""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.server import frames
from graphd.server.errors import CallRefused
from graphd.server.hello import CONNECTION_LIMIT, GREETINGS, Greeting, Host, greeting
from graphd.server.listen import Listener

CHUNK_BYTES: Final = 65536
_READ_DIFFERENTLY: Final = (b"\\ud", b"\\uD", b"NaN", b"Infinity")
TURNS: Final = 4
"""Turns of the loop from a connection to its answer: accepted, its task woken, its frame seen, and one to spare."""


class Guest(NamedTuple):
    """One accepted connection, the peer's pid, and how it was greeted where it was."""

    sock: socket.socket
    pid: int | None
    greeted: Greeting | None = None


class Porch:
    """Holds the listener for the daemon's life, and the guests until `hand_over`.

    `knows_callers`: no attempt is unsettled, so that nobody who comes can belong to one.
    """

    def __init__(self, host: Host, *, is_ours: Callable[[], bool], knows_callers: bool, folder: Path = Path()) -> None:
        self.host = host
        self.listener = Listener(self._accepted, is_ours=is_ours, lost=self._lost, folder=folder)
        self.stop_reason: str | None = None
        self.reconnect = False
        self.is_open = False
        self._may_greet = knows_callers
        self._guests: dict[socket.socket, Guest] = {}

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Bind and begin to accept. Raises OSError where the socket can't be bound."""
        self.listener.open(tasks)
        self.is_open = True

    def request_stop(self, reason: str, *, reconnect: bool = False) -> None:
        """End as soon as there is a server to end. `reconnect`: clients are told that another daemon may be started."""
        if self.stop_reason is None:
            self.stop_reason, self.reconnect = reason, reconnect

    def hold_all(self) -> None:
        """Greet nobody any more: recovery begins, and may start attempts."""
        self._may_greet = False
        for sock in self._guests:
            asyncio.get_running_loop().remove_reader(sock)

    def hand_over(self, accepted: Callable[[socket.socket, int | None], None], lost: Callable[[], None]) -> list[Guest]:
        """The guests, in the order in which they came; who comes from now on is given to `accepted`."""
        self.hold_all()
        self.listener.hand_to(accepted, lost)
        guests, self._guests = self._guests, {}
        return [guest for guest in guests.values() if not _has_left(guest.sock)]

    async def answer_door(self) -> None:
        """Let whoever came be answered: called between two pieces of loading, each of which takes the loop for ms."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def _lost(self) -> None:
        self.request_stop(t("the state folder was taken away"), reconnect=True)

    def _accepted(self, sock: socket.socket, pid: int | None) -> None:
        sock.setblocking(False)
        self._guests[sock] = Guest(sock, pid)
        if self._may_greet and len(self._guests) <= CONNECTION_LIMIT:  # whoever comes beyond it is turned away
            asyncio.get_running_loop().add_reader(sock, self._stirred, sock)

    def _stirred(self, sock: socket.socket) -> None:
        """Once a guest: where its first frame is not whole yet, it can wait for the server too."""
        asyncio.get_running_loop().remove_reader(sock)
        try:
            greeted = self._greet(sock)
        except (BlockingIOError, frames.FramingBroken):
            return  # the server will find it as it is
        except OSError:  # it is gone, or its answer could not be sent
            del self._guests[sock]
            sock.close()
            return
        if greeted is not None:
            self._guests[sock] = self._guests[sock]._replace(greeted=greeted)

    def _greet(self, sock: socket.socket) -> Greeting | None:
        """Answer the first frame where it is a greeting that can be answered; None where nothing was touched."""
        seen = frames.first_of(sock.recv(CHUNK_BYTES, socket.MSG_PEEK))
        if seen is None:
            return None
        frame, size = seen
        message = frames.decode(frame.body, _parsed)
        if message.method not in GREETINGS or message.id is None or message.trouble is not None:
            return None
        if isinstance(message.params, dict) and message.params.get("attemptToken") is not None:
            return None
        try:
            greeted = greeting(message.method, message.params, self.host)
            answer = _written({"jsonrpc": "2.0", "id": message.id, "result": greeted.result})
        except (CallRefused, Refused, UnicodeEncodeError):
            return None
        sock.recv(size)
        failpoint("server.greet.before")
        sock.send(frames.encode(answer))  # into an empty buffer: it is taken whole
        failpoint("server.greet.after")
        return greeted


def _parsed(body: bytes) -> Any:
    """The library's parser: orjson's import would be a sixth of what graphd adds to a bare start.

    What the two read differently (half a surrogate pair, NaN) is for the server. Raises ValueError.
    """
    if any(word in body for word in _READ_DIFFERENTLY):
        raise ValueError
    return json.loads(body.decode())


def _written(message: dict[str, Any]) -> bytes:
    """Raises UnicodeEncodeError for a workspace whose name is no UTF-8."""
    return json.dumps(message, ensure_ascii=False).encode()


def _has_left(sock: socket.socket) -> bool:
    """It said nothing that was not answered, and will say nothing more. Such a socket is closed here."""
    try:
        if sock.recv(1, socket.MSG_PEEK):
            return False
    except BlockingIOError:
        return False
    except OSError:
        pass
    sock.close()
    return True
