"""What comes to the daemon as a subreaper has no keeper any more, and is ended (execution.md, Proof of death).

Only the daemon's own process may do this: it kills every child that it does not know.
"""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from graphd.children.identity import abandoned, keepers, reap_strangers
from graphd.children.keeping.sibling import become_subreaper

_TASKS = Path("/proc/self/task")


@contextlib.contextmanager
def ending_orphans() -> Iterator[None]:
    """Become a subreaper of this process's loop, and end strangers whenever a child of ours changes."""
    become_subreaper()
    loop = asyncio.get_running_loop()

    def stirred() -> None:
        if has_strangers():
            loop.run_in_executor(None, reap_strangers)

    loop.add_signal_handler(signal.SIGCHLD, stirred)
    stirred()
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


def has_strangers() -> bool:
    """Whether this process has a child that is no keeper. Cheap: most signals tell of a keeper that ended."""
    if abandoned:
        return True
    try:
        lists = [(task / "children").read_text() for task in _TASKS.iterdir()]
    except OSError:
        return True  # a kernel without these files: look at everything
    return not {int(pid) for text in lists for pid in text.split()} <= keepers
