"""What only the world knows of a terminal: whether its folder is inside the node's root, and what it has printed.

Source: execution.md, Drivers; the file's form is `keeping.output`'s.
"""

import os
from pathlib import Path
from typing import Any

from graphd.children.acp import lines
from graphd.children.driver import Order
from graphd.children.keeping.output import OFFSET
from graphd.core.talk import Line


def serve(request: dict[str, Any], order: Order) -> Line:
    """The line for the keeper that starts a command, or the reply with the output of one. Blocks."""
    key = str(request["id"])
    if request["method"] == "terminal/start":
        refusal = refused_folder(key, request["cwd"], order.cwd)
        return refusal or lines.control(
            "start", id=request["terminal"], argv=request["argv"], cwd=_real(request["cwd"], order.cwd),
            env=request["env"], limitBytes=request["limit"],
        )  # fmt: skip
    output, is_truncated = read_output(order.folder / f"terminal.{request['terminal']}", request["limit"])
    answer: dict[str, Any] = {"output": output, "truncated": is_truncated}
    return lines.reply(key, answer | ({"exitStatus": request["exit"]} if request["exit"] is not None else {}))


def refused_folder(key: str, folder: str | None, root: Path) -> Line | None:
    """The refusal of a command whose folder is not one inside the node's root, links resolved."""
    real, real_root = Path(_real(folder, root)), Path(os.path.realpath(root))
    if not real.is_relative_to(real_root):
        reason = f"cwd: {folder} is not in {root}, and nothing is run elsewhere"
    elif not real.is_dir():
        reason = f"cwd: {folder} is no folder"
    else:
        return None
    return lines.refusal(key, lines.INVALID_PARAMS, reason)


def read_output(path: Path, limit: int) -> tuple[str, bool]:
    """(the last `limit` bytes at most, begun at a whole character; whether there was more before)."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # released meanwhile
        return "", False
    (first,), printed = OFFSET.unpack_from(content), content[OFFSET.size :]
    start = max(0, len(printed) - limit)
    while start and start < len(printed) and printed[start] & 0xC0 == 0x80:
        start += 1
    text = printed[start:].decode("utf-8", "replace").encode()  # what is no UTF-8 has grown
    over = max(0, len(text) - limit)
    return text[over:].decode("utf-8", "ignore"), bool(first or start or over)


def _real(folder: str | None, root: Path) -> str:
    return os.path.realpath(root / (folder or "."))
