"""The needed results as files `$GRAPHD_INPUT_DIR/<name>` of an attempt."""

import re
import shutil
from pathlib import Path
from typing import Final

from graphd.base.text import t
from graphd.children.driver import Input, Order, PromptRefused

INPUT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


def write_inputs(order: Order) -> None:
    """Write them all into the folder `inputs`. PromptRefused for a name that can't be a file's. Blocks."""
    folder = order.folder / "inputs"
    folder.mkdir(mode=0o700, exist_ok=True)
    for given in order.inputs:
        _write_input(folder, given)


def _write_input(folder: Path, given: Input) -> None:
    """A copy, never a link: the script may write to it, and the upstream's result is not its to change."""
    if not INPUT_NAME.match(given.name):
        raise PromptRefused(t("{given!r} can't be the name of an input file", given=given.name))
    path = folder / given.name
    if given.path is not None:
        try:
            shutil.copyfile(given.path, path)
        except FileNotFoundError:
            pass
        else:
            return
    path.write_text(given.text, encoding="utf-8", errors="surrogateescape")
