"""Which of two package versions is newer. Standard library alone: the byte pipe asks too.

The public part of PEP 440, as far as this package uses it. What cannot be read is older than everything, so that it
is never a reason to replace a daemon. Source: spec protocol.md, Take-over.
"""

from __future__ import annotations

# Compiled at the first comparison: an editor that waits for the pipe mostly meets a daemon of its own version.
_SHAPE = (
    r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc)[-_.]?(\d*))?"
    r"(?:[-_.]?(post)(\d*))?(?:[-_.]?(dev)(\d*))?(?:\+.*)?\Z"
)
_STAGES = {"a": 1, "b": 2, "rc": 3}


def version_key(text: str) -> tuple[tuple[int, ...], int, int, int, int]:
    """What versions are ordered by: release, stage, number of the stage, post release, development release."""
    import re  # with the first comparison

    found = re.match(_SHAPE, text.strip().lower())
    if found is None:
        return ((), 0, 0, 0, 0)
    release = [int(part) for part in found[1].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    is_dev = found[6] is not None
    dev = int(found[7] or 0) if is_dev else 2**31
    post = int(found[5] or 0) + 1 if found[4] else 0
    if found[2]:
        return tuple(release), _STAGES[found[2]], int(found[3] or 0), post, dev
    return tuple(release), 0 if is_dev and not post else 4, 0, post, dev


def is_newer(version: str, than: str) -> bool:
    """Whether `version` is a later one than `than`."""
    return version != than and version_key(version) > version_key(than)
