"""The environment that a graph's children get: that of whoever sets, resumes or retries it, where they sent one.

Source: spec execution.md, Environment.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from graphd.server.commits import Params

if TYPE_CHECKING:
    from graphd.server.routes import Call

FOLDER: Final = "environments"


async def kept_environment(call: "Call", params: Params) -> str | None:
    """The name of the stored snapshot of the caller's environment; None where it sent none, or only looks."""
    if call.caller.env is None or params.dry_run:
        return None
    from graphd.children.environment import save, snapshot

    return await asyncio.to_thread(save, call.daemon.folder / FOLDER, snapshot(call.caller.env))
