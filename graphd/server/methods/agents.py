"""`agents`: which profiles there are, and whether their programs are installed. Starts none.

Source: spec protocol.md, Methods; execution.md, Drivers.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from graphd.base.text import t
from graphd.server.environments import caller_environment
from graphd.server.project import Wire
from graphd.server.routes import Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import Empty

table: Final = Table()


@table.route("workgraph/agents", "Empty", "AgentEntry")
async def agents(call: Call, params: "Empty") -> list[Wire]:
    """One row per profile; programs are looked for on the PATH that the caller's children get."""
    search_path = (await caller_environment(call)).get("PATH", os.defpath)
    return await asyncio.to_thread(_rows, search_path)


def _rows(search_path: str) -> list[Wire]:
    from graphd.children.profiles import PROFILES, find_program

    rows: list[Wire] = []
    for profile in PROFILES.values():
        path = find_program(profile.command[0], search_path)
        problems = [] if path is not None else [t("not found; install it with: {install}", install=profile.install)]
        if not profile.is_served:
            problems.append(t("documented, not run by this version"))
        rows.append(
            {
                "name": profile.name,
                "driver": profile.driver,
                "installed": path is not None,
                "path": str(path) if path is not None else None,
                "searched": [part for part in search_path.split(os.pathsep) if part],
                "problems": problems,
            }
        )
    return rows
