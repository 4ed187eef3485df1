"""One attempt's folder: made before its keeper, claimed by exactly one, read by every recovery.

The handshake: a keeper renames `intent` to `claimed`, a recovery that finds no keeper renames it to `void`. One of
the two renames succeeds, whatever the timing. Source: execution.md, One attempt 2 and 3, Recovery.

A kill loses nothing that was written; a power cut, which ends every process too, loses what was not synced. Each sync
there is, with the row of the recovery table that it keeps true:

| synced | before | row |
| --- | --- | --- |
| the folder's name, `intent` (here) | the keeper is spawned | no folder: nothing was started |
| `claimed` and its name (keeper) | the agent's first line | `intent` there: nothing was started |
| `keeper.json` and its name (keeper) | the agent's first line | proof of death: another boot, so all are dead |
| `journal`, `err` unless empty, `exit.json`, its name (keeper) | anyone is told | exit record: settled from it |
| `output` unless empty, its name (sink, driver) | `AttemptEnded` | attempt settled: its result stays |
| captured stdout and its name (sink) | the journal is trimmed | journal shorter than the cursor: lost |

Not synced: `token` and `tree.json`, which mean nothing to another boot; `trees`, without which nothing is compared;
`void`, which an `intent` that is back becomes again; an empty result, which one that is missing reads as.
"""

import json
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphd.base.failpoints import failpoint
from graphd.children.driver import Driver, Launch, Order
from graphd.children.environment import child_environment, sync_folder
from graphd.children.identity import is_locked
from graphd.children.results import ERR_LIMIT
from graphd.children.session_lock import wanted_lock

JOURNAL_LIMIT = 64 << 20
RESTART_DELAYS_S = (1.0, 5.0, 30.0)
_making_parents = threading.Lock()


@dataclass(slots=True, frozen=True)
class Nothing:
    """No agent was ever started here, and none can be any more."""


@dataclass(slots=True, frozen=True)
class Kept:
    """A keeper lives: its lock is held."""


@dataclass(slots=True, frozen=True)
class Recorded:
    """The keeper is gone and left its record; `record` is None where that is broken (power cut)."""

    record: dict[str, Any] | None


@dataclass(slots=True, frozen=True)
class Orphaned:
    """Claimed, no keeper, no record."""


Found = Nothing | Kept | Recorded | Orphaned


def make_folder(order: Order, driver: Driver) -> dict[str, Any]:
    """Everything that the keeper needs, `intent` last; its launch spec. OSError or PromptRefused. Blocks."""
    folder = order.folder
    with _making_parents:  # whoever finds the graph's folder there finds its name durable
        if not folder.parent.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.parent.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(folder / "token", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as token:  # as long as there is no `intent` nobody reads it: it may be seen half made
        token.write(secrets.token_hex(32).encode())
    launch = driver.start(order)
    failpoint("attempt.intent.before")
    os.close(os.open(folder / "intent", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    failpoint("attempt.intent.after")
    sync_folder(folder)
    sync_folder(folder.parent)
    return _launch_spec(order, launch)


def look(folder: Path) -> Found:
    """What is in an attempt's folder, by the recovery table. An unclaimed one is made void. Blocks for ms."""
    if void(folder):
        return Nothing()
    if not (folder / "claimed").exists():
        return Nothing()
    # The lock first: a keeper that ends in between leaves its record before it lets go.
    if is_locked(folder):
        return Kept()
    try:
        content = (folder / "exit.json").read_bytes()
    except FileNotFoundError:
        return Orphaned()
    try:
        record = json.loads(content)
    except ValueError:
        record = None
    return Recorded(record if isinstance(record, dict) else None)


def void(folder: Path) -> bool:
    """Rename `intent` to `void`: no keeper can start here any more. False when there is no `intent` (any more)."""
    try:
        failpoint("attempt.void.before")
        (folder / "intent").rename(folder / "void")
        failpoint("attempt.void.after")
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def keeper_log(folder: Path, limit_bytes: int = 2048) -> str:
    """The end of what a keeper said when it failed."""
    try:
        return (folder / "keeper.log").read_bytes()[-limit_bytes:].decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _launch_spec(order: Order, launch: Launch) -> dict[str, Any]:
    return {
        "v": 1,
        "argv": launch.argv,
        "stdin": launch.stdin,
        "sessionLock": wanted_lock(order),
        "cwd": str(order.cwd),
        "env": child_environment(
            order.environment,
            workspace=order.workspace,
            cookie=order.cookie,
            folder=order.folder,
            variables=order.variables,
        ),
        "cookie": order.cookie,
        "store": order.store,
        "epoch": order.epoch,
        "lingerS": order.linger_s,
        "graceS": order.grace_s,
        "restartArgv": order.restart_argv,
        "restartDelaysS": RESTART_DELAYS_S,
        "journalLimitBytes": JOURNAL_LIMIT,
        "errLimitBytes": ERR_LIMIT,
        "failpoints": {
            "arm": os.environ.get("GRAPHD_FAILPOINT", ""),
            "log": os.environ.get("GRAPHD_FAILPOINT_LOG", ""),
            "once": os.environ.get("GRAPHD_FAILPOINT_ONCE", ""),
        },
    }
