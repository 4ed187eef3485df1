"""Notices that workflow or prompt files changed outside editors; one watch for all editors, none without one.

Source: spec protocol.md, Language features; research sidecar.md §8 (watch the folder, not the file).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphd.daemon.watch import FolderWatch
from graphd.server.lsp.pace import Pace
from graphd.server.place import config_folder

SETTLE_S: Final = 0.05
INTERVAL_S: Final = 0.5
_NAMES: Final = ("workflows", "prompts")


class WorkflowFiles:
    """Calls its listeners after `.agents/workflows`, `.agents/prompts` or the user's workflows changed."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._listeners: list[Callable[[], None]] = []
        self._watch: FolderWatch | None = None
        self._watched: set[Path] = set()
        self._pace: Pace | None = None

    def listen(self, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` from now on; gives the way to end that."""
        self._listeners.append(stirred)
        if self._pace is None:
            self._pace = Pace(self._tell, delay_s=SETTLE_S, interval_s=INTERVAL_S)
            self._look()

        def leave() -> None:
            if stirred in self._listeners:
                self._listeners.remove(stirred)
            if not self._listeners:
                self.close()

        return leave

    def close(self) -> None:
        """Watch no more."""
        self._listeners.clear()
        self._watched = set()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._pace is not None:
            self._pace.close()
            self._pace = None

    def _tell(self) -> None:
        self._look()
        for stirred in list(self._listeners):
            stirred()

    def _look(self) -> None:
        """Watch the folders that there are, and where they would appear."""
        folders = self._folders()
        if folders == self._watched or self._pace is None:
            return
        self._watched = folders
        if self._watch is not None:
            self._watch.close()
        self._watch = FolderWatch.on(sorted(folders), self._pace.touch, writes=True)

    def _folders(self) -> set[Path]:
        agents = self._workspace / ".agents"
        named = [agents, *(agents / name for name in _NAMES), config_folder() / "workflows"]
        there = {folder for folder in named if folder.is_dir()}
        return there if agents in there else there | {self._workspace}
