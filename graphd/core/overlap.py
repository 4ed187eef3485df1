"""Which nodes write the same files, by the globs that they declare. Source: workflow.md, Node (`writes`).

A glob is relative to the workspace: `*` and `?` stay within a name, `**` is any number of folders, and what names a
folder (a name without an ending) covers all below it. Where it is not plain whether two meet, they do: serialised for
nothing is safe.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from graphd.base.text import Text, t
from graphd.core.definition import Definition
from graphd.core.reach import Reach

_SPECIAL = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[[!^]?\]?[^\]]*\]")
_LIMIT_CHARACTERS = 512


def glob_reason(glob: str) -> Text | None:
    """Why a text is no glob of ours; None where it is one."""
    if not glob.strip() or len(glob) > _LIMIT_CHARACTERS or not glob.isprintable():
        return t("a glob is a line of 1 to {limit} characters", limit=_LIMIT_CHARACTERS)
    if glob.startswith(("/", "~")) or "\\" in glob or ".." in glob.split("/"):
        return t("a glob is relative to the workspace, with / between folders and without ..")
    return None


def writes_meet(one: Definition, other: Definition) -> bool:
    """Whether two nodes may write the same file. Whether they may run at once is another question (`Reach`)."""
    return any(globs_meet(a, b) for a in one.writes for b in other.writes)


def overlaps(definitions: Sequence[Definition], reach: Reach, *, isolation: str = "none") -> Iterator[tuple[str, str]]:
    """Pairs that may run at once, in one tree, and write the same file; each once, the earlier node first.

    `isolation` is the graph's, for nodes that name none. Made one by one: a plan of 10,000 writers of one folder has
    50 million pairs, and nobody wants to see more than a few.
    """
    shared = [d for d in definitions if d.writes and (d.isolation or isolation) != "node"]
    rows = sorted((_literal(glob), glob, place) for place, d in enumerate(shared) for glob in d.writes)
    told: set[tuple[int, int]] = set()
    for at, (prefix, glob, place) in enumerate(rows):
        for later, other, its_place in rows[at + 1 :]:
            if not later.startswith(prefix):
                break
            pair = (min(place, its_place), max(place, its_place))
            if place == its_place or pair in told:
                continue
            first, second = shared[pair[0]].slug, shared[pair[1]].slug
            if globs_meet(glob, other) and reach.can_meet(first, second):
                told.add(pair)
                yield first, second


@lru_cache(maxsize=4096)
def globs_meet(one: str, other: str) -> bool:
    """Whether some path fits both globs."""
    a, b = _folders(one), _folders(other)
    return _have_common(_and_below(a), b, "**", _names_meet) or _have_common(a, _and_below(b), "**", _names_meet)


def _and_below(folders: list[str]) -> list[str]:
    """With all that lies below, unless the last name has an ending and so is a file's."""
    return folders if folders and "." in folders[-1][1:] else [*folders, "**"]


def _literal(glob: str) -> str:
    """What every path of the glob begins with."""
    return _SPECIAL.split("/".join(_folders(glob)), maxsplit=1)[0]


def _folders(glob: str) -> list[str]:
    return [part for part in glob.split("/") if part not in ("", ".")]


def _names_meet(one: str, other: str) -> bool:
    """Whether a name fits both; a class of characters counts as any."""
    return _have_common(_CLASS.sub("?", one), _CLASS.sub("?", other), "*", _characters_meet)


def _characters_meet(one: str, other: str) -> bool:
    return one == other or "?" in (one, other)


def _have_common(one: Sequence[str], other: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """Whether two patterns have a common match: `star` is any number of parts, else each part meets its like."""
    todo = [(0, 0)]
    seen = set(todo)
    while todo:
        i, j = todo.pop()
        a = one[i] if i < len(one) else None
        b = other[j] if j < len(other) else None
        if a is None and b is None:
            return True
        steps = [(i + 1, j)] if a == star else []
        steps += [(i, j + 1)] if b == star or (a == star and b is not None) else []
        steps += [(i + 1, j)] if b == star and a is not None else []
        if a is not None and b is not None and star not in (a, b) and fits(a, b):
            steps.append((i + 1, j + 1))
        todo += [step for step in steps if step not in seen]
        seen.update(steps)
    return False
