"""The settings in force: read at the start and at each change of a file; a bad file keeps the last good one.

Source: execution.md, Settings.
"""

import contextlib
from pathlib import Path

from graphd.daemon.agent_settings import Row
from graphd.daemon.log import log
from graphd.daemon.settings import Settings, SettingsRefused, combined, read_rows


class LiveSettings:
    """The settings in force, and their files."""

    def __init__(self, user_file: Path, workspace_file: Path) -> None:
        self._user_file = user_file
        self._workspace_file = workspace_file
        self._workspaces: list[Row] = []  # the last good ones
        self.now = Settings()
        self.trouble: SettingsRefused | None = None
        self.reload()

    @property
    def folders(self) -> list[Path]:
        """Where the files lie."""
        return [self._user_file.parent, self._workspace_file.parent]

    def reload(self) -> bool:
        """Read the files again. True where the settings in force changed."""
        before, self.trouble = self.now, None
        try:
            users = read_rows(self._user_file)
            try:
                workspaces = read_rows(self._workspace_file)
                self.now = combined(users, workspaces, self._user_file)
                self._workspaces = workspaces
            except SettingsRefused as refusal:
                self._note(refusal)
                if refusal.path == self._workspace_file:  # it never keeps from being in force what the user's file says
                    with contextlib.suppress(SettingsRefused):
                        self.now = combined(users, self._workspaces, self._user_file)
        except SettingsRefused as refusal:
            self._note(refusal)
        return before != self.now

    def _note(self, refusal: SettingsRefused) -> None:
        self.trouble = refusal
        log("settings_refused", path=str(refusal.path), line=refusal.line, message=refusal.message)
