"""A plan is written as a file whole or not at all, whoever else writes there."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphd.base.refusal import Refused
from graphd.server.saving import write_workflow


def test_two_that_save_under_one_name_each_write_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both_wrote = threading.Barrier(2, timeout=10)
    sync = os.fsync

    def fsync(fd: int) -> None:
        sync(fd)
        both_wrote.wait()

    monkeypatch.setattr(os, "fsync", fsync)
    texts = ["a" * 10_000, "b" * 20_000]
    with ThreadPoolExecutor(2) as threads:
        saving = [threads.submit(write_workflow, tmp_path, "w", text, force=True) for text in texts]
        paths = {done.result() for done in saving}
    assert paths == {tmp_path / ".agents" / "workflows" / "w.yaml"}
    (path,) = paths
    assert path.read_text() in texts
    assert [path.name for path in path.parent.iterdir()] == ["w.yaml"]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".agents").write_text("a file")
    with pytest.raises(Refused) as refusal:
        write_workflow(tmp_path, "w", "nodes: []", force=False)
    assert refusal.value.code == "notFound"
    assert str(tmp_path / ".agents" / "workflows" / "w.yaml") in refusal.value.message
    assert refusal.value.hint
