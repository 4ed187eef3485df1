"""Attempt folders that no run looks after: settled ones whose keeper still waits, and those that no row knows.

Recovery goes over every folder on disk, whatever the status of its graph. Source: execution.md, Recovery.
"""

import asyncio
import contextlib
from pathlib import Path
from typing import Final

from graphd.base.text import t
from graphd.children.attempt import Kept, Nothing, Orphaned, look
from graphd.children.identity import Dead, Proof, Unknown, end_survivors, is_locked, proof_of_death, read_identity
from graphd.children.journal import Decoder
from graphd.children.link import AttachRefused, KeeperSilent, Link, LinkLost

RETRY_S: Final = 0.1


async def collect_settled(folder: Path, *, store: str, epoch: int) -> bool:
    """Tell the keeper of a settled attempt to go. True when none is there any more; asks for some seconds, once."""
    if not isinstance(await asyncio.to_thread(look, folder), Kept):
        return True
    try:
        link = await Link.attach(folder, store=store, epoch=epoch)
    except (KeeperSilent, AttachRefused):
        return False
    await link.last("collect")
    await link.close()
    return True


async def end_unknown(folder: Path, *, store: str, epoch: int, grace_s: float) -> Proof:
    """End what runs in a folder that no row knows, or whose graph was cleared. `Dead` means that it may be removed.

    Its database may be another one (a state folder that was put back): then the keeper refuses us and it is Unknown.
    """
    found = await asyncio.to_thread(look, folder)
    named = f"{store}/{folder.parent.name}/{folder.name}"
    cookie = str((await asyncio.to_thread(read_identity, folder) or {}).get("cookie") or named)
    if isinstance(found, Nothing):
        return Dead()
    if isinstance(found, Orphaned):
        return await asyncio.to_thread(end_survivors, folder, cookie, grace_s=grace_s)
    if isinstance(found, Kept):
        try:
            await _end_kept(folder, store=store, epoch=epoch, grace_s=grace_s)
        except AttachRefused as refusal:
            return Unknown(t("its keeper refuses this daemon: {code}", code=refusal.code))
        except KeeperSilent:
            return Unknown(t("its keeper holds its lock and does not answer"))
    return await asyncio.to_thread(proof_of_death, folder, cookie)


async def _end_kept(folder: Path, *, store: str, epoch: int, grace_s: float) -> None:
    """TERM, grace, KILL, grace; then the keeper may go. It is not waited for longer than that."""
    link = await Link.attach(folder, store=store, epoch=epoch)
    ended = asyncio.create_task(_ended(link))
    try:
        for verb in ("terminate", "kill", "status"):
            link.post(verb)
            await asyncio.wait([ended], timeout=grace_s)
            if ended.done():
                break
        if ended.done() and ended.result():
            await link.last("collect")
    finally:
        ended.cancel()
        await asyncio.gather(ended, return_exceptions=True)
        await link.close()
    for _ in range(int(grace_s / RETRY_S)):
        if not await asyncio.to_thread(is_locked, folder):
            return
        await asyncio.sleep(RETRY_S)


async def _ended(link: Link) -> bool:
    """Read until the exit record is there; False when the connection ended before."""
    if link.standing["exit"] is not None:
        return True
    with contextlib.suppress(LinkLost):
        async for event in link.events(Decoder(link.header)):
            if isinstance(event, dict) and event["event"] == "ended":
                return True
    return False
