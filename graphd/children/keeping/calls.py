"""What an attached daemon may ask of its keeper: one function a call, each answers facts, or a `code` that refuses.

| call | facts | does |
| --- | --- | --- |
| `append` | seq, line | gives the agent a line, if it is the next one; a control line is for the keeper ([terminals]) |
| `trim` | upTo | drops the journal's records up to there |
| `status` | | where it stands, and the pids alive |
| `holdSession` | path | gives the lock that the tree holds the name of the session that was opened |
| `closeStdin`, `interrupt`, `terminate`, `kill` | | the steps of an end |
| `leave` | | the daemon stops on purpose: it is not started again |
| `collect` | | the record is settled: the keeper ends |

A call that a keeper does not know is refused as `badCall`: keepers outlive the daemons that started them. Source:
execution.md, The keeper.
"""

from __future__ import annotations

from graphd.children.keeping.files import IN
from graphd.children.keeping.points import failpoint
from graphd.children.keeping.terminals import CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, Final

    from graphd.children.keeping.keeper import Keeper
    from graphd.children.keeping.peers import Peer
else:
    import _signal as signal

UNTAKEN_LIMIT: Final = 1 << 20


def take(keeper: Keeper, peer: Peer, call: dict[str, Any]) -> None:
    """Route one call of an attached peer. KeyError for one that is unknown."""
    keeper.peers.answer(peer, call, **CALLS[call["do"]](keeper, call))


def append(keeper: Keeper, call: dict[str, Any]) -> dict[str, Any]:
    """Compare and append: taken only if `seq` is the number of `in` records so far; a resend is harmless."""
    line, count = call["line"].encode(), keeper.journal.in_count
    if call["seq"] < count:
        return {"taken": False, "inCount": count}
    refusals = (
        ("gap", call["seq"] > count),
        ("badLine", b"\n" in line),
        ("noStdin", keeper.phase != "running" or not keeper.agent.takes_input),
        ("full", keeper.stalled is not None),
        ("busy", len(keeper.agent.waiting) > UNTAKEN_LIMIT),
    )
    for code, is_so in refusals:
        if is_so:
            return {"code": code, "inCount": count}
    keeper.note_err(is_due=True)
    try:
        keeper.journal.append(IN, line + b"\n")
    except OSError:
        return {"code": "full", "inCount": count}
    if line.startswith(CONTROL):
        keeper.terminals.take(line)
    else:
        keeper.agent.waiting += line + b"\n"
        keeper.feed()
    keeper.peers.push()
    keeper.note_tree()
    return {"taken": True, "inCount": keeper.journal.in_count}


def trim(keeper: Keeper, call: dict[str, Any]) -> dict[str, Any]:
    """Sent after the commit that needs those bytes no more; never beyond what the slowest peer was sent."""
    up_to = min(call["upTo"], keeper.peers.slowest())
    try:
        if up_to > keeper.journal.base:
            keeper.journal.trim(up_to)
    except OSError as trouble:
        return {"code": "full", "message": str(trouble)}
    keeper.write_held()
    keeper.unstall()
    return {"base": keeper.journal.base}


def status(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """Where it stands, with the pids alive below us."""
    keeper.note_tree()
    return {"pids": [seen.pid for seen in keeper.tree()], **keeper.standing()}


def close_stdin(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """After what is still to be written."""
    keeper.agent.closes_stdin = True
    keeper.feed()
    return {}


def interrupt(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """SIGINT to the agent's process group."""
    if keeper.phase == "running":
        keeper.agent.interrupt()
    return {}


def terminate(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """SIGTERM to the whole tree; stopped ones are woken to take it."""
    count = keeper.signal_all(signal.SIGTERM)
    keeper.signal_all(signal.SIGCONT)
    return {"count": count}


def kill(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """SIGKILL to the whole tree until it is empty."""
    if keeper.phase != "ended":
        keeper.kill_all()
    return {}


def leave(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """The daemon stops on purpose: do not start it again. The linger holds all the same."""
    keeper.is_left = True
    return {}


def hold_session(keeper: Keeper, call: dict[str, Any]) -> dict[str, Any]:
    """What is locked for the agent's session gets the name of the one that it opened."""
    try:
        return {"code": keeper.session.name(call["path"])}
    except OSError as trouble:
        return {"code": "noLink", "message": str(trouble)}


def collect(keeper: Keeper, _call: dict[str, Any]) -> dict[str, Any]:
    """The settlement is committed: our work is done."""
    if keeper.phase != "ended":
        return {"code": "notEnded"}
    failpoint("keeper.collect.before")
    keeper.loop.is_done = True
    failpoint("keeper.collect.after")
    return {}


CALLS: Final[dict[str, Callable[[Keeper, dict[str, Any]], dict[str, Any]]]] = {
    "append": append, "trim": trim, "status": status, "closeStdin": close_stdin, "interrupt": interrupt,
    "terminate": terminate, "kill": kill, "leave": leave, "collect": collect, "holdSession": hold_session,
}  # fmt: skip
