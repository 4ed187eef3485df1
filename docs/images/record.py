"""Records docs/images/run.svg: one frame of a real `graphd run checkup` on this repository, while it is at work.

Run it from the repository's root: `.venv/bin/python docs/images/record.py`. State lies in a temporary folder, and the
daemon that it starts is stopped again.
"""

import asyncio
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from graphd.cli.following import Follower, Wishes
from graphd.cli.keymap import keys_of
from graphd.cli.screen import Screen
from graphd.cli.steering import Face

COLUMNS, ROWS = 100, 18
DARK = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [(40, 44, 52), (224, 108, 117), (152, 195, 121), (229, 192, 123), (97, 175, 239), (198, 120, 221), (86, 182, 194),
     (220, 223, 228)],
    [(127, 132, 142), (255, 123, 133), (165, 214, 132), (240, 205, 140), (120, 190, 250), (215, 140, 235),
     (100, 200, 212), (255, 255, 255)],
)  # fmt: skip
PICTURE = Path(__file__).with_name("run.svg")
Wire = dict[str, Any]


class Camera(Screen):
    """A screen that keeps the frame with the most to see: nodes that run and print, beside some that are done."""

    def __init__(self) -> None:
        console = Console(file=io.StringIO(), width=COLUMNS, height=ROWS, force_terminal=True, highlight=False)
        super().__init__(console)
        self.best: tuple[int, Any] = (-1, None)

    def show(self, snapshot: Wire, activity: dict[str, Wire]) -> None:
        """Look at every value."""
        super().show(snapshot, activity)
        states = [node["state"] for node in snapshot["nodes"]]
        running = [node["slug"] for node in snapshot["nodes"] if node["state"] == "running"]
        talking = sum(bool(activity.get(slug, {}).get("lastLine")) for slug in running)
        worth = 4 * talking + 3 * min(len(running), 3) + 3 * min(states.count("achieved"), 4)
        if running and worth > self.best[0]:
            self.face = Face(selected=running[0], keys=keys_of(snapshot, running[0]))
            self.best = (worth, self.frame(snapshot))


async def record() -> None:
    """Run, choose a frame, write the picture."""
    from graphd.client.session import Session

    camera = Camera()
    async with await Session.open() as session:
        graph = (await session.call("workgraph/set", {"workflow": "checkup"}))["graph"]
    code = await Follower(None, graph, Wishes(), view=camera).run()
    async with await Session.open() as session:
        await session.call("graphd/stop", {"mode": "cancel"})
        async for _ in session.notifications():
            pass
    paper = Console(file=io.StringIO(), record=True, width=COLUMNS, height=ROWS, force_terminal=True, highlight=False)
    paper.print(camera.best[1])
    drawn = paper.export_svg(title="graphd run checkup", theme=DARK)
    # A picture that is embedded may fetch nothing: the fonts of the reader's machine have to do.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.name}: exit code {code}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as state:
        os.environ["GRAPHD_STATE_DIR"] = state
        asyncio.run(record())
