"""Connections to a keeper: frames, the fence at attach, the journal streamed from the file.

A frame is version, kind, length and payload. Calls, answers and notices are JSON; a journal frame is an absolute
offset and raw bytes of records. Nothing of the journal is buffered beyond one chunk a peer: the file is the buffer.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct

from graphd.base.plain_json import decode, encode
from graphd.children.keeping.files import VERSION, Journal
from graphd.children.keeping.loop import READ, WRITE, Loop
from graphd.children.keeping.points import failpoint
from graphd.children.keeping.tree import ancestors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

FRAME: Final = struct.Struct("<BBI")
OFFSET: Final = struct.Struct("<Q")
CALL: Final = ord("C")
ANSWER: Final = ord("A")
NOTICE: Final = ord("N")
JOURNAL: Final = ord("J")
CHUNK: Final = 1 << 16
UNSENT_LIMIT: Final = 1 << 20
CALL_LIMIT: Final = 16 << 20


class Peer:
    """One connection; `position` is where it stands in the journal, -1 until it is attached."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        credentials = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        self.pid, self.uid, _ = struct.unpack("3i", credentials)
        self.inbox = b""
        self.outbox = b""
        self.position = self.epoch = -1


class Peers:
    """All connections of one keeper. `on_call` gets what an attached one asks, `on_alone` the loss of the last."""

    def __init__(self, loop: Loop, journal: Journal, *, store: str, epoch: int) -> None:
        self._loop = loop
        self._journal = journal
        self._peers: dict[int, Peer] = {}
        self.store, self.epoch = store, epoch
        self.on_call: Callable[[Peer, dict[str, Any]], None]
        self.on_attached: Callable[[Peer, dict[str, Any]], None]
        self.on_alone: Callable[[], None]

    def listen(self) -> None:
        """Bind under a temporary name, then take the real one: whoever finds `socket` finds it listening."""
        flags = _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK
        self._listener = _socket.socket(_socket.AF_UNIX, flags)
        failpoint("keeper.bind.before")
        self._listener.bind("socket.new")
        failpoint("keeper.bind.after")
        self._listener.listen(16)
        failpoint("keeper.socket.before")
        os.rename("socket.new", "socket")  # noqa: PTH104 -- no pathlib in a keeper
        failpoint("keeper.socket.after")
        self._loop.watch(self._listener.fileno(), READ, self._on_connect)

    def attached(self) -> list[Peer]:
        """Those that passed the fence."""
        return [peer for peer in self._peers.values() if peer.position >= 0]

    def slowest(self) -> int:
        """The lowest journal position of an attached peer."""
        return min((peer.position for peer in self.attached()), default=self._journal.end)

    def answer(self, peer: Peer, call: dict[str, Any], *, code: str | None = None, **facts: Any) -> None:
        """One answer to one call; refused when it carries a code."""
        failpoint("keeper.reply.before")
        self._send(peer, ANSWER, {"v": VERSION, "re": call.get("id"), "ok": code is None, "code": code, **facts})
        failpoint("keeper.reply.after")

    def tell(self, notice: dict[str, Any]) -> None:
        """A notice to all who are attached."""
        failpoint("keeper.notify.before")
        for peer in self.attached():
            self._send(peer, NOTICE, {"v": VERSION, **notice})
        failpoint("keeper.notify.after")

    def push(self) -> None:
        """The journal grew."""
        for peer in self.attached():
            self._flush(peer)

    def drop(self, peer: Peer) -> None:
        """Close one connection."""
        fd = peer.sock.fileno()
        if fd < 0:
            return
        self._loop.unwatch(fd)
        del self._peers[fd]
        was_attached, peer.position, peer.epoch = peer.position >= 0, -1, -1
        peer.sock.close()
        if was_attached and not self.attached():
            self.on_alone()

    def _on_connect(self, _mask: int) -> None:
        try:
            fd, _ = self._listener._accept()  # type: ignore[attr-defined]  # real, but not in the stubs
        except OSError:
            return
        peer = Peer(_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd))
        peer.sock.setblocking(False)
        if peer.uid != os.geteuid():  # another user is not even answered
            peer.sock.close()
            return
        self._peers[fd] = peer
        self._loop.watch(fd, READ, lambda mask: self._on_ready(peer, mask))

    def _on_ready(self, peer: Peer, mask: int) -> None:
        if mask & WRITE:
            self._flush(peer)
        if mask & ~WRITE and peer.sock.fileno() >= 0:
            self._receive(peer)

    def _receive(self, peer: Peer) -> None:
        try:
            part = peer.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self.drop(peer)
            return
        peer.inbox += part
        while peer.sock.fileno() >= 0 and len(peer.inbox) >= FRAME.size:
            version, kind, length = FRAME.unpack_from(peer.inbox)
            if version != VERSION or kind != CALL or length > CALL_LIMIT:
                self.answer(peer, {}, code="badFrame", version=VERSION)
                self.drop(peer)
                return
            if len(peer.inbox) < FRAME.size + length:
                return
            body = peer.inbox[FRAME.size : FRAME.size + length]
            peer.inbox = peer.inbox[FRAME.size + length :]
            self._route(peer, body)

    def _route(self, peer: Peer, body: bytes) -> None:
        call: dict[str, Any] = {}
        try:
            call = dict(decode(body))
            if call["do"] == "attach":
                self._attach(peer, call)
            elif peer.position < 0:
                self.answer(peer, call, code="notAttached")
            else:
                self.on_call(peer, call)
        except (ValueError, KeyError, TypeError) as trouble:
            self.answer(peer, call, code="badCall", message=repr(trouble))

    def _attach(self, peer: Peer, call: dict[str, Any]) -> None:
        """The fence: same store, an epoch not below the highest seen, nobody of the keeper's own tree."""
        code = None
        if call["v"] != VERSION:
            code = "otherVersion"
        elif peer.pid <= 0 or os.getpid() in ancestors(peer.pid):
            code = "descendant"
        elif call["store"] != self.store:
            code = "otherStore"
        elif call["epoch"] < self.epoch:
            code = "staleEpoch"
        elif call["from"] > self._journal.end:
            code = "beyondEnd"
        if code:
            self.answer(peer, call, code=code, end=self._journal.end)
            self.drop(peer)
            return
        self.epoch = call["epoch"]
        peer.epoch, peer.position = self.epoch, max(call["from"], self._journal.base)
        for other in [other for other in self.attached() if other.epoch < self.epoch]:
            self.drop(other)
        self.on_attached(peer, call)
        self._flush(peer)

    def _send(self, peer: Peer, kind: int, content: dict[str, Any]) -> None:
        body = encode(content)
        peer.outbox += FRAME.pack(VERSION, kind, len(body)) + body
        self._flush(peer)
        if len(peer.outbox) > UNSENT_LIMIT:  # it asks and never reads
            self.drop(peer)

    def _flush(self, peer: Peer) -> None:
        """Send until the socket is full or nothing is left."""
        mask = READ
        try:
            while peer.sock.fileno() >= 0 and (peer.outbox or 0 <= peer.position < self._journal.end):
                if not peer.outbox:
                    part = self._journal.read(peer.position, CHUNK)
                    head = FRAME.pack(VERSION, JOURNAL, len(part) + OFFSET.size) + OFFSET.pack(peer.position)
                    peer.outbox = head + part
                    peer.position += len(part)
                peer.outbox = peer.outbox[peer.sock.send(peer.outbox) :]
        except BlockingIOError:
            mask = READ | WRITE
        except OSError as trouble:
            if trouble.errno != errno.EBADF:
                self.drop(peer)
            return
        if peer.sock.fileno() in self._peers:
            self._loop.watch(peer.sock.fileno(), mask, lambda mask: self._on_ready(peer, mask))
