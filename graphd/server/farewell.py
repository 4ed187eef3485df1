"""What those are told who were let in while the daemon was loading, where the loading failed.

Each request that they sent, or send within FAREWELL_S, is answered with the reason; then the connection ends. Whoever
started the daemon has read that it is ready and is on its way: it is waited for. Source: ADR 0008.
"""

import asyncio
import contextlib
import socket
from typing import Any, Final

from graphd.base.catalogue import localised, negotiated, translate
from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.daemon.log import log
from graphd.server import frames
from graphd.server.errors import ErrorObject, error_object, where
from graphd.server.porch import CHUNK_BYTES, Guest, Porch
from graphd.store.refusals import StaleDaemon

FAREWELL_S: Final = 2.0
FAILED: Final = 1


async def see_off(porch: Porch, tasks: asyncio.TaskGroup, trouble: Exception, *, is_awaited: bool) -> int:
    """Answer everybody with the reason and close the door. `is_awaited`: somebody will come who is not here yet.

    Returns the exit code; raises `trouble` again where it is a defect, for the log.
    """
    reason = _reason_in(trouble)
    log("start_failed", message=str(reason), **where(reason))
    await _tell_all(porch, tasks, _error_of(reason, porch), is_awaited=is_awaited)
    if isinstance(reason, Refused | StaleDaemon):
        return FAILED
    raise trouble


def _reason_in(trouble: Exception) -> Exception:
    """What went wrong first: a task group wraps it."""
    while isinstance(trouble, ExceptionGroup):
        trouble = trouble.exceptions[0]
    return trouble


def _error_of(reason: Exception, porch: Porch) -> ErrorObject:
    if isinstance(reason, StaleDaemon) or porch.stop_reason is not None:
        porch.request_stop(t("the state folder was taken away"), reconnect=True)
        return error_object(Refused("storeUnavailable", t("the daemon is stopping"), t("connect again")))
    return error_object(reason)


async def _tell_all(porch: Porch, tasks: asyncio.TaskGroup, error: ErrorObject, *, is_awaited: bool) -> None:
    told: set[asyncio.Task[None]] = set()
    everybody_left = asyncio.Event()

    def left(task: asyncio.Task[None]) -> None:
        told.discard(task)
        if not told:
            everybody_left.set()

    def arrived(guest: Guest) -> None:
        task = tasks.create_task(_tell(guest, error, porch))
        told.add(task)
        task.add_done_callback(left)

    for guest in porch.hand_over(lambda sock, pid: arrived(Guest(sock, pid)), lambda: None):
        arrived(guest)
    if told or is_awaited:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await everybody_left.wait()
    porch.listener.close()
    for task in told:
        task.cancel()


async def _tell(guest: Guest, error: ErrorObject, porch: Porch) -> None:
    """Answer one guest until it leaves, or until this is cancelled. Closes the socket."""
    sock, reader, loop = guest.sock, frames.FrameReader(), asyncio.get_running_loop()
    locale = guest.greeted.caller.locale if guest.greeted is not None else None
    sock.setblocking(False)
    try:
        while chunk := await loop.sock_recv(sock, CHUNK_BYTES):
            for frame in reader.feed(chunk):
                message = frames.decode(frame.body)
                if message.is_request:
                    locale = locale or _locale_in(message.params)
                    answer = {"jsonrpc": "2.0", "id": message.id, "error": message.trouble or error}
                    await _send(sock, localised(answer, negotiated(locale)))
    except (OSError, frames.FramingBroken):
        pass
    except asyncio.CancelledError:
        reason = translate(porch.stop_reason or error["message"], negotiated(locale))
        params = {"reason": reason, "reconnect": porch.reconnect}
        with contextlib.suppress(OSError):
            sock.send(frames.encode({"jsonrpc": "2.0", "method": "graphd/stopping", "params": params}))
        raise
    finally:
        sock.close()


async def _send(sock: socket.socket, answer: dict[str, Any]) -> None:
    failpoint("server.refuse.before")
    await asyncio.get_running_loop().sock_sendall(sock, frames.encode(answer))
    failpoint("server.refuse.after")


def _locale_in(params: Any) -> str | None:
    locale = params.get("locale") if isinstance(params, dict) else None
    return locale if isinstance(locale, str) else None
