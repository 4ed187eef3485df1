"""Writes `schema-N.sql`: `python -m tests.data.store.freeze`. A file of a released schema is never written again."""

import asyncio
import sqlite3
import tempfile
from pathlib import Path

from graphd.store.schema import VERSION
from tests.data.store.workload import Workload, close_database, open_database, plan

HERE = Path(__file__).parent
NEUTRAL = (
    "UPDATE meta SET workspace = '/ws', device = 1, inode = 1, boot_id = '',"
    " store = '7d1f6a60-3d6e-4a8e-9d0b-6a2f3c9f1b11'",
    "UPDATE starts SET pid = 1",
)


async def fill(folder: Path) -> None:
    """A graph that is complete and one under way."""
    database = await open_database(folder)
    workload = await Workload.on(database)
    await workload.batch(plan("a", 3))
    await workload.finish("a")
    await workload.batch(plan("b", 3))
    await workload.batch(*workload.steps(workload.state.graphs["b"])[:2])
    await workload.batch(*workload.steps(workload.state.graphs["b"])[:1])
    await close_database(database)


def freeze(path: Path) -> None:
    """Dump what the newest schema holds."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in NEUTRAL:
        connection.execute(statement)
    write(connection, VERSION)
    connection.close()


def write(connection: sqlite3.Connection, version: int) -> None:
    """One file."""
    head = f"-- A database of schema {version}: graph a complete, graph b under way.\n"
    (HERE / f"schema-{version}.sql").write_text(head + "\n".join(connection.iterdump()) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(fill(Path(scratch)))
        freeze(Path(scratch) / "state" / "graph.db")
