"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.kit.workspaces import Workspace

settings.register_profile("untimed", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("untimed")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of its own; whatever still lives in it afterwards is killed."""
    made = Workspace(tmp_path)
    yield made
    made.end()
