"""The kernel's stream socket without the package around it. Standard library alone.

`import socket` makes two dozen enumerations first: a tenth of a byte pipe's start. What asyncio is to have goes
through `packaged`.
"""

from __future__ import annotations

import _socket
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, SOL_SOCKET

TYPE_CHECKING = False  # `typing` would cost the byte pipe its import
if TYPE_CHECKING:
    import socket
    from typing import Self

__all__ = ["AF_UNIX", "SHUT_WR", "SOCK_STREAM", "SOL_SOCKET", "SO_PEERCRED", "Connection", "packaged"]

SO_PEERCRED: int | None = getattr(_socket, "SO_PEERCRED", None)
"""None where the system has no such option."""


class Connection(_socket.socket):
    """A connection that `with` closes."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def packaged(connection: Connection) -> socket.socket:
    """The same connection as the library's socket; the given one is empty afterwards."""
    import socket

    return socket.socket(fileno=connection.detach())
