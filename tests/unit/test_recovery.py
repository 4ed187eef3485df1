"""The sweep of attempt folders: what belongs to nobody goes, what is being made stays."""

from pathlib import Path

import pytest

from graphd.children import abandoned
from graphd.daemon.recovery import sweep
from tests.unit.core_drive import Drive, define, ended, plan


async def test_the_folder_of_a_graph_that_is_set_during_the_sweep_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive()
    drive.run(plan("old", define("a")))
    drive.run(ended(drive.state.graphs["old"], "a"))
    (attempt,) = drive.state.graphs["old"].attempts.values()
    attempts = tmp_path / "attempts"
    (attempts / "old" / attempt.folder).mkdir(parents=True)
    (attempts / "nobodys").mkdir()

    async def collected(folder: Path, **_: object) -> bool:
        drive.run(plan("new", define("a")))
        (attempts / "new").mkdir()  # and before its attempt's the sweep goes on
        return True

    monkeypatch.setattr(abandoned, "collect_settled", collected)
    await sweep(tmp_path, drive.state, store="s", epoch=1)
    assert sorted(path.name for path in attempts.iterdir()) == ["new", "old"]
