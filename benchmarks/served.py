"""graphd's daemon with its server and socket on an existing state, with the no-op driver: what recovery is timed on.

usage: python -m benchmarks.served WORKSPACE
"""

import asyncio
import sys
from pathlib import Path

from benchmarks import noop
from graphd.server.__main__ import Readiness, run

if __name__ == "__main__":
    sys.exit(asyncio.run(run(Path(sys.argv[1]).resolve(), Readiness(None), noop.factory())))
