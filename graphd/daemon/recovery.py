"""Attempt folders without an unsettled attempt: keepers that still wait to be told, and files of graphs that are gone.

Recovery starts from every unsettled attempt (the core's `daemon_started`) and, here, from every folder on disk,
whatever the status of its graph (execution.md, Recovery).
"""

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

from graphd.core.model import State
from graphd.daemon.log import log

GRACE_S = 5.0
RETRY_S = 30.0
TRIES = 10


async def sweep(folder: Path, state: State, *, store: str, epoch: int) -> None:
    """Let keepers of settled attempts go; end what belongs to no graph, and remove its files.

    Tries again what is silent.
    """
    known = {g.id: {a.folder: a.state for a in g.attempts.values()} for g in state.graphs.values()}
    todo = [place for graph in _folders(folder / "attempts") for place in _folders(graph)]
    if not todo:
        _remove_empty(folder / "attempts", state)
        return
    from graphd.children.abandoned import collect_settled

    for _ in range(TRIES):
        left = []
        for place in todo:
            attempts = known.get(place.parent.name)
            standing = attempts.get(place.name) if attempts is not None else None
            if standing == "settled":
                is_done = await collect_settled(place, store=store, epoch=epoch)
            elif standing is None:
                is_done = await _remove_unknown(place, store=store, epoch=epoch)
            else:
                is_done = True  # its run looks after it
            if not is_done:
                left.append(place)
        if not left:
            break
        todo = left
        await asyncio.sleep(RETRY_S)
    _remove_empty(folder / "attempts", state)


async def _remove_unknown(place: Path, *, store: str, epoch: int) -> bool:
    from graphd.children.abandoned import end_unknown
    from graphd.children.identity import Dead

    found = await end_unknown(place, store=store, epoch=epoch, grace_s=GRACE_S)
    if not isinstance(found, Dead):
        log("foreign_tree_alive", attempt=place.name, found=repr(found))
        return False
    await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    log("foreign_folder_removed", graph=place.parent.name, attempt=place.name)
    return True


def _folders(parent: Path) -> Iterable[Path]:
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except FileNotFoundError:
        return ()


def _remove_empty(attempts: Path, state: State) -> None:
    """Goes by the graphs that there are now: that of a new one is empty between its making and that of its attempt."""
    for graph in _folders(attempts):
        if graph.name not in state.graphs and not any(graph.iterdir()):
            graph.rmdir()
