"""The environment that a graph's children get: that of whoever sets, resumes or retries it, where they sent one.

Source: spec execution.md, Environment.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from graphd.server.commits import Params

if TYPE_CHECKING:
    from graphd.server.routes import Call

FOLDER: Final = "environments"


async def kept_environment(call: "Call", params: Params, *, is_new: bool = False) -> str | None:
    """The name of the stored snapshot of the caller's environment; None where it only looks.

    A caller that sent none leaves the stored one; a new graph (`is_new`) then gets the daemon's, with the login
    shell's PATH.
    """
    if params.dry_run or (call.caller.env is None and not is_new):
        return None
    from graphd.children.environment import save

    folder = call.daemon.folder / FOLDER
    environment = await caller_environment(call)
    return await asyncio.to_thread(save, folder, environment)


async def caller_environment(call: "Call") -> dict[str, str]:
    """What its children get: its snapshot, or the daemon's; with the login shell's PATH where no shell started it."""
    from graphd.children.environment import snapshot

    given = call.caller.env
    environment = snapshot(os.environ if given is None else given)
    if given is not None and given.get("TERM"):
        return environment
    from graphd.children.login_shell import with_login_path

    return await asyncio.to_thread(with_login_path, environment)
