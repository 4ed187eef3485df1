"""An agent's file requests, done inside its node's root and nowhere else.

A path is resolved with its symlinks and must then lie in the resolved root; it is opened from the root's descriptor
component by component, none of which may be a symlink by then, so nobody can swap one in between. Doing a request
twice, as after a crash, ends in the same state. A write goes over the old bytes in place: mode, owner and links of the
file stay. Source: execution.md, Drivers.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Any, Final

from graphd.children.acp import lines
from graphd.children.acp.wire import mapping
from graphd.core.talk import Line

READ_LIMIT_BYTES: Final = 4 << 20
"""Of one reply: the keeper takes 16 MiB at once, and every character may become six."""
METHODS: Final = frozenset({"fs/read_text_file", "fs/write_text_file"})


class FileRefused(Exception):
    """The request is not served; `code` is the JSON-RPC error. The message is for the agent."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def serve(request: dict[str, Any], root: Path, *, may_write: bool) -> Line:
    """Do a request {id (JSON text), method, params} and answer the reply. Blocks; raises for nothing that it says."""
    key, params = str(request["id"]), mapping(request.get("params"))
    try:
        parts = _parts(params.get("path"), root)
        if request["method"] == "fs/read_text_file":
            return lines.reply(key, {"content": _read(root, parts, params)})
        if not may_write:
            raise FileRefused(lines.INVALID_PARAMS, "this session may not write files")
        _write(root, parts, params)
        return lines.reply(key, {})
    except FileRefused as refusal:
        return lines.refusal(key, refusal.code, str(refusal))
    except OSError as trouble:
        code = lines.NOT_FOUND if trouble.errno in (errno.ENOENT, errno.ENOTDIR) else lines.INVALID_PARAMS
        return lines.refusal(key, code, f"{params.get('path')}: {trouble.strerror or trouble}")


def _parts(path: Any, root: Path) -> tuple[str, ...]:
    """The names from the resolved root to the file, all symlinks resolved. FileRefused outside the root."""
    if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
        raise FileRefused(lines.INVALID_PARAMS, "path: an absolute path is wanted")
    try:
        real_root = os.path.realpath(root)
        real = os.path.realpath(Path(root) / os.fsdecode(path.encode("utf-8", "replace")))
    except (OSError, ValueError) as trouble:
        raise FileRefused(lines.INVALID_PARAMS, f"{path}: {trouble}") from trouble
    if not Path(real).is_relative_to(real_root) or real == real_root:
        raise FileRefused(lines.INVALID_PARAMS, f"{path}: it is not in {root}, and nothing else is served")
    return Path(real).relative_to(real_root).parts


def _open(root: Path, parts: tuple[str, ...], flags: int, *, makes_folders: bool = False) -> int:
    """The descriptor of a regular file. A symlink on the way is refused: it was none a moment ago."""
    at = os.open(os.path.realpath(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in parts[:-1]:
            if makes_folders:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        # Not blocking: the open of a FIFO would wait for its other end.
        fd = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileRefused(lines.INVALID_PARAMS, "it is no regular file")
    return fd


def _read(root: Path, parts: tuple[str, ...], params: dict[str, Any]) -> str:
    first, count = _number(params, "line"), _number(params, "limit")
    with os.fdopen(_open(root, parts, os.O_RDONLY), "rb") as file:
        if first is None and count is None:
            content = bytearray(file.read(READ_LIMIT_BYTES + 1))
        else:
            content = bytearray()
            for number, line in enumerate(iter(lambda: file.readline(READ_LIMIT_BYTES + 1), b""), 1):
                if count is not None and number >= max(first or 1, 1) + count:
                    break
                if number >= (first or 1):
                    content += line
                if len(content) > READ_LIMIT_BYTES:
                    break
    if len(content) > READ_LIMIT_BYTES:
        message = f"more than {READ_LIMIT_BYTES} bytes: read it in parts, by line and limit"
        raise FileRefused(lines.INVALID_PARAMS, message)
    return content.decode("utf-8", "replace")


def _number(params: dict[str, Any], name: str) -> int | None:
    value = params.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise FileRefused(lines.INVALID_PARAMS, f"{name}: a number from 0 on is wanted")


def _write(root: Path, parts: tuple[str, ...], params: dict[str, Any]) -> None:
    """Over the old bytes, then cut: never empty in between."""
    content = params.get("content")
    if not isinstance(content, str):
        raise FileRefused(lines.INVALID_PARAMS, "content: a text is wanted")
    left = memoryview(content.encode("utf-8", "replace"))
    size = len(left)
    fd = _open(root, parts, os.O_WRONLY | os.O_CREAT, makes_folders=True)
    try:
        while left:
            left = left[os.write(fd, left) :]
        os.ftruncate(fd, size)
    finally:
        os.close(fd)
