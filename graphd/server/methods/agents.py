"""`agents`: which profiles there are, whether their programs are installed, and which workers they serve.

Starts programs only where `probe` asks for it. Source: spec protocol.md, Methods; execution.md, Drivers.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from graphd.base.text import t
from graphd.server.environments import caller_environment
from graphd.server.project import Wire
from graphd.server.routes import Call, Table

if TYPE_CHECKING:
    from graphd.children.probing import Probed
    from graphd.children.profiles import Profile
    from graphd.children.profiles.choosing import Agents
    from graphd_protocol.model import AgentsParams

table: Final = Table()
PROBES_AT_ONCE: Final = 2
"""Each takes a core for seconds."""


@table.route("workgraph/agents", "AgentsParams", "AgentEntry")
async def agents(call: Call, params: "AgentsParams") -> list[Wire]:
    """One row per profile; programs are looked for on the PATH that the caller's children get."""
    environment = await caller_environment(call)
    known = call.daemon.settings.agents
    rows = await asyncio.to_thread(_rows, known, environment.get("PATH", os.defpath))
    if params.probe:
        turns = asyncio.Semaphore(PROBES_AT_ONCE)
        await asyncio.gather(*(_probe(row, known, environment, turns) for row in rows if row["installed"]))
    return rows


def _rows(known: "Agents", search_path: str) -> list[Wire]:
    from graphd.children.profiles import Profile
    from graphd.children.profiles.choosing import found, serve

    served: dict[str, list[str]] = {}
    for worker in known.workers:
        answer = serve(known, worker, search_path)
        if isinstance(answer, Profile):
            served.setdefault(answer.name, []).append(worker)
    rows: list[Wire] = []
    for profile in known.profiles.values():
        path = found(profile, search_path)
        rows.append(
            {
                "name": profile.name,
                "driver": profile.driver,
                "installed": path is not None,
                "path": str(path) if path is not None else None,
                "searched": [part for part in search_path.split(os.pathsep) if part],
                "reports": profile.reports,
                "install": profile.install,
                "login": profile.login,
                "standing": profile.standing,
                "measured": profile.measured or None,
                "workers": served.get(profile.name, []),
                "problems": _problems(profile, is_installed=path is not None),
            }
        )
    return rows


def _problems(profile: "Profile", *, is_installed: bool) -> list[str]:
    problems: list[str] = []
    if not profile.command:
        problems.append(t("name its program in agents.{agent}.command", agent=profile.name))
    elif not is_installed:
        problems.append(t("not found; install it with: {install}", install=profile.install))
    if not is_installed and profile.needs:
        problems.append(t("it needs {what}", what=profile.needs))
    if is_installed and not profile.asks_permission and profile.driver != "shell":
        problems.append(t("it does not ask before it acts: for permissions full only"))
    return problems


async def _probe(row: Wire, known: "Agents", environment: dict[str, str], turns: asyncio.Semaphore) -> None:
    """Add what the agent says of itself to its row."""
    from graphd.children.environment import agent_environment

    profile = known.profiles[row["name"]]
    if profile.driver == "shell":
        return
    argv = (*profile.command_prefix, row["path"], *(profile.command[1:] if profile.driver == "acp" else ()))
    its_environment = agent_environment(environment, profile, known.profiles)
    async with turns:
        probed = await asyncio.to_thread(_probed, profile, argv, its_environment)
    if probed.version is not None:
        row["version"] = probed.version
    if probed.capabilities is not None:
        row["capabilities"] = probed.capabilities
    if probed.problem is not None:
        row["problems"].append(probed.problem)


def _probed(profile: "Profile", argv: tuple[str, ...], environment: dict[str, str]) -> "Probed":
    from graphd.children.probing import probe

    return probe(profile, argv, environment)
