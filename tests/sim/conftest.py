"""Simulations live in memory: thousands of commits with their fsyncs, of which none is the point here."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

RAM = Path("/dev/shm")


@pytest.fixture
def ram_path(tmp_path: Path) -> Iterator[Path]:
    """A folder on tmpfs where there is one, else on disk."""
    if not RAM.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="graphd-sim-", dir=RAM))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
