"""Other releases of this package, to run beside it: the previous commit's, and this tree under another number."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.kit.workspaces import ROOT, Workspace

PARTS = ("graphd", "protocol", "examples")


@dataclass(frozen=True)
class Release:
    """A copy of the package in `folder`, found through PYTHONPATH; None is this very tree."""

    version: str
    folder: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes an interpreter find it."""
        if self.folder is None:
            return {}
        return {"PYTHONPATH": os.pathsep.join([str(self.folder), str(self.folder / "protocol")])}

    def graphd(self, place: Workspace, *words: str, code: int = 0) -> str:
        """Run its command line; stdout."""
        done = place.graphd(*words, timeout_s=60, **self.environment)
        assert done.returncode == code, f"{self.version} {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if code else "")

    def json(self, place: Workspace, *words: str) -> Any:
        """The same with `--json`."""
        return json.loads(self.graphd(place, *words, "--json"))

    def start(self, place: Workspace, *words: str) -> "subprocess.Popen[str]":
        """The same in the background."""
        return place.start(*words, **self.environment)

    def server(self, place: Workspace, *words: str) -> "subprocess.Popen[bytes]":
        """Its daemon, as a keeper starts it: in the background, without a readiness pipe."""
        environment = {**place.environment, **self.environment}
        argv = [sys.executable, "-P", "-m", "graphd.server", "--workspace", str(place.root.resolve()), *words]
        return subprocess.Popen(argv, env=environment, cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def knows(self, path: str) -> bool:
        """Whether it has this file."""
        return ((self.folder or ROOT) / path).exists()


def previous_release(into: Path, version: str) -> Release | None:
    """The package of the last commit, numbered `version`; None where there is no repository to ask."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", "HEAD", *PARTS]
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode:
        return None
    into.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(into, filter="data")
    return numbered(into, version)


def same_release(into: Path, version: str, protocol: tuple[int, int] | None = None) -> Release:
    """This tree, numbered `version`, and speaking other protocols where they are named."""
    for part in PARTS:
        shutil.copytree(ROOT / part, into / part, ignore=shutil.ignore_patterns("__pycache__"))
    release = numbered(into, version)
    if protocol is not None:
        least, most = protocol
        changed(into / "protocol/graphd_protocol/__init__.py", r"PROTOCOL_MIN = \d+", f"PROTOCOL_MIN = {least}")
        changed(into / "protocol/graphd_protocol/__init__.py", r"PROTOCOL_MAX = \d+", f"PROTOCOL_MAX = {most}")
        changed(into / "graphd/client/greeting.py", r"PROTOCOL_RANGE = \(.*\)", f"PROTOCOL_RANGE = ({least}, {most})")
    return release


def numbered(folder: Path, version: str) -> Release:
    """Give a copy its version."""
    changed(folder / "graphd/__init__.py", r'__version__ = ".*"', f'__version__ = "{version}"')
    return Release(version, folder)


def changed(path: Path, pattern: str, text: str) -> None:
    """Replace the one place in a file that fits."""
    new, count = re.subn(pattern, text, path.read_text())
    assert count == 1, f"{path}: {pattern}"
    path.write_text(new)
