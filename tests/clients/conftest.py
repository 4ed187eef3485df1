"""Real editors: they fail where they are missing under CI, and are skipped elsewhere."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.neovim import Neovim, what_is_missing
from tests.kit.workspaces import Workspace


@pytest.fixture
def room() -> Iterator[Workspace]:
    """A workspace with a folder for workflows, at a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="gn") as folder:
        made = Workspace(Path(folder))
        (made.root / ".agents" / "workflows").mkdir(parents=True)
        yield made
        made.end()


@pytest.fixture
def neovim(room: Workspace) -> Iterator[Callable[..., Neovim]]:
    """Starts an editor in the workspace; all are closed at the end."""
    missing = what_is_missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    opened = []

    def start(**options: Any) -> Neovim:
        opened.append(Neovim(room, **options))
        return opened[-1]

    yield start
    for editor in opened:
        editor.close()
