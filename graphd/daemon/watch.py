"""Notices changes in folders without a timer: inotify on Linux, watchfiles elsewhere.

watchfiles polls its own queue twenty times a second, which an idle daemon must not do (performance.md, P12); inotify
costs nothing while nothing happens. Whoever is called back looks for itself: a watch says that something changed, not
what.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

POLL_S: Final = 5.0
_GONE: Final = 0x40 | 0x200 | 0x400 | 0x800  # MOVED_FROM, DELETE, DELETE_SELF, MOVE_SELF
_COMES: Final = 0x80 | 0x100  # MOVED_TO, CREATE
_WRITTEN: Final = 0x8 | _COMES  # CLOSE_WRITE


class FolderWatch:
    """Calls `stirred` on the loop after something changed in a folder."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()

    @classmethod
    def on(cls, folders: Iterable[Path], stirred: Callable[[], None], *, writes: bool = False) -> "FolderWatch":
        """Begin to watch for what goes, and with `writes` for what comes or is written: also in a folder that comes."""
        watch = cls()
        if sys.platform == "linux":
            watch._inotify(list(folders), stirred, _GONE | (_WRITTEN if writes else 0))
        elif there := [folder for folder in folders if folder.is_dir()]:
            watch._task = asyncio.get_running_loop().create_task(watch._follow(there, stirred))
        return watch

    def _inotify(self, folders: list[Path], stirred: Callable[[], None], mask: int) -> None:
        import ctypes  # 5 ms that the first hello does not wait for

        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:  # the user's inotify instances are used up (often 128): then a look now and then has to do
            self._look_again(stirred)
            return
        self._fd = fd
        above: dict[Path, int] = {}  # where a folder of ours is to come

        def arm() -> None:
            wanted = {folder.parent for folder in folders if not folder.is_dir()} if mask & _WRITTEN else set()
            for parent in above.keys() - wanted:
                libc.inotify_rm_watch(fd, above.pop(parent))
            for parent in wanted - above.keys():
                above[parent] = libc.inotify_add_watch(fd, os.fsencode(parent), _COMES)
            for folder in folders:  # those last: one of them may be above another
                if folder.is_dir():
                    libc.inotify_add_watch(fd, os.fsencode(folder), mask)

        def read() -> None:
            with contextlib.suppress(BlockingIOError):
                os.read(fd, 65536)
            arm()
            stirred()

        arm()
        asyncio.get_running_loop().add_reader(fd, read)

    def _look_again(self, stirred: Callable[[], None]) -> None:
        def look() -> None:
            stirred()
            self._look_again(stirred)

        self._timer = asyncio.get_running_loop().call_later(POLL_S, look)

    async def _follow(self, folders: list[Path], stirred: Callable[[], None]) -> None:
        from watchfiles import awatch

        async for _ in awatch(*folders, stop_event=self._stop, recursive=False):
            stirred()

    def close(self) -> None:
        """Watch no more."""
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
