"""What an attempt changed: git trees of its work tree, taken at its start and at its end, and the patch between them.

Nothing of the repository is written: the index is a copy, and new objects go into the attempt's folder, which borrows
all others from the repository. No program that the repository's settings name is run, its filters included; nothing
is fetched. Trees are not synced: after a power cut there may be none. Source: protocol.md, `diff`.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

from graphd.base.text import Text, said, t
from graphd.children.driver import Order
from graphd.children.git import GitFailed, git, printable
from graphd.children.steady import to_its_end

FOLDER: Final = "trees"
CHANGED_LIMIT_BYTES: Final = 64 << 20
PATCH_LIMIT_BYTES: Final = 8 << 20
_SETTINGS: Final = {"core.splitIndex": "false", "core.safecrlf": "false", "core.untrackedCache": "false"}


class NoPatch(Exception):
    """There is no patch to be had; the message is for people. `code` is the wire's."""

    def __init__(self, message: Text, code: str = "notSupported") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class _Place(NamedTuple):
    """A work tree: where it begins, its index, and its objects."""

    top: Path
    index_file: Path
    objects: Path


async def trees_at_start(order: Order) -> None:
    """Before the keeper is spawned. OSError."""
    if _is_wanted(order):
        await to_its_end(lambda: take_start(order.folder, order.cwd))


async def trees_at_end(order: Order) -> None:
    """When its tree is proven empty."""
    if _is_wanted(order):
        await to_its_end(lambda: take_end(order.folder))


def _is_wanted(order: Order) -> bool:
    """Of agents' work alone: two trees cost git some tens of ms each."""
    return order.driver != "shell" and order.role == "worker"


def take_start(folder: Path, cwd: Path) -> None:
    """Before the keeper is spawned: what is there. Where no tree can be taken, why not. Blocks for git. OSError."""
    trees = folder / FOLDER
    shutil.rmtree(trees, ignore_errors=True)  # of a start that came to nothing
    trees.mkdir(mode=0o700)
    _note(trees / "start", _taken(trees, cwd))


def take_end(folder: Path) -> None:
    """When its tree is proven empty: what is there now; once, and only where a start was taken. Blocks for git."""
    trees = folder / FOLDER
    start = _noted(trees / "start")
    if "tree" not in start or "tree" in _noted(trees / "end"):
        return
    try:
        _note(trees / "end", _taken(trees, Path(start["top"])))
    except OSError:
        return  # no room: it says that there is no tree of its end


def patch(folder: Path, *, is_live: bool) -> str:
    """What it changed from its start to its end, or to now while it lives. NoPatch. Blocks for git."""
    trees = folder / FOLDER
    start = _tree_of(trees / "start", t("its start"))
    try:
        if not is_live:
            return _between(trees, start, _tree_of(trees / "end", t("its end"))["tree"])
        with tempfile.TemporaryDirectory(dir=folder, prefix="now-") as name:
            now = _taken(Path(name), Path(start["top"]), borrowed=trees / "objects")
            if "tree" not in now:
                raise NoPatch(t("no git tree could be taken now: {trouble}", trouble=now["trouble"]))
            return _between(Path(name), start, now["tree"])
    except (GitFailed, OSError) as trouble:
        raise NoPatch(t("git can't compare its trees: {trouble}", trouble=said(trouble))) from trouble


def _tree_of(path: Path, when: Text) -> dict[str, Any]:
    noted = _noted(path)
    if "tree" not in noted:
        why = noted.get("trouble") or t("none was kept")
        raise NoPatch(t("there is no git tree of {when}: {trouble}", when=when, trouble=why))
    return noted


def _between(trees: Path, start: dict[str, Any], end: str) -> str:
    words = (
        "diff-tree",
        "-p",
        "-r",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    )
    text = git(Path(start["top"]), *words, start["tree"], end, environment=_environment(trees, {}))
    if len(text.encode("utf-8", "surrogateescape")) > PATCH_LIMIT_BYTES:
        limit = PATCH_LIMIT_BYTES >> 20
        raise NoPatch(t("the patch is larger than {limit} MiB", limit=limit), "tooLarge")
    return printable(text)


def _taken(trees: Path, cwd: Path, *, borrowed: Path | None = None) -> dict[str, Any]:
    """The tree of all that git would see: changed, new and deleted files, but none that is ignored."""
    try:
        place = _place(cwd)
        (trees / "objects" / "info").mkdir(parents=True, exist_ok=True)
        lenders = [place.objects, *([borrowed] if borrowed is not None else [])]
        (trees / "objects" / "info" / "alternates").write_text("".join(f"{path}\n" for path in lenders))
        if place.index_file.exists():
            shutil.copy2(place.index_file, trees / "index")  # with its time: git compares that with the files' times
        environment = _environment(trees, _unfiltered(place.top))
        changed = git(
            place.top, "ls-files", "-z", "--others", "--modified", "--exclude-standard", environment=environment
        )
        names = [name for name in dict.fromkeys(changed.split("\0")) if name and not name.endswith("/")]
        size = sum(_size(place.top / name) for name in names)
        if size > CHANGED_LIMIT_BYTES:
            limit = CHANGED_LIMIT_BYTES >> 20
            return {"trouble": t("more than {limit} MiB are changed or new, and not ignored", limit=limit)}
        stdin = "".join(f"{name}\0" for name in names)
        git(
            place.top, "update-index", "-z", "--add", "--remove", "--replace", "--stdin",
            stdin=stdin, environment=environment,
        )  # fmt: skip
        tree = git(place.top, "write-tree", "--missing-ok", environment=environment).strip()
    except GitFailed as trouble:
        return {"trouble": str(trouble)}
    finally:
        (trees / "index").unlink(missing_ok=True)
    return {"tree": tree, "top": str(place.top)}


def _place(cwd: Path) -> _Place:
    found = git(cwd, "rev-parse", "--show-toplevel", "--git-path", "index", "--git-path", "objects")
    top, _, rest = found.rstrip("\n").partition("\n")
    index, _, objects = rest.partition("\n")
    if "\n" in objects:
        raise GitFailed("the path of the work tree has more than one line")
    return _Place(Path(top), cwd / index, (cwd / objects).resolve())


def _unfiltered(top: Path) -> dict[str, str]:
    """Settings under which no filter runs a program."""
    try:
        found = git(top, "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
    except GitFailed:  # none is set
        return {}
    return {name: "false" if name.endswith(".required") else "" for name in found.split("\0") if name}


def _environment(trees: Path, settings: dict[str, str]) -> dict[str, str]:
    found = {"GIT_INDEX_FILE": str(trees / "index"), "GIT_OBJECT_DIRECTORY": str(trees / "objects")}
    pairs = [*_SETTINGS.items(), *settings.items()]
    for number, (name, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**found, "GIT_CONFIG_COUNT": str(len(pairs))}


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # deleted
        return 0


def _note(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found))


def _noted(path: Path) -> dict[str, Any]:
    """{} where there is none, or half of one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
