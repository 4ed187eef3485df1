"""Remove from the disk what purged graphs left there: folders of settled attempts, environments that none needs.

A keeper that still waits to be told is told first; a folder whose keeper does not go stays. Source: spec protocol.md,
`purge`; execution.md, Environment, Recovery.
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphd.core.model import State
from graphd.server.needs import Daemon

FRESH_S: Final = 3600.0
"""An environment file is written before the change that names it: younger ones are left alone."""


@dataclass(slots=True, frozen=True)
class SettledFolders:
    """The folders of one graph's settled attempts, by their names below the graph's."""

    graph: str
    names: tuple[str, ...]


async def remove_folders(daemon: Daemon, graphs: Iterable[SettledFolders]) -> int:
    """Remove them; returns how many bytes they held."""
    from graphd.children.abandoned import collect_settled

    total = 0
    for graph in graphs:
        parent = daemon.folder / "attempts" / graph.graph
        for name in graph.names:
            place = parent / name
            if not await asyncio.to_thread(place.is_dir):
                continue
            if await collect_settled(place, store=daemon.store_id, epoch=daemon.epoch):
                total += await asyncio.to_thread(_remove, place)
        with contextlib.suppress(OSError):  # others are left in it, or it was never made
            await asyncio.to_thread(parent.rmdir)
    return total


def _remove(place: Path) -> int:
    size = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                size += (Path(folder) / name).lstat().st_size
    shutil.rmtree(place, ignore_errors=True)
    return size


async def remove_unused_environments(daemon: Daemon) -> None:
    """Remove the environment files that no graph names any more."""

    def named(state: State) -> set[str]:
        names = {graph.environment for graph in state.graphs.values()}
        names |= {attempt.environment for graph in state.graphs.values() for attempt in graph.attempts.values()}
        return {name for name in names if name is not None}

    used = await daemon.view(named)
    await asyncio.to_thread(_remove_environments, daemon.folder / "environments", used)


def _remove_environments(folder: Path, used: set[str]) -> None:
    with contextlib.suppress(OSError):
        for path in folder.glob("*.json"):
            if path.stem not in used and time.time() - path.stat().st_mtime > FRESH_S:
                path.unlink(missing_ok=True)
