"""A result that an agent hands in by `submit_result`: durable in the attempt's folder before anyone is told.

The rename is done on the loop, between two records, and only while the turn runs: so what a fold finds at the end of a
turn is what every later fold of the same journal finds. Source: execution.md, Environment (`submit_result`).
"""

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphd.children.driver import Fold
from graphd.children.environment import sync_folder
from graphd.children.steady import to_its_end

CATCH_UP_S: Final = 10.0


async def submitted(
    folder: Path, content: bytes, caught_up: asyncio.Event, fold_now: Callable[[], Fold | None]
) -> bool:
    """Whether it counts: a turn of the attempt runs. Waits until the journal is read up to now. OSError."""
    try:
        async with asyncio.timeout(CATCH_UP_S):
            await caught_up.wait()
    except TimeoutError:
        return False
    staged = folder / f"submitted.{secrets.token_hex(8)}.new"
    await to_its_end(lambda: _stage(staged, content))
    fold = fold_now()
    if fold is None or not fold.hand_in(staged):
        staged.unlink()
        return False
    await to_its_end(lambda: sync_folder(folder))
    return True


def _stage(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
