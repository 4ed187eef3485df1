"""What speaks to the daemon: `attach` finds or starts it, `session` calls it, `follow` outlives its restarts.

Owns the wire's near end; never knows the daemon's insides. `paths`, `frames`, `attach`, `launch` and `pipe`
import the standard library alone, because an editor waits for them; so the names here are looked up when
first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from graphd.client.attach import AttachRefused, DaemonStartFailure, DaemonUnreachable
    from graphd.client.follow import Update
    from graphd.client.mirror import ChainBroken, Mirror
    from graphd.client.paths import AttachFailure, WorkspaceRefused
    from graphd.client.session import ConnectionLost, RemoteRefused, Session

__all__ = [
    "AttachFailure",
    "AttachRefused",
    "ChainBroken",
    "ConnectionLost",
    "DaemonStartFailure",
    "DaemonUnreachable",
    "Mirror",
    "RemoteRefused",
    "Session",
    "Update",
    "WorkspaceRefused",
]

_HOMES = {
    "AttachFailure": "paths",
    "AttachRefused": "attach",
    "ChainBroken": "mirror",
    "ConnectionLost": "session",
    "DaemonStartFailure": "attach",
    "DaemonUnreachable": "attach",
    "Mirror": "mirror",
    "RemoteRefused": "session",
    "Session": "session",
    "Update": "follow",
    "WorkspaceRefused": "paths",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # not for the byte pipe, which looks nothing up here

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
