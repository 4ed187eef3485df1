"""Blocking work that a cancelled task must not leave half done."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(write: Callable[[], T]) -> T:
    """Run `write` in a thread. A cancelled caller waits for it all the same: two must never write the same files."""
    running = asyncio.ensure_future(asyncio.to_thread(write))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
