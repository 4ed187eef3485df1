"""A daemon that stands on its porch until the file `go` is in its workspace; `imported` there says what it had by then.

usage: python gated.py --workspace DIR [--ready-fd N]
"""

import asyncio
import sys
from pathlib import Path

from graphd.server import __main__ as daemon
from graphd.server.porch import Porch

HEAVY = ("graphd.core", "graphd.children", "graphd.workflows", "graphd.daemon.house", "graphd.server.service", "orjson",
         "pydantic", "hashlib", "uuid", "structlog", "dataclasses")  # fmt: skip
WORKSPACE = Path(sys.argv[sys.argv.index("--workspace") + 1])

furnish = daemon._furnish


async def once_the_gate_opens(porch: Porch) -> None:
    """Answer the door; then load as ever."""
    while not (WORKSPACE / "go").exists():
        await asyncio.sleep(0.01)
    (WORKSPACE / "imported").write_text(" ".join(name for name in HEAVY if name in sys.modules))
    await furnish(porch)


daemon._furnish = once_the_gate_opens
sys.exit(daemon.main())
