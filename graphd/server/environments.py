"""The environment that a graph's children get: that of whoever sets, resumes or retries it, where they sent one.

Source: spec execution.md, Environment.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from graphd.base.text import t
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
    await call.daemon.look_for_agents(environment.get("PATH", os.defpath), frozenset())
    return await asyncio.to_thread(save, folder, environment)


def whose_path(call: "Call") -> str:
    """From whom the PATH of `caller_environment` is, for people."""
    given = call.caller.env
    who = call.caller.name or t("the client")
    if given is None:
        return t("the daemon and the login shell")
    return who if given.get("TERM") else t("{client} and the login shell", client=who)


async def caller_environment(call: "Call") -> dict[str, str]:
    """What its children get: its snapshot, or the daemon's; with the login shell's PATH where no shell started it."""
    from graphd.children.environment import snapshot

    given = call.caller.env
    names = {name for profile in call.daemon.settings.agents.profiles.values() for name in profile.pass_env}
    environment = snapshot(os.environ if given is None else given, names)
    if given is not None and given.get("TERM"):
        return environment
    from graphd.children.login_shell import with_login_path

    return await asyncio.to_thread(with_login_path, environment)
