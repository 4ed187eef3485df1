"""Give the workspace to a newer version, and note how this daemon is started.

A take-over is a clean stop and an ordinary start: keepers are told `leave`, nothing is killed, and clients are told to
come back. Only a newer version replaces an older one. Source: spec protocol.md, Daemon, socket, lock (Take-over).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphd import __version__
from graphd.base.record import newer_recorded, write_record
from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.base.versions import is_newer
from graphd.daemon.log import log
from graphd_protocol import PROTOCOL_MAX, PROTOCOL_MIN

if TYPE_CHECKING:
    from graphd_protocol.model import HandoverParams


def handed_over(params: "HandoverParams", caller: str) -> Text:
    """The reason to stop with. Raises Refused `conflict` for a version that is not newer than this one."""
    if not is_newer(params.version, __version__):
        raise Refused(
            "conflict",
            t("this daemon is {ours}, and {theirs} is not newer", ours=__version__, theirs=params.version),
            t("an older client is served as it is; graphd stop ends this daemon"),
            version=__version__,
        )
    log("handed_over", version=params.version, protocol=list(params.protocol), client=caller)
    return t("graphd {version} takes over", version=params.version)


def note_daemon(folder: Path, command: Sequence[str]) -> None:
    """Record how this daemon is started: `command` is its restart line, of which the workspace is left out."""
    words = list(command)
    if "--workspace" in words:
        words = words[: words.index("--workspace")]
    write_record(str(folder), words, (PROTOCOL_MIN, PROTOCOL_MAX))


def become_newest(folder: Path, arguments: Sequence[str]) -> None:
    """A keeper started us by an old command line: become the newest daemon recorded, where there is a newer one.

    Returns where there is none, or where it can't be run.
    """
    record = newer_recorded(str(folder))
    if record is None:
        return
    sys.stderr.flush()
    try:
        os.execve(record.argv[0], [*record.argv, *arguments], record.environment(dict(os.environ)))  # noqa: S606 - recorded by that very daemon in our own 0700 folder
    except OSError as trouble:
        log("newest_not_started", version=record.version, trouble=str(trouble))
