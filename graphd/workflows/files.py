"""Where workflows lie: the workspace, the user's folder, the bundled ones; the first name found wins.

The only module of this package that touches the disk. Bytes are read once, bounded, and from regular files alone.
Source: spec workflow.md, first paragraph; execution.md, Trust 1.
"""

import difflib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import platformdirs

from graphd.base.text import said, t
from graphd.workflows.source import MAX_BYTES

WorkflowSource = Literal["workspace", "user", "bundled", "file"]
SUFFIXES: Final = (".yaml", ".yml")
_MAX_LISTED: Final = 1_000


class WorkflowNotFound(LookupError):
    """No workflow has this name. `hint` names close ones, and where was looked."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(t("no workflow is called {name}", name=name))
        self.name = name
        self.hint = hint


class WorkflowUnreadable(OSError):
    """The file is there but can't be read as a workflow."""


@dataclass(slots=True, frozen=True)
class Located:
    """A workflow's bytes, read once. `shadows` are files of the same name that lose to it."""

    name: str
    path: Path
    content: bytes
    source: WorkflowSource
    shadows: tuple[Path, ...] = ()

    @property
    def sha256(self) -> str:
        """Of the exact bytes."""
        return sha256(self.content).hexdigest()


def user_config_dir() -> Path:
    """`GRAPHD_CONFIG_DIR`, else the platform's folder for our settings (`~/.config/graphd`)."""
    named = os.environ.get("GRAPHD_CONFIG_DIR")
    return Path(named) if named else Path(platformdirs.user_config_dir("graphd"))


def bundled_dir() -> Path:
    """The workflows that come with us: in the wheel beside this file, in a checkout the folder `examples`."""
    installed = Path(__file__).parent / "bundled"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "examples"


def folders(workspace: Path, config_dir: Path | None = None) -> list[tuple[WorkflowSource, Path]]:
    """Where is looked, in the order in which names win."""
    return [
        ("workspace", workspace / ".agents" / "workflows"),
        ("user", (config_dir or user_config_dir()) / "workflows"),
        ("bundled", bundled_dir()),
    ]


def find(name: str, workspace: Path, config_dir: Path | None = None) -> Located:
    """The workflow of this name; `WorkflowNotFound` or `WorkflowUnreadable` else."""
    places = _index(workspace, config_dir)
    found = places.get(name)
    if not found:
        close = difflib.get_close_matches(name, places, 1)
        hint = t("looked in {folders}", folders=", ".join(str(folder) for _, folder in folders(workspace, config_dir)))
        if close:
            hint = t("did you mean {name}? {looked}", name=close[0], looked=hint)
        elif places:
            hint = t("there are: {names}; {looked}", names=", ".join(sorted(places)[:20]), looked=hint)
        raise WorkflowNotFound(name, hint)
    (source, path), *others = found
    return Located(name, path, read_bounded(path), source, tuple(other for _, other in others))


def list_workflows(workspace: Path, config_dir: Path | None = None) -> list[Located]:
    """Every workflow that can be run by name, by name; unreadable ones are left out."""
    entries = []
    for name in sorted(_index(workspace, config_dir)):
        try:
            entries.append(find(name, workspace, config_dir))
        except (OSError, WorkflowNotFound):
            continue  # it went, or may not be read: it can't be run by name
    return entries


def locate_file(path: Path) -> Located:
    """The workflow in this very file. `WorkflowNotFound` or `WorkflowUnreadable` else."""
    if not path.exists():
        siblings = [p.name for p in path.parent.glob("*.y*ml")][:_MAX_LISTED] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, 1)
        hint = (
            t("did you mean {name}?", name=path.parent / close[0]) if close else t("there is no file {path}", path=path)
        )
        raise WorkflowNotFound(str(path), hint)
    return Located(path.stem, path, read_bounded(path), "file")


def prompt_reader(workspace: Path) -> Callable[[str], bytes | None]:
    """Reads `.agents/prompts/<id>.md` of a workspace, each at most once, so that all that is used is what was hashed.

    A link that leads out of the workspace is not followed: a cloned repository must not name a private file.
    """
    frozen: dict[str, bytes | None] = {}

    def read(prompt: str) -> bytes | None:
        if prompt not in frozen:
            frozen[prompt] = _read_prompt(workspace, prompt)
        return frozen[prompt]

    return read


def _read_prompt(workspace: Path, prompt: str) -> bytes | None:
    path = workspace / ".agents" / "prompts" / f"{prompt}.md"
    try:
        if "/" in prompt or not path.resolve().is_relative_to(workspace.resolve()):
            return None
        return read_bounded(path)
    except (OSError, ValueError):
        return None


def read_bounded(path: Path) -> bytes:
    """At most one byte more than a workflow may have (so that too large is seen); `WorkflowUnreadable` else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not hold us
    except (OSError, ValueError) as trouble:
        raise WorkflowUnreadable(t("can't read {path}: {trouble}", path=path, trouble=said(trouble))) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WorkflowUnreadable(t("{path} is no regular file", path=path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    except WorkflowUnreadable:
        raise
    except OSError as trouble:
        raise WorkflowUnreadable(t("can't read {path}: {trouble}", path=path, trouble=said(trouble))) from None
    finally:
        os.close(descriptor)


def _index(workspace: Path, config_dir: Path | None) -> dict[str, list[tuple[WorkflowSource, Path]]]:
    """Every name with its files, the winner first."""
    found: dict[str, list[tuple[WorkflowSource, Path]]] = {}
    for source, folder in folders(workspace, config_dir):
        for path in _workflows_in(folder):
            found.setdefault(path.stem, []).append((source, path))
    return found


def _workflows_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(SUFFIXES) and not e.name.startswith("."))
    except OSError:
        return []
    return [folder / name for name in names[:_MAX_LISTED]]
